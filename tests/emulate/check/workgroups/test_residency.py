"""Workgroups that wait for others which a GPU does not hold at the same time."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wavecast
from tests.targets import thorough_beyond
from wavecast.emulate.check.collected import Reports
from wavecast.emulate.errors import ExecutionError
from wavecast.emulate.reports import Kind, Report

pytestmark = pytest.mark.hip
SOURCE = Path(__file__).with_name("residency.hip")
HELD = {"gfx942": 304, "gfx950": 512, "gfx1100": 96, "gfx1201": 64}
"""Workgroups of 64 KiB of LDS that the usual device of a target holds."""
TARGETS = thorough_beyond(("gfx1201",), HELD)


@cache
def module(target: str) -> tuple[Any, Reports]:
    reports = Reports()
    return wavecast.load(SOURCE, arch=target, check=reports, threads=1), reports


def found(target: str, kernel: str, groups: int) -> list[Report]:
    """What a launch is reported for; it runs to its end."""
    kernels, reports = module(target)
    out, sync = np.zeros(64 * groups + 64, np.float32), np.zeros(groups, np.uint32)
    out[:64] = np.arange(64)
    kernels[kernel](groups, 64, out, sync)
    assert out[-2:].tolist() == [63, 62]
    return reports.take()


@pytest.mark.parametrize("target", TARGETS)
def test_a_barrier_of_more_workgroups_than_fit_is_reported(target: str) -> None:
    most = HELD[target]
    assert found(target, "barrier", most) == []
    (report,) = found(target, "barrier", most + 2)
    assert report.kind is Kind.NOT_RESIDENT
    line = next(n for n, text in enumerate(SOURCE.read_text().splitlines(), 1) if "SPIN" in text)
    assert report.location is not None
    assert report.location.line == line
    assert f"of {most + 2:,} workgroups" in report.message
    assert f"holds {most:,} of this kernel at once" in report.message


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", ["chain", "pairs"])
def test_workgroups_may_wait_for_those_before_and_next_to_them(target: str, kernel: str) -> None:
    assert found(target, kernel, 2 * HELD[target]) == []


def test_a_barrier_of_many_more_ends_the_launch() -> None:
    """A GPU hangs; executing the others takes long and shows nothing more."""
    kernels, reports = module("gfx1201")
    groups = 2 * HELD["gfx1201"] + 1
    out, sync = np.zeros(64 * groups + 64, np.float32), np.zeros(groups, np.uint32)
    with pytest.raises(ExecutionError, match="would hang: 65 workgroups cannot start") as caught:
        kernels["barrier"](groups, 64, out, sync)
    (report,) = (*caught.value.reports, *reports.take())
    assert report.kind is Kind.NOT_RESIDENT
