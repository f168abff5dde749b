"""Planted mistakes in what a HIP kernel reads and writes are found, and their twins are clean."""

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
from wavecast.emulate.check.report import Report

pytestmark = pytest.mark.hip
SOURCE = Path(__file__).with_name("planted_memory.hip")
TARGETS = ("gfx90a", "gfx942", "gfx1100", "gfx1201")
_NAME = re.compile(r"__global__ void (\w+)_(wrong|right)\(")
_PLANTED = re.compile(r"// PLANTED (\S+)$")


def planted() -> dict[str, tuple[int, str]]:
    """Kernel -> line of its mistake and the kind of the report; line 0 for a twin."""
    found: dict[str, tuple[int, str]] = {}
    for number, line in enumerate(SOURCE.read_text().splitlines(), 1):
        if (name := _NAME.search(line)) is not None:
            found["_".join(name.groups())] = 0, ""
        elif (mark := _PLANTED.search(line)) is not None:
            found[list(found)[-1]] = number, mark[1]
    return found


def cases(ending: str) -> list[Any]:
    names = [name for name in planted() if name.endswith(ending)]
    every = [(target, name) for target in TARGETS for name in names]
    return thorough_beyond([("gfx942", name) for name in names], every)


@cache
def module(target: str) -> tuple[Any, Reports]:
    reports = Reports()
    return wavecast.load(SOURCE, arch=target, check=reports, threads=1), reports


def found(target: str, name: str) -> list[Report]:
    kernels, reports = module(target)
    storage = np.arange(1024, dtype=np.float32)
    values = storage[256:512], np.zeros(256, np.float32), np.arange(256, dtype=np.int32), 8
    kernels[name](1, 128, *values, memory=(storage,), dynamic_lds=512 if "dynamic" in name else 0)
    return [report for report in reports.take() if report.severity == "error"]


@pytest.mark.parametrize(("target", "name"), cases("_wrong"))
def test_a_mistake_is_reported_at_its_line(target: str, name: str) -> None:
    line, rule = planted()[name]
    named = {
        (report.kind.rule, report.location.outermost.line)
        for report in found(target, name)
        if report.location is not None
    }
    assert (rule, line) in named


@pytest.mark.parametrize(("target", "name"), cases("_right"))
def test_a_corrected_kernel_is_clean(target: str, name: str) -> None:
    assert found(target, name) == []
