"""Products of rows sorted by expert with fp8 weights that have a scale per 128x128."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from wavecast.kernels import gpu
from wavecast.kernels.describe import Axes, Device, Problem, Settings, checks, choice
from wavecast.kernels.moe import tiling
from wavecast.kernels.moe.activations import Gate
from wavecast.kernels.moe.blocks import gated, rows_of, store_rows, tile_at, weight_rows
from wavecast.kernels.moe.fp8_codes import (
    SQUARE,
    WIDENED,
    activations_of,
    codes_to_multiply,
    way_of,
    weights_of,
)
from wavecast.kernels.moe.order import Order
from wavecast.model.ranking import GroupedProduct


@triton.jit
def moe_product_fp8_kernel(
    x_ptr, x_scale_ptr, order_ptr, owners_ptr, starts_ptr, w_ptr, w_scale_ptr, y_ptr,
    slots, shared, alpha, limit,
    EXPERTS: tl.constexpr, N: tl.constexpr, K: tl.constexpr, KIND: tl.constexpr,
    GATES: tl.constexpr, WAY: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    GROUP: tl.constexpr, XCDS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """As `moe_product_kernel`, in steps of 128 of K, whose products are times their scales. Where
    tiles divide squares of 128, the columns of a tile's half, gates or ups, have one."""
    across: tl.constexpr = (N + BLOCK_N - 1) // BLOCK_N
    DEEP: tl.constexpr = (K + 127) // 128
    HALVES: tl.constexpr = 1 if GATES == 0 else 2  # pyright: ignore[reportAssignmentType]
    UNIFORM: tl.constexpr = GATES == 0 or N % 128 == 0
    TIMES: tl.constexpr = 4.0 if WAY == 1 else 1.0  # pyright: ignore[reportAssignmentType]
    UNIT: tl.constexpr = 4 if w_ptr.dtype.element_ty == tl.int32 else 1  # pyright: ignore[reportAssignmentType]
    number = tl.program_id(0)
    down = tl.load(starts_ptr + EXPERTS) // BLOCK_M
    if number >= down * across:
        return
    line, column, expert = tile_at(
        number, down, across, owners_ptr, starts_ptr, BLOCK_M, GROUP, XCDS
    )
    slot, read = rows_of(order_ptr, line, slots, BLOCK_M, WIDE)
    row = read // shared
    at = weight_rows(column, N, BLOCK_N, GATES)
    w_ptr += expert * (HALVES * N * K // UNIT)
    w_scale_ptr += expert * (((HALVES * N + 127) // 128) * DEEP)
    place = tl.arange(0, 128)
    from_x = row[:, None] * K + place[None, :]
    if UNIT == 4:
        from_w = at[:, None] * (K // 4) + tl.arange(0, 32)[None, :]
    else:
        from_w = at[None, :] * K + place[:, None]
    if UNIFORM:
        half = tl.arange(0, HALVES)
        w_scales = w_scale_ptr + (column * BLOCK_N // 128 + half * (N // 128)) * DEEP
        y = tl.zeros((BLOCK_M, HALVES, BLOCK_N), tl.float32)
    else:
        w_scales = w_scale_ptr + at // 128 * DEEP
        y = tl.zeros((BLOCK_M, HALVES * BLOCK_N), tl.float32)
    for step in range(DEEP):
        start = step * 128
        if K % 128 == 0:
            x = tl.load(x_ptr + from_x + start)
            w = tl.load(w_ptr + from_w + start // UNIT)
        else:
            valid = place < K - start
            x = tl.load(x_ptr + from_x + start, mask=valid[None, :], other=0)
            w = tl.load(w_ptr + from_w + start, mask=valid[:, None], other=0)
        x_scale = tl.load(x_scale_ptr + row * DEEP + step) * TIMES
        scale = x_scale[:, None] * tl.load(w_scales + step)[None, :]
        w = weights_of(w, WAY, HALVES * BLOCK_N)
        one = tl.dot(activations_of(x, WAY), w, out_dtype=tl.float32)
        if UNIFORM:
            y += tl.reshape(one, (BLOCK_M, HALVES, BLOCK_N)) * scale[:, :, None]
        else:
            y += one * scale
    y = tl.reshape(y, (BLOCK_M, HALVES * BLOCK_N))
    y = gated(y, alpha, limit, KIND, GATES, BLOCK_M, BLOCK_N)
    store_rows(y_ptr, y, slot, slot < slots, column, N, BLOCK_M, BLOCK_N)


def product_fp8(
    x: torch.Tensor,
    x_scale: torch.Tensor,
    order: Order,
    w: torch.Tensor,
    w_scale: torch.Tensor,
    *,
    shared: int,
    dtype: torch.dtype,
    gate: Gate | None = None,
) -> torch.Tensor:
    """`products.product` of what `fp8_codes.rounded` made, and of codes [experts, rows, k] with
    their scales, in `dtype`."""
    device = gpu.launching()
    way = way_of(device)
    k, n = w.shape[2], w.shape[1] // (2 if gate else 1)
    y = torch.empty((order.slots, n), dtype=dtype, device=x.device)
    choice.run(
        PRODUCT,
        order.problem(n, k, gate, way=way),
        **order.arguments(n, k, gate),
        x=x,
        x_scale=x_scale,
        w=codes_to_multiply(w, way, device),
        w_scale=w_scale.contiguous(),
        y=y,
        shared=shared,
        WAY=way,
        WIDE=checks.wide(x, y),
    )
    return y


def _axes(problem: Problem, device: Device) -> Axes:
    # Every wave changes the codes that it multiplies: the fewer, the less work.
    words = problem["way"] == WIDENED and device.capabilities.matrix_unit == "mfma"
    further = {"num_stages": (1,)} if words and problem["block"] >= 64 else {}
    return {**tiling.axes(problem, device, 1), "BLOCK_N": (32, 64, 128), **further}


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    # Codes that are widened lie in the LDS as float16. A step's own products take accumulators
    # besides those of the sum.
    settings, columns = {**settings, "BLOCK_K": SQUARE}, tiling.columns(problem, settings)
    size = 2 if problem["way"] == WIDENED else 1
    return tiling.fits(settings, device, columns, size) and tiling.fits(
        settings, device, 2 * columns, 0
    )


def _demand(problem: Problem, settings: Settings, device: Device) -> GroupedProduct:
    settings, widened = {**settings, "BLOCK_K": SQUARE}, problem["way"] == WIDENED
    dtype, weight = ("fp16", "fp8") if widened else ("fp8", "")
    return tiling.demand(problem, settings, 1, dtype=dtype, weight=weight, scaling="block")


PRODUCT = tiling.kernel(moe_product_fp8_kernel, axes=_axes, fits=_fits, demand=_demand)
