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


def is_copy(own: SassOperation) -> bool:
    """Whether an instruction copies a box between a tensor and shared memory."""
    return own.name in (LOAD, STORE)


def expects(own: SassOperation) -> bool:
    """Whether an instruction arrives at a memory barrier with bytes to wait for."""
    return own.name == "SYNCS" and "ARRIVE" in own.modifiers and "A1T0" not in own.modifiers


def registers(own: SassOperation) -> tuple[Register, ...]:
    """The registers whose values `operands` has, descriptors by the first of a pair."""
    if expects(own):
        return tuple(o.register for o in own.reads if o.register is not None)
    return _columns(own) if is_copy(own) else ()


def operands(own: SassOperation, lanes: Lanes, warps: Array, taken: Array) -> Array | None:
    """The operands (i64[w, n]) of a copy in `warps` (i64[w]), of an arrival the bytes; None for
    other instructions. `taken` (bool[w, 32]) are the lanes that execute it."""
    if not is_copy(own) and not expects(own):
        return None
    found = []
    for number, register in enumerate(registers(own)):
        if is_copy(own) and number == DESCRIPTOR:
            value = lanes.pair(SassOperand("", register))
        elif is_copy(own) and number == BARRIER and own.name == STORE:
            value = None
        else:
            value = lanes.register(register)
        if value is None:
            found.append(np.full(len(warps), UNKNOWN, np.int64))
            continue
        whole = np.broadcast_to(value, (len(lanes.active), taken.shape[1]))
        own_lanes = whole[warps, taken.argmax(axis=1)].astype(np.int64)
        is_coordinate = is_copy(own) and number >= COORDINATES
        found.append(own_lanes.astype(np.int32).astype(np.int64) if is_coordinate else own_lanes)
    return np.stack(found, axis=1) if found else None


def _columns(own: SassOperation) -> tuple[Register, ...]:
    """Descriptor, barrier, coordinates; of stores the shared address in the barrier's column."""
    groups = [address.terms[0][0] for address in own.addresses if address.terms]
    dimensions = next((m[1] for text in own.modifiers if (m := _DIMENSIONS.fullmatch(text))), None)
    if len(groups) != 2 or dimensions is None or groups[0].number == ZERO:
        return ()
    first = groups[0].number
    skipped = 2 if own.name == LOAD else 1
    after = [Register("UR", first + skipped + n) for n in range(int(dimensions))]
    return groups[1], Register("UR", first + skipped - 1), *after


__all__ = [
    "BARRIER", "COORDINATES", "DESCRIPTOR", "LOAD", "STORE", "UNKNOWN", "expects", "is_copy",
    "operands", "registers",
]  # fmt: skip
