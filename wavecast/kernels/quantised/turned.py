"""Scales in the order in which products of many rows read them: neighbouring lanes, neighbouring
rows.

A step of a product reads a few scales of each row of a tile. Where those of a row lie side by side,
every row costs a whole cache line, as much as its operands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, estimates
from wavecast.kernels.choice import launch
from wavecast.kernels.space import Problem, Settings, Space

PITCH: Final = 256
"""Rows are padded with zeros to a multiple of this, so that whole tiles can be read."""


@triton.jit
def turn_kernel(
    from_ptr, to_ptr, rows, columns, pitch, row_step, column_step, WIDE: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """to[column, row] = from[row, column], 0 beyond the rows up to `pitch`."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    if WIDE:
        row, column = row.to(tl.int64), column.to(tl.int64)
    tile = tl.load(
        from_ptr + row[:, None] * row_step + column[None, :] * column_step, mask=inside, other=0
    )
    held = (row < pitch)[:, None] & (column < columns)[None, :]
    tl.store(to_ptr + column[None, :] * pitch + row[:, None], tile, mask=held)


def turned(scale: torch.Tensor) -> torch.Tensor:
    """A copy of a matrix [rows, columns] whose rows are adjacent in memory, then zeros up to a
    multiple of `PITCH`."""
    rows, columns = scale.shape
    pitch = triton.cdiv(rows, PITCH) * PITCH
    found = torch.empty((columns, pitch), dtype=scale.dtype, device=scale.device)
    launch(
        turn_kernel,
        lambda s: (triton.cdiv(pitch, s["ROWS"]), triton.cdiv(columns, s["COLUMNS"])),
        (scale, found, rows, columns, pitch, scale.stride(0), scale.stride(1)),
        TURN,
        {"rows": rows, "columns": columns, "bytes": scale.element_size()},
        WIDE=checks.wide(scale, found),
    )
    return found.T[:rows]


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    return {"ROWS": (32, 64, 128), "COLUMNS": (32, 64, 128), "num_warps": (4,), "num_stages": (1,)}


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    rows, columns, size = problem["rows"], problem["columns"], problem["bytes"]
    tiles = triton.cdiv(rows, settings["ROWS"]) * triton.cdiv(columns, settings["COLUMNS"])
    # a line is read and written whole, whatever part of it a tile has
    read = max(1.0, 128 / (min(columns, settings["COLUMNS"]) * size))
    written = max(1.0, 128 / (min(rows, settings["ROWS"]) * size))
    return estimates.streaming(
        device,
        settings,
        workgroups=tiles,
        read=rows * columns * size * read,
        written=rows * columns * size * written,
        elements=settings["ROWS"] * settings["COLUMNS"],
        operations=8.0,
    )


TURN = Space(kernel="turn_kernel", axes=_axes, seconds=_seconds, classes=("rows", "columns"))

__all__ = ["PITCH", "TURN", "turned"]
