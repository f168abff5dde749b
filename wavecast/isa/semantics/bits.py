"""Semantics of rows that look for, move and count bits; scalar and vector rows share them.

Sources: those of `scalar` and `vector`.
"""

from __future__ import annotations

from typing import TypeVar

from wavecast.isa.semantics.combine import Function
from wavecast.isa.semantics.ops import Ops

V = TypeVar("V")


def shift_amount(o: Ops[V], amount: V, bits: int) -> V:
    """The low bits of a 32-bit operand that shift by less than `bits`, as wide as that."""
    count = o.low_bits(amount, 5 if bits == 32 else 6, 32)
    return count if bits == 32 else o.zero_extend(count, 32, 64)


def extract(bits: int, signed: bool) -> Function:
    """Bit field: offset in the low bits of the second operand, width in its bits 22:16."""

    def evaluate(o: Ops[V], a: V, field: V) -> tuple[V, V]:
        offset = o.low_bits(field, 5 if bits == 32 else 6, 32)
        width = o.low_bits(o.lshr(field, o.const(16, 32), 32), 7, 32)
        if bits == 64:
            offset, width = o.zero_extend(offset, 32, 64), o.zero_extend(width, 32, 64)
        result = bit_field(o, a, offset, width, bits, signed)
        return result, o.nonzero(result, bits)

    return evaluate


def bit_field(o: Ops[V], a: V, offset: V, width: V, bits: int, signed: bool) -> V:
    """`width` bits of `a` from `offset` on, extended; zero when the width is 0."""
    shifted = o.lshr(a, offset, bits)
    limit = o.const(bits, bits)
    whole = o.not_(o.less_unsigned(width, limit, bits), 1)
    mask_width = o.select(whole, o.zero(bits), width, bits)
    mask = o.select(whole, o.ones(bits), o.bit_mask(mask_width, bits), bits)
    field = o.and_(shifted, mask, bits)
    if not signed:
        return field
    sign = o.and_(o.xor(mask, o.lshr(mask, o.const(1, bits), bits), bits), mask, bits)
    return o.sub(o.xor(field, sign, bits), sign, bits)


def field_mask(bits: int) -> Function:
    def evaluate(o: Ops[V], width: V, offset: V) -> tuple[V]:
        low = 5 if bits == 32 else 6
        count, position = o.low_bits(width, low, 32), o.low_bits(offset, low, 32)
        if bits == 64:
            count, position = o.zero_extend(count, 32, 64), o.zero_extend(position, 32, 64)
        return (o.shl(o.bit_mask(count, bits), position, bits),)

    return evaluate


def count_bits(bits: int, ones: bool) -> Function:
    def evaluate(o: Ops[V], a: V) -> tuple[V, V]:
        count = o.popcount(a if ones else o.not_(a, bits), bits)
        result = count if bits == 32 else o.truncate(count, bits, 32)
        return result, o.nonzero(result, 32)

    return evaluate


def _position_or_all_ones(o: Ops[V], count: V, bits: int) -> tuple[V]:
    """A position, or -1 where the search ran through all bits."""
    missing = o.eq(count, o.const(bits, bits), bits)
    narrow = count if bits == 32 else o.truncate(count, bits, 32)
    return (o.select(missing, o.ones(32), narrow, 32),)


def first_one(bits: int) -> Function:
    def evaluate(o: Ops[V], a: V) -> tuple[V]:
        return _position_or_all_ones(o, o.trailing_zeros(a, bits), bits)

    return evaluate


def first_zero(bits: int) -> Function:
    def evaluate(o: Ops[V], a: V) -> tuple[V]:
        return _position_or_all_ones(o, o.trailing_zeros(o.not_(a, bits), bits), bits)

    return evaluate


def first_from_top(bits: int) -> Function:
    def evaluate(o: Ops[V], a: V) -> tuple[V]:
        return _position_or_all_ones(o, o.leading_zeros(a, bits), bits)

    return evaluate


def sign_bits(o: Ops[V], a: V) -> tuple[V]:
    """Leading bits equal to the sign bit; -1 for 0 and -1."""
    folded = o.xor(a, o.ashr(a, o.const(31, 32), 32), 32)
    return _position_or_all_ones(o, o.leading_zeros(folded, 32), 32)


def sign_bits_64(o: Ops[V], a: V) -> tuple[V]:
    folded = o.xor(a, o.ashr(a, o.const(63, 64), 64), 64)
    return _position_or_all_ones(o, o.leading_zeros(folded, 64), 64)


def replicate_bits(o: Ops[V], a: V) -> tuple[V]:
    """Every bit twice, as 64 bits."""
    wide = o.zero_extend(a, 32, 64)
    for step, mask in ((16, 0x0000FFFF0000FFFF), (8, 0x00FF00FF00FF00FF), (4, 0x0F0F0F0F0F0F0F0F),
                       (2, 0x3333333333333333), (1, 0x5555555555555555)):  # fmt: skip
        doubled = o.or_(wide, o.shl(wide, o.const(step, 64), 64), 64)
        wide = o.and_(doubled, o.const(mask, 64), 64)
    return (o.or_(wide, o.shl(wide, o.const(1, 64), 64), 64),)


def _any_in_quads(o: Ops[V], a: V, bits: int) -> V:
    """The lowest bit of every four: whether one of the four is set."""
    pairs = o.or_(a, o.lshr(a, o.const(1, bits), bits), bits)
    quads = o.or_(pairs, o.lshr(pairs, o.const(2, bits), bits), bits)
    return o.and_(quads, o.const(0x1111111111111111, bits), bits)


def whole_quads(bits: int) -> Function:
    """All four bits of every quad with one set."""

    def evaluate(o: Ops[V], a: V) -> tuple[V, V]:
        result = o.mul(_any_in_quads(o, a, bits), o.const(15, bits), bits)
        return result, o.nonzero(result, bits)

    return evaluate


def quad_mask(bits: int) -> Function:
    """One bit for every quad with one set."""

    def evaluate(o: Ops[V], a: V) -> tuple[V, V]:
        result = _any_in_quads(o, a, bits)
        for step, mask in ((3, 0x0303030303030303), (6, 0x000F000F000F000F),
                           (12, 0x000000FF000000FF), (24, 0xFFFF)):  # fmt: skip
            if step == 24 and bits == 32:
                break
            pairs = o.or_(result, o.lshr(result, o.const(step, bits), bits), bits)
            result = o.and_(pairs, o.const(mask, bits), bits)
        return result, o.nonzero(result, bits)

    return evaluate


def reverse(bits: int) -> Function:
    def evaluate(o: Ops[V], a: V) -> tuple[V]:
        return (o.reverse_bits(a, bits),)

    return evaluate


def sign_extend(narrow: int) -> Function:
    def evaluate(o: Ops[V], a: V) -> tuple[V]:
        if narrow == 16:
            return (o.sign_extend(o.truncate(a, 32, 16), 16, 32),)
        count = o.const(32 - narrow, 32)
        return (o.ashr(o.shl(a, count, 32), count, 32),)

    return evaluate


def set_bit(bits: int, bit_value: bool) -> Function:
    def evaluate(o: Ops[V], old: V, position: V) -> tuple[V]:
        count = shift_amount(o, position, bits)
        bit = o.shl(o.const(1, bits), count, bits)
        return (o.or_(old, bit, bits) if bit_value else o.and_not(old, bit, bits),)

    return evaluate


def test_bit(bits: int, bit_value: bool) -> Function:
    def evaluate(o: Ops[V], a: V, position: V) -> tuple[V]:
        count = shift_amount(o, position, bits)
        bit = o.low_bits(o.lshr(a, count, bits), 1, bits)
        is_set = o.nonzero(bit, bits)
        return (is_set if bit_value else o.not_(is_set, 1),)

    return evaluate


def pack(low_from_high: bool, high_from_high: bool) -> Function:
    def evaluate(o: Ops[V], a: V, b: V) -> tuple[V]:
        low = o.high_half(a) if low_from_high else o.low_half(a)
        high = o.high_half(b) if high_from_high else o.low_half(b)
        return (o.or_(low, o.shl(high, o.const(16, 32), 32), 32),)

    return evaluate
