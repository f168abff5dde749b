"""Alternatives are compared with the original by execution."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.lab.conftest import Captured
from wavecast.compile.codeobject import Launch
from wavecast.dtypes import lookup
from wavecast.lab import comparing
from wavecast.lab.comparing import compare_launches
from wavecast.runtimes.triton.generate import assemble


def changed(captured: Captured, before: str, after: str) -> Launch:
    """The launch with a text of its assembly replaced."""
    text = captured.launch.code.assembly
    assert before in text
    device = captured.subject.devices[0]
    return replace(
        captured.launch, code=assemble(captured.launch.code, text.replace(before, after), device)
    )


def test_equal_results_in_every_case(captured: Captured) -> None:
    other = changed(captured, "\ts_endpgm", "\ts_nop 0\n\ts_endpgm")
    before = [tensor.clone() for tensor in captured.tensors]
    found = compare_launches(captured.launch, other, captured.subject.ranges, rounding=False)
    assert found.same
    edges = ("smaller sizes", "half sizes", "n=1")
    assert found.cases == ("memory as it is", "seed 1", *edges)
    for tensor, kept in zip(captured.tensors, before, strict=True):
        assert tensor.equal(kept), "memory stays as it is"


def test_other_results_are_found(captured: Captured) -> None:
    other = changed(captured, "0x40400000", "0x40400001")  # 3.0000002
    found = compare_launches(captured.launch, other, captured.subject.ranges, rounding=False)
    assert not found.same
    assert "out_ptr" in found.difference


def test_rounding_is_allowed_where_the_setting_changes_it(captured: Captured) -> None:
    other = changed(captured, "0x40400000", "0x40400001")
    found = compare_launches(captured.launch, other, captured.subject.ranges, rounding=True)
    assert found.same
    assert 0 < found.largest < 1e-6
    wrong = changed(captured, "0x40400000", "0x40800000")  # 4.0
    assert not compare_launches(captured.launch, wrong, captured.subject.ranges, rounding=True).same


def test_a_missing_wait_is_a_report(captured: Captured) -> None:
    """The emulator computes the same without the wait: only checks see that it is missing."""
    other = changed(captured, "s_waitcnt vmcnt(0)", "s_nop 0")
    found = compare_launches(captured.launch, other, captured.subject.ranges, rounding=False)
    assert not found.difference
    assert not found.same
    assert any(text.startswith("missing-wait") for text in found.reports)


@pytest.mark.parametrize(
    ("want", "have", "rounding", "wrong"),
    [
        ([1.0, 2.0], [1.0, 2.0], False, False),
        ([1.0, 2.0], [1.0, 2.0000002], False, True),
        ([1.0, 2.0], [1.0, 2.0000002], True, False),
        ([1.0, 2.0], [1.0, 2.1], True, True),
        ([1.0, np.nan], [1.0, 2.0], True, True),
    ],
)
def test_difference(want: list[float], have: list[float], rounding: bool, wrong: bool) -> None:
    one, other = (np.array(v, np.float32).view(np.uint8) for v in (want, have))
    _, text = comparing._difference(one, other, lookup("float32"), rounding)
    assert bool(text) == wrong


def test_workgroups_are_corners_and_some_between(captured: Captured) -> None:
    launch = replace(captured.launch, grid=(100, 3, 1))
    chosen = comparing._workgroups(launch, comparing.WORKGROUPS).tolist()
    assert {0, 99, 200, 299} <= set(chosen)
    assert chosen == sorted(set(chosen))
    assert len(chosen) == comparing.WORKGROUPS
    assert comparing._workgroups(launch, 2).tolist() == [0, 299]


@pytest.mark.parametrize(
    ("grid", "checked"),
    [((64, 1, 1), (64, 1, 1)), ((100, 3, 1), (16, 1, 1)), ((4, 100, 2), (4, 4, 1))],
)
def test_checks_of_large_launches_execute_a_part(
    captured: Captured, grid: tuple[int, int, int], checked: tuple[int, int, int]
) -> None:
    launch = replace(captured.launch, grid=grid)
    assert comparing._limit_grid(launch, comparing.CHECKED).grid == checked


def test_an_error_of_other_sizes_is_found(captured: Captured) -> None:
    """A version that takes n for at least 1000, which it is."""
    text = captured.launch.code.assembly
    (line,) = (one for one in text.split("\n") if "v_cmp_gt_i32" in one)
    size = line.replace(",", " ").split()[2]
    other = changed(captured, line, f"\ts_max_i32 {size}, {size}, 0x3e8\n{line}")
    found = compare_launches(captured.launch, other, captured.subject.ranges, rounding=False)
    assert found.cases == ("memory as it is", "seed 1", "smaller sizes")
    assert found.difference.startswith("smaller sizes: out_ptr")


def test_an_error_of_the_smallest_size_is_found(captured: Captured) -> None:
    """A version that takes n for at least 2."""
    text = captured.launch.code.assembly
    (line,) = (one for one in text.split("\n") if "v_cmp_gt_i32" in one)
    size = line.replace(",", " ").split()[2]
    other = changed(captured, line, f"\ts_max_i32 {size}, {size}, 2\n{line}")
    found = compare_launches(captured.launch, other, captured.subject.ranges, rounding=False)
    assert found.difference.startswith("n=1: out_ptr")
