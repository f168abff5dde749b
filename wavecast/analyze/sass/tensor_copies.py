"""The operands of TMA copies, and of the arrivals that say how many bytes a phase waits for.

A copy of a box of a tensor (`UTMALDG.2D [UR8], [UR6]`) names two groups of uniform registers: the
first has the address in shared memory, of loads then the memory barrier that counts the bytes, then
the coordinates of the box, the innermost first; the second has the address of the descriptor. An
arrival (`SYNCS.ARRIVE.TRANS64 RZ, [UR8], R5`) has the bytes that its phase waits for in a register.
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

from wavecast.analyze.sass.lanes import Lanes
from wavecast.analyze.sass.operands import ZERO, Register, SassOperand, SassOperation

Array = np.ndarray[Any, Any]

LOAD: Final = "UTMALDG"
STORE: Final = "UTMASTG"
UNKNOWN: Final = -1
"""An operand that the launch does not determine."""
DESCRIPTOR, BARRIER, COORDINATES = range(3)
"""Columns of the operands of a copy: the addresses of its descriptor and of its memory barrier
(UNKNOWN of stores), then its coordinates."""
_DIMENSIONS: Final = re.compile(r"([1-5])D")


def is_copy(operation: SassOperation) -> bool:
    """Whether an instruction copies a box between a tensor and shared memory."""
    return operation.name in (LOAD, STORE)


def expects(operation: SassOperation) -> bool:
    """Whether an instruction arrives at a memory barrier with bytes to wait for."""
    return (
        operation.name == "SYNCS"
        and "ARRIVE" in operation.modifiers
        and "A1T0" not in operation.modifiers
    )


def registers(operation: SassOperation) -> tuple[Register, ...]:
    """The registers whose values `operands` has, descriptors by the first of a pair."""
    if expects(operation):
        return tuple(o.register for o in operation.reads if o.register is not None)
    return _columns(operation) if is_copy(operation) else ()


def operands(
    operation: SassOperation, lanes: Lanes, warps: Array, lane_mask: Array
) -> Array | None:
    """The operands (i64[w, n]) of a copy in `warps` (i64[w]), of an arrival the bytes; None for
    other instructions. `lane_mask` (bool[w, 32]) are the lanes that execute it."""
    if not is_copy(operation) and not expects(operation):
        return None
    columns = []
    for number, register in enumerate(registers(operation)):
        if is_copy(operation) and number == DESCRIPTOR:
            value = lanes.pair(SassOperand("", register))
        elif is_copy(operation) and number == BARRIER and operation.name == STORE:
            value = None
        else:
            value = lanes.register(register)
        if value is None:
            columns.append(np.full(len(warps), UNKNOWN, np.int64))
            continue
        whole = np.broadcast_to(value, (len(lanes.active), lane_mask.shape[1]))
        own_lanes = whole[warps, lane_mask.argmax(axis=1)].astype(np.int64)
        is_coordinate = is_copy(operation) and number >= COORDINATES
        columns.append(own_lanes.astype(np.int32).astype(np.int64) if is_coordinate else own_lanes)
    return np.stack(columns, axis=1) if columns else None


def _columns(operation: SassOperation) -> tuple[Register, ...]:
    """Descriptor, barrier, coordinates; of stores the shared address in the barrier's column."""
    groups = [address.terms[0][0] for address in operation.addresses if address.terms]
    dimensions = next(
        (m[1] for text in operation.modifiers if (m := _DIMENSIONS.fullmatch(text))), None
    )
    if len(groups) != 2 or dimensions is None or groups[0].number == ZERO:
        return ()
    first = groups[0].number
    skipped = 2 if operation.name == LOAD else 1
    after = [Register("UR", first + skipped + n) for n in range(int(dimensions))]
    return groups[1], Register("UR", first + skipped - 1), *after


__all__ = [
    "BARRIER", "COORDINATES", "DESCRIPTOR", "LOAD", "STORE", "UNKNOWN", "expects", "is_copy",
    "operands", "registers",
]  # fmt: skip
