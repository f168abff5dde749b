"""The kernels of cross entropy of a product's logits, and their specs.

Every tile of logits leaves the largest, the sum of exponentials and, where asked, the plain sum of
its rows (`linear_cross_entropy_kernel`), which another kernel joins; the gradient of a part's
logits is made from the product again.
"""

from typing import Any

import triton
import triton.language as tl

from wavecast.kernels import describe
from wavecast.kernels.describe import Axes, Demand, Device, Problem, Settings, coefficient
from wavecast.kernels.loss.terms import capped, grad_of, loss_of, weights_of
from wavecast.kernels.tiles import blocks, buffers, product, store_tile, tile_of

_LOWEST = tl.constexpr(-1e30)
"""Below every logit, and finite, so that differences are."""


@triton.jit
def logits_of(
    hidden_ptr, weight_ptr, M, N, K, hidden_row, weight_row,
    K_DIVISOR: tl.constexpr, PRECISION: tl.constexpr, WIDE: tl.constexpr, XCDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """(logits, tile along N, rows, columns) of the tile that this program computes. Where it
    reaches beyond the last row or column, that is read again. K_DIVISOR is a power of two that
    divides K."""
    tiles_n = tl.cdiv(N, BLOCK_N)
    tile_row, tile = tile_of(tl.program_id(0), tl.cdiv(M, BLOCK_M), tiles_n, GROUP, XCDS)
    offs_m = tile_row * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tile * BLOCK_N + tl.arange(0, BLOCK_N)
    if WIDE:
        offs_m, offs_n = offs_m.to(tl.int64), offs_n.to(tl.int64)
    offs_k = tl.arange(0, BLOCK_K)
    hidden_ptrs = hidden_ptr + tl.minimum(offs_m, M - 1)[:, None] * hidden_row + offs_k[None, :]
    weight_ptrs = weight_ptr + tl.minimum(offs_n, N - 1)[None, :] * weight_row + offs_k[:, None]
    x = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        if K_DIVISOR % BLOCK_K == 0:
            a = tl.load(hidden_ptrs)
            b = tl.load(weight_ptrs)
        else:
            k_mask = start + offs_k < K
            a = tl.load(hidden_ptrs, mask=k_mask[None, :], other=0.0)
            b = tl.load(weight_ptrs, mask=k_mask[:, None], other=0.0)
        x = tl.dot(a, b, x, input_precision=PRECISION, out_dtype=tl.float32)
        hidden_ptrs += BLOCK_K
        weight_ptrs += BLOCK_K
    return x, tile, offs_m, offs_n


@triton.jit
def linear_cross_entropy_kernel(
    hidden_ptr, weight_ptr, targets_ptr, parts_ptr, target_logit_ptr, M, N, K,
    hidden_row, weight_row, cap,
    SMOOTHED: tl.constexpr, CAPPED: tl.constexpr, K_DIVISOR: tl.constexpr,
    PRECISION: tl.constexpr, WIDE: tl.constexpr, XCDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """`parts_ptr` is [2 or 3, tiles along N, M]: largest, sum of exponentials, plain sum."""
    tiles_n = tl.cdiv(N, BLOCK_N)
    x, tile, offs_m, offs_n = logits_of(
        hidden_ptr, weight_ptr, M, N, K, hidden_row, weight_row,
        K_DIVISOR, PRECISION, WIDE, XCDS, BLOCK_M, BLOCK_N, BLOCK_K, GROUP,
    )  # fmt: skip
    x = capped(x, cap, CAPPED)
    row_mask = offs_m < M
    col_mask = (offs_n < N)[None, :]
    part_ptrs = parts_ptr + tile * M + offs_m
    if SMOOTHED:
        tl.store(
            part_ptrs + 2 * tiles_n * M, tl.sum(tl.where(col_mask, x, 0.0), axis=1), mask=row_mask
        )
    target = tl.load(targets_ptr + offs_m, mask=row_mask, other=-1) - tile * BLOCK_N
    in_tile = row_mask & (target >= 0) & (target < tl.minimum(BLOCK_N, N - tile * BLOCK_N))
    target = tl.where(in_tile, target, -1).to(tl.int32)  # half the registers
    is_target = tl.arange(0, BLOCK_N)[None, :] == target[:, None]
    tl.store(target_logit_ptr + offs_m, tl.sum(tl.where(is_target, x, 0.0), axis=1), mask=in_tile)
    x = tl.where(col_mask, x, -float("inf"))
    row_max = tl.maximum(tl.max(x, axis=1), _LOWEST)
    tl.store(part_ptrs, row_max, mask=row_mask)
    tl.store(part_ptrs + tiles_n * M, tl.sum(tl.exp(x - row_max[:, None]), axis=1), mask=row_mask)


@triton.jit
def linear_cross_entropy_join_kernel(
    parts_ptr, target_logit_ptr, targets_ptr, loss_ptr, lse_ptr, rows, tiles_n, classes,
    ignored, smoothing, z_loss,
    BLOCK: tl.constexpr, TILES: tl.constexpr, SMOOTHED: tl.constexpr,
):  # fmt: skip
    """A block of rows per program, `TILES` tiles of them at a time."""
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row_mask = row < rows
    row_max = tl.full((TILES, BLOCK), _LOWEST, tl.float32)
    row_sum = tl.zeros((TILES, BLOCK), tl.float32)
    logit_sum = tl.zeros((TILES, BLOCK), tl.float32)
    for start in range(0, tiles_n, TILES):
        tile = start + tl.arange(0, TILES)
        mask = (tile < tiles_n)[:, None] & row_mask[None, :]
        part_ptrs = parts_ptr + tile[:, None] * rows + row[None, :]
        tile_max = tl.load(part_ptrs, mask=mask, other=_LOWEST)
        powers = tl.load(part_ptrs + tiles_n * rows, mask=mask, other=0.0)
        previous_max = row_max
        row_max = tl.maximum(row_max, tile_max)
        row_sum = row_sum * tl.exp(previous_max - row_max) + powers * tl.exp(tile_max - row_max)
        if SMOOTHED:
            logit_sum += tl.load(part_ptrs + 2 * tiles_n * rows, mask=mask, other=0.0)
    overall_max = tl.max(row_max, axis=0)
    lse = overall_max + tl.log(
        tl.sum(row_sum * tl.exp(row_max - tl.expand_dims(overall_max, 0)), axis=0)
    )
    target = tl.load(targets_ptr + row, mask=row_mask, other=0)
    valid = row_mask & (target >= 0) & (target < classes)
    target_logit = tl.load(target_logit_ptr + row, mask=valid, other=0.0)
    mean = tl.sum(logit_sum, axis=0) / classes
    loss = loss_of(lse, target_logit, mean, target, classes, ignored, smoothing, z_loss)
    tl.store(loss_ptr + row, loss, mask=row_mask)
    tl.store(lse_ptr + row, lse, mask=row_mask)


@triton.jit
def linear_cross_entropy_grad_kernel(
    hidden_ptr, weight_ptr, targets_ptr, dloss_ptr, dlse_ptr, lse_ptr, power_ptr, grad_ptr,
    M, N, K, first, classes, hidden_row, weight_row, ignored, smoothing, z_loss, cap,
    CAPPED: tl.constexpr, K_DIVISOR: tl.constexpr, PRECISION: tl.constexpr, WIDE: tl.constexpr,
    XCDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """The gradient of the logits of N classes from `first` on, times what `power_ptr` points to
    (None: one)."""
    x, _, offs_m, offs_n = logits_of(
        hidden_ptr, weight_ptr, M, N, K, hidden_row, weight_row,
        K_DIVISOR, PRECISION, WIDE, XCDS, BLOCK_M, BLOCK_N, BLOCK_K, GROUP,
    )  # fmt: skip
    row_mask = offs_m < M
    lse = tl.load(lse_ptr + offs_m, mask=row_mask, other=0.0)
    target = tl.load(targets_ptr + offs_m, mask=row_mask, other=-1)
    ignored = target == ignored
    target = tl.where((target >= 0) & (target < classes), target, -1).to(tl.int32)
    dloss = tl.load(dloss_ptr + offs_m, mask=row_mask, other=0.0)
    dlse = tl.load(dlse_ptr + offs_m, mask=row_mask, other=0.0) if dlse_ptr is not None else 0.0
    weight, dloss = weights_of(lse, dloss, dlse, ignored, z_loss)
    grad = grad_of(
        x, (first + offs_n)[None, :], lse[:, None], target[:, None], weight[:, None],
        dloss[:, None], classes, smoothing, cap, CAPPED,
    )  # fmt: skip
    if power_ptr is not None:
        grad *= tl.load(power_ptr)
    mask = row_mask[:, None] & (offs_n < N)[None, :]
    part_ptrs = offs_m[:, None] * N + offs_n[None, :]
    store_tile(grad_ptr, part_ptrs, grad, mask)


def _axes(problem: Problem, device: Device) -> Axes:
    """A step of 128 bytes of K reads whole cache lines; half of that on RDNA, whose LDS is small
    for its tiles. Loads that go directly to LDS can be a step further ahead."""
    unit = device.capabilities.matrix_unit
    largest, step = (128, 64) if unit == "wmma" else (256, 128)
    direct = device.capabilities.direct_to_lds
    return {
        "BLOCK_M": blocks(problem["m"], 32, largest),
        "BLOCK_N": blocks(problem["n"], 32, largest),
        "BLOCK_K": (step // problem["bytes"],),
        "GROUP": (8,),
        "num_warps": (4, 8),
        "num_stages": (3, 4) if unit == "mma" else (2, 3) if direct else (2,),
        "matrix_instr_nonkdim": (16,) if unit == "mfma" else (0,),
    }


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    """LDS, and registers of a lane: sums, and the operands of a step on their way to the LDS."""
    rows, columns = settings["BLOCK_M"], settings["BLOCK_N"]
    step = (rows + columns) * settings["BLOCK_K"] * problem["bytes"]
    threads = settings["num_warps"] * device.wave_lanes
    registers = rows * columns / threads + step / 4 / threads + 64
    return (
        step * buffers(settings, device) <= device.limits().lds_max_per_workgroup
        and registers <= coefficient("ranking", "product_live_registers").of(device)
        and rows * columns >= 256 * settings["num_warps"]
    )


def _demand(problem: Problem, settings: Settings, device: Device) -> Demand:
    """The product's, and by predictions of compiled code: a step further ahead pays, and so do
    fewer columns, each of which the epilogue adds up over."""
    demand = product(problem, settings, problem["dtype"])
    ahead = coefficient("ranking", "linear_loss_third_stage").of(device)
    wide = coefficient("ranking", "linear_loss_wide_tile").of(device)
    factor = ahead if settings["num_stages"] == 3 else 1.0
    factor *= wide if settings["BLOCK_N"] > settings["BLOCK_M"] else 1.0
    return demand.slow_down(factor)


def _parts(problem: Problem, settings: Settings) -> dict[str, describe.Workspace]:
    """Largest, sum of exponentials and, where asked, plain sum of each tile's rows."""
    tiles_n = triton.cdiv(problem["n"], settings["BLOCK_N"])
    return {"parts": describe.Workspace((3 if problem["smoothed"] else 2, tiles_n, problem["m"]))}


_PRODUCT: dict[str, Any] = {
    "grid": "cdiv(m, BLOCK_M) * cdiv(n, BLOCK_N)",
    "axes": _axes,
    "fits": _fits,
    "demand": _demand,
    "strides": {"hidden": "hidden_row", "weight": "weight_row"},
    "contiguous": ("targets",),
    "rounded": ("m",),
}
LOGITS = describe.KernelSpec(function=linear_cross_entropy_kernel, workspaces=_parts, **_PRODUCT)
LOGITS_GRADIENT = describe.KernelSpec(
    function=linear_cross_entropy_grad_kernel,
    **{**_PRODUCT, "contiguous": ("targets", "dloss", "dlse", "lse")},
)
JOIN = describe.KernelSpec.streaming(
    linear_cross_entropy_join_kernel,
    grid="cdiv(rows, BLOCK)",
    axes={"BLOCK": (16, 32, 64), "TILES": (16, 32), "num_warps": (1, 2, 4)},
    read="4.0 * (2 + smoothed) * rows * across",
    written="8.0 * rows",
    elements="BLOCK * TILES",
    instructions="16.0 * cdiv(across, TILES)",
    live_registers=4.0,
    rounded=("rows", "across"),
)
