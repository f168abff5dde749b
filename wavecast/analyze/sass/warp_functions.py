"""What SASS reads of the launch, and what the lanes of a warp tell each other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from wavecast.analyze.sass.lanes import LANES, Lanes, Value, word
from wavecast.analyze.sass.operands import Register, SassOperation

Array = np.ndarray[Any, Any]


def first_lane(operation: SassOperation, lanes: Lanes) -> None:
    """R2UR: what the first lane has."""
    value = lanes.word(operation.reads[0])
    lanes.result(operation, None if value is None else value[:, :1])


def special(operation: SassOperation, lanes: Lanes) -> None:
    """S2R and CS2R: special registers, and zeros."""
    name = operation.reads[0].text if operation.reads else ""
    value, guard = lanes.constants.special(name), lanes.guard(operation)
    if operation.writes[0].file == "UR" and value is not None:
        value = value[:, :1]
    lanes.put(operation.writes[0], value, guard)
    if operation.name == "CS2R" and "32" not in operation.modifiers:
        lanes.put_pair(
            operation.writes[0], None if value is None else value.astype(np.uint64), guard
        )


def load_constant(operation: SassOperation, lanes: Lanes) -> None:
    """LDC: words of a constant bank."""
    guard, target = lanes.guard(operation), operation.writes[0]
    count = {"64": 2, "128": 4}.get(operation.modifiers[0] if operation.modifiers else "", 1)
    narrow = bool({"U8", "S8", "U16", "S16"} & set(operation.modifiers))
    for part in range(count):
        operand = operation.reads[0]
        value = lanes.word(replace(operand, offset=operand.offset + 4 * part))
        register = Register(target.file, target.number + part)
        lanes.put(register, None if narrow else value, guard)


def shuffle(operation: SassOperation, lanes: Lanes) -> None:
    """SHFL with the whole warp as its segment."""
    target = next((r for r in operation.writes if r.file == "R"), None)
    flag = next((r for r in operation.writes if r.file == "P"), None)
    guard, value = lanes.guard(operation), lanes.word(operation.reads[0])
    other = lanes.word(operation.reads[1])
    lane_ids = np.arange(LANES)
    result: Value = None
    if value is not None and other is not None and other.size == 1:
        by = int(other.flat[0])
        source = {
            "IDX": np.full(LANES, by),
            "BFLY": lane_ids ^ by,
            "DOWN": np.where(lane_ids + by < LANES, lane_ids + by, lane_ids),
            "UP": np.where(lane_ids - by >= 0, lane_ids - by, lane_ids),
        }.get(operation.modifiers[0])
        if source is not None:
            whole = np.broadcast_to(value, (value.shape[0], LANES))
            result = whole[:, source % LANES]
    if target is not None:
        lanes.put(target, result, guard)
    if flag is not None:
        lanes.put(flag, None, guard)


def vote(operation: SassOperation, lanes: Lanes) -> None:
    """VOTE: over the active lanes of a warp; a word has a bit per lane."""
    operand = next((o for o in operation.reads if o.register is not None), None)
    value = lanes.predicate(operand) if operand is not None else None
    guard = lanes.guard(operation)
    bits: Value = None
    flags: Value = None
    if value is not None:
        votes = np.broadcast_to(value, lanes.active.shape)
        ballot = votes & lanes.active
        weights = np.uint64(1) << np.arange(LANES, dtype=np.uint64)
        bits = (ballot * weights).sum(axis=1, keepdims=True).astype(np.uint32)
        if "ALL" in operation.modifiers:
            flags = np.asarray((votes | ~lanes.active).all(axis=1, keepdims=True))
        else:
            flags = np.asarray(ballot.any(axis=1, keepdims=True))
    for register in operation.writes:
        lanes.put(register, bits if register.file in ("R", "UR") else flags, guard)


def elect(operation: SassOperation, lanes: Lanes) -> None:
    """ELECT: the first active lane."""
    first = np.cumsum(lanes.active, axis=1) == 1
    for register in operation.writes:
        value = first & lanes.active if register.file in ("P", "UP") else None
        lanes.put(register, value, lanes.guard(operation))


def passes(operation: SassOperation, lanes: Lanes) -> None:
    """What polls until it succeeds: it does."""
    for register in operation.writes:
        value = np.ones((1, 1), bool) if register.file in ("P", "UP") else None
        lanes.put(register, value, lanes.guard(operation))


def gather_predicates(operation: SassOperation, lanes: Lanes) -> None:
    """P2R: the predicates as bits, under a mask, above those of the operand that are kept."""
    numbers = [o.value for o in operation.reads if o.value is not None]
    base = next((lanes.word(o) for o in operation.reads if o.register is not None), word(0))
    mask = numbers[-1] if numbers else 0x7F
    if base is None or operation.modifiers:
        lanes.result(operation, None)
        return
    total: Array = base & np.uint32(~mask & 0xFFFFFFFF)
    for number in range(7):
        if mask >> number & 1:
            flag = lanes.register(Register("P", number))
            if flag is None:
                lanes.result(operation, None)
                return
            total = total | np.where(flag, np.uint32(1 << number), np.uint32(0))
    lanes.result(operation, total)


def scatter_predicates(operation: SassOperation, lanes: Lanes) -> None:
    """R2P: bits of a word as predicates, under a mask."""
    value = next((lanes.word(o) for o in operation.reads if o.text not in ("PR",)), None)
    mask = next((o.value for o in operation.reads if o.value is not None), 0x7F)
    for number in range(7):
        if mask >> number & 1:
            bit = None if value is None else value >> np.uint32(number) & np.uint32(1) != 0
            lanes.put(Register("P", number), bit, lanes.guard(operation))


__all__ = [
    "elect",
    "first_lane",
    "gather_predicates",
    "load_constant",
    "passes",
    "scatter_predicates",
    "shuffle",
    "special",
    "vote",
]
