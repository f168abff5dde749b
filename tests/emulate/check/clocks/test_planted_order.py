"""Planted mistakes in the order of workgroups are found, and corrected kernels are clean."""

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
from wavecast.emulate.reports import Kind, Report

pytestmark = pytest.mark.hip
SOURCE = Path(__file__).with_name("planted_order.hip")
TARGETS = ("gfx90a", "gfx942", "gfx1100", "gfx1201")
QUICK = (
    "flag_relaxed",
    "flag_exchanged",
    "last_block",
    "lock_relaxed",
    "plain_read",
    "hidden_by_swap",
    "lanes_lds",
    "counter_reset",
    "volatile_release",
    "volatile_poll",
    "memory_by_lds_flag",
)
_NAME = re.compile(r"__global__ void (\w+)_(wrong|right|note)\(")
_PLANTED = re.compile(r"// PLANTED(?: on (?P<families>.*))?$")


@cache
def planted() -> dict[str, dict[int, tuple[str, ...]]]:
    """Kernel -> lines that are planted, and the families of targets where they are mistakes."""
    found: dict[str, dict[int, tuple[str, ...]]] = {}
    for number, line in enumerate(SOURCE.read_text().splitlines(), 1):
        name, mark = _NAME.search(line), _PLANTED.search(line)
        if name is not None:
            found["_".join(name.groups())] = {}
        elif mark is not None:
            families = (mark["families"] or "gfx").split()
            found[list(found)[-1]][number] = tuple(families)
    return found


def cases(ending: str) -> list[Any]:
    """(target, kernel) of all kernels of an ending; those of `QUICK` on gfx942 are not thorough."""
    names = [name for name in planted() if name.endswith(ending)]
    quick = [("gfx942", f"{name}{ending}") for name in QUICK]
    quick.append(("gfx1201", "memory_by_lds_flag_right"))  # its waves end before others poll
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
    lines = planted()[name]
    errors = [report for report in found(target, name) if report.severity == "error"]
    if not any(target.startswith(family) for families in lines.values() for family in families):
        assert errors == []
        return
    named = {
        place.outermost.line
        for report in errors
        for place in (report.location, report.other_location)
        if place is not None
    }
    assert named & lines.keys()


@pytest.mark.parametrize(("target", "name"), cases("_right"))
def test_a_corrected_kernel_is_clean(target: str, name: str) -> None:
    assert found(target, name) == []


def test_storing_the_same_value_is_a_note() -> None:
    (report,) = found("gfx942", "same_value_note")
    assert (report.kind, report.severity) == (Kind.SAME_VALUE, "note")
    assert report.message == "stores the value that workgroup (0, 0, 0) stored at out[0]"


QUICK_MISSING = ("flag_relaxed_wrong", "workgroup_scope_wrong", "flag_without_barrier_wrong")
MISSING = {
    "flag_relaxed_wrong": "is not released before the store at line {flag}: no buffer_wbl2 sc1, "
    "s_waitcnt vmcnt(0) between them; use release at agent scope",
    "not_acquired_wrong": "nothing is acquired after the load at line {flag}: no buffer_inv sc1; "
    "use acquire at agent scope",
    "workgroup_scope_wrong": "the scope of the kernel's atomic accesses is the workgroup",
    "flag_without_barrier_wrong": "without a barrier after store at line {data}: "
    "put __syncthreads() between them",
    "flag_first_wrong": "follows the store at line",
}


@pytest.mark.parametrize("name", thorough_beyond(QUICK_MISSING, MISSING))
def test_a_report_names_what_is_missing(name: str) -> None:
    reports = [r for r in found("gfx942", name) if r.kind is Kind.WORKGROUP_RACE]
    text = SOURCE.read_text().splitlines()
    start = next(n for n, line in enumerate(text) if f" {name}(" in line)

    def line(word: str) -> int:
        return next(n for n in range(start, len(text)) if word in text[n]) + 1

    flag = line("atomic_store" if "relaxed" in name else "atomic_load")
    sentence = MISSING[name].format(
        flag=flag, data=line("data[t]") if "data" in MISSING[name] else 0
    )
    assert any(sentence in report.message for report in reports)
