"""Semantics of rows that move values between lanes.

A source lane outside EXEC is read with `fi` (fetch inactive); otherwise the lane gets 0 with
`bound_ctrl` and keeps its old value without. Which lanes are written is the executor's business.
Sources: the guides of RDNA3, RDNA4 and CDNA4, chapters on VOP1 and VOP3.
"""

from __future__ import annotations

from typing import TypeVar

from wavecast.isa.semantics.combine import Function
from wavecast.isa.semantics.ops import Ops
from wavecast.isa.semantics.registers import bits_of

V = TypeVar("V")


def _fetch(o: Ops[V], a: V, lane: V, old: V, inactive: V, zero: V) -> V:
    """`inactive` and `zero` are the modifiers fi and bound_ctrl as numbers."""
    readable = o.or_(o.lane_active(lane), o.nonzero(inactive, 32), 1)
    otherwise = o.select(o.nonzero(zero, 32), o.zero(32), old, 32)
    return o.select(readable, o.shuffle(a, lane), otherwise, 32)


def _row(o: Ops[V], across: bool) -> V:
    """The first lane of the row of 16 this lane reads: its own, or the other of its pair."""
    row = o.and_(o.lane(), o.const(~15, 32), 32)
    return o.xor(row, o.const(16, 32), 32) if across else row


def within_rows(across: bool) -> Function:
    """Lane i of a row reads the lane that nibble i of the 64-bit selector names. Entries 0 and 1
    of `op_sel` are fi and bound_ctrl."""

    def evaluate(o: Ops[V], old: V, a: V, low: V, high: V, op_sel: V) -> tuple[V]:
        column = o.low_bits(o.lane(), 4, 32)
        upper = o.truncate(o.lshr(column, o.const(3, 32), 32), 32, 1)
        word = o.select(upper, high, low, 32)
        shift = o.shl(o.low_bits(column, 3, 32), o.const(2, 32), 32)
        nibble = o.low_bits(o.lshr(word, shift, 32), 4, 32)
        lane = o.or_(_row(o, across), nibble, 32)
        flags = bits_of(o, op_sel, 0), bits_of(o, op_sel, 1)
        return (_fetch(o, a, lane, old, *flags),)

    return evaluate


def within_rows_by_lane(across: bool) -> Function:
    """As `within_rows`, the low four bits of each lane's own selector name the lane."""

    def evaluate(o: Ops[V], old: V, a: V, selector: V, op_sel: V) -> tuple[V]:
        lane = o.or_(_row(o, across), o.low_bits(selector, 4, 32), 32)
        flags = bits_of(o, op_sel, 0), bits_of(o, op_sel, 1)
        return (_fetch(o, a, lane, old, *flags),)

    return evaluate


def other_half(o: Ops[V], a: V) -> tuple[V]:
    """Lanes 0 to 31 and 32 to 63 change places, whatever EXEC says of the source; in a wave of 32
    nothing happens."""
    if o.wave_lanes() < 64:
        return (a,)
    return (o.shuffle(a, o.xor(o.lane(), o.const(32, 32), 32)),)


def swap_rows(distance: int) -> Function:
    """The upper rows of the first operand change places with the lower rows of the second."""

    def evaluate(o: Ops[V], first: V, second: V, inactive: V, zero: V) -> tuple[V, V]:
        if o.wave_lanes() < 2 * distance:
            return first, second
        lane = o.xor(o.lane(), o.const(distance, 32), 32)
        upper = o.nonzero(o.and_(o.lane(), o.const(distance, 32), 32), 32)
        into_first = _fetch(o, second, lane, first, inactive, zero)
        into_second = _fetch(o, first, lane, second, inactive, zero)
        return (
            o.select(upper, into_first, first, 32),
            o.select(upper, second, into_second, 32),
        )

    return evaluate


def permute_backward(o: Ops[V], address: V, a: V) -> tuple[V]:
    """Each lane takes the value of the lane at byte address `4 * lane`."""
    return (o.gather(a, o.lshr(address, o.const(2, 32), 32)),)


def read_first_lane(o: Ops[V], a: V) -> tuple[V]:
    return (o.first_active_lane(a),)


def read_lane(o: Ops[V], a: V, lane: V) -> tuple[V]:
    return (o.read_lane(a, lane),)


def write_lane(o: Ops[V], old: V, value: V, lane: V) -> tuple[V]:
    return (o.write_lane(old, value, lane),)


PERMUTATIONS: dict[str, Function] = {
    "ds_bpermute_b32": permute_backward,
    "v_readfirstlane_b32": read_first_lane,
    "v_readlane_b32": read_lane,
    "v_writelane_b32": write_lane,
    "v_permlane16_b32": within_rows(across=False),
    "v_permlanex16_b32": within_rows(across=True),
    "v_permlane16_var_b32": within_rows_by_lane(across=False),
    "v_permlanex16_var_b32": within_rows_by_lane(across=True),
    "v_permlane64_b32": other_half,
    "v_permlane16_swap_b32": swap_rows(16),
    "v_permlane32_swap_b32": swap_rows(32),
}
"""Row name -> semantics."""

PERMUTATION_MODIFIERS: dict[str, tuple[str, ...]] = {
    "v_permlane16_b32": ("op_sel",),
    "v_permlanex16_b32": ("op_sel",),
    "v_permlane16_var_b32": ("op_sel",),
    "v_permlanex16_var_b32": ("op_sel",),
    "v_permlane16_swap_b32": ("fi", "bound_ctrl"),
    "v_permlane32_swap_b32": ("fi", "bound_ctrl"),
}
"""Row name -> modifiers whose values follow the operands."""
