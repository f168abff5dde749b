"""Mistakes in the order of programs, planted in Triton kernels, and the kernels without them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import wavecast
from tests.targets import thorough_beyond
from wavecast.emulate.check.collected import Reports
from wavecast.emulate.reports import Kind, Report

torch: Any = pytest.importorskip("torch", reason="needs PyTorch")
triton: Any = pytest.importorskip("triton", reason="needs Triton")

import triton.language as tl  # noqa: E402

pytestmark = pytest.mark.torch
TARGETS = ("gfx90a", "gfx942", "gfx1100", "gfx1201")


@triton.jit
def hand_over(data, flag, out, RIGHT: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N)
    if tl.program_id(0) == 0:
        tl.store(data + offs, offs * 2.0)  # PLANTED
        if RIGHT:
            tl.debug_barrier()
            tl.atomic_xchg(flag, 1, sem="release")
        else:
            tl.atomic_xchg(flag, 1, sem="relaxed")
    else:
        while tl.atomic_cas(flag, 1, 1, sem="acquire") != 1:
            pass
        tl.debug_barrier()
        tl.store(out + offs, tl.load(data + offs))


@triton.jit
def last_program(x, partial, count, out, RIGHT: tl.constexpr, N: tl.constexpr, G: tl.constexpr):
    pid = tl.program_id(0)
    tl.store(partial + pid, tl.sum(tl.load(x + pid * N + tl.arange(0, N))))  # PLANTED
    if RIGHT:
        tl.debug_barrier()
        before = tl.atomic_add(count, 1, sem="acq_rel")
    else:
        before = tl.atomic_add(count, 1, sem="relaxed")
    if before == G - 1:
        tl.store(out, tl.sum(tl.load(partial + tl.arange(0, G))))


@triton.jit
def accumulate(x, out, lock, RIGHT: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N)
    part = tl.load(x + tl.program_id(0) * N + offs)
    if RIGHT:
        while tl.atomic_cas(lock, 0, 1, sem="acquire") == 1:
            pass
        tl.debug_barrier()
    tl.store(out + offs, tl.load(out + offs) + part)  # PLANTED
    if RIGHT:
        tl.debug_barrier()
        tl.atomic_xchg(lock, 0, sem="release")


@triton.jit
def overlap(x, out, RIGHT: tl.constexpr, N: tl.constexpr):
    pid = tl.program_id(0)
    start = pid * N if RIGHT else pid * (N // 2)
    offs = tl.arange(0, N)
    tl.store(out + start + offs, tl.load(x + offs) + pid)  # PLANTED


@triton.jit
def cleared_by_one(x, out, RIGHT: tl.constexpr, N: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, N)
    if not RIGHT:  # noqa: SIM102
        if pid == 0:
            tl.store(out + offs, tl.zeros((N,), tl.float32))  # PLANTED
    tl.atomic_add(out + offs, tl.load(x + pid * N + offs))


@triton.jit
def read_while_summed(x, total, out, RIGHT: tl.constexpr, N: tl.constexpr):
    pid = tl.program_id(0)
    part = tl.sum(tl.load(x + pid * N + tl.arange(0, N)))
    tl.atomic_add(total, part)
    if RIGHT:
        tl.store(out + pid, part)
    else:
        tl.store(out + pid, part / tl.load(total))  # PLANTED


@triton.jit
def update_in_place(x, STEPS: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N)
    for _ in range(STEPS):
        tl.store(x + offs, tl.load(x + offs) * 2.0 + 1.0)


def of_hand_over(right: bool) -> None:
    data, flag = torch.zeros(256, device="cuda"), torch.zeros(1, dtype=torch.int32, device="cuda")
    hand_over[(2,)](data, flag, torch.zeros_like(data), right, 256)


def of_last_program(right: bool) -> None:
    x, count = torch.rand(1024, device="cuda"), torch.zeros(1, dtype=torch.int32, device="cuda")
    partial, out = torch.zeros(8, device="cuda"), torch.zeros(1, device="cuda")
    last_program[(8,)](x, partial, count, out, right, 128, 8)


def of_accumulate(right: bool) -> None:
    x, lock = torch.rand(1024, device="cuda"), torch.zeros(1, dtype=torch.int32, device="cuda")
    accumulate[(4,)](x, torch.zeros(256, device="cuda"), lock, right, 256)


def of_overlap(right: bool) -> None:
    overlap[(4,)](torch.rand(256, device="cuda"), torch.zeros(1024, device="cuda"), right, 256)


def of_cleared_by_one(right: bool) -> None:
    x, out = torch.rand(1024, device="cuda"), torch.ones(128, device="cuda")
    cleared_by_one[(8,)](x, out, right, 128)


def of_read_while_summed(right: bool) -> None:
    x, total = torch.rand(512, device="cuda"), torch.zeros(1, device="cuda")
    read_while_summed[(8,)](x, total, torch.zeros(8, device="cuda"), right, 64)


CASES: dict[str, tuple[Any, Callable[[bool], None]]] = {
    "hand_over": (hand_over, of_hand_over),
    "last_program": (last_program, of_last_program),
    "accumulate": (accumulate, of_accumulate),
    "overlap": (overlap, of_overlap),
    "cleared_by_one": (cleared_by_one, of_cleared_by_one),
    "read_while_summed": (read_while_summed, of_read_while_summed),
}
ACQUIRING = ("gfx90a", "cleared_by_one")
"""Floats are added by a loop around compare-and-swap, which acquires what the first program has
released: nothing is unordered when that program runs first."""
SWEPT = thorough_beyond(
    [("gfx942", name) for name in CASES],
    [(target, name) for target in TARGETS for name in CASES if (target, name) != ACQUIRING],
)


def found(target: str, run: Callable[[], None]) -> list[Report]:
    reports = Reports()
    with wavecast.device(target, check=reports, threads=1):
        run()
    return list(reports)


@pytest.mark.parametrize(("target", "name"), SWEPT)
def test_a_mistake_is_reported_and_its_correction_is_clean(target: str, name: str) -> None:
    kernel, launch = CASES[name]
    lines, first = inspect.getsourcelines(kernel.fn)
    planted = next(first + number for number, line in enumerate(lines) if "PLANTED" in line)
    assert found(target, lambda: launch(True)) == []
    reports = found(target, lambda: launch(False))
    assert {report.kind for report in reports} == {Kind.WORKGROUP_RACE}
    named = [
        place for r in reports for place in (r.location, r.other_location) if place is not None
    ]
    assert planted in {place.outermost.line for place in named}


@pytest.mark.parametrize(
    ("target", "steps"),
    thorough_beyond([("gfx942", 4)], [(target, steps) for target in TARGETS for steps in (4, 40)]),
)
def test_a_replicated_tile_may_be_updated_in_place(target: str, steps: int) -> None:
    """Each wave loads the tile, and one stores."""
    x = torch.ones(32, device="cpu")

    def run() -> None:
        data = x.to("cuda")
        update_in_place[(1,)](data, steps, 32)

    assert {report.severity for report in found(target, run)} <= {"note"}
