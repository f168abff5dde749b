"""The weighted sum of each token's slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, estimates
from wavecast.kernels.choice import launch
from wavecast.kernels.moe.steps import Order
from wavecast.kernels.space import Problem, Settings, Space


@triton.jit
def moe_combine_kernel(
    x_ptr, weights_ptr, experts_ptr, y_ptr, tokens, columns, count,
    TOP_K: tl.constexpr, WEIGHTED: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """y[token] = Σ weight · x[slot] over the token's slots that have an expert, in their order."""
    token = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    valid = token < tokens
    inside = (at < columns)[None, :]
    y = tl.zeros((ROWS, BLOCK), tl.float32)
    for choice in tl.static_range(TOP_K):  # pyright: ignore[reportGeneralTypeIssues]
        slot = token * TOP_K + choice
        expert = tl.load(experts_ptr + slot, mask=valid, other=-1)
        known = (expert >= 0) & (expert < count)
        if WIDE:
            slot = slot.to(tl.int64)
        where = slot[:, None] * columns + at[None, :]
        x = tl.load(x_ptr + where, mask=known[:, None] & inside, other=0.0).to(tl.float32)
        if WEIGHTED:
            weight = tl.load(weights_ptr + slot, mask=known, other=0.0).to(tl.float32)
            x = x * weight[:, None]
        y += x
    if WIDE:
        token = token.to(tl.int64)
    to = y_ptr + token[:, None] * columns + at[None, :]
    tl.store(to, y.to(y_ptr.dtype.element_ty), mask=valid[:, None] & inside)


def combine(
    x: torch.Tensor, order: Order, weights: torch.Tensor | None, dtype: torch.dtype
) -> torch.Tensor:
    """[tokens, columns] in `dtype`: per token the sum of its slots' rows of x, times `weights`."""
    tokens, columns = order.experts.shape[0], x.shape[1]
    y = torch.empty((tokens, columns), dtype=dtype, device=x.device)

    def grid(settings: Settings) -> tuple[int, ...]:
        down = triton.cdiv(tokens, settings["ROWS"])
        return down, triton.cdiv(columns, settings["BLOCK"])

    launch(
        moe_combine_kernel,
        grid,
        (x, x if weights is None else weights, order.experts, y, tokens, columns, order.count),
        COMBINE,
        {
            "tokens": tokens,
            "columns": columns,
            "top_k": order.top_k,
            "bytes": x.element_size(),
            "weighted": weights is not None,
        },
        TOP_K=order.top_k,
        WEIGHTED=weights is not None,
        WIDE=checks.wide(x, y),
    )
    return y


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    whole = min(4096, triton.next_power_of_2(problem["columns"]))
    return {
        "BLOCK": tuple(size for size in (512, 1024, 2048, 4096) if size <= whole) or (whole,),
        "ROWS": (1, 2, 4),
        "num_warps": (2, 4, 8),
        "num_stages": (1,),
    }


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    tokens, columns, top_k = problem["tokens"], problem["columns"], problem["top_k"]
    down = triton.cdiv(tokens, settings["ROWS"])
    return estimates.streaming(
        device,
        settings,
        workgroups=down * triton.cdiv(columns, settings["BLOCK"]),
        read=tokens * top_k * columns * problem["bytes"],
        written=tokens * columns * problem["bytes"],
        elements=settings["ROWS"] * settings["BLOCK"],
        operations=3.0 * top_k,
        held=1.0 + top_k * problem["bytes"] / 4,
    )


COMBINE = Space(kernel="moe_combine_kernel", axes=_axes, seconds=_seconds, classes=("tokens",))

__all__ = ["COMBINE", "combine", "moe_combine_kernel"]
