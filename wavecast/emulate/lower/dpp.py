"""Data-parallel primitives: the first source comes from another lane of the row or the wave.

Source: AMD instruction set architecture guides (CDNA3, RDNA3), "Data Parallel Primitives".
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower.frame import StripFrame
from wavecast.emulate.values import I1, I32
from wavecast.isa.instruction import Decoded

INVALID = -1


def source_lanes(modifiers: dict[str, str], lanes: int) -> list[int]:
    """For every lane the lane its source comes from; INVALID where there is none."""
    sources = []
    for lane in range(lanes):
        row, column = lane & ~15, lane & 15
        sources.append(_source(modifiers, lane, row, column, lanes))
    return sources


def _source(modifiers: dict[str, str], lane: int, row: int, column: int, lanes: int) -> int:
    if "quad_perm" in modifiers:
        picks = [int(part) for part in modifiers["quad_perm"].strip("[]").split(",")]
        return (lane & ~3) + picks[lane & 3]
    if "dpp8" in modifiers:
        picks = [int(part) for part in modifiers["dpp8"].strip("[]").split(",")]
        return (lane & ~7) + picks[lane & 7]
    if "row_shl" in modifiers:
        other = column + int(modifiers["row_shl"])
        return row + other if other < 16 else INVALID
    if "row_shr" in modifiers:
        other = column - int(modifiers["row_shr"])
        return row + other if other >= 0 else INVALID
    if "row_ror" in modifiers:
        return row + (column - int(modifiers["row_ror"])) % 16
    if "row_mirror" in modifiers:
        return row + 15 - column
    if "row_half_mirror" in modifiers:
        return row + (column & 8) + 7 - (column & 7)
    if "row_share" in modifiers:
        return row + int(modifiers["row_share"])
    if "row_newbcast" in modifiers:
        return row + int(modifiers["row_newbcast"])
    if "row_xmask" in modifiers:
        return row + (column ^ int(modifiers["row_xmask"]))
    if "row_bcast" in modifiers:
        step = int(modifiers["row_bcast"]) + 1
        return (lane // step) * step - 1 if lane >= step else INVALID
    if "wave_shl" in modifiers:
        return lane + 1 if lane + 1 < lanes else INVALID
    if "wave_shr" in modifiers:
        return lane - 1 if lane else INVALID
    if "wave_rol" in modifiers:
        return (lane + 1) % lanes
    if "wave_ror" in modifiers:
        return (lane - 1) % lanes
    raise Unsupported("this DPP control")


def permute(frame: StripFrame, decoded: Decoded, value: Any, active: Any) -> tuple[Any, Any]:
    """The permuted source, and the lanes that write.

    A lane whose source does not exist or is not active reads 0 with `bound_ctrl` and does not
    write without it; `row_mask` and `bank_mask` (bits per 16 and per 4 lanes) stop lanes too.
    """
    builder, lanes = frame.builder, frame.lanes
    sources = source_lanes(decoded.modifiers, lanes)
    indices = ir.Constant(ir.VectorType(I32, lanes), [max(lane, 0) for lane in sources])
    undefined = ir.Constant(value.type, ir.Undefined)
    shuffle = builder.shuffle_vector(value, undefined, indices)
    exists = ir.Constant(ir.VectorType(I1, lanes), [int(lane != INVALID) for lane in sources])
    there = builder.shuffle_vector(active, ir.Constant(active.type, ir.Undefined), indices)
    if "fi" in decoded.modifiers:
        there = ir.Constant(active.type, [1] * lanes)
    valid = builder.and_(exists, there)
    rows = int(decoded.modifiers.get("row_mask", "0xf"), 0)
    banks = int(decoded.modifiers.get("bank_mask", "0xf"), 0)
    enabled = [int(rows >> (lane >> 4 & 3) & banks >> (lane >> 2 & 3) & 1) for lane in range(lanes)]
    writes = builder.and_(active, ir.Constant(active.type, enabled))
    zero = ir.Constant(value.type, [0] * lanes)
    shuffle = builder.select(valid, shuffle, zero)
    if "bound_ctrl" not in decoded.modifiers:
        writes = builder.and_(writes, valid)
    return shuffle, writes
