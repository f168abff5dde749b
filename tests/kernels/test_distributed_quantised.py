"""Quantised all-reduces on emulated GPUs: the documented error bound, same bits, clean checks."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("llvmlite", reason="needs llvmlite")

import wavecast  # noqa: E402
from wavecast.errors import ArgumentError  # noqa: E402
from wavecast.kernels.distributed import functions as distributed  # noqa: E402
from wavecast.kernels.distributed.quantised import SCALED  # noqa: E402

pytestmark = pytest.mark.torch
SLOW = pytest.mark.thorough
ROUNDED = {torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
"""Half of the unit of the last place of a result."""


def _slow(*values: Any) -> Any:
    return pytest.param(*values, marks=SLOW)


def _bound(xs: Any, kind: str, out_dtype: Any) -> Any:
    """What the module's documentation promises, for float64 inputs [ranks, count]."""
    count = xs.shape[1]
    padded = torch.nn.functional.pad(xs, (0, -count % SCALED)).view(len(xs), -1, SCALED)
    largest = padded.abs().amax(-1).repeat_interleave(SCALED, 1)[:, :count]
    parts = largest.sum(0)
    total = xs.sum(0).abs()
    if kind == "int8":
        sent = parts / 254
        again = (total + sent).view(-1)
        again = torch.nn.functional.pad(again, (0, -count % SCALED)).view(-1, SCALED).amax(-1)
        bound = sent + again.repeat_interleave(SCALED)[:count] / 254
    else:
        sent = xs.abs().sum(0) / 16 + parts / 2**18
        bound = sent + (total + sent) / 16 + 2 * parts / 2**18
    return bound * (1 + 1e-5) + (total + bound) * ROUNDED[out_dtype]


@pytest.mark.parametrize(
    ("ranks", "kind", "count", "dtype"),
    [
        (2, "fp8", 5000, torch.bfloat16),
        (4, "int8", 777, torch.float16),
        _slow(2, "fp8", 1, torch.float32),
        _slow(2, "int8", 40_000, torch.float32),
        _slow(4, "fp8", 5000, torch.float32),
        _slow(8, "fp8", 5000, torch.bfloat16),
        _slow(8, "int8", 777, torch.float32),
    ],
)
def test_errors_are_within_the_bound(ranks: int, kind: str, count: int, dtype: Any) -> None:
    made = torch.Generator().manual_seed(count)
    # Ranks of magnitudes that differ by orders: blocks have scales of their own.
    xs = [(torch.randn(count, generator=made) * 10.0 ** (r - 1)).to(dtype) for r in range(ranks)]
    with wavecast.device("gfx942", count=ranks, check=True) as hooks:
        groups = distributed.groups(ranks, half=1 << 14)
        inputs = [x.to(f"cuda:{r}") for r, x in enumerate(xs)]
        got = hooks.ranks(lambda r: distributed.all_reduce_quantised(inputs[r], groups[r], kind))
    wide = torch.stack([x.double() for x in xs])
    error = (got[0].cpu().double() - wide.sum(0)).abs()
    assert got[0].dtype == dtype
    assert bool((error <= _bound(wide, kind, dtype)).all())
    if count > 1:
        assert float(error.max()) > 0  # eight bits were sent
    assert all(torch.equal(got[0].cpu(), one.cpu()) for one in got)


def test_blocks_of_zeros_and_exact_values() -> None:
    with wavecast.device("gfx942", count=2) as hooks:
        pair = distributed.groups(2, half=1 << 12)
        x = torch.zeros(300)
        x[200] = 127.0
        inputs = [x.to(f"cuda:{r}") for r in range(2)]
        got = hooks.ranks(lambda r: distributed.all_reduce_quantised(inputs[r], pair[r], "int8"))
        assert torch.equal(got[1].cpu(), 2 * x)


@pytest.mark.parametrize(
    ("ranks", "dtype", "width"),
    [(2, "float8_e4m3fn", 64), _slow(4, "int8", 0), _slow(8, "float8_e4m3fnuz", 0)],
)
def test_normalised_and_quantised(ranks: int, dtype: str, width: int) -> None:
    made = torch.Generator().manual_seed(5)
    rows, columns = 3, 300
    xs = [torch.randn(rows, columns, generator=made).bfloat16() for _ in range(ranks)]
    residual = torch.randn(rows, columns, generator=made).bfloat16()
    weight = torch.randn(columns, generator=made)
    to = getattr(torch, dtype)

    def rank(number: int) -> Any:
        given = (t.to(f"cuda:{number}") for t in (xs[number], residual, weight))
        return distributed.all_reduce_rms_norm_quantised(*given, groups[number], to, width)

    with wavecast.device("gfx942", count=ranks, check=True) as hooks:
        groups = distributed.groups(ranks, half=1 << 13)
        results = hooks.ranks(rank)
    total = torch.stack([x.double() for x in xs]).sum(0) + residual.double()
    normed = total * torch.rsqrt(total.square().mean(-1, keepdim=True) + 1e-6) * weight.double()
    for q, scales, summed in results:
        q, scales = q.cpu().to(torch.float32).double(), scales.cpu().double()
        blocks = -(-columns // width) if width else 1
        assert scales.shape == (rows, blocks)
        each = scales.repeat_interleave(width or columns, 1)[:, :columns]
        step = 0.5 * each if dtype == "int8" else (q.abs() * each / 16).clamp_min(each * 2.0**-10)
        assert bool(((q * each - normed).abs() <= step * (1 + 1e-4)).all())
        assert float((summed.cpu().double() - total).abs().max()) <= 2.0**-8 * float(
            total.abs().max()
        )
    assert all(torch.equal(results[0][1].cpu(), one[1].cpu()) for one in results)


@SLOW
@pytest.mark.parametrize("target", ["gfx90a", "gfx950", "gfx1100", "gfx1201"])
def test_other_targets_get_the_same_bits(target: str) -> None:
    found = []
    for name in ("gfx942", target):
        with wavecast.device(name, count=2) as hooks:
            pair = distributed.groups(2, half=1 << 14)
            made = torch.Generator().manual_seed(1)
            xs = [torch.randn(999, generator=made).to(f"cuda:{r}") for r in range(2)]

            def rank(number: int, pair: Any = pair, xs: Any = xs) -> Any:
                return distributed.all_reduce_quantised(xs[number], pair[number])

            found.append(hooks.ranks(rank)[0].cpu())
    assert torch.equal(found[0], found[1])


def test_arguments_that_do_not_fit() -> None:
    with wavecast.device("gfx942", count=2):
        pair = distributed.groups(2, half=1 << 12)
        x = torch.zeros(4, device="cuda:0")
        with pytest.raises(ArgumentError, match="kind is 'int4'"):
            distributed.all_reduce_quantised(x, pair[0], "int4")
        with pytest.raises(ArgumentError, match="x is int32; it takes float32"):
            distributed.all_reduce_quantised(x.int(), pair[0])
        with pytest.raises(ArgumentError, match="width is 24"):
            distributed.all_reduce_rms_norm_quantised(x, x, x, pair[0], width=24)
