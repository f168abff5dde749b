"""8-bit floats in tensors of bytes: the launch that stores them and the one that reads them."""

from pathlib import Path

import numpy as np
import pytest

import wavecast
from wavecast.emulate.check.collected import Reports
from wavecast.emulate.check.report import Kind, Report

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
