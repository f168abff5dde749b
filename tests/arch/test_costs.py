"""Cost tables: every class for every AMD generation, every matrix instruction."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from wavecast import arch
from wavecast.arch.cost import matrix_table, table
from wavecast.arch.processors import named_in_tables
from wavecast.arch.reader import ROOT
from wavecast.errors import MissingFact, UnknownName, UsageError

AMD = [device for device in arch.devices() if device.vendor == "amd"]
FACTS = Path(__file__).parents[3] / "shared" / "facts" / "mfma_wmma.csv"


@pytest.mark.parametrize("device", AMD, ids=lambda device: device.id)
def test_every_class_has_a_cost(device: arch.Device) -> None:
    assert table(device.generation).keys() == set(arch.COST_CLASSES)
    for name in arch.COST_CLASSES:
        cost = device.cost(name)
        assert cost.pipe in arch.PIPES
        assert cost.issue_cycles > 0
        assert cost.latency_cycles is None or cost.latency_cycles >= cost.issue_cycles
        assert cost.status in arch.STATUSES
        assert set(cost.source.split(", ")) <= arch.citations().keys()


def test_every_class_of_the_contract() -> None:
    text = (ROOT.parents[1] / "docs" / "system.md").read_text(encoding="utf-8")
    listed = text.split("## Cost classes", 1)[1].split("`")[1].split()
    assert set(listed) == set(arch.COST_CLASSES)


def test_transcendentals_by_generation() -> None:
    """A quarter of the lanes a clock on CDNA3, twice that on CDNA4, an own unit on RDNA."""
    found = {name: arch.load(name).cost("trans") for name in ("mi300x", "mi355x", "rx7900xtx")}
    assert {name: (cost.pipe, cost.issue_cycles) for name, cost in found.items()} == {
        "mi300x": ("valu", 16),
        "mi355x": ("valu", 8),
        "rx7900xtx": ("trans", 4),
    }


def test_wave64_takes_two_passes_on_rdna() -> None:
    device = arch.load("rx7900xtx")
    assert (device.cost("valu").issue_cycles, device.cost("valu", 64).issue_cycles) == (1, 2)
    assert device.cost("valu", 64).latency_cycles == 6
    assert device.cost("salu", 64) == device.cost("salu")
    with pytest.raises(UsageError):
        arch.load("mi300x").cost("valu", 32)


def test_a_measured_latency_replaces_the_one_of_the_table() -> None:
    for name in ("mi210", "mi300x"):
        device = arch.load(name)
        assert device.cost("vmem_load").latency_cycles == device.value("lat_l2")
        assert device.cost("lds_load").latency_cycles == device.value("lat_lds")
        assert "mt4g" in device.cost("lds_load").source
    nanoseconds = arch.load("rx7900xtx").cost("smem_load").latency_cycles
    assert nanoseconds == pytest.approx(15.4e-9 * 2.5e9)


def test_unknown_class_and_vendor_without_costs() -> None:
    with pytest.raises(UnknownName, match="valu"):
        arch.load("mi300x").cost("vallu")
    with pytest.raises(MissingFact, match="hopper"):
        arch.load("h100").cost("valu")
    with pytest.raises(MissingFact, match="sm_90"):
        arch.load("h100").matrix_cost("HGMMA")


def test_matrix_table_holds_every_instruction() -> None:
    assert sum(len(rows) for rows in matrix_table().values()) == 339
    targets = {named_in_tables(device.target) for device in AMD}
    assert set(matrix_table()) == targets - {"gfx1030"}


def test_matrix_cycles_are_the_published_ones() -> None:
    if not FACTS.is_file():
        pytest.skip("the shared facts are not beside the checkout")
    with FACTS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            cost = arch.load(row["gfx"]).matrix_cost(
                row["mnemonic"], row["fmt_a"], row["fmt_b"], int(row["wave"])
            )
            assert cost.issue_cycles == int(row["cycles"]), row["mnemonic"]


@pytest.mark.parametrize(
    ("a_format", "b_format", "cycles"),
    [("", "", 32), ("fp8", "bf8", 32), ("fp4", "bf6", 16), ("f4", "fp8", 32), ("bf8", "f4", 32)],
)
def test_an_8_bit_operand_doubles_f8f6f4(a_format: str, b_format: str, cycles: int) -> None:
    device = arch.load("gfx950")
    for mnemonic in ("v_mfma_f32_16x16x128_f8f6f4", "v_mfma_scale_f32_16x16x128_f8f6f4"):
        assert device.matrix_cost(mnemonic, a_format, b_format).issue_cycles == cycles


def test_matrix_latency_follows_the_wait_states() -> None:
    """LLVM GCNHazardRecognizer.cpp: 8 passes ask for 11 wait states on gfx942, 12 on gfx950."""
    for target, waits in (("gfx942", 11), ("gfx950", 12)):
        cost = arch.load(target).matrix_cost("v_mfma_f32_32x32x8_bf16")
        assert cost.issue_cycles == 32
        assert cost.latency_cycles == (waits + 1) * 4
        assert cost.accumulate_cycles == 32
    short = arch.load("gfx942").matrix_cost("v_mfma_f32_4x4x4_16b_bf16")
    assert (short.issue_cycles, short.accumulate_cycles) == (8, 12)


def test_unknown_matrix_instruction() -> None:
    with pytest.raises(UnknownName, match="v_mfma_f32_32x32x8_f16"):
        arch.load("gfx942").matrix_cost("v_mfma_f32_32x32x8f16")
    with pytest.raises(UnknownName, match="operand format 'fp5'"):
        arch.load("gfx950").matrix_cost("v_mfma_f32_16x16x128_f8f6f4", "fp5")
