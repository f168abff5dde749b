"""Semantics of vector ALU rows on 16-bit integers.

Inputs are 32 bits wide and their low half counts; results have a zero upper half, as gfx9 writes
them. Where the destination is half a register (gfx11 and later) the executor keeps the other half.
"""

from __future__ import annotations

from typing import TypeVar

from wavecast.isa.semantics.combine import (
    Combine,
    Function,
    add,
    bit_and,
    bit_or,
    bit_xor,
    multiply,
    shift_left,
    shift_right,
    shift_right_signed,
    subtract,
    subtract_reversed,
)
from wavecast.isa.semantics.ops import Ops
from wavecast.isa.semantics.vector import boolean_of_three

V = TypeVar("V")


def _narrow(o: Ops[V], a: V) -> V:
    return o.truncate(a, 32, 16)


def _wide(o: Ops[V], a: V) -> V:
    return o.zero_extend(a, 16, 32)


def move(o: Ops[V], a: V) -> tuple[V]:
    return (o.low_half(a),)


def invert(o: Ops[V], a: V) -> tuple[V]:
    return (o.low_half(o.not_(a, 32)),)


def binary(combine: Combine) -> Function:
    def evaluate(o: Ops[V], a: V, b: V) -> tuple[V]:
        return (_wide(o, combine(o, _narrow(o, a), _narrow(o, b), 16)),)

    return evaluate


def shift(combine: Combine) -> Function:
    """Amount first; its low four bits count."""

    def evaluate(o: Ops[V], amount: V, a: V) -> tuple[V]:
        count = _narrow(o, o.low_bits(amount, 4, 32))
        return (_wide(o, combine(o, _narrow(o, a), count, 16)),)

    return evaluate


def extreme(signed: bool, largest: bool) -> Function:
    def evaluate(o: Ops[V], a: V, b: V) -> tuple[V]:
        pick = o.maximum if largest else o.minimum
        return (_wide(o, pick(_narrow(o, a), _narrow(o, b), 16, signed)),)

    return evaluate


def multiply_add(o: Ops[V], a: V, b: V, c: V) -> tuple[V]:
    product = o.mul(_narrow(o, a), _narrow(o, b), 16)
    return (_wide(o, o.add(product, _narrow(o, c), 16)),)


def extreme_of_three(signed: bool, largest: bool) -> Function:
    both = extreme(signed, largest)

    def evaluate(o: Ops[V], a: V, b: V, c: V) -> tuple[V]:
        return both(o, both(o, a, b)[0], c)

    return evaluate


def median(signed: bool) -> Function:
    least, most = extreme(signed, largest=False), extreme(signed, largest=True)

    def evaluate(o: Ops[V], a: V, b: V, c: V) -> tuple[V]:
        (low,), (high,) = least(o, a, b), most(o, a, b)
        return most(o, low, least(o, high, c)[0])

    return evaluate


def exchange(o: Ops[V], a: V, b: V) -> tuple[V, V]:
    return o.low_half(b), o.low_half(a)


def truth_table(o: Ops[V], a: V, b: V, c: V, table: V) -> tuple[V]:
    return (o.low_half(boolean_of_three(o, a, b, c, table)[0]),)


def multiply_add_wide(signed: bool) -> Function:
    """16 x 16 + 32 bits."""

    def evaluate(o: Ops[V], a: V, b: V, c: V) -> tuple[V]:
        left = o.extend(_narrow(o, a), 16, 32, signed)
        right = o.extend(_narrow(o, b), 16, 32, signed)
        return (o.add(o.mul(left, right, 32), c, 32),)

    return evaluate


def select(o: Ops[V], a: V, b: V, mask: V) -> tuple[V]:
    return (o.select(mask, o.low_half(b), o.low_half(a), 32),)


HALVES: dict[str, Function] = {
    "v_mov_b16": move,
    "v_not_b16": invert,
    "v_and_b16": binary(bit_and),
    "v_or_b16": binary(bit_or),
    "v_xor_b16": binary(bit_xor),
    "v_add_nc_u16": binary(add),
    "v_sub_nc_u16": binary(subtract),
    "v_subrev_u16": binary(subtract_reversed),
    "v_mul_lo_u16": binary(multiply),
    "v_lshlrev_b16": shift(shift_left),
    "v_lshrrev_b16": shift(shift_right),
    "v_ashrrev_i16": shift(shift_right_signed),
    "v_min_i16": extreme(signed=True, largest=False),
    "v_max_i16": extreme(signed=True, largest=True),
    "v_min_u16": extreme(signed=False, largest=False),
    "v_max_u16": extreme(signed=False, largest=True),
    "v_mad_u16": multiply_add,
    "v_mad_i16": multiply_add,
    "v_mad_u32_u16": multiply_add_wide(signed=False),
    "v_mad_i32_i16": multiply_add_wide(signed=True),
    "v_cndmask_b16": select,
    "v_add_nc_i16": binary(add),
    "v_sub_nc_i16": binary(subtract),
    "v_mad_legacy_u16": multiply_add,
    "v_mad_legacy_i16": multiply_add,
    "v_min3_i16": extreme_of_three(signed=True, largest=False),
    "v_max3_i16": extreme_of_three(signed=True, largest=True),
    "v_min3_u16": extreme_of_three(signed=False, largest=False),
    "v_max3_u16": extreme_of_three(signed=False, largest=True),
    "v_med3_i16": median(signed=True),
    "v_med3_u16": median(signed=False),
    "v_swap_b16": exchange,
    "v_bitop3_b16": truth_table,
}
"""Row name -> semantics."""
