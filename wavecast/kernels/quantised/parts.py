"""What the products of this family share: tiles to choose from, and sums of a split K."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import estimates
from wavecast.kernels.choice import launch
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.model.chip import Chip

NAMES: Final = {
    torch.float32: "fp32",
    torch.bfloat16: "bf16",
    torch.float16: "fp16",
    torch.float8_e4m3fn: "fp8",
    torch.float8_e4m3fnuz: "fp8",
    torch.float8_e5m2: "fp8",
    torch.float8_e5m2fnuz: "fp8",
}
"""Operands by the names of `wavecast.model`."""
OUTPUTS: Final = (torch.bfloat16, torch.float16, torch.float32)
"""Dtypes of results."""
_PARTS_AT_MOST: Final = 2**27
"""Bytes that the parts of a split K may take."""
SKINNY: Final = 64
"""Rows of A up to which reading B is what takes time."""


@triton.jit
def add_parts_kernel(part_ptr, out_ptr, count, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    """Adds up the parts of a result in their order."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    total = tl.load(part_ptr + at, mask=inside, other=0.0)
    for part in tl.static_range(1, PARTS):  # pyright: ignore[reportGeneralTypeIssues]
        total += tl.load(part_ptr + part * count + at, mask=inside, other=0.0)
    tl.store(out_ptr + at, total.to(out_ptr.dtype.element_ty), mask=inside)


def add_parts(parts: torch.Tensor, out: torch.Tensor) -> None:
    """`out` = the sum of `parts` [number, *out.shape] of float32, in their order."""
    count = out.numel()
    launch(
        add_parts_kernel,
        lambda settings: (triton.cdiv(count, settings["BLOCK"]),),
        (parts, out, count),
        ADD,
        {"count": count, "parts": parts.shape[0], "bytes": out.element_size()},
        PARTS=parts.shape[0],
    )


def _add_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    return {"BLOCK": (64, 128, 256, 512, 1024), "num_warps": (1, 2, 4), "num_stages": (1,)}


def _add_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    return estimates.streaming(
        device,
        settings,
        workgroups=triton.cdiv(problem["count"], settings["BLOCK"]),
        read=4.0 * problem["count"] * problem["parts"],
        written=problem["count"] * problem["bytes"],
        elements=settings["BLOCK"],
        operations=3.0 + 2.0 * problem["parts"],
        held=1.0 + problem["parts"],
    )


ADD = Space(kernel="add_parts_kernel", axes=_add_axes, seconds=_add_seconds, classes=("count",))


def splits(problem: Problem) -> tuple[int, ...]:
    """Parts that K may be cut into: for results of few tiles."""
    if problem["m"] * problem["n"] > 2**21:
        return (1,)
    return (1, 2, 4, 8, 16)


def splits_fit(problem: Problem, splits: int, depth: int) -> bool:
    """Whether every part has two steps of `depth` at least, and the parts have room."""
    if splits == 1:
        return True
    room = splits * problem["m"] * problem["n"] * 4 <= _PARTS_AT_MOST
    return room and splits * depth * 2 <= problem["k"]


def blocks(size: int, least: int, most: int, count: int = 3) -> tuple[int, ...]:
    """Powers of two from `least` to `most`: the one that holds `size`, and those below it."""
    largest = min(most, max(least, triton.next_power_of_2(size)))
    found = [largest >> step for step in range(count)]
    return tuple(sorted(one for one in found if one >= least))


def shared_out(settings: Settings, device: Device, rows: int, columns: int, held: int) -> bool:
    """Whether each lane has a fitting part of a tile whose `held` sums are kept at once: each wave
    one square of 16 at least, and no more registers than there are."""
    limits = device.limits()
    waves = settings["num_warps"]
    if rows * columns < 256 * waves:
        return False
    most = 128 if limits.wave_lanes == 32 else 256
    return rows * columns * held / (waves * limits.wave_lanes) <= most


def packed(device: Device) -> Mapping[str, Sequence[Any]]:
    """Axes of bfloat16 and float16 products by AMD's generation. On CDNA a step of 64 elements
    reads whole cache lines of every row; before gfx950 operands come from the LDS by 16 bytes with
    `kpack`."""
    if device.target in ("gfx90a", "gfx942"):
        return {"BLOCK_K": (64,), "matrix_instr_nonkdim": (16,), "kpack": (2,)}
    if device.limits().wave_lanes == 64:
        return {"BLOCK_K": (64,), "matrix_instr_nonkdim": (16,)}
    return {"BLOCK_K": (32, 64), "matrix_instr_nonkdim": (0,)}


def columns_at_most(device: Device) -> int:
    """Columns of a tile of bfloat16 or float16: where operands wait in registers, 128."""
    return 128 if device.target in ("gfx90a", "gfx942") else 256


def skinny(
    problem: Problem,
    settings: Settings,
    device: Device,
    weights: float,
    size: float,
    depth: int = 128,
) -> float:
    """Seconds of a product of at most `SKINNY` rows of elements of `size` bytes that reads so many
    bytes of `weights`: narrow tiles and enough of them to fill the GPU three times, at the price of
    another launch for parts of K. Every tile reads its rows again, from the L2, which gives some
    four times as much as memory."""
    chip = Chip.of(device)
    rows, columns = settings["BLOCK_M"], settings["BLOCK_N"]
    down = triton.cdiv(problem["m"], rows)
    count = down * triton.cdiv(problem["n"], columns) * settings["SPLIT_K"]
    idle = max(1.0, 3.0 * chip.units / count) ** 0.6
    narrow = 1.0 + 0.12 * math.log2(columns / 16)
    waves = 1.0 + 0.03 * abs(math.log2(rows * columns / settings["num_warps"] / 128))
    step = 1.0 + 0.1 * math.log2(128 / depth)
    again = 0.0
    if settings["SPLIT_K"] > 1:  # parts often stay in a cache
        again = 5e-6 + 4.0 * settings["SPLIT_K"] * problem["m"] * problem["n"] / chip.hbm
    reread = triton.cdiv(problem["n"], columns) * rows * problem["k"] * size / 4
    return (weights + reread) * down / chip.hbm * idle * narrow * waves * step + again


__all__ = [
    "ADD",
    "NAMES",
    "OUTPUTS",
    "SKINNY",
    "add_parts",
    "blocks",
    "columns_at_most",
    "packed",
    "shared_out",
    "skinny",
    "splits",
    "splits_fit",
]
