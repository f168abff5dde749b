"""Which device a name selects, and what the user is told about it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from wavecast import arch
from wavecast.arch.generic_targets import MEMBERS, processor_of
from wavecast.arch.reader import catalog
from wavecast.arch.select import resolve
from wavecast.errors import UnknownName, UsageError


@pytest.mark.parametrize(
    ("selector", "device_id"),
    [
        ("mi300x", "mi300x"),
        ("MI300X", "mi300x"),
        ("AMD Instinct MI300X", "mi300x"),
        ("amd-instinct mi 300x", "mi300x"),
        ("7900xtx", "rx7900xtx"),
        ("AMD Radeon RX 7900 XTX", "rx7900xtx"),
        ("Strix Halo", "strixhalo"),
        ("h100", "h100_sxm"),
        ("NVIDIA H100 80GB HBM3", "h100_sxm"),
        ("a100", "a100_80g_sxm"),
    ],
)
def test_names(selector: str, device_id: str) -> None:
    found = arch.resolve(selector)
    assert (found.device.id, found.note) == (device_id, "")


@pytest.mark.parametrize(
    ("selector", "device_id", "others"),
    [
        ("gfx908", "mi100", ()),
        ("gfx90a", "mi210", ("mi250x_gcd",)),
        ("gfx942", "mi300x", ("mi300a", "mi308x", "mi325x")),
        ("gfx942:sramecc+:xnack-", "mi300x", ("mi300a", "mi308x", "mi325x")),
        ("gfx950", "mi355x", ("mi350x",)),
        ("gfx1100", "rx7900xtx", ("w7900",)),
        ("gfx1151", "strixhalo", ()),
        ("gfx1201", "rx9070xt", ("r9700",)),
        ("gfx1250", "mi455x", ()),
        ("sm_80", "a100_80g_sxm", ()),
        ("sm_90", "h100_sxm", ("h200",)),
        ("SM90a", "h100_sxm", ("h200",)),
        ("sm_100", "b200", ("gb200",)),
        ("sm_103", "b300", ("gb300",)),
    ],
)
def test_targets(selector: str, device_id: str, others: tuple[str, ...]) -> None:
    found = arch.resolve(selector)
    assert found.device.id == device_id
    assert bool(found.note) == bool(others)
    for name in others:
        assert name in found.note


def test_a_target_of_the_same_kind_stands_in_with_a_note() -> None:
    resolution = arch.resolve("gfx1153")
    assert resolution.device.id == "radeon860m"
    assert "same instruction set" in resolution.note


@pytest.mark.parametrize(("selector", "near"), [("gfx906", "gfx908"), ("sm_89", "sm_80")])
def test_other_targets_are_errors_naming_near_ones(selector: str, near: str) -> None:
    with pytest.raises(UnknownName, match=near):
        arch.load(selector)


@pytest.mark.parametrize(
    ("name", "target", "device_id"),
    [
        ("AMD Instinct MI325X", "gfx942", "mi325x"),
        ("A GPU of a cloud", "gfx942", "mi300x"),
        ("AMD Instinct MI325X", "gfx1100", "rx7900xtx"),  # a name that contradicts the target
        ("A GPU of tomorrow", "gfx1299", "rx9070xt"),
        ("NVIDIA L4", "sm_89", "a100_80g_sxm"),
        ("NVIDIA Rubin", "sm_130", "b200"),
    ],
)
def test_a_gpu_that_a_driver_found_has_a_device(name: str, target: str, device_id: str) -> None:
    assert arch.nearest(name, target).id == device_id


def test_unknown_names() -> None:
    with pytest.raises(UnknownName, match=r"unknown device 'mi30x'.*MI300X|mi300x"):
        arch.load("mi30x")
    with pytest.raises(UnknownName, match="known: a100_80g_sxm, b200"):
        arch.load("zzzz")
    with pytest.raises(UnknownName):
        arch.load("../devices/mi300x")


def test_no_two_devices_share_a_name_and_each_shared_target_has_one_default() -> None:
    names: dict[str, str] = {}
    defaults: dict[str, list[str]] = {}
    for item in catalog().values():
        for name in item.names:
            plain = "".join(char for char in name.lower() if char.isalnum())
            assert names.setdefault(plain, item.id) == item.id
        defaults.setdefault(item.target, []).extend([item.id] * item.default_for_target)
    for target, ids in defaults.items():
        sharing = [item for item in catalog().values() if item.target == target]
        assert len(ids) == (len(sharing) > 1), target


def test_all_devices_in_order() -> None:
    found = arch.devices()
    assert len(found) == len(catalog())
    assert [device.vendor for device in found] == sorted(device.vendor for device in found)
    assert found[0].id == "mi100"


def test_importing_stays_light() -> None:
    """No numpy, no TOML parser, no command line library, and no device file is read."""
    code = (
        "import sys; import wavecast.arch; "
        "print([name for name in ('numpy', 'tomllib', 'click', 'rich') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_a_generic_target_stands_for_its_members() -> None:
    resolution = resolve("gfx9-4-generic")
    assert resolution.device.id == "mi300x"
    assert resolution.note.startswith("gfx9-4-generic is code for gfx942, gfx950: mi300x")
    with pytest.raises(UsageError, match="no device runs code for gfx9-generic"):
        resolve("gfx9-generic")


def test_members_of_generic_targets_are_processors() -> None:
    for generic, members in MEMBERS.items():
        assert processor_of(generic) == members[0]
        assert [processor_of(generic, member) for member in members] == list(members)
        assert processor_of(generic, "gfx90a") == members[0]
    assert processor_of("gfx942", "gfx950") == "gfx942"
