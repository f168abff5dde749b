"""Sizes of blocks and tiles for products of rows sorted by expert, and the time they take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch

from wavecast.arch import Device
from wavecast.kernels import estimates
from wavecast.kernels.moe.align import blocks
from wavecast.kernels.space import Problem, Settings
from wavecast.kernels.tiles import buffers, copies_to_lds
from wavecast.model.chip import Chip

FORMATS: Final = {
    torch.float32: "fp32",
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
    torch.int8: "int8",
}
"""Names of dtypes in `wavecast.model`."""
SIZES: Final = {"fp32": 4, "fp16": 2, "bf16": 2, "int8": 1}
"""Bytes of an element."""
_SUSTAINED: Final = 0.5
"""Of the peak of matrix products, about what large ones sustain."""
_WAITING: Final = {1: 0.4, 2: 0.05}
"""Of the time to read the weights, what is lost with so many workgroups on a compute unit: the
simulator's, on products bound by memory."""
_IDLE: Final = 0.25
"""Of the time of products of bytes, what matrix pipes idle while the only workgroup of a compute
unit fetches its next step, which takes as long as multiplying it: the simulator's, on MI300X and
MI355X with 8 and 128 experts."""
BYTES_AT_MOST: Final = 128
"""Rows of a block of products of bytes: with more, one workgroup fills a compute unit."""


def block_of(slots: int, count: int, size: float, device: Device, most: int = 256) -> int:
    """Rows of a block: of an element of weights, of `size` bytes, reading it once per block and
    multiplying it by every row, padding included, takes least, if as many blocks are needed as can
    be."""
    chip = Chip.of(device)
    rate = chip.matrix_rate("fp16") * chip.units * chip.clock

    def taken(block: int) -> float:
        multiplied = 2 * block / (_SUSTAINED * rate)
        return blocks(slots, count, block) * (size / chip.hbm + multiplied)

    gfx9 = device.target.startswith("gfx9")
    most = min(most, (128 if gfx9 else 32) if size == 4 else (256 if gfx9 else 128))
    return min((rows for rows in (16, 32, 64, 128, 256) if rows <= most), key=taken)


def axes(problem: Problem, device: Device, size: float = 2) -> dict[str, Sequence[Any]]:
    """What products of every format have in common. Bytes are multiplied as fast as the LDS gives
    them to waves of 64x64 results, so that more waves to a tile wait for it."""
    rows = problem["block"]
    amd = device.target.startswith("gfx")
    many = (4,) if size == 1 and device.target.startswith("gfx9") else (4, 8)
    kept = {
        "BLOCK_M": (rows,),
        "BLOCK_N": (32, 64, 128, 256) if rows >= 64 else (32, 64, 128),
        "GROUP": (8,),
        "num_warps": many if rows >= 64 else (2, 4) if amd else (4,),
        "num_stages": (2,) if amd else (2, 3),
    }
    return {**kept, **matrix(device)}


def matrix(device: Device) -> dict[str, Sequence[Any]]:
    """How AMD's matrix instructions are used."""
    if device.target in ("gfx90a", "gfx942"):
        # Operands of two instructions are read from the LDS at once.
        return {"matrix_instr_nonkdim": (16,), "kpack": (2,)}
    return {"matrix_instr_nonkdim": (16,)} if device.target.startswith("gfx9") else {}


def columns(problem: Problem, settings: Settings) -> int:
    """Rows of weights that a tile takes: gates and ups of an activation."""
    return settings["BLOCK_N"] * (2 if problem["gates"] else 1)


def fits(problem: Problem, settings: Settings, device: Device, columns: int, size: float) -> bool:
    """Whether a tile with `columns` columns of weights of `size` bytes has room."""
    return _resident(settings, device, columns, size) > 0


def _resident(settings: Settings, device: Device, columns: int, size: float) -> int:
    """Workgroups that have room on a compute unit: operands in the LDS, accumulators and operands
    in flight in registers. 0: not one."""
    amd = device.target.startswith("gfx")
    wide = device.target.startswith("gfx9")
    copied = copies_to_lds(device)
    rows, depth = settings["BLOCK_M"], settings["BLOCK_K"]
    staged = (rows + columns) * depth * size
    lds = staged * buffers(settings, device)
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
    size: float,
    *,
    dtype: str,
    held: float = 0.0,
    **formats: str,
) -> float:
    """The time of a grouped product in tiles `columns` wide, the rows spread evenly over the
    experts that can be hit. Where few workgroups have room (operands of `held` bytes, or `size`, an
    element), reading weights of `size` bytes waits for their barriers."""
    slots = problem["slots"]
    hit = min(problem["experts"], slots)
    groups = tuple(slots // hit + (place < slots % hit) for place in range(hit))
    n = problem["n"] * (2 if problem["gates"] else 1)
    alone = estimates.tile(
        device,
        settings,
        m=slots,
        n=n,
        k=problem["k"],
        dtype=dtype,
        rows=settings["BLOCK_M"],
        columns=columns,
        depth=settings["BLOCK_K"],
        groups=groups,
        **formats,  # pyright: ignore[reportArgumentType]
    )
    reading = hit * n * problem["k"] * size / Chip.of(device).hbm
    resident = _resident(settings, device, columns, held or size)
    waiting = _WAITING.get(resident, 0.0) * reading
    if resident == 1 and max(held, size) == 1 and device.target.startswith("gfx9"):
        waiting = max(waiting, _IDLE * alone)
    return alone + waiting


__all__ = ["FORMATS", "SIZES", "axes", "block_of", "columns", "fits", "matrix", "seconds"]
