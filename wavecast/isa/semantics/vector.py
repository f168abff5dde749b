"""Semantics of vector ALU rows on integers: what address computations and lane masks are made of.

Functions see one lane; EXEC, which lanes are written, and how a lane mask lies in scalar registers
are the executor's business. Sources: AMD instruction set architecture guides of MI300 (CDNA3),
CDNA4, RDNA3 and RDNA4, chapters on VOP1, VOP2, VOP3, and VOPC.
"""

from __future__ import annotations

from typing import TypeVar

from wavecast.isa.semantics.bits import (
    bit_field,
    field_mask,
    first_from_top,
    first_one,
    reverse,
    shift_amount,
    sign_bits,
)
from wavecast.isa.semantics.combine import (
    Combine,
    Function,
    add,
    bit_and,
    bit_or,
    bit_xnor,
    bit_xor,
    multiply,
    shift_left,
    shift_right,
    shift_right_signed,
    subtract,
)
from wavecast.isa.semantics.ops import Ops
from wavecast.isa.semantics.saturation import CLAMPED
from wavecast.isa.semantics.scalar import (
    add_unsigned,
    add_with_carry,
    move,
    multiply_32,
    multiply_64,
    multiply_high_signed,
    multiply_high_unsigned,
    sub_unsigned,
    sub_with_borrow,
)

V = TypeVar("V")


# one and two sources


def binary(bits: int, combine: Combine) -> Function:
    def evaluate(o: Ops[V], a: V, b: V) -> tuple[V]:
        return (combine(o, a, b, bits),)

    return evaluate


def swap_operands(function: Function) -> Function:
    """The `rev` form: first and second source change places."""

    def evaluate(o: Ops[V], a: V, b: V) -> tuple[V, ...]:
        return function(o, b, a)

    return evaluate


def sub_reversed_with_borrow(o: Ops[V], a: V, b: V, borrow: V) -> tuple[V, V]:
    return sub_with_borrow(o, b, a, borrow)


def shift_reversed(bits: int, direction: Combine) -> Function:
    """Amount first, as the `rev` forms have it; its low bits count."""

    def evaluate(o: Ops[V], amount: V, a: V) -> tuple[V]:
        return (direction(o, a, shift_amount(o, amount, bits), bits),)

    return evaluate


def extreme(bits: int, signed: bool, largest: bool) -> Function:
    def evaluate(o: Ops[V], a: V, b: V) -> tuple[V]:
        return ((o.maximum if largest else o.minimum)(a, b, bits, signed),)

    return evaluate


def extreme_of_three(signed: bool, largest: bool) -> Function:
    def evaluate(o: Ops[V], a: V, b: V, c: V) -> tuple[V]:
        pick = o.maximum if largest else o.minimum
        return (pick(pick(a, b, 32, signed), c, 32, signed),)

    return evaluate


def median(signed: bool) -> Function:
    def evaluate(o: Ops[V], a: V, b: V, c: V) -> tuple[V]:
        low = o.minimum(a, b, 32, signed)
        high = o.maximum(a, b, 32, signed)
        return (o.maximum(low, o.minimum(high, c, 32, signed), 32, signed),)

    return evaluate


def invert(o: Ops[V], a: V) -> tuple[V]:
    return (o.not_(a, 32),)


def widen_half(signed: bool) -> Function:
    def evaluate(o: Ops[V], a: V) -> tuple[V]:
        return (o.extend(o.truncate(a, 32, 16), 16, 32, signed),)

    return evaluate


# three sources


def compose(first: Combine, second: Combine) -> Function:
    """`second(first(a, b), c)` on 32 bits."""

    def evaluate(o: Ops[V], a: V, b: V, c: V) -> tuple[V]:
        return (second(o, first(o, a, b, 32), c, 32),)

    return evaluate


def _shift_masked(o: Ops[V], a: V, amount: V, bits: int) -> V:
    return o.shl(a, shift_amount(o, amount, bits), bits)


def shift_left_add_64(o: Ops[V], a: V, amount: V, c: V) -> tuple[V]:
    """The amount is 0 to 4 (3 bits)."""
    count = o.zero_extend(o.low_bits(amount, 3, 32), 32, 64)
    return (o.add(o.shl(a, count, 64), c, 64),)


def insert_field(o: Ops[V], mask: V, a: V, b: V) -> tuple[V]:
    return (o.or_(o.and_(mask, a, 32), o.and_not(b, mask, 32), 32),)


def extract_field(signed: bool) -> Function:
    def evaluate(o: Ops[V], a: V, offset: V, width: V) -> tuple[V]:
        return (bit_field(o, a, o.low_bits(offset, 5, 32), o.low_bits(width, 5, 32), 32, signed),)

    return evaluate


def align_bits(o: Ops[V], high: V, low: V, amount: V) -> tuple[V]:
    count = o.zero_extend(o.low_bits(amount, 5, 32), 32, 64)
    return (o.truncate(o.lshr(o.join(low, high), count, 64), 64, 32),)


def align_bytes(o: Ops[V], high: V, low: V, amount: V) -> tuple[V]:
    count = o.shl(o.low_bits(amount, 2, 32), o.const(3, 32), 32)
    return align_bits(o, high, low, count)


def permute_bytes(o: Ops[V], high: V, low: V, selector: V) -> tuple[V]:
    """Each selector byte picks one of eight source bytes, a sign (8-11), 0x00 (12) or 0xff."""
    source = o.join(low, high)
    result = o.zero(32)
    for position in range(4):
        shift = o.const(8 * position, 32)
        pick = o.low_bits(o.lshr(selector, shift, 32), 8, 32)
        result = o.or_(result, o.shl(_picked_byte(o, source, pick), shift, 32), 32)
    return (result,)


def _picked_byte(o: Ops[V], source: V, pick: V) -> V:
    byte = o.zero_extend(o.low_bits(pick, 3, 32), 32, 64)
    plain = o.lshr(source, o.shl(byte, o.const(3, 64), 64), 64)
    low_byte = o.low_bits(o.truncate(plain, 64, 32), 8, 32)
    # selectors 8 to 11 replicate the sign of bytes 1, 3, 5 and 7
    sign_at = o.add(o.shl(o.low_bits(pick, 2, 32), o.const(4, 32), 32), o.const(15, 32), 32)
    sign = o.truncate(o.lshr(source, o.zero_extend(sign_at, 32, 64), 64), 64, 1)
    filled = o.select(sign, o.const(255, 32), o.zero(32), 32)
    beyond = o.select(o.eq(pick, o.const(12, 32), 32), o.zero(32), o.const(255, 32), 32)
    high = o.select(o.less_unsigned(pick, o.const(12, 32), 32), filled, beyond, 32)
    return o.select(o.less_unsigned(pick, o.const(8, 32), 32), low_byte, high, 32)


def boolean_of_three(o: Ops[V], a: V, b: V, c: V, table: V) -> tuple[V]:
    """Bit `4a + 2b + c` of the table, for every bit. `table` is a modifier, the same everywhere."""
    result = o.zero(32)
    for row in range(8):
        row_mask = o.negate(o.low_bits(o.lshr(table, o.const(row, 32), 32), 1, 32), 32)
        term = a if row & 4 else o.not_(a, 32)
        term = o.and_(term, b if row & 2 else o.not_(b, 32), 32)
        term = o.and_(term, c if row & 1 else o.not_(c, 32), 32)
        result = o.or_(result, o.and_(term, row_mask, 32), 32)
    return (result,)


def boolean_of_two(o: Ops[V], a: V, b: V, table: V) -> tuple[V]:
    """Bit `4a + 2b` of the table, as LLVM prints it for the second half of gfx1250's pairs."""
    return boolean_of_three(o, a, b, o.zero(32), table)


# multiplication


def multiply_24(signed: bool) -> Function:
    def evaluate(o: Ops[V], a: V, b: V) -> tuple[V]:
        return (o.mul(_low_24(o, a, signed), _low_24(o, b, signed), 32),)

    return evaluate


def multiply_add_24(signed: bool) -> Function:
    def evaluate(o: Ops[V], a: V, b: V, c: V) -> tuple[V]:
        return (o.add(o.mul(_low_24(o, a, signed), _low_24(o, b, signed), 32), c, 32),)

    return evaluate


def _low_24(o: Ops[V], a: V, signed: bool) -> V:
    count = o.const(8, 32)
    up = o.shl(a, count, 32)
    return o.ashr(up, count, 32) if signed else o.lshr(up, count, 32)


def multiply_add_64(signed: bool) -> Function:
    """32 x 32 + 64 bits; the second result is the carry (unsigned) or overflow (signed) out."""

    def evaluate(o: Ops[V], a: V, b: V, c: V) -> tuple[V, V]:
        product = o.mul(o.extend(a, 32, 64, signed), o.extend(b, 32, 64, signed), 64)
        total = o.add(product, c, 64)
        if not signed:
            return total, o.less_unsigned(total, c, 64)
        signs = o.and_(o.xor(product, total, 64), o.xor(c, total, 64), 64)
        return total, o.less_signed(signs, o.zero(64), 64)

    return evaluate


def without_carry(function: Function) -> Function:
    """The form of `multiply_add_64` that gives the sum alone."""

    def evaluate(o: Ops[V], a: V, b: V, c: V) -> tuple[V]:
        return (function(o, a, b, c)[0],)

    return evaluate


# masks


def select(o: Ops[V], a: V, b: V, mask: V) -> tuple[V]:
    """The second source where the mask is set."""
    return (o.select(mask, b, a, 32),)


def count_below(low: bool) -> Function:
    """Bits of the mask below this lane, added to the second source.

    `low` counts within lanes 0 to 31, otherwise within lanes 32 to 63.
    """

    def evaluate(o: Ops[V], mask: V, base: V) -> tuple[V]:
        lane = o.lane()
        position = o.low_bits(lane, 5, 32)
        upper = o.nonzero(o.lshr(lane, o.const(5, 32), 32), 32)
        below = o.bit_mask(position, 32)
        upper_lanes, lower_lanes = (o.ones(32), below) if low else (below, o.zero(32))
        lanes = o.select(upper, upper_lanes, lower_lanes, 32)
        return (o.add(o.popcount(o.and_(mask, lanes, 32), 32), base, 32),)

    return evaluate


def multiply_high_24(signed: bool) -> Function:
    """Bits 63:32 of the product of 24-bit values."""

    def evaluate(o: Ops[V], a: V, b: V) -> tuple[V]:
        left, right = _low_24(o, a, signed), _low_24(o, b, signed)
        wide = o.mul(o.extend(left, 32, 64, signed), o.extend(right, 32, 64, signed), 64)
        return (o.truncate(o.lshr(wide, o.const(32, 64), 64), 64, 32),)

    return evaluate


def added_extreme(signed: bool, largest: bool) -> Function:
    """The larger or smaller of a + b, limited to 32 bits, and c."""
    name = "v_add_nc_i32" if signed else "v_add_nc_u32"

    def evaluate(o: Ops[V], a: V, b: V, c: V) -> tuple[V]:
        (total,) = CLAMPED[name](o, a, b)
        return ((o.maximum if largest else o.minimum)(total, c, 32, signed),)

    return evaluate


def extreme_then(signed: bool, largest_first: bool) -> Function:
    """max(min(a, b), c) or the other way round."""

    def evaluate(o: Ops[V], a: V, b: V, c: V) -> tuple[V]:
        first, second = o.minimum, o.maximum
        if largest_first:
            first, second = second, first
        return (second(first(a, b, 32, signed), c, 32, signed),)

    return evaluate


def exchange(_: Ops[V], a: V, b: V) -> tuple[V, V]:
    return b, a


def nothing(_: Ops[V]) -> tuple[()]:
    return ()


def count_add(o: Ops[V], a: V, base: V) -> tuple[V]:
    return (o.add(o.popcount(a, 32), base, 32),)


def _tables() -> dict[str, Function]:
    table: dict[str, Function] = {
        "v_mov_b32": move,
        "v_mov_b64": move,
        "v_accvgpr_read_b32": move,
        "v_accvgpr_write_b32": move,
        "v_accvgpr_mov_b32": move,
        "v_not_b32": invert,
        "v_bfrev_b32": reverse(32),
        "v_clz_i32_u32": first_from_top(32),
        "v_cls_i32": sign_bits,
        "v_ctz_i32_b32": first_one(32),
        "v_cvt_u32_u16": widen_half(signed=False),
        "v_cvt_i32_i16": widen_half(signed=True),
        "v_add_nc_u32": binary(32, add),
        "v_sub_nc_u32": binary(32, subtract),
        "v_subrev_nc_u32": swap_operands(binary(32, subtract)),
        "v_add_nc_i32": binary(32, add),
        "v_sub_nc_i32": binary(32, subtract),
        "v_add_nc_u64": binary(64, add),
        "v_sub_nc_u64": binary(64, subtract),
        "v_add_co_u32": add_unsigned,
        "v_sub_co_u32": sub_unsigned,
        "v_subrev_co_u32": swap_operands(sub_unsigned),
        "v_add_co_ci_u32": add_with_carry,
        "v_sub_co_ci_u32": sub_with_borrow,
        "v_subrev_co_ci_u32": sub_reversed_with_borrow,
        "v_and_b32": binary(32, bit_and),
        "v_or_b32": binary(32, bit_or),
        "v_xor_b32": binary(32, bit_xor),
        "v_xnor_b32": binary(32, bit_xnor),
        "v_lshlrev_b32": shift_reversed(32, shift_left),
        "v_lshrrev_b32": shift_reversed(32, shift_right),
        "v_ashrrev_i32": shift_reversed(32, shift_right_signed),
        "v_lshlrev_b64": shift_reversed(64, shift_left),
        "v_lshrrev_b64": shift_reversed(64, shift_right),
        "v_ashrrev_i64": shift_reversed(64, shift_right_signed),
        "v_mul_lo_u32": multiply_32,
        "v_mul_lo_i32": multiply_32,
        "v_mul_u64": multiply_64,
        "v_mad_u32": compose(multiply, add),
        "v_mul_hi_u32": multiply_high_unsigned,
        "v_mul_hi_i32": multiply_high_signed,
        "v_mul_u32_u24": multiply_24(signed=False),
        "v_mul_i32_i24": multiply_24(signed=True),
        "v_mad_u32_u24": multiply_add_24(signed=False),
        "v_mad_i32_i24": multiply_add_24(signed=True),
        "v_mad_co_u64_u32": multiply_add_64(signed=False),
        "v_mad_co_i64_i32": multiply_add_64(signed=True),
        "v_mad_nc_u64_u32": without_carry(multiply_add_64(signed=False)),
        "v_mad_nc_i64_i32": without_carry(multiply_add_64(signed=True)),
        "v_add3_u32": compose(add, add),
        "v_lshl_add_u32": compose(_shift_masked, add),
        "v_add_lshl_u32": compose(add, _shift_masked),
        "v_lshl_or_b32": compose(_shift_masked, bit_or),
        "v_and_or_b32": compose(bit_and, bit_or),
        "v_or3_b32": compose(bit_or, bit_or),
        "v_xor3_b32": compose(bit_xor, bit_xor),
        "v_xad_u32": compose(bit_xor, add),
        "v_lshl_add_u64": shift_left_add_64,
        "v_bfi_b32": insert_field,
        "v_bfm_b32": field_mask(32),
        "v_bfe_u32": extract_field(signed=False),
        "v_bfe_i32": extract_field(signed=True),
        "v_alignbit_b32": align_bits,
        "v_alignbyte_b32": align_bytes,
        "v_perm_b32": permute_bytes,
        "v_bitop3_b32": boolean_of_three,
        "v_dual_bitop2_b32": boolean_of_two,
        "v_cndmask_b32": select,
        "v_mbcnt_lo_u32_b32": count_below(low=True),
        "v_mbcnt_hi_u32_b32": count_below(low=False),
        "v_bcnt_u32_b32": count_add,
        "v_swap_b32": exchange,
        "v_nop": nothing,
        "v_mul_hi_u32_u24": multiply_high_24(signed=False),
        "v_mul_hi_i32_i24": multiply_high_24(signed=True),
    }
    for kind, signed in (("i", True), ("u", False)):
        for name, largest in (("min", False), ("max", True)):
            table[f"v_{name}_{kind}32"] = extreme(32, signed, largest)
            table[f"v_{name}_{kind}64"] = extreme(64, signed, largest)
            table[f"v_{name}3_{kind}32"] = extreme_of_three(signed, largest)
        table[f"v_med3_{kind}32"] = median(signed)
        table[f"v_minmax_{kind}32"] = extreme_then(signed, largest_first=False)
        table[f"v_maxmin_{kind}32"] = extreme_then(signed, largest_first=True)
        table[f"v_add_min_{kind}32"] = added_extreme(signed, largest=False)
        table[f"v_add_max_{kind}32"] = added_extreme(signed, largest=True)
    return table


VECTOR: dict[str, Function] = _tables()
"""Row name -> semantics."""

MODIFIERS: dict[str, tuple[str, ...]] = {
    "v_bitop3_b32": ("bitop3",),
    "v_dual_bitop2_b32": ("bitop3",),
    "v_bitop3_b16": ("bitop3",),
}
"""Row name -> modifiers whose values follow the operands."""
