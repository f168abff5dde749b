"""Kernels over rows sorted by expert: every block of rows is multiplied by its expert's weights.

The order of the rows is that of `moe_align`. How many blocks there are stands on the GPU: the grid
has as many as there can be, and workgroups beyond those there are end at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import estimates
from wavecast.kernels.moe.activations import activate
from wavecast.kernels.moe.align import blocks
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.kernels.tiles import tile_of
from wavecast.model.chip import Chip

FORMATS: Final = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16"}
"""Names of dtypes in `wavecast.model`."""
_SUSTAINED: Final = 0.5
"""Of the peak of matrix products, about what large ones sustain."""

_WAITING: Final = {1: 0.4, 2: 0.05}
"""Of the time to read the weights, what is lost with so many workgroups on a compute unit: the
simulator's, on products bound by memory."""


@triton.jit
def moe_up_kernel(
    x_ptr, order_ptr, owners_ptr, used_ptr, w_ptr, bias_ptr, y_ptr, slots, top_k, alpha, limit,
    stride, N: tl.constexpr, K: tl.constexpr, KIND: tl.constexpr, INTERLEAVED: tl.constexpr,
    BIAS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr, XCDS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """y[slot] = f(x[token] · gateᵀ, x[token] · upᵀ), weights [experts, 2N, K]: all gates, then all
    ups, or in turns (INTERLEAVED)."""
    across: tl.constexpr = (N + BLOCK_N - 1) // BLOCK_N
    number = tl.program_id(0)
    down = tl.load(used_ptr) // BLOCK_M
    if number >= down * across:
        return
    line, column = tile_of(number, down, across, GROUP, XCDS)
    expert = tl.load(owners_ptr + line).to(tl.int64)
    slot = tl.load(order_ptr + line * BLOCK_M + tl.arange(0, BLOCK_M))
    first = tl.load(order_ptr + line * BLOCK_M)  # no block begins with padding
    token = tl.where(slot < slots, slot, first) // top_k
    at = column * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = at < N
    if WIDE:
        slot = slot.to(tl.int64)
        token = token.to(tl.int64)
    w_ptr += expert * (2 * N * K)
    safe = at if N % BLOCK_N == 0 else tl.minimum(at, N - 1)
    gate_row = 2 * safe if INTERLEAVED else safe
    up_row = 2 * safe + 1 if INTERLEAVED else safe + N
    place = tl.arange(0, BLOCK_K)
    from_x = token[:, None] * stride + place[None, :]
    from_gate = gate_row[None, :] * K + place[:, None]
    from_up = up_row[None, :] * K + place[:, None]
    gate = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    up = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        if K % BLOCK_K == 0:
            x = tl.load(x_ptr + from_x + start)
            w = tl.load(w_ptr + from_gate + start)
            v = tl.load(w_ptr + from_up + start)
        else:
            valid = place < K - start
            x = tl.load(x_ptr + from_x + start, mask=valid[None, :], other=0.0)
            w = tl.load(w_ptr + from_gate + start, mask=valid[:, None], other=0.0)
            v = tl.load(w_ptr + from_up + start, mask=valid[:, None], other=0.0)
        gate = tl.dot(x, w, gate, input_precision="ieee")
        up = tl.dot(x, v, up, input_precision="ieee")
    if BIAS:
        bias_ptr += expert * (2 * N)
        gate += tl.load(bias_ptr + gate_row).to(tl.float32)[None, :]
        up += tl.load(bias_ptr + up_row).to(tl.float32)[None, :]
    y = activate(gate, up, alpha, limit, KIND).to(y_ptr.dtype.element_ty)
    to = y_ptr + slot[:, None] * N + at[None, :]
    tl.store(to, y, mask=(slot < slots)[:, None] & inside[None, :])


@triton.jit
def moe_product_kernel(
    x_ptr, order_ptr, owners_ptr, used_ptr, w_ptr, bias_ptr, y_ptr, slots, shared, stride,
    N: tl.constexpr, K: tl.constexpr, ALONG: tl.constexpr, BIAS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr, XCDS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """y[slot] = x[slot // shared] · w, with w of [experts, N, K] (ALONG, taken transposed) or
    [experts, K, N]."""
    across: tl.constexpr = (N + BLOCK_N - 1) // BLOCK_N
    number = tl.program_id(0)
    down = tl.load(used_ptr) // BLOCK_M
    if number >= down * across:
        return
    line, column = tile_of(number, down, across, GROUP, XCDS)
    expert = tl.load(owners_ptr + line).to(tl.int64)
    slot = tl.load(order_ptr + line * BLOCK_M + tl.arange(0, BLOCK_M))
    first = tl.load(order_ptr + line * BLOCK_M)  # no block begins with padding
    row = tl.where(slot < slots, slot, first) // shared
    at = column * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = at < N
    if WIDE:
        slot = slot.to(tl.int64)
        row = row.to(tl.int64)
    w_ptr += expert * (N * K)
    safe = at if N % BLOCK_N == 0 else tl.minimum(at, N - 1)
    place = tl.arange(0, BLOCK_K)
    from_x = row[:, None] * stride + place[None, :]
    if ALONG:
        from_w = safe[None, :] * K + place[:, None]
    else:
        from_w = safe[None, :] + place[:, None] * N
    step: tl.constexpr = 1 if ALONG else N  # pyright: ignore[reportAssignmentType]
    y = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        if K % BLOCK_K == 0:
            x = tl.load(x_ptr + from_x + start)
            w = tl.load(w_ptr + from_w + start * step)
        else:
            valid = place < K - start
            x = tl.load(x_ptr + from_x + start, mask=valid[None, :], other=0.0)
            w = tl.load(w_ptr + from_w + start * step, mask=valid[:, None], other=0.0)
        y = tl.dot(x, w, y, input_precision="ieee")
    if BIAS:
        y += tl.load(bias_ptr + expert * N + safe).to(tl.float32)[None, :]
    to = y_ptr + slot[:, None] * N + at[None, :]
    mask = (slot < slots)[:, None] & inside[None, :]
    tl.store(to, y.to(y_ptr.dtype.element_ty), mask=mask)


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


def block_of(slots: int, count: int, dtype: torch.dtype, device: Device, most: int = 256) -> int:
    """Rows of a block: of an element of weights, reading it once per block and multiplying it by
    every row, padding included, takes least, if as many blocks are needed as can be."""
    chip = Chip.of(device)
    size, rate = dtype.itemsize, chip.matrix_rate("fp16") * chip.units * chip.clock

    def taken(block: int) -> float:
        multiplied = 2 * block / (_SUSTAINED * rate)
        return blocks(slots, count, block) * (size / chip.hbm + multiplied)

    gfx9 = device.target.startswith("gfx9")
    most = min(most, (128 if gfx9 else 32) if size == 4 else (256 if gfx9 else 128))
    return min((rows for rows in (16, 32, 64, 128, 256) if rows <= most), key=taken)


def problem(
    slots: int, count: int, block: int, n: int, k: int, dtype: torch.dtype, **flags: Any
) -> dict[str, Any]:
    """What the configuration of a product depends on."""
    return {
        "slots": slots, "experts": count, "block": block, "n": n, "k": k,
        "dtype": FORMATS[dtype], **flags,
    }  # fmt: skip


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    rows = problem["block"]
    matrix = device.target.startswith("gfx9")  # has matrix instructions of float32
    kept = {
        "BLOCK_M": (rows,),
        "BLOCK_N": (32, 64, 128, 256) if rows >= 64 else (32, 64, 128),
        "BLOCK_K": (64, 128) if problem["dtype"] != "fp32" else (32, 64) if matrix else (16, 32),
        "GROUP": (4,),
        "num_warps": (4, 8) if rows >= 64 else (2, 4),
        "num_stages": (2,),
    }
    if matrix:
        kept["matrix_instr_nonkdim"] = (16,)
    return kept


def fits(problem: Problem, settings: Settings, device: Device, columns: int, size: int) -> bool:
    """Whether a tile with `columns` columns of weights of `size` bytes has room."""
    return _resident(settings, device, columns, size) > 0


def _resident(settings: Settings, device: Device, columns: int, size: int) -> int:
    """Workgroups that have room on a compute unit: operands in the LDS, accumulators and operands
    in flight in registers. 0: not one."""
    amd = device.target.startswith("gfx")
    wide = device.target.startswith("gfx9")
    copied = not amd or device.target in ("gfx950", "gfx1250")
    stages = settings["num_stages"]
    rows, depth = settings["BLOCK_M"], settings["BLOCK_K"]
    staged = (rows + columns) * depth * size
    lds = staged * max(1, stages if copied else stages - 1)
    threads = settings["num_warps"] * (64 if wide else 32)
    held = (rows * columns * 4 + (0 if copied else staged) + staged / 2) / 4 / threads
    if lds > device.limits().lds_max_per_workgroup or held > (320 if wide else 150):
        return 0
    chip = Chip.of(device)
    waves = chip.simds * ((512 if wide or not amd else 1536) // (held + 32))
    return max(1, int(min(chip.lds_bytes // max(lds, 1), waves // settings["num_warps"])))


def seconds(
    problem: Problem,
    settings: Settings,
    device: Device,
    columns: int,
    n: int,
    size: int,
    *,
    dtype: str = "",
    **formats: str,
) -> float:
    """The time of a grouped product of `n` columns in tiles `columns` wide, the rows spread evenly
    over the experts that can be hit. Where few workgroups have room, reading weights of `size`
    bytes waits for their barriers."""
    slots = problem["slots"]
    hit = min(problem["experts"], slots)
    groups = tuple(slots // hit + (place < slots % hit) for place in range(hit))
    alone = estimates.tile(
        device,
        settings,
        m=slots,
        n=n,
        k=problem["k"],
        dtype=dtype or problem["dtype"],
        rows=settings["BLOCK_M"],
        columns=columns,
        depth=settings["BLOCK_K"],
        groups=groups,
        **formats,  # pyright: ignore[reportArgumentType]
    )
    reading = hit * n * problem["k"] * size / Chip.of(device).hbm
    return alone + _WAITING.get(_resident(settings, device, columns, size), 0.0) * reading


def _size(problem: Problem) -> int:
    return 4 if problem["dtype"] == "fp32" else 2


def _up_fits(problem: Problem, settings: Settings, device: Device) -> bool:
    return fits(problem, settings, device, 2 * settings["BLOCK_N"], _size(problem))


def _up_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    return seconds(
        problem, settings, device, 2 * settings["BLOCK_N"], 2 * problem["n"], _size(problem)
    )


def _product_fits(problem: Problem, settings: Settings, device: Device) -> bool:
    return fits(problem, settings, device, settings["BLOCK_N"], _size(problem))


def _product_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    return seconds(problem, settings, device, settings["BLOCK_N"], problem["n"], _size(problem))


def _combine_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    whole = min(4096, triton.next_power_of_2(problem["columns"]))
    return {
        "BLOCK": tuple(size for size in (512, 1024, 2048, 4096) if size <= whole) or (whole,),
        "ROWS": (1, 2, 4),
        "num_warps": (2, 4, 8),
        "num_stages": (1,),
    }


def _combine_seconds(problem: Problem, settings: Settings, device: Device) -> float:
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


UP = Space(
    kernel="moe_up_kernel", axes=_axes, fits=_up_fits, seconds=_up_seconds, classes=("slots",)
)
PRODUCT = Space(
    kernel="moe_product_kernel",
    axes=_axes,
    fits=_product_fits,
    seconds=_product_seconds,
    classes=("slots",),
)
COMBINE = Space(
    kernel="moe_combine_kernel",
    axes=_combine_axes,
    seconds=_combine_seconds,
    classes=("tokens",),
)

__all__ = [
    "COMBINE",
    "FORMATS",
    "PRODUCT",
    "UP",
    "block_of",
    "fits",
    "moe_combine_kernel",
    "moe_product_kernel",
    "moe_up_kernel",
    "problem",
    "seconds",
]
