"""The weighted sum of each token's slots."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import choice
from wavecast.kernels.describe import KernelSpec
from wavecast.kernels.moe.tiling import Order


@triton.jit
def moe_combine_kernel(
    x_ptr, weights_ptr, experts_ptr, y_ptr, tokens, columns, count,
    TOP_K: tl.constexpr, WEIGHTED: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """y[token] = Σ weight · x[slot] over the token's slots that have an expert, in their order."""
    token = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    offs_n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask_m = token < tokens
    mask_n = (offs_n < columns)[None, :]
    y = tl.zeros((ROWS, BLOCK), tl.float32)
    for number in tl.static_range(TOP_K):  # pyright: ignore[reportGeneralTypeIssues]
        slot = token * TOP_K + number
        expert = tl.load(experts_ptr + slot, mask=mask_m, other=-1)
        mask = (expert >= 0) & (expert < count)
        if WIDE:
            slot = slot.to(tl.int64)
        x_offs = slot[:, None] * columns + offs_n[None, :]
        x = tl.load(x_ptr + x_offs, mask=mask[:, None] & mask_n, other=0.0).to(tl.float32)
        if WEIGHTED:
            weight = tl.load(weights_ptr + slot, mask=mask, other=0.0).to(tl.float32)
            x = x * weight[:, None]
        y += x
    if WIDE:
        token = token.to(tl.int64)
    ptrs = y_ptr + token[:, None] * columns + offs_n[None, :]
    tl.store(ptrs, y.to(y_ptr.dtype.element_ty), mask=mask_m[:, None] & mask_n)


def combine(x: Tensor, order: Order, weights: Tensor | None, dtype: torch.dtype) -> Tensor:
    """[tokens, columns] in `dtype`: per token the sum of its slots' rows of x, times `weights`."""
    tokens, columns = order.experts.shape[0], x.shape[1]
    y = torch.empty((tokens, columns), dtype=dtype, device=x.device)
    problem = {"tokens": tokens, "columns": columns, "top_k": order.top_k}
    problem |= {"bytes": x.element_size(), "weighted": weights is not None}
    factors = x if weights is None else weights
    choice.run(
        COMBINE, problem, x=x, weights=factors, experts=order.experts, y=y, count=order.count
    )
    return y


COMBINE = KernelSpec.streaming(
    moe_combine_kernel,
    grid="cdiv(tokens, ROWS), cdiv(columns, BLOCK)",
    axes={
        "BLOCK": "up_to(min(4096, next_power_of_2(columns)), 512, 1024, 2048, 4096)",
        "ROWS": (1, 2, 4),
        "num_warps": (2, 4, 8),
    },
    read="tokens * top_k * columns * bytes",
    written="tokens * columns * bytes",
    elements="ROWS * BLOCK",
    instructions="3.0 * top_k",
    live_registers="1.0 + top_k * bytes / 4",
    contiguous=("weights",),
    rounded=("tokens",),
)
