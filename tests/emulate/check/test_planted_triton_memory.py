"""Mistakes in what Triton kernels read and write, each with the kernel without it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import wavecast
from tests.targets import thorough_beyond
from wavecast.emulate.check.collected import Reports
from wavecast.emulate.errors import ExecutionError
from wavecast.emulate.reports import Kind, Report

torch: Any = pytest.importorskip("torch", reason="needs PyTorch")
triton: Any = pytest.importorskip("triton", reason="needs Triton")

import triton.language as tl  # noqa: E402

pytestmark = pytest.mark.torch
TARGETS = ("gfx942", "gfx1201")
INT = torch.int32


@triton.jit
def copied(x, out, n, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out + offs, tl.load(x + offs, mask=offs < n, other=0))  # PLANTED


@triton.jit
def shifted(x, out, by, RIGHT: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N) + by
    if RIGHT:
        offs = tl.minimum(tl.maximum(offs, 0), N - 1)
    tl.store(out + tl.arange(0, N), tl.load(x + offs))  # PLANTED


@triton.jit
def rows(x, out, n, stride, N: tl.constexpr):
    offs = tl.arange(0, N)
    row = x + tl.program_id(0) * stride
    values = tl.load(row + offs, mask=offs < n, other=0.0)  # PLANTED
    tl.store(out + tl.program_id(0) * N + offs, values)


@triton.jit
def gathered(x, index, out, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out + offs, tl.load(x + tl.load(index + offs)))  # PLANTED


@triton.jit
def far_rows(x, out, stride, N: tl.constexpr):
    start = tl.program_id(0) * stride
    offs = tl.arange(0, N)
    tl.store(out + offs, tl.load(x + start + offs))  # PLANTED


@triton.jit
def counted(x, out, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.atomic_add(out + offs % 16, tl.load(x + offs))  # PLANTED


@triton.jit
def summed(x, out, n, RIGHT: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N)
    if RIGHT:
        values = tl.load(x + offs, mask=offs < n, other=0.0)
    else:
        values = tl.load(x + offs, mask=offs < n)  # PLANTED
    tl.store(out, tl.sum(values))


@triton.jit
def scattered(index, out, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out + tl.load(index + offs), offs)  # PLANTED


@triton.jit
def updated(index_ptr, x_ptr, N: tl.constexpr):
    at = x_ptr + tl.load(index_ptr + tl.arange(0, N))
    tl.store(at, tl.load(at) + 1)  # PLANTED


@triton.jit
def tile_updated(index_ptr, x_ptr, R: tl.constexpr, C: tl.constexpr):
    offs = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    at = x_ptr + tl.load(index_ptr + offs)
    tl.store(at, tl.load(at) + 1)  # PLANTED


@triton.jit
def divided(x, by, out, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out + offs, tl.load(x + offs) // tl.load(by + offs))  # PLANTED


@triton.jit
def remainder(x, by, out, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out + offs, tl.load(x + offs) % tl.load(by))  # PLANTED


@triton.jit
def added_in_any_order(x, out, RIGHT: tl.constexpr, N: tl.constexpr):
    part = tl.sum(tl.load(x + tl.program_id(0) * N + tl.arange(0, N)))
    if RIGHT:
        tl.store(out + tl.program_id(0), part)
    else:
        tl.atomic_add(out, part)  # PLANTED


@triton.jit
def waits(flag, out):
    while tl.atomic_add(flag, 0) == 0:  # PLANTED
        pass
    tl.store(out, 1)


@triton.jit
def bytes_as(x, out, FNUZ: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N)
    values = tl.load(x + offs)
    if FNUZ:
        values = values.to(tl.float8e4b8, bitcast=True)
    else:
        values = values.to(tl.float8e4nv, bitcast=True)  # PLANTED
    tl.store(out + offs, values.to(tl.float32))


def ones(count: int, dtype: Any = torch.float32) -> Any:
    return torch.ones(count, dtype=dtype, device="cuda")


def unwritten(count: int, dtype: Any, at: slice, right: bool) -> Any:
    """A tensor of ones whose elements `at` only the right kernel finds written."""
    x = torch.empty(count, dtype=dtype, device="cuda")
    x[: at.start], x[at.stop :] = 1, 1
    if right:
        x[at] = 1
    return x


def of_view(right: bool) -> None:
    copied[(1,)](torch.rand(8, 64, device="cuda")[2], ones(128), 64 if right else 96, 128)


def of_negative(right: bool) -> None:
    shifted[(1,)](torch.rand(512, device="cuda")[256:], ones(256), -3, right, 256)


def of_halo(right: bool) -> None:
    shifted[(1,)](torch.rand(512, device="cuda")[:256], ones(256), 2, right, 256)


def of_row_view(right: bool) -> None:
    x = torch.rand(8, 96, device="cuda")[:, :64]
    rows[(8,)](x, ones(8 * 128), 64 if right else 80, 96, 128)


def of_gather(right: bool) -> None:
    index = torch.arange(64, dtype=INT, device="cuda")
    gathered[(1,)](torch.rand(256, device="cuda")[:64], index if right else index + 8, ones(64), 64)


def of_wrap(right: bool) -> None:
    far_rows[(3,)](ones(4096), ones(256), 256 if right else (1 << 30) + 4096, 256)


def of_tail(right: bool) -> None:
    copied[(1,)](ones(100), ones(128), 100 if right else 128, 128)


def of_one_float(right: bool) -> None:
    copied[(1,)](unwritten(128, torch.float32, slice(77, 78), right), ones(128), 128, 128)


def of_one_half(right: bool) -> None:
    copied[(1,)](unwritten(128, torch.float16, slice(77, 78), right), ones(128), 128, 128)


def of_one_byte(right: bool) -> None:
    x = unwritten(128, torch.int8, slice(77, 78), right)
    copied[(1,)](x, ones(128, torch.int8), 128, 128)


def of_one_short(right: bool) -> None:
    copied[(1,)](unwritten(128, torch.int16, slice(77, 78), right), ones(128, INT), 128, 128)


def of_stored_bytes(right: bool) -> None:
    """What one kernel has not written, another one reads."""
    x = torch.empty(128, dtype=torch.uint8, device="cuda")
    copied[(1,)](ones(128, torch.uint8), x, 128, 128 if right else 64)
    copied[(1,)](x, ones(128, torch.uint8), 128, 128)


def of_one_long(right: bool) -> None:
    x = unwritten(128, torch.int64, slice(77, 78), right)
    copied[(1,)](x, ones(128, torch.int64), 128, 128)


def of_atomic(right: bool) -> None:
    out = (torch.zeros if right else torch.empty)(16, device="cuda")
    counted[(2,)](ones(128), out, 128)


def of_masked(right: bool) -> None:
    summed[(1,)](ones(100), ones(1), 100, right, 128)


def of_scatter(right: bool) -> None:
    index = torch.arange(256, dtype=INT, device="cuda")
    scattered[(1,)](index if right else index // 2, ones(256, INT), 256)


def of_update(right: bool) -> None:
    index = torch.arange(256, dtype=INT, device="cuda")
    updated[(1,)](index if right else index % 128 // 2, ones(256, INT), 256)


def of_tile_update(right: bool) -> None:
    index = torch.arange(1024, dtype=INT, device="cuda")
    tile_updated[(1,)](index if right else index % 8, ones(1024), 32, 32)


def of_division(right: bool) -> None:
    by = torch.arange(128, dtype=INT, device="cuda") + int(right)
    divided[(1,)](ones(128, INT), by, ones(128, INT), 128)


def of_remainder(right: bool) -> None:
    by = torch.full((1,), int(right), dtype=torch.int64, device="cuda")
    remainder[(1,)](ones(128, torch.int64), by, ones(128, torch.int64), 128)


CASES: dict[str, tuple[Any, Callable[[bool], None], Kind]] = {
    "view": (copied, of_view, Kind.OUT_OF_BOUNDS),
    "negative": (shifted, of_negative, Kind.OUT_OF_BOUNDS),
    "halo": (shifted, of_halo, Kind.OUT_OF_BOUNDS),
    "row_view": (rows, of_row_view, Kind.OUT_OF_BOUNDS),
    "gather": (gathered, of_gather, Kind.OUT_OF_BOUNDS),
    "wrap": (far_rows, of_wrap, Kind.OUT_OF_BOUNDS),
    "tail": (copied, of_tail, Kind.OUT_OF_BOUNDS),
    "one_float": (copied, of_one_float, Kind.UNINITIALISED_GLOBAL),
    "one_half": (copied, of_one_half, Kind.UNINITIALISED_GLOBAL),
    "one_byte": (copied, of_one_byte, Kind.UNINITIALISED_GLOBAL),
    "one_short": (copied, of_one_short, Kind.UNINITIALISED_GLOBAL),
    "stored_bytes": (copied, of_stored_bytes, Kind.UNINITIALISED_GLOBAL),
    "one_long": (copied, of_one_long, Kind.UNINITIALISED_GLOBAL),
    "atomic": (counted, of_atomic, Kind.UNINITIALISED_GLOBAL),
    "masked": (summed, of_masked, Kind.MASKED_ELEMENT),
    "scatter": (scattered, of_scatter, Kind.LANE_RACE),
    "update": (updated, of_update, Kind.LOST_UPDATE),
    "tile_update": (tile_updated, of_tile_update, Kind.LOST_UPDATE),
    "division": (divided, of_division, Kind.INTEGER_DIVISION_BY_ZERO),
    "remainder": (remainder, of_remainder, Kind.INTEGER_DIVISION_BY_ZERO),
}
QUICK = (
    "view",
    "negative",
    "one_half",
    "stored_bytes",
    "scatter",
    "update",
    "tile_update",
    "remainder",
)
SWEPT = thorough_beyond(
    [("gfx942", name) for name in QUICK], [(target, name) for target in TARGETS for name in CASES]
)


def found(target: str, run: Callable[[], None], *, determinism: bool = False) -> list[Report]:
    """The errors of a run; one that breaks off keeps those before it."""
    reports = Reports(determinism=determinism)
    try:
        with wavecast.device(target, check=reports, threads=1):
            run()
    except ExecutionError:
        assert reports.errors
    return list(reports.errors)


def planted(kernel: Any) -> int:
    lines, first = inspect.getsourcelines(kernel.fn)
    return next(first + number for number, line in enumerate(lines) if "PLANTED" in line)


def named(reports: list[Report]) -> set[tuple[Kind, int]]:
    return {(r.kind, r.location.outermost.line) for r in reports if r.location is not None}


@pytest.mark.parametrize(("target", "name"), SWEPT)
def test_a_mistake_is_reported_and_its_correction_is_clean(target: str, name: str) -> None:
    kernel, launch, kind = CASES[name]
    assert found(target, lambda: launch(True)) == []
    assert (kind, planted(kernel)) in named(found(target, lambda: launch(False)))


@pytest.mark.thorough
@pytest.mark.parametrize("target", TARGETS)
def test_a_sum_that_depends_on_the_order(target: str) -> None:
    torch.manual_seed(0)
    x = torch.randn(2048) * 1e4

    def run(right: bool) -> list[Report]:
        def launch() -> None:
            added_in_any_order[(8,)](x.to("cuda"), torch.zeros(8, device="cuda"), right, 256)

        return found(target, launch, determinism=True)

    assert run(True) == []
    line = planted(added_in_any_order)
    assert (Kind.ORDER_DEPENDENT, line) in named(run(False))


@pytest.mark.thorough
@pytest.mark.parametrize("target", TARGETS)
def test_a_wait_for_what_nobody_stores(target: str) -> None:
    def launch(value: int) -> None:
        with wavecast.device(target, check=True, threads=1):
            waits[(1,)](torch.full((1,), value, dtype=INT, device="cuda"), ones(1, INT))

    launch(1)
    with pytest.raises(ExecutionError, match=rf":{planted(waits)}\b"):
        launch(0)


@pytest.mark.thorough
def test_bytes_of_the_other_format() -> None:
    x = torch.rand(128).to(torch.float8_e4m3fnuz)

    def run(right: bool) -> list[Report]:
        return found("gfx942", lambda: bytes_as[(1,)](x, torch.zeros(128), right, 128))

    assert run(True) == []
    assert (Kind.FP8_FORMAT, planted(bytes_as)) in named(run(False))
