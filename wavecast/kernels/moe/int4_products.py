"""Products of rows sorted by expert with weights of four bits, scales per group of K."""

from typing import Final

import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels.describe import Axes, Device, Problem, Settings
from wavecast.kernels.gemm.product import rate_of
from wavecast.kernels.moe import tiling
from wavecast.kernels.moe.activations import Gate
from wavecast.kernels.moe.blocks import gated, rows_of, store_rows, tile_at, weight_rows
from wavecast.kernels.quantised.int4 import differences, pack_codes, product_of_codes
from wavecast.perfmodel.ranking import GroupedProduct

_MANY: Final = 128
"""Rows of a block from which on weights are widened."""


@triton.jit
def moe_product_int4_kernel(
    x_ptr, order_ptr, owners_ptr, starts_ptr, w_ptr, scale_ptr, zero_ptr, bias_ptr, y_ptr,
    slots, shared, stride, alpha, limit,
    EXPERTS: tl.constexpr, N: tl.constexpr, K: tl.constexpr, GROUP_K: tl.constexpr,
    PACKED: tl.constexpr, WIDENED: tl.constexpr,
    KIND: tl.constexpr, GATES: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, GROUP: tl.constexpr, XCDS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """As `moe_product_kernel`, with w of [experts, rows, K / PACKED] (`int4`) and a scale and a
    zero point (8 everywhere without `zero_ptr`) per row and GROUP_K of K,
    [experts, K / GROUP_K, rows]. Scales come after the product over a step, which lies in one
    group; with WIDENED, for many rows, weights are widened before it."""
    FEW: tl.constexpr = BLOCK_K // PACKED  # pyright: ignore[reportAssignmentType]
    tiles_n: tl.constexpr = (N + BLOCK_N - 1) // BLOCK_N
    ROWS: tl.constexpr = N if GATES == 0 else 2 * N  # pyright: ignore[reportAssignmentType]
    COLUMNS: tl.constexpr = BLOCK_N if GATES == 0 else 2 * BLOCK_N  # pyright: ignore[reportAssignmentType]
    pid = tl.program_id(0)
    tiles_m = tl.load(starts_ptr + EXPERTS) // BLOCK_M
    if pid >= tiles_m * tiles_n:
        return
    pid_m, pid_n, expert = tile_at(
        pid, tiles_m, tiles_n, owners_ptr, starts_ptr, BLOCK_M, GROUP, XCDS
    )
    slot, read_slot = rows_of(order_ptr, pid_m, slots, BLOCK_M, WIDE)
    row = read_slot // shared
    w_rows = weight_rows(pid_n, N, BLOCK_N, GATES)
    w_ptr += expert * (ROWS * K // PACKED)
    scale_ptr += expert * (K // GROUP_K * ROWS)
    if zero_ptr is not None:
        zero_ptr += expert * (K // GROUP_K * ROWS)
    x_offs = row[:, None] * stride + tl.arange(0, BLOCK_K)[None, :]
    if WIDENED:
        w_offs = w_rows[:, None] * (K // PACKED) + tl.arange(0, FEW)[None, :]
    else:
        w_offs = w_rows[None, :] * (K // PACKED) + tl.arange(0, FEW)[:, None]
    acc = tl.zeros((BLOCK_M, COLUMNS), tl.float32)
    for step in range(K // BLOCK_K):
        x = tl.load(x_ptr + x_offs + step * BLOCK_K)
        codes = tl.load(w_ptr + w_offs + step * FEW)
        group_offs = step * BLOCK_K // GROUP_K * ROWS + w_rows
        scale = tl.load(scale_ptr + group_offs).to(tl.float32)
        if zero_ptr is not None:
            zero = tl.load(zero_ptr + group_offs).to(tl.float32)
        else:
            zero = tl.full((COLUMNS,), 8.0, tl.float32)
        if WIDENED:
            w = differences(codes, zero, x_ptr.dtype.element_ty)
            product = tl.dot(x, tl.trans(w), out_dtype=tl.float32)
        else:
            product = product_of_codes(x, codes, zero, PACKED)
        acc += product * scale[None, :]
    if bias_ptr is not None:
        acc += tl.load(bias_ptr + expert * ROWS + w_rows).to(tl.float32)[None, :]
    acc = gated(acc, alpha, limit, KIND, GATES, BLOCK_M, BLOCK_N)
    store_rows(y_ptr, acc, slot, slot < slots, pid_n, N, BLOCK_M, BLOCK_N)


def product_int4(
    x: Tensor, order: tiling.Order, w: Tensor, scale: Tensor, zero: Tensor | None, *, shared: int,
    group: int, bias: Tensor | None = None, gate: Gate | None = None,
) -> Tensor:  # fmt: skip
    """`products.product` with codes [experts, rows, k / 2] of weights, `group` of which along k
    have a scale and a zero point, [experts, k / group, rows]."""
    k, n = w.shape[2] * 2, w.shape[1] // (2 if gate else 1)
    widened = order.block >= _MANY
    number, w = (2, w.contiguous()) if widened else pack_codes(w.contiguous(), group)
    flags = {"dtype": rate_of(x.dtype), "group": group, "scale": scale.element_size()}
    flags |= {"zero": zero is not None, "bias": bias is not None}
    return tiling.launch(
        PRODUCT, x, order, n, k, gate, None, flags, w=w, scale=scale, zero=zero, bias=bias,
        shared=shared, stride=x.stride(0), GROUP_K=group, PACKED=number, WIDENED=widened,
    )  # fmt: skip


def _axes(problem: Problem, device: Device) -> Axes:
    # Where reading weights is all, rows of a step fill as much of a line as they can, where there
    # are registers.
    group, block = problem["group"], problem["block"]
    least = 32 if block >= _MANY else min(64, group)
    deep = block < 64 and device.wave_lanes == 64
    depths = (group,) if deep else (max(least, group // 2), group)
    return {**tiling.axes(problem, device), "BLOCK_K": tuple(sorted({*depths}))}


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    # A step's own products take accumulators besides those of the sum, and codes their registers.
    columns = tiling.columns(problem, settings)
    if columns * settings["BLOCK_K"] > 8192 * settings["num_warps"]:
        return False
    lanes = settings["num_warps"] * device.wave_lanes
    if problem["block"] < _MANY and problem["block"] * columns > 64 * lanes:
        return False
    wide = tiling.fits(settings, device, 2 * columns, 0)
    return wide and tiling.fits(settings, device, columns, 2)


def _demand(problem: Problem, settings: Settings, device: Device) -> GroupedProduct:
    return tiling.demand(
        problem, settings, 0.5, dtype=problem["dtype"], operand_size=2, weight="int4"
    )


PRODUCT = tiling.kernel(moe_product_int4_kernel, _axes, _fits, _demand, ("scale", "zero", "bias"))
