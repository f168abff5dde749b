"""Products of rows sorted by expert with the expert's weights, in floats or in int8."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels.describe import Axes, Device, Problem, Settings
from wavecast.kernels.gemm.product import rate_of
from wavecast.kernels.gemm.tiling import element_size
from wavecast.kernels.moe import tiling
from wavecast.kernels.moe.activations import Gate
from wavecast.kernels.moe.blocks import gated, rows_of, store_rows, tile_at, weight_rows
from wavecast.perfmodel.ranking import GroupedProduct


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
    tiles_n: tl.constexpr = (N + BLOCK_N - 1) // BLOCK_N
    ROWS: tl.constexpr = N if GATES == 0 else 2 * N  # pyright: ignore[reportAssignmentType]
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
    w_ptr += expert * (ROWS * K)
    offs_k = tl.arange(0, BLOCK_K)
    x_offs = row[:, None] * stride + offs_k[None, :]
    if ALONG:
        w_offs = w_rows[None, :] * K + offs_k[:, None]
    else:
        w_offs = w_rows[None, :] + offs_k[:, None] * N
    step: tl.constexpr = 1 if ALONG else N  # pyright: ignore[reportAssignmentType]
    integers: tl.constexpr = x_ptr.dtype.element_ty == tl.int8
    COLUMNS: tl.constexpr = BLOCK_N if GATES == 0 else 2 * BLOCK_N  # pyright: ignore[reportAssignmentType]
    acc = tl.zeros((BLOCK_M, COLUMNS), tl.int32 if integers else tl.float32)
    for start in range(0, K, BLOCK_K):
        if K % BLOCK_K == 0:
            x = tl.load(x_ptr + x_offs + start)
            w = tl.load(w_ptr + w_offs + start * step)
        else:
            mask_k = offs_k < K - start
            x = tl.load(x_ptr + x_offs + start, mask=mask_k[None, :], other=0)
            w = tl.load(w_ptr + w_offs + start * step, mask=mask_k[:, None], other=0)
        if integers:
            acc = tl.dot(x, w, acc, out_dtype=tl.int32)
        else:
            acc = tl.dot(x, w, acc, input_precision="ieee")
    if integers:
        x_scale = tl.load(x_scale_ptr + row)
        w_scale = tl.load(w_scale_ptr + expert * ROWS + w_rows)
        acc = acc.to(tl.float32) * x_scale[:, None] * w_scale[None, :]
    if bias_ptr is not None:
        acc += tl.load(bias_ptr + expert * ROWS + w_rows).to(tl.float32)[None, :]
    acc = gated(acc, alpha, limit, KIND, GATES, BLOCK_M, BLOCK_N)
    store_rows(y_ptr, acc, slot, slot < slots, pid_n, N, BLOCK_M, BLOCK_N)


def product(
    x: Tensor, order: tiling.Order, w: Tensor, *, shared: int, bias: Tensor | None = None,
    gate: Gate | None = None, along: bool = True, dtype: torch.dtype | None = None,
    x_scale: Tensor | None = None, w_scale: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """[slots, n] in `dtype` (None: that of x): rows `slot // shared` of x times the expert's w,
    [rows, k] (`along`) or [k, n]. Rows are n, or those of the gates and ups of `gate`. Int8 goes
    with a scale per row of x and of w. Rows of slots without an expert are left as they are."""
    k, n = (w.shape[2], w.shape[1]) if along else (w.shape[1], w.shape[2])
    flags = {"along": along, "bias": bias is not None, "dtype": rate_of(x.dtype)}
    return tiling.launch(
        PRODUCT, x, order, n // 2 if gate else n, k, gate, dtype, flags, w=w, bias=bias,
        x_scale=x_scale, w_scale=w_scale, shared=shared, stride=x.stride(0),
    )  # fmt: skip


def _axes(problem: Problem, device: Device) -> Axes:
    mfma, dtype = device.capabilities.matrix_unit == "mfma", problem["dtype"]
    if dtype == "fp32":
        depths = (32, 64) if device.capabilities.matrix_fp32 else (16, 32)
        return {**tiling.axes(problem, device), "BLOCK_K": depths}
    depths = (64, 128)
    if dtype == "int8" and (mfma or problem["block"] < 64):
        # A row of a step fills a line; of less, the L2 is asked for every line more than once.
        depths = (128, 256)
    return {**tiling.axes(problem, device, element_size(problem)), "BLOCK_K": depths}


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    columns = tiling.columns(problem, settings)
    return tiling.fits(settings, device, columns, element_size(problem))


def _demand(problem: Problem, settings: Settings, device: Device) -> GroupedProduct:
    return tiling.demand(problem, settings, element_size(problem), dtype=problem["dtype"])


_CONTIGUOUS = ("w", "bias", "x_scale", "w_scale")
PRODUCT = tiling.kernel(moe_product_kernel, _axes, _fits, _demand, _CONTIGUOUS)
