"""The bits of a ballot that a program reads."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Final

from wavecast.analyze.lanes.flow import LaneFlow
from wavecast.analyze.lanes.per_lane import constant_word
from wavecast.compile.ir_blocks import IrInstruction, integer_width

BALLOT: Final = "llvm.amdgcn.ballot.i64"
_DEPTH: Final = 64
_SAME = frozenset({"or", "xor", "phi", "freeze"})


def read_bits(flow: LaneFlow, name: str, depth: int = _DEPTH) -> int:
    """The bits of an integer that anything reads as a number (LLVM's demanded bits); all of them
    where the uses are not followed. A comparison of a ballot for equality asks whether any or all
    lanes vote, not which."""
    definition = flow.definitions.get(name)
    width = definition.width if definition is not None else 64
    total = 0
    for user, block in flow.users.get(name, ()):
        del block
        total |= _read_by(flow, user, name, width, depth)
    return total & (1 << width) - 1


def _read_by(flow: LaneFlow, user: IrInstruction, name: str, width: int, depth: int) -> int:
    everything = (1 << width) - 1
    if depth == 0:
        return everything
    opcode = user.opcode
    if asks_whether(flow, user, name):
        return 0
    if opcode in ("trunc", "zext", *_SAME) or (opcode == "select" and name in user.operands[1:]):
        return read_bits(flow, user.result, depth - 1)
    if opcode == "and":
        other = user.operands[1] if user.operands[0] == name else user.operands[0]
        return read_bits(flow, user.result, depth - 1) & _largest(flow, other)
    if opcode in ("shl", "lshr") and user.operands[0] == name:
        amount = constant_word(user.operands[1])
        if amount is not None and amount < width:
            bits = read_bits(flow, user.result, depth - 1)
            return bits >> amount if opcode == "shl" else bits << amount & everything
    if opcode == "bitcast" and user.type == "<2 x i32>" and width == 64:
        return _read_halves(flow, user.result, depth)
    return everything


def asks_whether(flow: LaneFlow, user: IrInstruction, name: str) -> bool:
    """Whether an instruction compares all votes of a ballot at once, as `__any` does."""
    definition = flow.definitions.get(name)
    is_ballot = definition is not None and definition.detail == BALLOT
    return is_ballot and user.opcode == "icmp" and user.detail in ("eq", "ne")


def _read_halves(flow: LaneFlow, name: str, depth: int) -> int:
    """The bits of 64 that the elements of their two halves are read for."""
    total = 0
    for user, _ in flow.users.get(name, ()):
        element = constant_word(user.operands[-1]) if user.opcode == "extractelement" else None
        if element is None or element > 1:
            return (1 << 64) - 1
        total |= read_bits(flow, user.result, depth - 1) << 32 * element
    return total


def _largest(flow: LaneFlow, operand: str) -> int:
    """The bits that a mask may have."""
    word = constant_word(operand)
    if word is not None:
        return word
    value = flow.values.of(operand)
    words = None if value is None else value.complete()
    if words is not None:
        return reduce(or_, words)
    definition = flow.definitions.get(operand)
    if definition is not None and definition.opcode == "zext":
        return (1 << integer_width(definition.detail)) - 1
    return (1 << 64) - 1


__all__ = ["BALLOT", "asks_whether", "read_bits"]
