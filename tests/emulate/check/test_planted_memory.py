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
from wavecast.emulate.reports import Report

pytestmark = pytest.mark.hip
SOURCE = Path(__file__).with_name("planted_memory.hip")
TARGETS = ("gfx90a", "gfx942", "gfx1100", "gfx1201")
QUICK = (
    "lds_overrun_wrong",
    "lds_scalars_right",
    "private_unwritten_wrong",
    "private_loop_wrong",
    "private_passed_right",
    "lanes_of_lds_wrong",
)
_NAME = re.compile(r"__global__ void (\w+)_(wrong|right)\(")
_PLANTED = re.compile(r"// PLANTED (\S+)(?: on (.+))?$")


def planted() -> dict[str, tuple[int, str, tuple[str, ...]]]:
    """Kernel -> line of its mistake, the kind of the report, and the families of targets where it
    is found; line 0 for a twin."""
    found: dict[str, tuple[int, str, tuple[str, ...]]] = {}
    for number, line in enumerate(SOURCE.read_text().splitlines(), 1):
        if (name := _NAME.search(line)) is not None:
            found["_".join(name.groups())] = 0, "", ()
        elif (mark := _PLANTED.search(line)) is not None:
            found[list(found)[-1]] = number, mark[1], tuple((mark[2] or "gfx").split())
    return found


def cases(ending: str) -> list[Any]:
    names = [name for name in planted() if name.endswith(ending)]
    every = [(target, name) for target in TARGETS for name in names]
    quick = [("gfx942", name) for name in names] + [("gfx1201", name) for name in QUICK]
    return thorough_beyond(quick, every)


@cache
def module(target: str) -> tuple[Any, Reports]:
    reports = Reports()
    return wavecast.load(SOURCE, arch=target, check=reports, threads=1), reports


def found(target: str, name: str) -> list[Report]:
    kernels, reports = module(target)
    storage, kept = np.arange(1024, dtype=np.float32), np.zeros(1024, np.float32)
    values = storage[256:512], kept[256:512], np.arange(256, dtype=np.int32), 8
    dynamic = 512 if "dynamic" in name else 0
    kernels[name](1, 128, *values, memory=(storage, kept), dynamic_lds=dynamic)
    return [report for report in reports.take() if report.severity == "error"]


@pytest.mark.parametrize(("target", "name"), cases("_wrong"))
def test_a_mistake_is_reported_at_its_line(target: str, name: str) -> None:
    line, rule, families = planted()[name]
    named = {
        (report.kind.rule, report.location.outermost.line)
        for report in found(target, name)
        if report.location is not None
    }
    assert ((rule, line) in named) == target.startswith(families)


@pytest.mark.parametrize(("target", "name"), cases("_right"))
def test_a_corrected_kernel_is_clean(target: str, name: str) -> None:
    assert found(target, name) == []


def test_a_race_in_memory_of_another_argument_is_out_of_bounds() -> None:
    """Workgroup 1 reads behind `in` what workgroup 0 stores to `out`."""
    kernels, reports = module("gfx942")
    storage = np.arange(512, dtype=np.float32)
    values = storage[:128], storage[128:384], np.arange(256, dtype=np.int32), 8
    kernels["behind_its_end_wrong"](2, 128, *values, memory=(storage,))
    assert {report.kind.rule for report in reports.take()} == {"out-of-bounds"}
