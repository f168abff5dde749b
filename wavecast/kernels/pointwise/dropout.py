"""Dropout by counter-based random numbers: nothing is kept for the backward pass.

Element e takes 16 bits of `tl.rand4x`'s generator: word e // 2 % 4 of Philox 4x32 at counter
e // 8, its lower half for even e. It is kept where these are at least p · 2^16. The words are made
with 7 rounds, the fewest that pass all of BigCrush (Salmon et al., SC 2011).
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from wavecast.kernels import checks, random
from wavecast.kernels.choice import launch
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Gradient, Operator
from wavecast.kernels.pointwise import elementwise
from wavecast.kernels.space import Settings

ROUNDS = 7
_LEVELS = 1 << 16
_SHARED = 8
"""Elements that share a counter."""


@triton.jit
def kept(seed, counter, threshold, ROUNDS: tl.constexpr):
    """Whether elements 8c … 8c + 7 are kept, for each counter c of [N]: [8 N]."""
    first, second, third, fourth = tl.randint4x(seed, counter, ROUNDS)
    words = tl.join(tl.join(first, third), tl.join(second, fourth))
    parts = tl.join(words & 0xFFFF, words >> 16)
    return parts.reshape(counter.shape[0] * 8).to(tl.int32) >= threshold


@triton.jit(do_not_specialize=["seed", "threshold"])
def dropout_kernel(
    x_ptr, residual_ptr, y_ptr, count, seed, threshold, scale,
    ADD: tl.constexpr, ROUNDS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0).to(tl.int64) if WIDE else tl.program_id(0)
    start = program * BLOCK
    keep = kept(seed, program * (BLOCK // 8) + tl.arange(0, BLOCK // 8), threshold, ROUNDS)
    place = tl.arange(0, BLOCK)
    inside = place < count - start
    x = tl.load(x_ptr + start + place, mask=inside, other=0.0).to(tl.float32)
    y = tl.where(keep, x * scale, 0.0)
    if ADD:
        y += tl.load(residual_ptr + start + place, mask=inside, other=0.0).to(tl.float32)
    tl.store(y_ptr + start + place, y.to(y_ptr.dtype.element_ty), mask=inside)


def dropout(x: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    """Each element is 0 with probability `p` (rounded to 1 / 65536), else x / (1 - p).

    `x` is of float32, float16 or bfloat16 and any shape; the result has its dtype. Which elements
    are kept depends on `seed` (its lower 64 bits) and their place alone, the same on every GPU, and
    the backward pass draws them again. A CUDA graph replays one seed. Raises ArgumentError.
    """
    return _run("dropout", x, None, p, seed)


def dropout_add(x: torch.Tensor, residual: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    """`dropout(x, p, seed) + residual`, added in float32, in the dtype of `x`; `residual` has the
    shape of `x`. Raises ArgumentError."""
    return _run("dropout_add", x, residual, p, seed)


def _run(
    operator: str, x: torch.Tensor, residual: torch.Tensor | None, p: float, seed: int
) -> torch.Tensor:
    checks.dtype_in(operator, "x", x, checks.FLOATS)
    checks.require(0 <= p <= 1, operator, f"p is {p}, expected 0 to 1")
    if residual is not None:
        checks.dtype_in(operator, "residual", residual, checks.FLOATS)
        checks.shape_is(operator, "residual", residual, x.shape)
        checks.same_device(operator, x=x, residual=residual)
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    count = x.numel()
    if not count:
        return y

    def grid(settings: Settings) -> tuple[int, ...]:
        return (triton.cdiv(count, settings["BLOCK"]),)

    threshold, scale = _threshold(p)
    added = x if residual is None else residual.contiguous()
    problem = {
        "count": count,
        "read": elementwise.bytes_of(x, residual),
        "written": x.element_size(),
        "add": residual is not None,
        "mixed": added.dtype != x.dtype,
    }
    launch(
        dropout_kernel,
        grid,
        (x.contiguous(), added, y, count, _signed(seed), threshold, scale),
        SPACE,
        problem,
        ADD=residual is not None,
        ROUNDS=ROUNDS,
        WIDE=checks.wide(y),
    )
    return y


def _threshold(p: float) -> tuple[int, float]:
    """(the least 16-bit number that is kept, what kept elements are multiplied by)."""
    return round(p * _LEVELS), 1 / (1 - p) if p < 1 else 0.0


def _signed(seed: int) -> int:
    """The lower 64 bits of a seed as an int64."""
    return (seed + 2**63) % 2**64 - 2**63


def _kept(x: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    counters = torch.arange(-(-x.numel() // _SHARED), device=x.device)
    words = torch.stack(random.philox(seed, counters, ROUNDS), dim=1)
    parts = torch.stack([words & 0xFFFF, words >> 16], dim=2)
    return (parts.flatten()[: x.numel()] >= _threshold(p)[0]).reshape(x.shape)


def dropout_reference(x: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    """The same random numbers in plain torch, in float32 at least."""
    kind = torch.promote_types(x.dtype, torch.float32)
    scaled = x.to(kind) * _threshold(p)[1]
    return torch.where(_kept(x, p, seed), scaled, 0.0).to(x.dtype).contiguous()


def dropout_add_reference(
    x: torch.Tensor, residual: torch.Tensor, p: float, seed: int
) -> torch.Tensor:
    """The same random numbers in plain torch, in float32 at least."""
    kind = torch.promote_types(x.dtype, torch.float32)
    dropped = torch.where(_kept(x, p, seed), x.to(kind) * _threshold(p)[1], 0.0)
    return (dropped + residual.to(kind)).to(x.dtype).contiguous()


def _setup(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    del output
    ctx.p, ctx.seed = inputs[-2:]
    ctx.kinds = tuple(tensor.dtype for tensor in inputs[:-2])


def _gradient(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
    dx = torch.ops.wavecast.dropout(dy, ctx.p, ctx.seed)
    return dx.to(ctx.kinds[0]), *(dy.to(kind) for kind in ctx.kinds[1:]), None, None


SPACE = elementwise.flat_space("dropout_kernel", operations=34.0, held=4.0)


def _inputs(make: Make, rows: int, columns: int, dtype: str, p: float = 0.1, seed: int = 42) -> Any:
    return {"x": make.normal((rows, columns), dtype), "p": p, "seed": seed}


def _add_inputs(make: Make, rows: int, columns: int, dtype: str, **named: Any) -> Any:
    given = _inputs(make, rows, columns, dtype, **named)
    return {"x": given.pop("x"), "residual": make.normal((rows, columns), dtype), **given}


def _elements(rows: int, columns: int, **_: Any) -> float:
    return rows * columns


_CASES = (
    {"rows": 3, "columns": 301, "dtype": "float32"},
    {"rows": 5, "columns": 700, "dtype": "bfloat16", "p": 0.5, "seed": 2**40 + 3},
)
_THOROUGH = (
    {"rows": 33, "columns": 65, "dtype": "float16", "p": 0.25, "seed": -1},
    {"rows": 2, "columns": 99, "dtype": "bfloat16", "p": 0.0, "seed": 1},
    {"rows": 2, "columns": 99, "dtype": "bfloat16", "p": 1.0, "seed": 16},
)
_SHAPES = ({"rows": 8192, "columns": 8192, "dtype": "bfloat16"},)

OPERATORS = (
    Operator(
        name="dropout",
        summary="zeros at random, the same again from the same seed",
        call=dropout,
        reference=dropout_reference,
        inputs=_inputs,
        work=elementwise.work(_elements, 1, 1, 1.0),
        cases=_CASES,
        thorough=_THOROUGH,
        shapes=_SHAPES,
        spaces=(SPACE,),
        gradient=Gradient(_setup, _gradient),
    ),
    Operator(
        name="dropout_add",
        summary="dropout and a residual added",
        call=dropout_add,
        reference=dropout_add_reference,
        inputs=_add_inputs,
        work=elementwise.work(_elements, 2, 1, 2.0),
        cases=_CASES,
        thorough=_THOROUGH,
        shapes=_SHAPES,
        spaces=(SPACE,),
        gradient=Gradient(_setup, _gradient),
    ),
)
