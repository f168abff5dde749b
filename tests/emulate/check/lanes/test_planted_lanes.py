"""Code for waves of 64 lanes on targets whose waves have 32, and code that asks for the size."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="needs llvmlite")

import wavecast
from tests.targets import thorough_beyond
from wavecast.emulate.check.collected import Reports
from wavecast.emulate.reports import Report

pytestmark = pytest.mark.hip
SOURCE = Path(__file__).with_name("planted_lanes.hip")
TARGETS = ("gfx1100", "gfx1201", "gfx942")
_KERNEL = re.compile(r"KERNEL (\w+)")


@cache
def planted() -> dict[str, int]:
    """Kernel -> line of its mistake, 0 without one."""
    found: dict[str, int] = {}
    for number, line in enumerate(SOURCE.read_text().splitlines(), 1):
        if (match := _KERNEL.match(line)) is not None:
            found[match[1]] = 0
        elif "// PLANTED" in line:
            found[list(found)[-1]] = number
    return found


@cache
def module(target: str) -> tuple[Any, Reports]:
    reports = Reports()
    return wavecast.load(SOURCE, arch=target, check=reports, threads=1), reports


def found(target: str, name: str) -> list[Report]:
    kernels, reports = module(target)
    kernels[name](1, 64, np.arange(64, dtype=np.float32), np.zeros(64, np.float32), 8)
    return reports.take()


def cases(names: list[str]) -> list[Any]:
    return thorough_beyond(
        [("gfx1100", name) for name in names], [(t, name) for t in TARGETS for name in names]
    )


WRONG = [name for name, line in planted().items() if line]
RIGHT = [name for name, line in planted().items() if not line]


@pytest.mark.parametrize(("target", "name"), cases(WRONG))
def test_a_lane_beyond_the_wave_is_reported(target: str, name: str) -> None:
    named = [(r.kind.rule, r.location.outermost.line) for r in found(target, name) if r.location]
    assert named == ([] if target == "gfx942" else [("beyond-wave", planted()[name])])


@pytest.mark.parametrize(
    ("target", "name"), cases([n for n, line in planted().items() if not line])
)
def test_lanes_of_the_wave_are_clean(target: str, name: str) -> None:
    assert found(target, name) == []


def test_the_message_names_the_number() -> None:
    (report,) = found("gfx1100", "broadcast_wrong")
    assert report.message.startswith("reads lane 40, and the waves here have 32 lanes")
    (report,) = found("gfx1100", "down_wrong")
    assert report.message.startswith("moves values by 32 lanes")
