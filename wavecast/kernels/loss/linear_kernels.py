"""The kernels of cross entropy of a product's logits, and the configurations they may run in.

Every tile of logits leaves the largest, the sum of exponentials and, where asked, the plain sum of
its rows (`linear_cross_entropy_kernel`), which another kernel joins; the gradient of a part's
logits is made from the product again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import estimates
from wavecast.kernels.loss.terms import capped, loss_of, slope_of, weights_of
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.kernels.tiles import buffers, store_tile, tile_of

_LOWEST = tl.constexpr(-1e30)
"""Below every logit, and finite, so that differences are."""


@triton.jit
def logits_of(
    hidden_ptr, weight_ptr, M, N, K, hidden_row, weight_row,
    K_DIVISOR: tl.constexpr, PRECISION: tl.constexpr, WIDE: tl.constexpr, XCDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """(logits, number across, rows, columns) of the tile that this program computes. Where it
    reaches beyond the last row or column, that is read again. K_DIVISOR is a power of two that
    divides K."""
    across = tl.cdiv(N, BLOCK_N)
    tile_row, tile = tile_of(tl.program_id(0), tl.cdiv(M, BLOCK_M), across, GROUP, XCDS)
    rows = tile_row * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile * BLOCK_N + tl.arange(0, BLOCK_N)
    if WIDE:
        rows, columns = rows.to(tl.int64), columns.to(tl.int64)
    step = tl.arange(0, BLOCK_K)
    from_hidden = hidden_ptr + tl.minimum(rows, M - 1)[:, None] * hidden_row + step[None, :]
    from_weight = weight_ptr + tl.minimum(columns, N - 1)[None, :] * weight_row + step[:, None]
    x = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        if K_DIVISOR % BLOCK_K == 0:
            a = tl.load(from_hidden)
            b = tl.load(from_weight)
        else:
            left = start + step < K
            a = tl.load(from_hidden, mask=left[None, :], other=0.0)
            b = tl.load(from_weight, mask=left[:, None], other=0.0)
        x = tl.dot(a, b, x, input_precision=PRECISION, out_dtype=tl.float32)
        from_hidden += BLOCK_K
        from_weight += BLOCK_K
    return x, tile, rows, columns


@triton.jit
def linear_cross_entropy_kernel(
    hidden_ptr, weight_ptr, targets_ptr, parts_ptr, chosen_ptr, M, N, K,
    hidden_row, weight_row, cap,
    SMOOTHED: tl.constexpr, CAPPED: tl.constexpr, K_DIVISOR: tl.constexpr,
    PRECISION: tl.constexpr, WIDE: tl.constexpr, XCDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """`parts_ptr` is [2 or 3, tiles across, M]: largest, sum of exponentials, plain sum."""
    across = tl.cdiv(N, BLOCK_N)
    x, tile, rows, columns = logits_of(
        hidden_ptr, weight_ptr, M, N, K, hidden_row, weight_row,
        K_DIVISOR, PRECISION, WIDE, XCDS, BLOCK_M, BLOCK_N, BLOCK_K, GROUP,
    )  # fmt: skip
    x = capped(x, cap, CAPPED)
    there = rows < M
    real = (columns < N)[None, :]
    to = parts_ptr + tile * M + rows
    if SMOOTHED:
        tl.store(to + 2 * across * M, tl.sum(tl.where(real, x, 0.0), axis=1), mask=there)
    target = tl.load(targets_ptr + rows, mask=there, other=-1) - tile * BLOCK_N
    here = there & (target >= 0) & (target < tl.minimum(BLOCK_N, N - tile * BLOCK_N))
    target = tl.where(here, target, -1).to(tl.int32)  # half the registers
    hit = tl.arange(0, BLOCK_N)[None, :] == target[:, None]
    tl.store(chosen_ptr + rows, tl.sum(tl.where(hit, x, 0.0), axis=1), mask=here)
    x = tl.where(real, x, -float("inf"))
    most = tl.maximum(tl.max(x, axis=1), _LOWEST)
    tl.store(to, most, mask=there)
    tl.store(to + across * M, tl.sum(tl.exp(x - most[:, None]), axis=1), mask=there)


@triton.jit
def linear_cross_entropy_join_kernel(
    parts_ptr, chosen_ptr, targets_ptr, loss_ptr, lse_ptr, rows, across, classes,
    ignored, smoothing, z_loss,
    BLOCK: tl.constexpr, TILES: tl.constexpr, SMOOTHED: tl.constexpr,
):  # fmt: skip
    """A block of rows per program, `TILES` tiles of them at a time."""
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = row < rows
    most = tl.full((TILES, BLOCK), _LOWEST, tl.float32)
    total = tl.zeros((TILES, BLOCK), tl.float32)
    plain = tl.zeros((TILES, BLOCK), tl.float32)
    for start in range(0, across, TILES):
        tile = start + tl.arange(0, TILES)
        inside = (tile < across)[:, None] & there[None, :]
        at = parts_ptr + tile[:, None] * rows + row[None, :]
        high = tl.load(at, mask=inside, other=_LOWEST)
        powers = tl.load(at + across * rows, mask=inside, other=0.0)
        before = most
        most = tl.maximum(most, high)
        total = total * tl.exp(before - most) + powers * tl.exp(high - most)
        if SMOOTHED:
            plain += tl.load(at + 2 * across * rows, mask=inside, other=0.0)
    top = tl.max(most, axis=0)
    lse = top + tl.log(tl.sum(total * tl.exp(most - tl.expand_dims(top, 0)), axis=0))
    target = tl.load(targets_ptr + row, mask=there, other=0)
    known = there & (target >= 0) & (target < classes)
    chosen = tl.load(chosen_ptr + row, mask=known, other=0.0)
    mean = tl.sum(plain, axis=0) / classes
    loss = loss_of(lse, chosen, mean, target, classes, ignored, smoothing, z_loss)
    tl.store(loss_ptr + row, loss, mask=there)
    tl.store(lse_ptr + row, lse, mask=there)


@triton.jit
def linear_cross_entropy_slopes_kernel(
    hidden_ptr, weight_ptr, targets_ptr, dloss_ptr, dlse_ptr, lse_ptr, power_ptr, slopes_ptr,
    M, N, K, first, classes, hidden_row, weight_row, ignored, smoothing, z_loss, cap,
    CAPPED: tl.constexpr, K_DIVISOR: tl.constexpr, PRECISION: tl.constexpr, WIDE: tl.constexpr,
    XCDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """The gradient of the logits of N classes from `first` on, times what `power_ptr` points to
    (None: one)."""
    x, _, rows, columns = logits_of(
        hidden_ptr, weight_ptr, M, N, K, hidden_row, weight_row,
        K_DIVISOR, PRECISION, WIDE, XCDS, BLOCK_M, BLOCK_N, BLOCK_K, GROUP,
    )  # fmt: skip
    there = rows < M
    lse = tl.load(lse_ptr + rows, mask=there, other=0.0)
    target = tl.load(targets_ptr + rows, mask=there, other=-1)
    ignored = target == ignored
    target = tl.where((target >= 0) & (target < classes), target, -1).to(tl.int32)
    dloss = tl.load(dloss_ptr + rows, mask=there, other=0.0)
    dlse = tl.load(dlse_ptr + rows, mask=there, other=0.0) if dlse_ptr is not None else 0.0
    along, dloss = weights_of(lse, dloss, dlse, ignored, z_loss)
    slope = slope_of(
        x, (first + columns)[None, :], lse[:, None], target[:, None], along[:, None],
        dloss[:, None], classes, smoothing, cap, CAPPED,
    )  # fmt: skip
    if power_ptr is not None:
        slope *= tl.load(power_ptr)
    inside = there[:, None] & (columns < N)[None, :]
    at = rows[:, None] * N + columns[None, :]
    store_tile(slopes_ptr, at, slope, inside)


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    """A step of 128 bytes of K reads whole cache lines; half of that on RDNA, whose LDS is small
    for its tiles. gfx950 copies to the LDS without registers and can be a step further ahead."""
    cdna = device.target.startswith("gfx9")
    rdna = device.target.startswith("gfx1")
    return {
        "BLOCK_M": _blocks(problem["m"], 128 if rdna else 256),
        "BLOCK_N": _blocks(problem["n"], 128 if rdna else 256),
        "BLOCK_K": ((64 if rdna else 128) // problem["bytes"],),
        "GROUP": (8,),
        "num_warps": (4, 8),
        "num_stages": (2, 3) if device.target == "gfx950" else (2,) if cdna or rdna else (3, 4),
        "matrix_instr_nonkdim": (16,) if cdna else (0,),
    }


def _blocks(size: int, largest: int) -> tuple[int, ...]:
    enough = min(largest, max(32, triton.next_power_of_2(size)))
    return tuple(block for block in (32, 64, 128, 256) if enough // 4 <= block <= enough)


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    """LDS, and registers of a lane: sums, and the operands of a step on their way to the LDS."""
    rows, columns = settings["BLOCK_M"], settings["BLOCK_N"]
    limits = device.limits()
    step = (rows + columns) * settings["BLOCK_K"] * problem["bytes"]
    threads = settings["num_warps"] * limits.wave_lanes
    registers = rows * columns / threads + step / 4 / threads + 64
    return (
        step * buffers(settings, device) <= limits.lds_max_per_workgroup
        and registers <= (200 if limits.wave_lanes == 32 else 320)
        and rows * columns >= 256 * settings["num_warps"]
    )


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    """The product's, and by predictions of compiled code: a step further ahead pays, and so do
    fewer columns, each of which the epilogue adds up over."""
    ahead = 0.95 if settings["num_stages"] == 3 else 1.0
    flat_tile = 1.03 if settings["BLOCK_N"] > settings["BLOCK_M"] else 1.0
    return (
        ahead
        * flat_tile
        * estimates.tile(
            device,
            settings,
            m=problem["m"],
            n=problem["n"],
            k=problem["k"],
            dtype=problem["dtype"],
            rows=settings["BLOCK_M"],
            columns=settings["BLOCK_N"],
            depth=settings["BLOCK_K"],
        )
    )


def _join_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    return {"BLOCK": (16, 32, 64), "TILES": (16, 32), "num_warps": (1, 2, 4), "num_stages": (1,)}


def _join_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    block, held = settings["BLOCK"], settings["BLOCK"] * settings["TILES"]
    arrays = 2 + problem["smoothed"]
    return estimates.streaming(
        device,
        settings,
        workgroups=triton.cdiv(problem["rows"], block),
        read=4.0 * arrays * problem["rows"] * problem["across"],
        written=8.0 * problem["rows"],
        elements=held,
        operations=16.0 * triton.cdiv(problem["across"], settings["TILES"]),
        held=4.0,
    )


LOGITS = Space(
    kernel="linear_cross_entropy_kernel",
    axes=_axes,
    fits=_fits,
    seconds=_seconds,
    classes=("m",),
)
SLOPES = replace(LOGITS, kernel="linear_cross_entropy_slopes_kernel")
JOIN = Space(
    kernel="linear_cross_entropy_join_kernel",
    axes=_join_axes,
    seconds=_join_seconds,
    classes=("rows", "across"),
)

__all__ = [
    "JOIN",
    "LOGITS",
    "SLOPES",
    "linear_cross_entropy_join_kernel",
    "linear_cross_entropy_kernel",
    "linear_cross_entropy_slopes_kernel",
]
