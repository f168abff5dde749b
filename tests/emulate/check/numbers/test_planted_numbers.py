"""NaNs and infinities that kernels of HIP and Triton make, and right kernels that look alike."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="needs llvmlite")

import wavecast
from tests.targets import swept, thorough_beyond
from wavecast.emulate.check.collected import Reports
from wavecast.emulate.reports import Report

SOURCE = Path(__file__).with_name("planted_numbers.hip")
TARGETS = ("gfx942", "gfx950", "gfx1100", "gfx1201")
INF = float("inf")
NAN, INFINITE = "not-a-number", "infinity"
DIVISIONS = ("divided_f32", "divided_f64", "divided_f16", "fast", "reciprocal", "accumulated")
EXACT = tuple(name for name in DIVISIONS if name not in ("fast", "reciprocal"))
CHOSEN = ("chosen_f32", "chosen_f64", "chosen_fast", "chosen_later", "stored_where", "finite")
WRONG = [
    *((name, 0.0, 0.0, NAN) for name in DIVISIONS),
    *((name, 1.0, 0.0, INFINITE) for name in DIVISIONS),
    *((name, INF, INF, NAN) for name in DIVISIONS),
    *((name, INF, INF, NAN) for name in ("chosen_f32", "chosen_later", "stored_where")),
    ("difference", INF, INF, NAN),
    ("root_f32", -1.0, 1.0, NAN),
    ("root_f64", -1.0, 1.0, NAN),
    ("logarithm", -1.0, 1.0, NAN),
    ("logarithm", 0.0, 1.0, INFINITE),
    ("divided_f32", 3e38, 1e-3, INFINITE),
    *((name, -2.0, 0.5, NAN) for name in ("power_f32", "power_f64")),
    *(("rest_f32", *pair, NAN) for pair in ((1.0, 0.0), (INF, 2.0))),
]
RIGHT = [
    *((name, 0.0, 5.0) for name in DIVISIONS),
    *((name, 60000.0, 50000.0) for name in DIVISIONS),
    *((name, 1.0, INF) for name in DIVISIONS),
    *(("divided_f32", *pair) for pair in ((1e-40, 1e-40), (3e38, 2e38), (1e-38, 3e38))),
    *((name, 1.0, 0.0) for name in CHOSEN),
    *((name, 0.0, 0.0) for name in CHOSEN),
    *((name, value, 1.0) for name in ("root_f32", "root_f64") for value in (0.0, INF)),
    ("logarithm", INF, 1.0),
    ("finite", INF, INF),
    *((name, -2.0, 3.0) for name in ("power_f32", "power_f64")),
    *(("power_f32", *pair) for pair in ((0.0, 0.5), (-INF, 0.5), (2.0, -1.5))),
    *(("rest_f32", *pair) for pair in ((0.0, 2.0), (-5.0, INF))),
    *(("power_chosen", value, 1.0) for value in (-2.0, 2.0)),
    *((name, value, 1.0) for name in ("hyperbolic", "error_function") for value in (300.0, -300.0)),
    ("gate", 300.0, 1.0),
]
_KERNEL = re.compile(r"KERNEL (\w+)")


@cache
def lines() -> dict[str, int]:
    """Kernel -> the line that is to be reported, or the last one of a kernel without it."""
    found: dict[str, int] = {}
    name = ""
    for number, text in enumerate(SOURCE.read_text().splitlines(), 1):
        if (match := _KERNEL.match(text)) is not None:
            name = match[1]
        elif name and ("PLANTED" in text or "x[i]" in text):
            found[name] = number
    return found


@cache
def module(target: str) -> tuple[Any, Reports]:
    reports = Reports(numbers=True)
    return wavecast.load(SOURCE, arch=target, check=reports, threads=1), reports


def found(target: str, name: str, a: float, b: float) -> list[Report]:
    kernels, reports = module(target)
    dtype = {"f64": np.float64, "f16": np.float16}.get(name[-3:], np.float32)
    x, y = np.ones(128, dtype), np.ones(128, dtype)
    x[3], y[3] = a, b
    kernels[name](1, 64, x, y, np.zeros(128, dtype), 128)
    return reports.take()


def cases(each: list[tuple]) -> list[Any]:
    every = [(target, *case) for target in TARGETS for case in each]
    quick = [("gfx942", *case) for case in each]
    quick += [("gfx1201", *case) for case in each if case[0] in ("divided_f32", "chosen_f32")]
    return thorough_beyond(quick, every)


@pytest.mark.hip
@pytest.mark.parametrize(("target", "name", "a", "b", "rule"), cases(WRONG))
def test_the_first_special_number_is_reported(
    target: str, name: str, a: float, b: float, rule: str
) -> None:
    reports = [report for report in found(target, name, a, b) if report.kind.rule == rule]
    assert [(r.location.outermost.line, r.lanes) for r in reports if r.location is not None] == [
        (lines()[name], (3,))
    ]


@pytest.mark.hip
@pytest.mark.parametrize(("target", "name", "a", "b"), cases(RIGHT))
def test_numbers_that_are_right_or_left_out(target: str, name: str, a: float, b: float) -> None:
    assert found(target, name, a, b) == []


FP8 = Path(__file__).with_name("planted_fp8.hip")


@cache
def conversions(target: str) -> tuple[Any, Reports]:
    reports = Reports(numbers=True)
    return wavecast.load(FP8, arch=target, check=reports, threads=1), reports


@pytest.mark.hip
@pytest.mark.parametrize("target", swept(TARGETS))
def test_numbers_that_headers_limit_before_they_convert_them(target: str) -> None:
    kernels, reports = conversions(target)
    x = np.ones(64, np.float32)
    x[3], x[5] = 1000, -1000
    lines = FP8.read_text().splitlines()
    for name in kernels:
        kernels[name](1, 64, x, np.zeros(64, np.uint8))
        named = [r for r in reports.take() if r.location is not None]
        assert len(named) == name.endswith("_wrong"), name
        for report in named:
            assert report.location is not None
            assert "// PLANTED" in lines[report.location.outermost.line - 1]
            assert report.message.startswith("converts 2 values beyond")
