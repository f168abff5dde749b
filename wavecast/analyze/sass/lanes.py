"""Registers of warps as arrays of lanes, with values that the launch does not determine as None.

Arrays have the shape [warps, 32] or one that broadcasts to it, so that what is equal in a workgroup
or a launch is computed once. Words are u32, pairs of registers u64, predicates bool.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from wavecast.analyze.sass.launch_constants import LaunchConstants
from wavecast.analyze.sass.operands import ZERO, Address, Register, SassOperand, SassOperation

Array = np.ndarray[Any, Any]
Value = Array | None
"""Lanes, or None where they are not known."""

LANES: Final = 32
_ZERO: Final = np.zeros((1, 1), np.uint32)
_TRUE: Final = np.ones((1, 1), bool)
_HIGH: Final = np.uint64(32)
_WORD: Final = np.uint64(0xFFFFFFFF)


def word(value: int) -> Array:
    """A word that is the same in every lane."""
    return np.full((1, 1), value & 0xFFFFFFFF, np.uint32)


def low(pair: Array) -> Array:
    """The lower word of pairs."""
    return (pair & _WORD).astype(np.uint32)


def high(pair: Array) -> Array:
    """The upper word of pairs."""
    return (pair >> _HIGH).astype(np.uint32)


def to_signed(words: Array) -> Array:
    """Words as signed integers, i64."""
    return words.view(np.int32).astype(np.int64) if words.dtype == np.uint32 else words


class Lanes:
    """The registers of warps. `active` (bool[warps, 32]) are the lanes that execute the current
    instruction; `all_active` says that a write may ignore it. `relevant` are those whose values an
    instruction uses: the active ones, under a guard those that pass it."""

    def __init__(self, constants: LaunchConstants, warps: int) -> None:
        self.constants = constants
        self.active: Array = np.ones((warps, LANES), bool)
        self.all_active = True
        self.relevant: Array = self.active
        self._known: dict[Register, Array] = {}
        self._partly: dict[Register, Array] = {}

    def register(self, register: Register) -> Value:
        """The lanes of a register; None where some that are relevant are not known."""
        if register.number == ZERO:
            return _ZERO if register.file in ("R", "UR") else _TRUE
        partly = self._partly.get(register)
        if partly is not None and not (partly | ~self.relevant).all():
            return None
        return self._known.get(register)

    def word(self, operand: SassOperand) -> Value:
        """The word of an operand, with its sign and inversion."""
        value = self._raw(operand, 0)
        if value is None:
            return None
        if operand.absolute:
            value = np.abs(value.view(np.int32)).view(np.uint32)
        if operand.negative:
            value = (~value) + np.uint32(1)
        return ~value if operand.inverted else value

    def pair(self, operand: SassOperand, *, sign: bool = False) -> Value:
        """The 64 bits of an operand: a register and the next one; integers by their sign, words of
        a constant bank by the next word. `sign` extends an integer of 32 bits."""
        if operand.value is not None:
            value = operand.value if sign or operand.value >= 0 else operand.value & 0xFFFFFFFF
            return np.full((1, 1), value & 0xFFFFFFFFFFFFFFFF, np.uint64)
        lower, upper = self._raw(operand, 0), self._raw(operand, 1)
        if lower is None or upper is None:
            return None
        bits = lower.astype(np.uint64) | upper.astype(np.uint64) << _HIGH
        if operand.negative:
            bits = (~bits) + np.uint64(1)
        return ~bits if operand.inverted else bits

    def _raw(self, operand: SassOperand, part: int) -> Value:
        if operand.bank is not None:
            base = operand.register
            at = _ZERO if base is None else self.register(base)
            return self.constants.words(operand.bank, at, operand.offset + 4 * part)
        if operand.register is not None:
            register = operand.register
            if register.number == ZERO or not part:
                return self.register(register)
            return self.register(Register(register.file, register.number + part))
        return word(operand.value) if operand.value is not None and not part else None

    def predicate(self, operand: SassOperand) -> Value:
        """The lanes of a predicate operand."""
        value = self.register(operand.register) if operand.register is not None else None
        if value is None:
            return None
        return ~value if operand.inverted else value

    def guard(self, operation: SassOperation) -> Value:
        """Lanes whose guard lets the instruction execute; all without a guard."""
        if operation.guard is None:
            return _TRUE
        register, inverted = operation.guard
        value = self.register(register)
        return None if value is None else ~value if inverted else value

    def address(self, address: Address) -> Value:
        """The byte addresses of lanes, u64."""
        total: Array = np.full((1, 1), address.offset & 0xFFFFFFFFFFFFFFFF, np.uint64)
        wide = any(term[1] for term in address.terms)
        for register, is_wide, scale in address.terms:
            value = self.pair(SassOperand("", register)) if is_wide else self.register(register)
            if value is None:
                return None
            total = total + (value.astype(np.uint64) << np.uint64(scale))
        return total if wide else total & _WORD

    def words(self, operation: SassOperation, count: int) -> list[Array] | None:
        """The first operands as words, None when one is unknown."""
        words = [self.word(operand) for operand in operation.reads[:count]]
        values = [value for value in words if value is not None]
        return values if len(values) == count == len(words) else None

    def result(self, operation: SassOperation, value: Value) -> None:
        """Write the first result of an operation under its guard."""
        self.put(operation.writes[0], value, self.guard(operation))

    def put(self, register: Register, value: Value, guard: Value) -> None:
        """Write a register in the lanes that are active and pass the guard."""
        if register.number == ZERO:
            return
        everywhere = guard is _TRUE and self.all_active
        mask = self.active if guard is None else guard & self.active
        if not everywhere and not mask.any():
            return
        if guard is None or value is None:
            known_mask = self._partly.pop(register, np.True_) & ~mask
            if everywhere or register not in self._known or not known_mask.any():
                self._known.pop(register, None)
            else:
                self._partly[register] = known_mask
            return
        if everywhere or mask.all():
            self._known[register] = value
            self._partly.pop(register, None)
            return
        before = self._known.get(register)
        known_mask = mask if before is None else self._partly.get(register, np.True_) | mask
        self._known[register] = np.where(mask, value, value if before is None else before)
        if known_mask.all():
            self._partly.pop(register, None)
        else:
            self._partly[register] = known_mask

    def put_pair(self, register: Register, value: Value, guard: Value) -> None:
        """Write a register and the next one."""
        if register.number == ZERO:
            return
        following = Register(register.file, register.number + 1)
        self.put(register, None if value is None else low(value), guard)
        self.put(following, None if value is None else high(value), guard)


__all__ = ["LANES", "Lanes", "Value", "high", "low", "to_signed", "word"]
