"""Products of rows sorted by expert with the expert's weights, in floats or in int8."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels.moe import tiling
from wavecast.kernels.moe.blocks import gated, rows_of, store_rows, tile_at, weight_rows
from wavecast.kernels.space import Problem, Settings, Space


@triton.jit
def moe_product_kernel(
    x_ptr, x_scale_ptr, order_ptr, owners_ptr, starts_ptr, w_ptr, w_scale_ptr, bias_ptr, y_ptr,
    slots, shared, stride, alpha, limit,
    EXPERTS: tl.constexpr, N: tl.constexpr, K: tl.constexpr, KIND: tl.constexpr,
    GATES: tl.constexpr, ALONG: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, GROUP: tl.constexpr, XCDS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """y[slot] = f(x[slot // shared] · w + bias), with w of [experts, rows, K] (ALONG, taken
    transposed) or [experts, K, N]; rows are N, or gates and ups of f (GATES, as `weight_rows` has
    them). Of int8, the product is times a scale per row of x and of w."""
    across: tl.constexpr = (N + BLOCK_N - 1) // BLOCK_N
    ROWS: tl.constexpr = N if GATES == 0 else 2 * N  # pyright: ignore[reportAssignmentType]
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
    w_ptr += expert * (ROWS * K)
    place = tl.arange(0, BLOCK_K)
    from_x = row[:, None] * stride + place[None, :]
    if ALONG:
        from_w = at[None, :] * K + place[:, None]
    else:
        from_w = at[None, :] + place[:, None] * N
    step: tl.constexpr = 1 if ALONG else N  # pyright: ignore[reportAssignmentType]
    whole: tl.constexpr = x_ptr.dtype.element_ty == tl.int8
    COLUMNS: tl.constexpr = BLOCK_N if GATES == 0 else 2 * BLOCK_N  # pyright: ignore[reportAssignmentType]
    y = tl.zeros((BLOCK_M, COLUMNS), tl.int32 if whole else tl.float32)
    for start in range(0, K, BLOCK_K):
        if K % BLOCK_K == 0:
            x = tl.load(x_ptr + from_x + start)
            w = tl.load(w_ptr + from_w + start * step)
        else:
            valid = place < K - start
            x = tl.load(x_ptr + from_x + start, mask=valid[None, :], other=0)
            w = tl.load(w_ptr + from_w + start * step, mask=valid[:, None], other=0)
        if whole:
            y = tl.dot(x, w, y, out_dtype=tl.int32)
        else:
            y = tl.dot(x, w, y, input_precision="ieee")
    if whole:
        x_scale = tl.load(x_scale_ptr + row)
        w_scale = tl.load(w_scale_ptr + expert * ROWS + at)
        y = y.to(tl.float32) * x_scale[:, None] * w_scale[None, :]
    if bias_ptr is not None:
        y += tl.load(bias_ptr + expert * ROWS + at).to(tl.float32)[None, :]
    y = gated(y, alpha, limit, KIND, GATES, BLOCK_M, BLOCK_N)
    store_rows(y_ptr, y, slot, slot < slots, column, N, BLOCK_M, BLOCK_N)


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    matrix = device.target.startswith("gfx9")  # has matrix instructions of float32
    dtype = problem["dtype"]
    if dtype == "fp32":
        return {**tiling.axes(problem, device), "BLOCK_K": (32, 64) if matrix else (16, 32)}
    if dtype == "int8":
        # A row of a step fills a line; of less, the L2 is asked for every line more than once.
        depths = (128, 256) if matrix or problem["block"] < 64 else (64, 128)
    else:
        depths = (64, 128)
    return {**tiling.axes(problem, device, tiling.SIZES[dtype]), "BLOCK_K": depths}


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    size = tiling.SIZES[problem["dtype"]]
    return tiling.fits(problem, settings, device, tiling.columns(problem, settings), size)


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    dtype = problem["dtype"]
    columns = tiling.columns(problem, settings)
    return tiling.seconds(problem, settings, device, columns, tiling.SIZES[dtype], dtype=dtype)


PRODUCT = Space(
    kernel="moe_product_kernel", axes=_axes, fits=_fits, seconds=_seconds, classes=("slots",)
)

__all__ = ["PRODUCT", "moe_product_kernel"]
