"""Mistakes between two GPUs, planted in kernels and in what the host does, and the same without."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("llvmlite", reason="needs llvmlite")

import wavecast
from tests.emulate.check.gpus import cases, collectives, host
from tests.emulate.check.gpus.cases import RACE
from tests.emulate.check.gpus.planting import DEADLOCK, Bench, Case
from wavecast.emulate.check.collected import Reports
from wavecast.emulate.reports import Kind, Report
from wavecast.errors import WavecastError

pytestmark = pytest.mark.torch
CASES = (*cases.CASES, *collectives.CASES, *host.CASES)
HOST_RACE = "host-race"
KINDS = {kind.rule for kind in Kind}
QUICK = (
    *("release missing", "acquire of the GPU", "read early", "buffer reused", "signal twice"),
    *("wrong flag", "rank number", "no event", "early event", "wrong device"),
    *("counter of the GPU", "buffer reused by a launch", "both receive", "sizes of a collective"),
    *("peer's stores read", "reset early", "copy not awaited", "staging buffer reused"),
)
DOCUMENT = Path(__file__).parents[4] / "docs" / "multi-gpu.md"


def _cases() -> list[Any]:
    """Those that are not quick are thorough: each compiles and translates its kernel."""
    return [
        pytest.param(case, id=case.name, marks=() if case.name in QUICK else pytest.mark.thorough)
        for case in CASES
    ]


def _run(case: Case, *, mistake: bool) -> tuple[list[Report], str]:
    """The reports of a case, and the error it ended with."""
    reports, error = Reports(), ""
    node: Any
    try:
        with wavecast.device("gfx942", count=2, check=reports) as node:
            case.run(Bench(node), mistake)
    except WavecastError as raised:
        error = str(raised)
    return list(reports), error


def _named(report: Report) -> set[int]:
    """The lines that a report names."""
    places = (report.location, report.other_location)
    lines = {place.outermost.line for place in places if place is not None}
    return lines | {int(number) for number in re.findall(r"at line (\d+)", report.message)}


@pytest.mark.parametrize("case", _cases())
def test_a_mistake_is_found_at_its_line(case: Case) -> None:
    reports, error = _run(case, mistake=True)
    if case.kind not in KINDS:
        assert case.kind in error
        assert re.search(r"GPU \d|rank \d", error)
        assert "\n" not in error.split("hint:")[0].strip()
        named_places = {place for place in case.places if re.search(rf"{place}\b", error)}
        assert named_places == case.places
        return
    found = [report for report in reports if report.kind.rule == case.kind]
    assert found
    assert any(_named(report) & case.lines for report in found)
    if case.kind == HOST_RACE:
        return
    for report in found:
        assert report.gpu is not None
        assert report.workgroup is not None
        if case.kind == RACE:
            assert {report.gpu, report.other_gpu} == {0, 1}
            assert report.other_kernel
            assert report.other_workgroup is not None


@pytest.mark.parametrize("case", _cases())
def test_without_the_mistake_nothing_is_reported(case: Case) -> None:
    assert _run(case, mistake=False) == ([], "")


def test_the_suite_and_its_table() -> None:
    """The documented table has every case, and every race has a planted line."""
    assert len({case.name for case in CASES}) == len(CASES) >= 25
    assert all(case.lines for case in CASES if case.kind in KINDS)
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| `?([^|`]+)`? \|$", DOCUMENT.read_text(), re.M)
    named = {(name, what, kind) for name, what, kind in rows}
    expected = {
        (case.name, case.what, case.kind if case.kind in (*KINDS, DEADLOCK) else "error")
        for case in CASES
    }
    assert expected <= named
