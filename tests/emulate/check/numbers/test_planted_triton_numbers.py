"""Numbers that Triton kernels lose: NaNs and infinities, and what does not fit an 8-bit float."""

from __future__ import annotations

from typing import Any

import pytest

import wavecast
from tests.targets import swept, thorough_beyond
from wavecast.emulate.check.collected import Reports

torch: Any = pytest.importorskip("torch", reason="needs PyTorch")
triton: Any = pytest.importorskip("triton", reason="needs Triton")

import triton.language as tl  # noqa: E402

pytestmark = pytest.mark.torch
TARGETS = ("gfx942", "gfx950", "gfx1100", "gfx1201")


@triton.jit
def divided(x, y, out, n, RIGHT: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N)
    a = tl.load(x + offs, mask=offs < n, other=0)
    b = tl.load(y + offs, mask=offs < n, other=0)
    value = a / b  # PLANTED
    if RIGHT:
        value = tl.where(b != 0, value, 0.0)
    tl.store(out + offs, value, mask=offs < n)


@triton.jit
def logarithm(x, y, out, n, RIGHT: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N)
    a = tl.load(x + offs, mask=offs < n, other=0)
    value = tl.log(a)  # PLANTED
    if RIGHT:
        value = tl.where(a > 0, value, 0.0)
    tl.store(out + offs, value, mask=offs < n)


@triton.jit
def converted(x, out, limit, RIGHT: tl.constexpr, T: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N)
    value = tl.load(x + offs)
    if RIGHT:
        value = tl.minimum(tl.maximum(value, -limit), limit)
    tl.store(out + offs, value.to(T))  # PLANTED


def found(kernel: Any, target: str, *arguments: Any) -> list[tuple[str, int, tuple[int, ...]]]:
    reports = Reports(numbers=True)
    with wavecast.device(target, check=reports, threads=1):
        kernel[(1,)](*arguments, 128)
    first = kernel.starting_line_number
    return [
        (r.kind.rule, r.location.outermost.line - first, r.lanes) for r in reports if r.location
    ]


def vectors(dtype: Any) -> tuple[Any, Any, Any]:
    x, y = torch.ones(128, dtype=dtype), torch.ones(128, dtype=dtype)
    x[3] = y[3] = y[5] = 0
    return x, y, torch.zeros(128, dtype=dtype)


@pytest.mark.parametrize("target", swept(TARGETS))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_a_division_by_zero(target: str, dtype: Any) -> None:
    wrong = sorted(found(divided, target, *vectors(dtype), 100, False))
    assert wrong == [("infinity", 5, (5,)), ("not-a-number", 5, (3,))]
    assert found(divided, target, *vectors(dtype), 100, True) == []
    x, _, out = vectors(dtype)
    assert found(divided, target, x, torch.ones_like(x), out, 100, False) == []


@pytest.mark.parametrize("target", swept(TARGETS))
def test_a_logarithm_of_zero(target: str) -> None:
    wrong = found(logarithm, target, *vectors(torch.float32), 100, False)
    assert wrong == [("infinity", 4, (3,))]
    assert found(logarithm, target, *vectors(torch.float32), 100, True) == []


FORMATS = {
    "float8_e4m3fnuz": (tl.float8e4b8, 240.0, 249.0, 247.0),
    "float8_e4m3fn": (tl.float8e4nv, 448.0, 465.0, 463.0),
    "float8_e5m2": (tl.float8e5, 57344.0, 62000.0, 61000.0),
    "float8_e5m2fnuz": (tl.float8e5b16, 57344.0, 62000.0, 61000.0),
}
QUICK = [
    ("gfx942", "float8_e4m3fnuz"),
    ("gfx942", "float8_e5m2"),
    ("gfx950", "float8_e4m3fn"),
    ("gfx1201", "float8_e4m3fn"),
]


@pytest.mark.parametrize(
    ("target", "name"), thorough_beyond(QUICK, [(t, name) for t in TARGETS for name in FORMATS])
)
def test_numbers_beyond_an_8_bit_float(target: str, name: str) -> None:
    """By an instruction of the target or by Triton's code."""
    kind, limit, large, near = FORMATS[name]
    x, out = torch.ones(128), torch.zeros(128, dtype=getattr(torch, name))
    x[3], x[5], x[7], x[9] = near, large, -1e6, float("inf")
    reports = Reports(numbers=True)
    with wavecast.device(target, check=reports, threads=1):
        converted[(1,)](x, out, limit, False, kind, 128)
    (report,) = reports
    assert (report.kind.rule, report.severity, report.lanes) == ("fp8-overflow", "warning", (5, 7))
    assert report.location is not None
    assert report.location.outermost.line == converted.starting_line_number + 6
    assert report.message.startswith(
        f"converts 2 values beyond ±{limit:g}, the largest of {name}: up to ±1e+06"
    )
    assert found(converted, target, x, out, limit, True, kind) == []
