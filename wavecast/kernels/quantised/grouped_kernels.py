"""The kernels of products per group, and the configurations they may run in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import estimates, tiles
from wavecast.kernels.quantised import parts
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.kernels.tiles import store_tile, tile_of


@triton.jit
def grouped_matmul_kernel(
    a_ptr, b_ptr, offsets_ptr, out_ptr, M, N, K, groups, a_row, b_group, b_step, b_column,
    N_EVEN: tl.constexpr, K_EVEN: tl.constexpr, WIDE: tl.constexpr,
    XCDS: tl.constexpr, LISTED: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """There are programs for the most tiles that groups can have: cdiv(M, BLOCK_M) + groups down.
    Each finds the group its tile is of by the tiles of those before, or ends; the row of tiles
    after the last writes zeros to rows beyond the last group."""
    down = tl.cdiv(M, BLOCK_M) + groups
    across = tl.cdiv(N, BLOCK_N)
    tile_row, tile_column = tile_of(tl.program_id(0), down, across, GROUP, XCDS)
    listed = tl.arange(0, LISTED)
    starts = tl.load(offsets_ptr + listed, mask=listed < groups, other=0).to(tl.int32)
    ends = tl.load(offsets_ptr + listed + 1, mask=listed < groups, other=0).to(tl.int32)
    heights = (ends - starts + BLOCK_M - 1) // BLOCK_M
    behind = tl.cumsum(heights, 0)
    group = tl.sum((behind <= tile_row).to(tl.int32), 0)
    group = tl.minimum(group, groups)
    before = tl.sum(tl.where(listed < group, heights, 0), 0)
    own = group < groups
    start = tl.load(offsets_ptr + group).to(tl.int32)
    end = tl.load(offsets_ptr + group + 1, mask=own, other=0).to(tl.int32)
    end = tl.where(own, end, M)
    first = start + (tile_row - before) * BLOCK_M
    if first >= end:
        return
    rows = first + tl.arange(0, BLOCK_M)
    columns = tile_column * BLOCK_N + tl.arange(0, BLOCK_N)
    row = tl.minimum(rows, M - 1)
    column = columns if N_EVEN else tl.minimum(columns, N - 1)
    matrix = tl.minimum(group, groups - 1)
    if WIDE:
        row, column, matrix = row.to(tl.int64), column.to(tl.int64), matrix.to(tl.int64)
        rows, columns = rows.to(tl.int64), columns.to(tl.int64)
    place = tl.arange(0, BLOCK_K)
    from_a = a_ptr + row[:, None] * a_row + place[None, :]
    from_b = b_ptr + matrix * b_group + place[:, None] * b_step + column[None, :] * b_column
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(tl.cdiv(K, BLOCK_K)):
        if K_EVEN:
            a = tl.load(from_a)
            b = tl.load(from_b)
        else:
            left = place < K - step * BLOCK_K
            a = tl.load(from_a, mask=left[None, :], other=0.0)
            b = tl.load(from_b, mask=left[:, None], other=0.0)
        total = tl.dot(a, b, total, out_dtype=tl.float32)
        from_a += BLOCK_K
        from_b += BLOCK_K * b_step
    total = tl.where(own, total, 0.0)
    inside = (rows < end)[:, None] & (columns < N)[None, :]
    at = rows[:, None] * N + columns[None, :]
    store_tile(out_ptr, at, total, inside)


@triton.jit
def grouped_outer_kernel(
    a_ptr, b_ptr, offsets_ptr, out_ptr, M, N, a_row, b_row,
    WIDE: tl.constexpr, XCDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """out[g] [M, N] is a[g].T @ b[g], with a [rows, M] and b [rows, N] of the group's rows."""
    down = tl.cdiv(M, BLOCK_M)
    across = tl.cdiv(N, BLOCK_N)
    tile_row, tile_column = tile_of(tl.program_id(0), down, across, GROUP, XCDS)
    group = tl.program_id(1)
    start = tl.load(offsets_ptr + group).to(tl.int32)
    end = tl.load(offsets_ptr + group + 1).to(tl.int32)
    rows = tile_row * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_column * BLOCK_N + tl.arange(0, BLOCK_N)
    place = tl.arange(0, BLOCK_K)
    if WIDE:
        group = group.to(tl.int64)
        rows, columns = rows.to(tl.int64), columns.to(tl.int64)
        place = place.to(tl.int64)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(start, end, BLOCK_K):
        at = step + place
        held = at < end
        a = tl.load(
            a_ptr + rows[:, None] + at[None, :] * a_row,
            mask=(rows < M)[:, None] & held[None, :],
            other=0.0,
        )
        b = tl.load(
            b_ptr + at[:, None] * b_row + columns[None, :],
            mask=held[:, None] & (columns < N)[None, :],
            other=0.0,
        )
        total = tl.dot(a, b, total, out_dtype=tl.float32)
    inside = (rows < M)[:, None] & (columns < N)[None, :]
    at = rows[:, None] * N + columns[None, :]
    store_tile(out_ptr + group * M * N, at, total, inside)


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    amd = device.target.startswith("gfx")
    per_group = triton.cdiv(problem["m"], max(1, problem["groups"]))
    return {
        "BLOCK_M": parts.blocks(2 * per_group, 16, 256),
        "BLOCK_N": parts.blocks(problem["n"], 32, parts.columns_at_most(device)),
        "GROUP": (8,),
        "num_warps": (4, 8) if problem["m"] * problem["n"] >= 4096 else (1, 2),
        "num_stages": (2,) if amd else (3,),
        **parts.packed(device),
    }


def _outer_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    found = dict(_axes(problem, device))
    found["BLOCK_M"] = parts.blocks(problem["m"], 32, 256)
    return found


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    rows, columns, depth = settings["BLOCK_M"], settings["BLOCK_N"], settings["BLOCK_K"]
    staged = (rows + columns) * depth * 2 * tiles.buffers(settings, device)
    if staged > device.limits().lds_max_per_workgroup:
        return False
    if rows * columns > 8192 * settings["num_warps"]:
        return False
    return parts.shared_out(settings, device, rows, columns, 1)


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    groups = problem["groups"]
    each, more = divmod(problem["m"], groups)
    return estimates.tile(
        device,
        settings,
        m=problem["m"],
        n=problem["n"],
        k=problem["k"],
        groups=tuple(each + (number < more) for number in range(groups)),
        dtype=problem["dtype"],
        rows=settings["BLOCK_M"],
        columns=settings["BLOCK_N"],
        depth=settings["BLOCK_K"],
    )


def _outer_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    return estimates.tile(
        device,
        settings,
        m=problem["m"],
        n=problem["n"],
        k=max(1, problem["k"] // problem["groups"]),
        batch=problem["groups"],
        dtype=problem["dtype"],
        rows=settings["BLOCK_M"],
        columns=settings["BLOCK_N"],
        depth=settings["BLOCK_K"],
    )


TILES = Space(
    kernel="grouped_matmul_kernel", axes=_axes, fits=_fits, seconds=_seconds, classes=("m",)
)
OUTER = Space(
    kernel="grouped_outer_kernel",
    axes=_outer_axes,
    fits=_fits,
    seconds=_outer_seconds,
    classes=("k",),
)

__all__ = ["OUTER", "TILES", "grouped_matmul_kernel", "grouped_outer_kernel"]
