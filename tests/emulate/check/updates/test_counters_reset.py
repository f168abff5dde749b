"""Counters of arrivals that are, or are not, reset before the next launch."""

import re
from pathlib import Path

import numpy as np
import pytest

import wavecast
from wavecast.emulate.check.collected import Reports
from wavecast.emulate.reports import Kind, Report

pytestmark = pytest.mark.hip
SOURCE = Path(__file__).with_name("planted_counters.hip")
LINES = SOURCE.read_text().splitlines()
GROUPS, THREADS = 4, 64
PLANTS = [line.split()[-1] for line in LINES if "// PLANT" in line]
RIGHT = [
    "stores_zero",
    "wraps",
    "modulo",
    "epochs",
    "tickets",
    "once",
    "threshold",
    "histogram",
    "appends",
]


class Session:
    """Launches of the kernels of the file with one array of counters."""

    def __init__(self, target: str, start: int = 0, dtype: type = np.uint32) -> None:
        self.reports = Reports()
        self.kernels = wavecast.load(SOURCE, arch=target, check=self.reports)
        self.x = np.ones(2 * GROUPS * THREADS, np.float32)
        self.parts, self.out = np.zeros_like(self.x), np.zeros_like(self.x)
        self.counters = np.full(16, start, dtype)

    def run(self, name: str, groups: int = GROUPS) -> None:
        arrays = self.x, self.parts, self.out, self.counters
        self.kernels[name](groups, THREADS, *arrays)

    def unreset(self) -> list[Report]:
        return [one for one in self.reports if one.kind is Kind.COUNTER_NOT_RESET]


def session_of(target: str, name: str) -> Session:
    dtype = np.uint64 if name == "wide_counter" else np.uint32
    return Session(target, GROUPS if name == "counts_down" else 0, dtype)


@pytest.fixture(params=["gfx942", "gfx1100"])
def target(request):
    return request.param


@pytest.mark.parametrize("name", PLANTS)
def test_a_counter_that_nobody_resets_is_reported(target, name):
    session = session_of(target, name)
    session.run(name)
    assert session.unreset() == []
    session.run(name)
    (report,) = session.unreset()
    assert report.location is not None
    assert LINES[report.location.line - 1].endswith(f"// PLANT {name}")
    assert report.other_location is not None
    assert re.search("==|>=| < ", LINES[report.other_location.line - 1])
    session.run(name)
    assert len(session.unreset()) == 1


@pytest.mark.parametrize("name", PLANTS)
def test_counters_that_the_host_resets_are_clean(target, name):
    session = session_of(target, name)
    start = session.counters.copy()
    for _ in range(2):
        session.run(name)
        session.counters[:] = start
    assert session.unreset() == []


@pytest.mark.parametrize("name", RIGHT)
def test_right_counters_are_clean(target, name):
    session = Session(target)
    for _ in range(3):
        session.run(name)
    assert session.unreset() == []


def test_another_grid_is_another_launch():
    session = Session("gfx942")
    session.run("last_of_grid")
    session.run("last_of_grid", 2 * GROUPS)
    assert session.unreset() == []


def test_counters_of_several_buffers_take_turns():
    session = Session("gfx942")
    buffers = session.counters, np.zeros_like(session.counters)
    for session.counters in buffers:
        session.run("last_of_grid")
    assert session.unreset() == []
    for number, session.counters in enumerate(buffers, 1):
        session.run("last_of_grid")
        assert sum(report.count for report in session.unreset()) == number
