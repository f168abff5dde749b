"""8-bit floats in tensors of bytes: the launch that stores them and the one that reads them."""

from pathlib import Path

import numpy as np
import pytest

import wavecast
from wavecast.dtypes import lookup
from wavecast.emulate.check.collected import Reports
from wavecast.emulate.check.formats.software import values
from wavecast.emulate.reports import Kind, Report

SOURCE = Path(__file__).with_name("stored_formats.hip")
FLOATS = np.random.default_rng(5).normal(size=256).astype(np.float32)


class Session:
    """Launches of the kernels of the file, and the reports of the last one."""

    def __init__(self, target: str = "gfx942") -> None:
        self.reports = Reports()
        self.kernels = wavecast.load(SOURCE, arch=target, check=self.reports, threads=1)

    def run(self, name: str, *arrays: np.ndarray) -> list[Report]:
        before = len(self.reports)
        self.kernels[name](1, arrays[1].size, *arrays)
        return list(self.reports)[before:]


@pytest.fixture(scope="module", params=["gfx942", "gfx1100"])
def session(request):
    return Session(request.param)


def stored(session: Session, name: str) -> np.ndarray:
    found = np.zeros(256, np.uint8)
    assert session.run(name, FLOATS, found) == []
    return found


def out(size: int = 256) -> np.ndarray:
    return np.zeros(size, np.float32)


@pytest.mark.hip
def test_the_other_variant_is_reported_at_the_load():
    session = Session()
    (report,) = session.run("load_fnuz", stored(session, "store_ocp"), out())
    lines = SOURCE.read_text().splitlines()
    assert report.kind is Kind.FP8_FORMAT
    assert report.severity == "error"
    assert report.location is not None
    assert "value.__x = bytes" in lines[report.location.line - 1]
    assert "reads bytes as float8_e4m3fnuz" in report.message
    assert "store_ocp stored its bytes as float8_e4m3fn" in report.message
    assert "factor of two" in report.message


@pytest.mark.hip
def test_instructions_have_the_variant_of_the_target():
    session = Session()
    assert session.run("load_native", stored(session, "store_fnuz"), out()) == []
    assert session.run("load_native", stored(session, "store_ocp"), out())


@pytest.mark.hip
@pytest.mark.parametrize("what", ["copy", "part", "view", "kernel"])
def test_copies_and_views_keep_the_variant(what):
    session = Session()
    given = stored(session, "store_ocp")
    copied = np.zeros_like(given)
    session.run("copy_bytes", given, copied)
    given = {"copy": given.copy(), "part": given[77:].copy(), "view": given[64:], "kernel": copied}[
        what
    ]
    assert session.run("load_fnuz", given, out(given.size))


@pytest.mark.hip
def test_right_programs_are_clean(session):
    given = stored(session, "store_ocp")
    assert session.run("load_ocp", given, out()) == []
    assert session.run("load_bytes", given, out()) == []
    converted = np.zeros_like(given)
    assert session.run("convert", given, converted) == []
    assert session.run("load_fnuz", converted, out()) == []


@pytest.mark.hip
def test_bytes_that_are_written_again_are_forgotten(session):
    given = stored(session, "store_ocp")
    session.run("store_fnuz", FLOATS, given)
    assert session.run("load_fnuz", given, out()) == []
    again = stored(session, "store_ocp")
    again[:] = np.random.default_rng(7).integers(0, 256, again.size)
    assert session.run("load_fnuz", again, out()) == []
    zeros = stored(session, "store_ocp")
    zeros[:] = 0
    assert session.run("load_fnuz", zeros, out()) == []


STORES = {
    "ocp": ("_Z8store_asIL26__hip_fp8_interpretation_t0EEvPKfPh", "store_alias"),
    "fnuz": ("_Z8store_asIL26__hip_fp8_interpretation_t2EEvPKfPh", "store_fnuz"),
}
LOADS = {
    "ocp": ("_Z7load_asI8__wc_fp8ILi3ELb0EEEvPKhPf", "load_ocp"),
    "fnuz": ("_Z7load_asI8__wc_fp8ILi3ELb1EEEvPKhPf", "load_alias"),
}


@pytest.mark.hip
@pytest.mark.parametrize("stores", STORES)
@pytest.mark.parametrize("loads", LOADS)
def test_formats_have_other_names_and_are_arguments_of_templates(stores, loads):
    for store, load in zip(STORES[stores], LOADS[loads], strict=True):
        session = Session()
        reports = session.run(load, stored(session, store), out())
        assert [report.kind for report in reports] == [Kind.FP8_FORMAT] * (stores != loads)


@pytest.mark.hip
@pytest.mark.parametrize("is_copy", [False, True])
def test_a_tensor_may_have_both_formats(is_copy):
    session = Session()
    content = stored(session, "store_ocp")
    session.run("store_fnuz_in_second_half", FLOATS, content)
    content = content.copy() if is_copy else content
    assert session.run("load_second_half", content, out()) == []
    assert session.run("load_ocp", content, out(128)) == []
    assert session.run("load_fnuz", content[128:].copy(), out(128)) == []
    assert session.run("load_ocp", content[:128].copy(), out(128)) == []
    assert session.run("load_fnuz", content[:128].copy(), out(128))
    assert session.run("load_ocp", content[128:].copy(), out(128))


@pytest.mark.hip
@pytest.mark.parametrize(
    "change",
    [
        lambda array: array[::-1],
        lambda array: array[16:144][::-1],
        lambda array: array.reshape(8, 32).T.reshape(-1),
        lambda array: array.reshape(4, 8, 8).transpose(2, 0, 1).reshape(-1),
    ],
    ids=["reversed", "reversed part", "transposed", "permuted"],
)
def test_bytes_in_another_order_keep_the_variant(change):
    session = Session()
    given = np.ascontiguousarray(change(stored(session, "store_ocp")))
    assert session.run("load_ocp", given, out(given.size)) == []
    assert session.run("load_fnuz", given, out(given.size))


OCP = ("store_ocp", "store_bits_ocp", "store_tile_ocp")
FNUZ = ("store_fnuz", "store_bits_fnuz")
LOADS_OCP = ("load_ocp", "load_bits_ocp")
LOADS_FNUZ = ("load_fnuz", "load_bits_fnuz", "load_tile_fnuz")


@pytest.mark.hip
@pytest.mark.parametrize("store", [*OCP, *FNUZ])
@pytest.mark.parametrize("load", [*LOADS_OCP, *LOADS_FNUZ])
def test_conversions_by_bits_and_bytes_in_lds(store, load):
    """What a function converts from is found by executing it for every byte."""
    session = Session("gfx1201")
    same = (store in OCP) == (load in LOADS_OCP)
    reports = session.run(load, stored(session, store), out())
    assert [report.kind for report in reports] == ([] if same else [Kind.FP8_FORMAT])


@pytest.mark.hip
def test_a_function_of_bytes_that_are_no_floats(session):
    for store in (*OCP, *FNUZ):
        assert session.run("load_halves", stored(session, store), out()) == []


@pytest.mark.torch
@pytest.mark.parametrize(
    "name", ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"]
)
def test_the_values_of_bytes_are_those_of_torch(name):
    torch = pytest.importorskip("torch")
    codes = torch.arange(256, dtype=torch.uint8)
    right = codes.view(getattr(torch, name)).to(torch.float32).numpy()
    made = values(lookup(name))
    assert np.array_equal(np.isfinite(made), np.isfinite(right))
    assert np.array_equal(made[np.isfinite(right)], right[np.isfinite(right)])
