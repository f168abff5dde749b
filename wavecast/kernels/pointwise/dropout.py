"""Dropout by counter-based random numbers: nothing is kept for the backward pass.

Element e takes 16 bits of `tl.rand4x`'s generator: word e // 2 % 4 of Philox 4x32 at counter
e // 8, its lower half for even e. It is kept where these are at least p · 2^16. The words are made
with 7 rounds, the fewest that pass all of BigCrush (Salmon et al., SC 2011).
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import checks, derivative, random
from wavecast.kernels.describe import Operator, Signature, sizes, vector_flops, widened
from wavecast.kernels.pointwise import elementwise

ROUNDS = 7
_LEVELS = 1 << 16
_SHARED = 8
"""Elements that share a counter."""
TENSORS = elementwise.tensors("x", result="y")
ADD_TENSORS = elementwise.tensors("x", "residual", result="y")


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
    pid = tl.program_id(0).to(tl.int64) if WIDE else tl.program_id(0)
    start = pid * BLOCK
    keep = kept(seed, pid * (BLOCK // 8) + tl.arange(0, BLOCK // 8), threshold, ROUNDS)
    offs = tl.arange(0, BLOCK)
    mask = offs < count - start
    x = tl.load(x_ptr + start + offs, mask=mask, other=0.0).to(tl.float32)
    y = tl.where(keep, x * scale, 0.0)
    if ADD:
        y += tl.load(residual_ptr + start + offs, mask=mask, other=0.0).to(tl.float32)
    tl.store(y_ptr + start + offs, y.to(y_ptr.dtype.element_ty), mask=mask)


DROPOUT = elementwise.flat_kernel(dropout_kernel, instructions=34.0, live_registers=4.0)


@TENSORS.checked
def dropout(x: Tensor, p: float, seed: int) -> Tensor:
    """Each element is 0 with probability `p` (rounded to 1 / 65536), else x / (1 - p).

    `x` is of float32, float16 or bfloat16 and any shape; the result has its dtype. Which elements
    are kept depends on `seed` (its lower 64 bits) and their index alone, the same on every GPU, and
    the backward pass draws them again. A CUDA graph replays one seed. Raises ArgumentError.
    """
    return _run("dropout", x, None, p, seed)


@ADD_TENSORS.checked
def dropout_add(x: Tensor, residual: Tensor, p: float, seed: int) -> Tensor:
    """`dropout(x, p, seed) + residual`, added in float32, in the dtype of `x`; `residual` has the
    shape of `x`. Raises ArgumentError."""
    return _run("dropout_add", x, residual, p, seed)


def _run(operator: str, x: Tensor, residual: Tensor | None, p: float, seed: int) -> Tensor:
    checks.require(0 <= p <= 1, operator, f"p is {p}, expected 0 to 1")
    threshold, scale = _threshold(p)
    numbers = {"seed": random.to_int64(seed), "threshold": threshold, "scale": scale}
    constants = {"ADD": residual is not None, "ROUNDS": ROUNDS}
    return elementwise.run(DROPOUT, "y", x, x=x, residual=residual, **numbers, **constants)


def _threshold(p: float) -> tuple[int, float]:
    """(the least 16-bit number that is kept, what kept elements are multiplied by)."""
    return round(p * _LEVELS), 1 / (1 - p) if p < 1 else 0.0


def _apply_dropout(x: Tensor, p: float, seed: int) -> Tensor:
    counters = torch.arange(-(-x.numel() // _SHARED), device=x.device)
    words = torch.stack(random.philox(seed, counters, ROUNDS), dim=1)
    parts = torch.stack([words & 0xFFFF, words >> 16], dim=2)
    threshold, scale = _threshold(p)
    mask = (parts.flatten()[: x.numel()] >= threshold).reshape(x.shape)
    return torch.where(mask, widened(x) * scale, 0.0)


def dropout_reference(x, p, seed):
    return _apply_dropout(x, p, seed).to(x.dtype).contiguous()


def dropout_add_reference(x, residual, p, seed):
    dropped = _apply_dropout(x, p, seed)
    return (dropped + residual.to(dropped.dtype)).to(x.dtype).contiguous()


def _inputs(tensors: Signature) -> Any:
    return lambda make, p=0.1, seed=42, **sizes: tensors.inputs()(make, p=p, seed=seed, **sizes)


OPERATORS = tuple(
    Operator(
        summary=summary,
        call=call,
        inputs=_inputs(tensors),
        flops=vector_flops(len(tensors.arguments), "rows", "columns"),
        batch=None,  # the random numbers depend on the index of an element in the whole tensor
        cases=sizes(
            "rows columns dtype p seed", (3, 301, "float32"), (5, 700, "bfloat16", 0.5, 2**40 + 3)
        ),
        thorough=sizes(
            "rows columns dtype p seed",
            *(
                (33, 65, "float16", 0.25, -1),
                (2, 99, "bfloat16", 0.0, 1),
                (2, 99, "bfloat16", 1.0, 16),
            ),
        ),
        shapes=sizes("rows columns dtype", (8192, 8192, "bfloat16")),
        gradient=derivative.linear(
            call,
            lambda dy, p, seed: {"x": torch.ops.wavecast.dropout(dy, p, seed), "residual": dy},
        ),
    )
    for call, tensors, summary in (
        (dropout, TENSORS, "zeros at random, the same again from the same seed"),
        (dropout_add, ADD_TENSORS, "dropout and a residual added"),
    )
)
