"""Planted mistakes next to atomics and in updates are found, and their twins are clean."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wavecast
from tests.targets import thorough_beyond
from wavecast.emulate.check.collected import Reports
from wavecast.emulate.reports import Report

pytestmark = pytest.mark.hip
SOURCE = Path(__file__).with_name("planted_updates.hip")
TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
QUICK = ("zeroed_array_wrong", "every_lane_wrong", "zeroed_lds_wrong", "volatile_last_right")
_NAME = re.compile(r"__global__ void (\w+_(?:wrong|right))\(")
_PLANTED = re.compile(r"// PLANTED (\S+)$")


@cache
def planted() -> dict[str, tuple[int, str]]:
    """Kernel -> the line of its mistake and the kind of the report; line 0 for a twin."""
    found: dict[str, tuple[int, str]] = {}
    for number, line in enumerate(SOURCE.read_text().splitlines(), 1):
        if (name := _NAME.search(line)) is not None:
            found[name[1]] = 0, ""
        elif (mark := _PLANTED.search(line)) is not None:
            found[list(found)[-1]] = number, mark[1]
    return found


def cases(ending: str) -> list[Any]:
    names = [name for name in planted() if name.endswith(ending)]
    quick = [("gfx942", name) for name in names] + [("gfx1201", name) for name in QUICK]
    return thorough_beyond(quick, [(target, name) for target in TARGETS for name in names])


@cache
def module(target: str) -> tuple[Any, Reports]:
    reports = Reports()
    return wavecast.load(SOURCE, arch=target, check=reports, threads=1), reports


def found(target: str, name: str) -> list[Report]:
    kernels, reports = module(target)
    floats = np.arange(8192, dtype=np.float32)
    kernels[name](8, 128, np.zeros_like(floats), floats, np.zeros(64, np.uint32))
    return reports.take()


@pytest.mark.parametrize(("target", "name"), cases("_wrong"))
def test_a_mistake_is_reported_at_its_line(target: str, name: str) -> None:
    line, rule = planted()[name]
    named = {
        (report.kind.rule, place.outermost.line)
        for report in found(target, name)
        for place in (report.location, report.other_location)
        if place is not None
    }
    assert (rule, line) in named


@pytest.mark.parametrize(("target", "name"), cases("_right"))
def test_a_corrected_kernel_is_clean(target: str, name: str) -> None:
    assert found(target, name) == []


def test_reports_say_what_to_do() -> None:
    (lost,) = found("gfx942", "count_wrong")
    assert lost.message == (
        "updates sync[0], which lane 0 of the wave updates too: both have loaded the old value, "
        "and one of the updates is lost; use an atomic operation, or one lane"
    )
    messages = [report.message for report in found("gfx942", "volatile_last_wrong")]
    assert any("both accesses are volatile, which makes neither" in one for one in messages)
