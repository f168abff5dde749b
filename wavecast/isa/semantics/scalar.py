"""Semantics of scalar ALU rows.

Sources: AMD instruction set architecture guides of MI300 (CDNA3), RDNA3 and RDNA4, chapters on
SOP1, SOP2, SOPC and SOPK. Where one says that SCC of a maximum is `S0 >= S1`, a test on hardware
reported elsewhere disagrees for equal operands; compilers do not use that bit.
"""

from __future__ import annotations

from typing import TypeVar

from wavecast.isa.semantics.bits import (
    count_bits,
    extract,
    field_mask,
    first_from_top,
    first_one,
    first_zero,
    pack,
    quad_mask,
    replicate_bits,
    reverse,
    set_bit,
    shift_amount,
    sign_bits,
    sign_bits_64,
    sign_extend,
    test_bit,
    whole_quads,
)
from wavecast.isa.semantics.combine import (
    LOGIC,
    Combine,
    Function,
    and_not,
    not_and,
    not_or,
    shift_left,
    shift_right,
    shift_right_signed,
)
from wavecast.isa.semantics.ops import Ops

V = TypeVar("V")


# addition and subtraction


def _carry(o: Ops[V], a: V, b: V, carry: V | None = None) -> tuple[V, V]:
    """The sum of 32-bit values and the carry out."""
    wide = o.add(o.zero_extend(a, 32, 64), o.zero_extend(b, 32, 64), 64)
    if carry is not None:
        wide = o.add(wide, o.zero_extend(carry, 1, 64), 64)
    out = o.nonzero(o.lshr(wide, o.const(32, 64), 64), 64)
    return o.truncate(wide, 64, 32), out


def _borrow(o: Ops[V], a: V, b: V, borrow: V | None = None) -> tuple[V, V]:
    """The difference of 32-bit values and the borrow out."""
    wide = o.sub(o.zero_extend(a, 32, 64), o.zero_extend(b, 32, 64), 64)
    if borrow is not None:
        wide = o.sub(wide, o.zero_extend(borrow, 1, 64), 64)
    return o.truncate(wide, 64, 32), o.less_signed(wide, o.zero(64), 64)


def add_unsigned(o: Ops[V], a: V, b: V) -> tuple[V, V]:
    return _carry(o, a, b)


def sub_unsigned(o: Ops[V], a: V, b: V) -> tuple[V, V]:
    return _borrow(o, a, b)


def add_with_carry(o: Ops[V], a: V, b: V, scc: V) -> tuple[V, V]:
    return _carry(o, a, b, scc)


def sub_with_borrow(o: Ops[V], a: V, b: V, scc: V) -> tuple[V, V]:
    return _borrow(o, a, b, scc)


def add_signed(o: Ops[V], a: V, b: V) -> tuple[V, V]:
    """SCC is signed overflow: both operands differ in sign from the result."""
    total = o.add(a, b, 32)
    signs = o.and_(o.xor(a, total, 32), o.xor(b, total, 32), 32)
    return total, o.less_signed(signs, o.zero(32), 32)


def sub_signed(o: Ops[V], a: V, b: V) -> tuple[V, V]:
    """SCC is signed overflow: operands of unlike sign, result unlike the first."""
    difference = o.sub(a, b, 32)
    signs = o.and_(o.xor(a, b, 32), o.xor(a, difference, 32), 32)
    return difference, o.less_signed(signs, o.zero(32), 32)


def _immediate(o: Ops[V], value: V) -> V:
    """The 16-bit immediate of a SOPK instruction, sign-extended."""
    return o.sign_extend(o.truncate(value, 32, 16), 16, 32)


def add_immediate(o: Ops[V], old: V, immediate: V) -> tuple[V, V]:
    return add_signed(o, old, _immediate(o, immediate))


def multiply_immediate(o: Ops[V], old: V, immediate: V) -> tuple[V]:
    return (o.mul(old, _immediate(o, immediate), 32),)


def move_immediate(o: Ops[V], immediate: V) -> tuple[V]:
    return (_immediate(o, immediate),)


def conditional_move_immediate(o: Ops[V], old: V, immediate: V, scc: V) -> tuple[V]:
    return (o.select(scc, _immediate(o, immediate), old, 32),)


def add_64(o: Ops[V], a: V, b: V) -> tuple[V]:
    return (o.add(a, b, 64),)


def sub_64(o: Ops[V], a: V, b: V) -> tuple[V]:
    return (o.sub(a, b, 64),)


def multiply_32(o: Ops[V], a: V, b: V) -> tuple[V]:
    return (o.mul(a, b, 32),)


def multiply_64(o: Ops[V], a: V, b: V) -> tuple[V]:
    return (o.mul(a, b, 64),)


def multiply_high_unsigned(o: Ops[V], a: V, b: V) -> tuple[V]:
    return (o.mul_high(a, b, 32),)


def multiply_high_signed(o: Ops[V], a: V, b: V) -> tuple[V]:
    wide = o.mul(o.sign_extend(a, 32, 64), o.sign_extend(b, 32, 64), 64)
    return (o.truncate(o.lshr(wide, o.const(32, 64), 64), 64, 32),)


def shift_left_add(count: int) -> Function:
    """SCC is the carry out of the 32-bit sum of the shifted operand."""

    def evaluate(o: Ops[V], a: V, b: V) -> tuple[V, V]:
        shifted = o.shl(o.zero_extend(a, 32, 64), o.const(count, 64), 64)
        wide = o.add(shifted, o.zero_extend(b, 32, 64), 64)
        carry = o.nonzero(o.lshr(wide, o.const(32, 64), 64), 64)
        return o.truncate(wide, 64, 32), carry

    return evaluate


def absolute(o: Ops[V], a: V) -> tuple[V, V]:
    result = o.select(o.less_signed(a, o.zero(32), 32), o.negate(a, 32), a, 32)
    return result, o.nonzero(result, 32)


def absolute_difference(o: Ops[V], a: V, b: V) -> tuple[V, V]:
    return absolute(o, o.sub(a, b, 32))


def minimum(signed: bool) -> Function:
    """SCC says that the first operand was taken."""

    def evaluate(o: Ops[V], a: V, b: V) -> tuple[V, V]:
        first = o.less(a, b, 32, signed)
        return o.select(first, a, b, 32), first

    return evaluate


def maximum(signed: bool) -> Function:
    """SCC says that the first operand was taken."""

    def evaluate(o: Ops[V], a: V, b: V) -> tuple[V, V]:
        second = o.less(a, b, 32, signed)
        return o.select(second, b, a, 32), o.not_(second, 1)

    return evaluate


# bits


def logic(bits: int, combine: Combine) -> Function:
    """SCC is set when the result is not zero."""

    def evaluate(o: Ops[V], a: V, b: V) -> tuple[V, V]:
        result = combine(o, a, b, bits)
        return result, o.nonzero(result, bits)

    return evaluate


def shift(bits: int, direction: Combine) -> Function:
    """The amount is a 32-bit operand of which the low bits count; SCC is `result != 0`."""

    def evaluate(o: Ops[V], a: V, amount: V) -> tuple[V, V]:
        result = direction(o, a, shift_amount(o, amount, bits), bits)
        return result, o.nonzero(result, bits)

    return evaluate


def invert(bits: int) -> Function:
    def evaluate(o: Ops[V], a: V) -> tuple[V, V]:
        result = o.not_(a, bits)
        return result, o.nonzero(result, bits)

    return evaluate


# moves and selections


def move(_: Ops[V], a: V) -> tuple[V]:
    return (a,)


def conditional_move(bits: int) -> Function:
    def evaluate(o: Ops[V], old: V, a: V, scc: V) -> tuple[V]:
        return (o.select(scc, a, old, bits),)

    return evaluate


def select(bits: int) -> Function:
    def evaluate(o: Ops[V], a: V, b: V, scc: V) -> tuple[V]:
        return (o.select(scc, a, b, bits),)

    return evaluate


def save_exec(bits: int, combine: Combine) -> Function:
    """Inputs: source, EXEC. Outputs: old EXEC, SCC (new EXEC is not zero), new EXEC."""

    def evaluate(o: Ops[V], a: V, exec_: V) -> tuple[V, V, V]:
        new = combine(o, a, exec_, bits)
        return exec_, o.nonzero(new, bits), new

    return evaluate


def write_exec(bits: int, combine: Combine) -> Function:
    """As `save_exec`, but the destination receives the new EXEC."""

    def evaluate(o: Ops[V], a: V, exec_: V) -> tuple[V, V, V]:
        new = combine(o, a, exec_, bits)
        return new, o.nonzero(new, bits), new

    return evaluate


# comparisons set SCC


def compare(relation: str, bits: int, signed: bool) -> Function:
    """`relation` is one of eq, lg, lt, le, gt, ge."""

    def evaluate(o: Ops[V], a: V, b: V) -> tuple[V]:
        return (relate(o, relation, a, b, bits, signed),)

    return evaluate


def compare_immediate(relation: str, signed: bool) -> Function:
    """The 16-bit immediate is extended with the signedness of the comparison."""

    def evaluate(o: Ops[V], a: V, immediate: V) -> tuple[V]:
        narrow = o.truncate(immediate, 32, 16)
        return (relate(o, relation, a, o.extend(narrow, 16, 32, signed), 32, signed),)

    return evaluate


def relate(o: Ops[V], relation: str, a: V, b: V, bits: int, signed: bool) -> V:
    """One integer comparison; also spelled `ne` (vector) for `lg` (scalar)."""
    if relation in ("eq", "lg", "ne"):
        equal = o.eq(a, b, bits)
        return equal if relation == "eq" else o.not_(equal, 1)
    if relation in ("gt", "le"):
        a, b = b, a
    below = o.less(a, b, bits, signed)
    return below if relation in ("lt", "gt") else o.not_(below, 1)


# conditional branches: the one output says whether the branch is taken


def branch_if(bits: int, zero: bool) -> Function:
    def evaluate(o: Ops[V], a: V) -> tuple[V]:
        empty = o.eq(a, o.zero(bits), bits)
        return (empty if zero else o.not_(empty, 1),)

    return evaluate


RELATIONS = ("eq", "lg", "lt", "le", "gt", "ge")


def _tables() -> dict[str, Function]:
    table: dict[str, Function] = {
        "s_add_co_u32": add_unsigned,
        "s_sub_co_u32": sub_unsigned,
        "s_add_co_ci_u32": add_with_carry,
        "s_sub_co_ci_u32": sub_with_borrow,
        "s_add_co_i32": add_signed,
        "s_sub_co_i32": sub_signed,
        "s_addk_co_i32": add_immediate,
        "s_mulk_i32": multiply_immediate,
        "s_movk_i32": move_immediate,
        "s_cmovk_i32": conditional_move_immediate,
        "s_add_nc_u64": add_64,
        "s_sub_nc_u64": sub_64,
        "s_mul_i32": multiply_32,
        "s_mul_u64": multiply_64,
        "s_mul_hi_u32": multiply_high_unsigned,
        "s_mul_hi_i32": multiply_high_signed,
        "s_abs_i32": absolute,
        "s_absdiff_i32": absolute_difference,
        "s_bcnt0_i32_b32": count_bits(32, ones=False),
        "s_bcnt0_i32_b64": count_bits(64, ones=False),
        "s_bcnt1_i32_b32": count_bits(32, ones=True),
        "s_bcnt1_i32_b64": count_bits(64, ones=True),
        "s_ctz_i32_b32": first_one(32),
        "s_ctz_i32_b64": first_one(64),
        "s_ff0_i32_b32": first_zero(32),
        "s_ff0_i32_b64": first_zero(64),
        "s_clz_i32_u32": first_from_top(32),
        "s_clz_i32_u64": first_from_top(64),
        "s_cls_i32": sign_bits,
        "s_cls_i32_i64": sign_bits_64,
        "s_bitreplicate_b64_b32": replicate_bits,
        "s_sext_i32_i8": sign_extend(8),
        "s_sext_i32_i16": sign_extend(16),
        "s_pack_ll_b32_b16": pack(low_from_high=False, high_from_high=False),
        "s_pack_lh_b32_b16": pack(low_from_high=False, high_from_high=True),
        "s_pack_hh_b32_b16": pack(low_from_high=True, high_from_high=True),
        "s_pack_hl_b32_b16": pack(low_from_high=True, high_from_high=False),
        "s_cmp_eq_u64": compare("eq", 64, signed=False),
        "s_cmp_lg_u64": compare("lg", 64, signed=False),
        "s_cbranch_scc0": branch_if(1, zero=True),
        "s_cbranch_scc1": branch_if(1, zero=False),
        "s_cbranch_vccz": branch_if(64, zero=True),
        "s_cbranch_vccnz": branch_if(64, zero=False),
        "s_cbranch_execz": branch_if(64, zero=True),
        "s_cbranch_execnz": branch_if(64, zero=False),
    }
    for count in (1, 2, 3, 4):
        table[f"s_lshl{count}_add_u32"] = shift_left_add(count)
    for kind, signed in (("i32", True), ("u32", False)):
        table[f"s_min_{kind}"] = minimum(signed)
        table[f"s_max_{kind}"] = maximum(signed)
        for relation in RELATIONS:
            table[f"s_cmp_{relation}_{kind}"] = compare(relation, 32, signed)
            table[f"s_cmpk_{relation}_{kind}"] = compare_immediate(relation, signed)
    for bits in (32, 64):
        table |= _rows_of_width(bits)
    return table


def _rows_of_width(bits: int) -> dict[str, Function]:
    """Rows that exist for 32 and for 64 bits."""
    table: dict[str, Function] = {
        f"s_mov_b{bits}": move,
        f"s_cmov_b{bits}": conditional_move(bits),
        f"s_cselect_b{bits}": select(bits),
        f"s_not_b{bits}": invert(bits),
        f"s_wqm_b{bits}": whole_quads(bits),
        f"s_quadmask_b{bits}": quad_mask(bits),
        f"s_brev_b{bits}": reverse(bits),
        f"s_bfm_b{bits}": field_mask(bits),
        f"s_bfe_u{bits}": extract(bits, signed=False),
        f"s_bfe_i{bits}": extract(bits, signed=True),
        f"s_lshl_b{bits}": shift(bits, shift_left),
        f"s_lshr_b{bits}": shift(bits, shift_right),
        f"s_ashr_i{bits}": shift(bits, shift_right_signed),
        f"s_bitset0_b{bits}": set_bit(bits, bit_value=False),
        f"s_bitset1_b{bits}": set_bit(bits, bit_value=True),
        f"s_bitcmp0_b{bits}": test_bit(bits, bit_value=False),
        f"s_bitcmp1_b{bits}": test_bit(bits, bit_value=True),
        f"s_and_not0_saveexec_b{bits}": save_exec(bits, not_and),
        f"s_or_not0_saveexec_b{bits}": save_exec(bits, not_or),
        f"s_and_not0_wrexec_b{bits}": write_exec(bits, not_and),
        f"s_and_not1_wrexec_b{bits}": write_exec(bits, and_not),
    }
    for name, combine in LOGIC.items():
        table[f"s_{name}_b{bits}"] = logic(bits, combine)
        table[f"s_{name}_saveexec_b{bits}"] = save_exec(bits, combine)
    return table


SCALAR: dict[str, Function] = _tables()
"""Row name -> semantics."""
