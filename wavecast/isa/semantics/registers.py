"""Operands as registers: wide values as dwords, packed elements, parts of an old value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from wavecast.isa.semantics.ops import Ops

V = TypeVar("V")


def dwords(o: Ops[V], value: V | tuple[V, ...], bits: int) -> tuple[V, ...]:
    """An operand of `bits` as 32-bit values; beyond 64 bits it is passed that way."""
    if isinstance(value, tuple):
        return value
    if bits <= 32:
        return (value,)
    high = o.lshr(value, o.const(32, 64), 64)
    return o.truncate(value, 64, 32), o.truncate(high, 64, 32)


def from_dwords(o: Ops[V], values: Sequence[V]) -> V | tuple[V, ...]:
    """The inverse of `dwords`."""
    if len(values) == 1:
        return values[0]
    return o.join(values[0], values[1]) if len(values) == 2 else tuple(values)


def elements(o: Ops[V], words: Sequence[V], width: int, count: int) -> list[V]:
    """`count` packed elements of `width` bits, each in 32 bits; they may cross dwords."""
    fields = []
    for position in range(0, width * count, width):
        index, offset = divmod(position, 32)
        part = words[index] if offset == 0 else o.lshr(words[index], o.const(offset, 32), 32)
        if offset + width > 32:
            upper = o.shl(words[index + 1], o.const(32 - offset, 32), 32)
            part = o.or_(part, upper, 32)
        fields.append(part if width == 32 else o.low_bits(part, width, 32))
    return fields


def pack(o: Ops[V], values: Sequence[V], width: int) -> list[V]:
    """The inverse of `elements`: dwords."""
    words = [o.zero(32) for _ in range((width * len(values) + 31) // 32)]
    for number, value in enumerate(values):
        index, offset = divmod(number * width, 32)
        words[index] = o.or_(words[index], o.shl(value, o.const(offset, 32), 32), 32)
        if offset + width > 32:
            rest = o.lshr(value, o.const(32 - offset, 32), 32)
            words[index + 1] = o.or_(words[index + 1], rest, 32)
    return words


def part(o: Ops[V], a: V, width: int, position: V) -> V:
    """Part number `position` of `width` bits."""
    shift = o.mul(position, o.const(width, 32), 32)
    return o.low_bits(o.lshr(a, shift, 32), width, 32)


def with_part(o: Ops[V], old: V, value: V, width: int, position: V) -> V:
    """`old` with part number `position` of `width` bits replaced."""
    shift = o.mul(position, o.const(width, 32), 32)
    other_bits = o.and_not(old, o.shl(o.const((1 << width) - 1, 32), shift, 32), 32)
    return o.or_(other_bits, o.shl(value, shift, 32), 32)


def bits_of(o: Ops[V], flags: V, first: int, count: int = 1) -> V:
    """Entries `first` on of a list modifier such as op_sel, as a number."""
    return o.low_bits(o.lshr(flags, o.const(first, 32), 32), count, 32)
