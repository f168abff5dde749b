"""Kernels of the experts' backward pass: the activation's, and the weights' gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import estimates
from wavecast.kernels.moe import tiling
from wavecast.kernels.moe.activations import activate, slopes
from wavecast.kernels.moe.blocks import store_rows
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.kernels.tiles import tile_of


@triton.jit
def moe_activation_backward_kernel(
    before_ptr, slope_ptr, weights_ptr, experts_ptr, dbefore_ptr, scaled_ptr, dweights_ptr, count,
    alpha, limit, N: tl.constexpr, KIND: tl.constexpr, GATES: tl.constexpr,
    BLOCK: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Of one slot, from `before` (gates and ups) and `slope`, the gradient by the activation's
    result if its weight was 1: the gradients by gates and ups, the weighted result, and the
    gradient by the weight (added to what `dweights` holds)."""
    slot = tl.program_id(0)
    weight = tl.load(weights_ptr + slot).to(tl.float32)
    expert = tl.load(experts_ptr + slot)
    known = (expert >= 0) & (expert < count)
    line = slot.to(tl.int64) if WIDE else slot
    along = tl.zeros((BLOCK,), tl.float32)
    kind = scaled_ptr.dtype.element_ty
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = (at < N) & known
        gate_at = line * (2 * N) + (2 * at if GATES == 2 else at)
        up_at = gate_at + (1 if GATES == 2 else N)
        gate = tl.load(before_ptr + gate_at, mask=inside, other=0.0).to(tl.float32)
        up = tl.load(before_ptr + up_at, mask=inside, other=0.0).to(tl.float32)
        slope = tl.load(slope_ptr + line * N + at, mask=inside, other=0.0).to(tl.float32)
        result = activate(gate, up, alpha, limit, KIND)
        by_gate, by_up = slopes(gate, up, alpha, limit, KIND)
        along += tl.where(inside, slope * result, 0.0)
        tl.store(dbefore_ptr + gate_at, (slope * by_gate * weight).to(kind), mask=inside)
        tl.store(dbefore_ptr + up_at, (slope * by_up * weight).to(kind), mask=inside)
        tl.store(scaled_ptr + line * N + at, (result * weight).to(kind), mask=inside)
    tl.store(dweights_ptr + slot, tl.sum(along, axis=0))


@triton.jit
def moe_bias_slope_kernel(
    dy_ptr, bias_ptr, experts_ptr, dweights_ptr, count, columns, top_k,
    BLOCK: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """dweights[slot] += dy[token] · bias[expert]."""
    slot = tl.program_id(0)
    expert = tl.load(experts_ptr + slot)
    known = (expert >= 0) & (expert < count)
    token = slot // top_k
    if WIDE:
        token = token.to(tl.int64)
        expert = expert.to(tl.int64)
    along = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = (at < columns) & known
        dy = tl.load(dy_ptr + token * columns + at, mask=inside, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptr + expert * columns + at, mask=inside, other=0.0).to(tl.float32)
        along += dy * bias
    before = tl.load(dweights_ptr + slot)
    tl.store(dweights_ptr + slot, before + tl.sum(along, axis=0))


@triton.jit
def moe_weight_gradient_kernel(
    a_ptr, b_ptr, order_ptr, starts_ptr, weights_ptr, dw_ptr, dbias_ptr, slots, a_shared, b_shared,
    M: tl.constexpr, N: tl.constexpr, BIAS: tl.constexpr, WEIGHTED: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr, XCDS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """dw[expert] = Σ a[slot // a_shared]ᵀ · b[slot // b_shared] over the expert's slots, [M, N];
    and dbias[expert] = Σ a, times the slot's weight (WEIGHTED)."""
    down: tl.constexpr = (M + BLOCK_M - 1) // BLOCK_M
    across: tl.constexpr = (N + BLOCK_N - 1) // BLOCK_N
    number = tl.program_id(0)
    experts = tl.num_programs(0) // (down * across)
    expert, within = tile_of(number, experts, down * across, 1, XCDS)  # pyright: ignore[reportArgumentType]
    line, column = tile_of(within, down, across, GROUP, 1)  # pyright: ignore[reportArgumentType]
    first = tl.load(starts_ptr + expert)
    last = tl.load(starts_ptr + expert + 1)
    row = line * BLOCK_M + tl.arange(0, BLOCK_M)
    at = column * BLOCK_N + tl.arange(0, BLOCK_N)
    safe_row = row if M % BLOCK_M == 0 else tl.minimum(row, M - 1)
    safe = at if N % BLOCK_N == 0 else tl.minimum(at, N - 1)
    dw = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    dbias = tl.zeros((BLOCK_M,), tl.float32)
    for start in range(first, last, BLOCK_K):
        place = start + tl.arange(0, BLOCK_K)
        slot = tl.load(order_ptr + place, mask=place < last, other=slots)
        valid = slot < slots
        from_a = tl.where(valid, slot // a_shared, 0)
        from_b = tl.where(valid, slot // b_shared, 0)
        if WIDE:
            from_a = from_a.to(tl.int64)
            from_b = from_b.to(tl.int64)
        a = tl.load(a_ptr + from_a[None, :] * M + safe_row[:, None], mask=valid[None, :], other=0.0)
        b = tl.load(b_ptr + from_b[:, None] * N + safe[None, :], mask=valid[:, None], other=0.0)
        dw = tl.dot(a, b, dw, input_precision="ieee")
        if BIAS:
            one = a.to(tl.float32)
            if WEIGHTED:
                weight = tl.load(weights_ptr + slot, mask=valid, other=0.0).to(tl.float32)
                one = one * weight[None, :]
            dbias += tl.sum(one, axis=1)
    store_rows(
        dw_ptr + expert.to(tl.int64) * (M * N), dw, row, row < M, column, N, BLOCK_M, BLOCK_N
    )
    if BIAS:
        if column == 0:
            rounded = dbias.to(dbias_ptr.dtype.element_ty)
            tl.store(dbias_ptr + expert * M + row, rounded, mask=row < M)


def _row_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    whole = min(2048, max(64, triton.next_power_of_2(problem["columns"])))
    return {
        "BLOCK": (*(size for size in (512, 1024, 2048) if size < whole), whole),
        "num_warps": (1, 2, 4, 8),
        "num_stages": (1,),
    }


def _row_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    slots, columns = problem["slots"], problem["columns"]
    size = slots * columns * problem["bytes"]
    return estimates.streaming(
        device,
        settings,
        workgroups=slots,
        read=3 * size,
        written=3 * size,
        elements=settings["BLOCK"],
        operations=30.0 * triton.cdiv(columns, settings["BLOCK"]),
        held=8.0,
    )


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    plain = problem["dtype"] == "fp32"
    kept = {
        "BLOCK_M": (32, 64) if plain else (64, 128, 256),
        "BLOCK_N": (32, 64) if plain else (64, 128, 256),
        "BLOCK_K": (16, 32) if plain else (32, 64),
        "GROUP": (8,),
        "num_warps": (4, 8),
        "num_stages": (2,),
    }
    return {**kept, **tiling.matrix(device)}


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    size = tiling.SIZES[problem["dtype"]]
    return tiling.fits(problem, settings, device, settings["BLOCK_N"], size)


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    count = problem["experts"]
    return estimates.tile(
        device,
        settings,
        m=problem["m"],
        n=problem["n"],
        k=max(1, problem["slots"] // count),
        dtype=problem["dtype"],
        rows=settings["BLOCK_M"],
        columns=settings["BLOCK_N"],
        depth=settings["BLOCK_K"],
        batch=count,
    )


ACTIVATION = Space(
    kernel="moe_activation_backward_kernel",
    axes=_row_axes,
    seconds=_row_seconds,
    classes=("slots",),
)
BIAS_SLOPE = Space(
    kernel="moe_bias_slope_kernel", axes=_row_axes, seconds=_row_seconds, classes=("slots",)
)
GRADIENT = Space(
    kernel="moe_weight_gradient_kernel",
    axes=_axes,
    fits=_fits,
    seconds=_seconds,
    classes=("slots",),
)

__all__ = [
    "ACTIVATION",
    "BIAS_SLOPE",
    "GRADIENT",
    "moe_activation_backward_kernel",
    "moe_bias_slope_kernel",
    "moe_weight_gradient_kernel",
]
