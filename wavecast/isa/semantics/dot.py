"""Semantics of dot products and mixed-precision multiply-adds.

Floating-point dot products add one product after another to the accumulator, each step fused and
rounded to F32 (the guides give the order, not the roundings; they start from the products on
gfx950's `v_dot2_f32_bf16`). `v_dot2_f32_f16` flushes F32 denormals whatever MODE says, as LLVM's
selection of it assumes. Sources: the guides named in `floats`, chapter on VOP3P.
"""

from __future__ import annotations

from typing import TypeVar

from wavecast.arch import capabilities
from wavecast.isa.semantics.arithmetic import HALF, SINGLE
from wavecast.isa.semantics.combine import Function
from wavecast.isa.semantics.formats import BF16, F16, F32, FloatFormat, format_of
from wavecast.isa.semantics.ops import Ops
from wavecast.isa.semantics.registers import bits_of, elements
from wavecast.isa.semantics.rounding import narrow, widen

V = TypeVar("V")


def _chain(o: Ops[V], left: list[V], right: list[V], total: V) -> V:
    for a, b in zip(left, right, strict=True):
        total = o.f_fma(a, b, total, F32)
    return total


def _singles(o: Ops[V], a: V, fmt: FloatFormat, count: int) -> list[V]:
    return [widen(o, item, fmt) for item in elements(o, [a], 32 // count, count)]


def halves_to_single(o: Ops[V], a: V, b: V, c: V) -> tuple[V]:
    left, right = _singles(o, a, F16, 2), _singles(o, b, F16, 2)
    total = _chain(o, left, right, o.without_denormals(c, F32))
    return (o.without_denormals(total, F32),)


def brains_to_single(o: Ops[V], a: V, b: V, c: V) -> tuple[V]:
    left, right = _singles(o, a, BF16, 2), _singles(o, b, BF16, 2)
    if capabilities(o.machine.target).dot2_bf16_fused:
        return (_chain(o, left, right, c),)
    products = _chain(o, left[1:], right[1:], o.f_mul(left[0], right[0], F32))
    return (o.f_add(products, c, F32),)


def brains_accumulated(o: Ops[V], old: V, a: V, b: V) -> tuple[V]:
    return (_chain(o, _singles(o, a, BF16, 2), _singles(o, b, BF16, 2), old),)


def halves_accumulated(o: Ops[V], old: V, a: V, b: V) -> tuple[V]:
    return halves_to_single(o, a, b, old)


def to_same(fmt: FloatFormat) -> Function:
    """Two products and an accumulator of 16 bits, summed in F32 and rounded once."""

    def evaluate(o: Ops[V], a: V, b: V, c: V) -> tuple[V]:
        start = widen(o, o.low_half(c), fmt)
        return (narrow(o, _chain(o, _singles(o, a, fmt, 2), _singles(o, b, fmt, 2), start), fmt),)

    return evaluate


def bytes_to_single(left: str, right: str) -> Function:
    def evaluate(o: Ops[V], a: V, b: V, c: V) -> tuple[V]:
        target = o.machine.target
        first = _singles(o, a, format_of(left, target), 4)
        second = _singles(o, b, format_of(right, target), 4)
        return (_chain(o, first, second, c),)

    return evaluate


# integers


def _integers(o: Ops[V], a: V, width: int, signed: bool) -> list[V]:
    fields = elements(o, [a], width, 32 // width)
    if not signed:
        return fields
    count = o.const(32 - width, 32)
    return [o.ashr(o.shl(item, count, 32), count, 32) for item in fields]


def _sum(o: Ops[V], left: list[V], right: list[V], total: V) -> V:
    for a, b in zip(left, right, strict=True):
        total = o.add(total, o.mul(a, b, 32), 32)
    return total


def integers(width: int, signed: bool) -> Function:
    def evaluate(o: Ops[V], a: V, b: V, c: V) -> tuple[V]:
        return (_sum(o, _integers(o, a, width, signed), _integers(o, b, width, signed), c),)

    return evaluate


def integers_accumulated(width: int) -> Function:
    def evaluate(o: Ops[V], old: V, a: V, b: V) -> tuple[V]:
        return integers(width, signed=True)(o, a, b, old)

    return evaluate


def integers_clamped(width: int, signed: bool) -> Function:
    """The sum limited to 32 bits, as `clamp` asks for."""

    def evaluate(o: Ops[V], a: V, b: V, c: V) -> tuple[V]:
        left, right = _integers(o, a, width, signed), _integers(o, b, width, signed)
        total = o.extend(c, 32, 64, signed)
        for x, y in zip(left, right, strict=True):
            total = o.add(total, o.extend(o.mul(x, y, 32), 32, 64, signed), 64)
        return (_saturate(o, total, signed),)

    return evaluate


def _saturate(o: Ops[V], total: V, signed: bool) -> V:
    low, high = (-(1 << 31), (1 << 31) - 1) if signed else (0, (1 << 32) - 1)
    total = o.minimum(total, o.const(high, 64), 64, signed)
    total = o.maximum(total, o.const(low, 64), 64, signed)
    return o.truncate(total, 64, 32)


def mixed_integers(width: int) -> Function:
    """Entries 0 and 1 of `neg_lo` say which operand is signed."""

    def evaluate(o: Ops[V], a: V, b: V, c: V, neg_lo: V) -> tuple[V]:
        left, right = _mixed_elements(o, a, b, width, neg_lo)
        return (_sum(o, left, right, c),)

    return evaluate


def mixed_integers_clamped(width: int) -> Function:
    def evaluate(o: Ops[V], a: V, b: V, c: V, neg_lo: V) -> tuple[V]:
        left, right = _mixed_elements(o, a, b, width, neg_lo)
        total = o.sign_extend(c, 32, 64)
        for x, y in zip(left, right, strict=True):
            total = o.add(total, o.sign_extend(o.mul(x, y, 32), 32, 64), 64)
        return (_saturate(o, total, signed=True),)

    return evaluate


def _mixed_elements(o: Ops[V], a: V, b: V, width: int, neg_lo: V) -> tuple[list[V], list[V]]:
    operands = []
    for entry, value in enumerate((a, b)):
        signed = o.truncate(bits_of(o, neg_lo, entry), 32, 1)
        pairs = zip(
            _integers(o, value, width, True), _integers(o, value, width, False), strict=True
        )
        operands.append(
            [o.select(signed, signed_element, other, 32) for signed_element, other in pairs]
        )
    return operands[0], operands[1]


# mixed-precision multiply-add


def fma_mix(small: FloatFormat, result: FloatFormat) -> Function:
    """Each operand is F32, or where its entry of `op_sel_hi` is set the half that its entry of
    `op_sel` chooses; `neg_hi` takes absolute values, then `neg_lo` negates."""

    def evaluate(o: Ops[V], a: V, b: V, c: V, low: V, high: V, neg: V, absolute: V) -> tuple[V]:
        return (_mixed_sum(o, small, result, (a, b, c), (low, high, neg, absolute)),)

    return evaluate


def mixed_into(small: FloatFormat, upper: bool) -> Function:
    """As `mixed`, into one half of the old value."""

    def evaluate(
        o: Ops[V], old: V, a: V, b: V, c: V, low: V, high: V, neg: V, absolute: V
    ) -> tuple[V]:
        half = _mixed_sum(o, small, small, (a, b, c), (low, high, neg, absolute))
        if upper:
            return (o.or_(o.low_half(old), o.shl(half, o.const(16, 32), 32), 32),)
        return (o.or_(half, o.shl(o.high_half(old), o.const(16, 32), 32), 32),)

    return evaluate


def _mixed_sum(
    o: Ops[V],
    small: FloatFormat,
    result: FloatFormat,
    operands: tuple[V, V, V],
    modifiers: tuple[V, ...],
) -> V:
    low, high, neg, absolute = modifiers
    values = []
    for entry, value in enumerate(operands):

        def flag(flags: V, entry: int = entry) -> V:
            return o.truncate(bits_of(o, flags, entry), 32, 1)

        half = o.select(flag(low), o.high_half(value), o.low_half(value), 32)
        operand = o.select(flag(high), widen(o, half, small), value, 32)
        operand = o.select(flag(absolute), o.f_absolute(operand, F32), operand, 32)
        values.append(o.select(flag(neg), o.f_negate(operand, F32), operand, 32))
    total = SINGLE.fma(o, values[0], values[1], values[2])
    if result is F16:
        return HALF.result(o, narrow(o, total, F16))
    return narrow(o, total, result)


def _tables() -> dict[str, Function]:
    table: dict[str, Function] = {
        "v_dot2_f32_f16": halves_to_single,
        "v_dot2_f32_bf16": brains_to_single,
        "v_dot2acc_f32_f16": halves_accumulated,
        "v_dual_dot2acc_f32_f16": halves_accumulated,
        "v_dot2c_f32_bf16": brains_accumulated,
        "v_dual_dot2acc_f32_bf16": brains_accumulated,
        "v_dot2_f16_f16": to_same(F16),
        "v_dot2_bf16_bf16": to_same(BF16),
        "v_dot2_i32_i16": integers(16, signed=True),
        "v_dot2_u32_u16": integers(16, signed=False),
        "v_dot4_i32_i8": integers(8, signed=True),
        "v_dot4_u32_u8": integers(8, signed=False),
        "v_dot8_i32_i4": integers(4, signed=True),
        "v_dot8_u32_u4": integers(4, signed=False),
        "v_dot4_i32_iu8": mixed_integers(8),
        "v_dot8_i32_iu4": mixed_integers(4),
        "v_dot2c_i32_i16": integers_accumulated(16),
        "v_dot4c_i32_i8": integers_accumulated(8),
        "v_dot8c_i32_i4": integers_accumulated(4),
        "v_fma_mix_f32": fma_mix(F16, F32),
        "v_fma_mix_f32_bf16": fma_mix(BF16, F32),
        "v_fma_mixlo_f16": mixed_into(F16, upper=False),
        "v_fma_mixhi_f16": mixed_into(F16, upper=True),
        "v_fma_mixlo_bf16": mixed_into(BF16, upper=False),
        "v_fma_mixhi_bf16": mixed_into(BF16, upper=True),
    }
    for left in ("fp8", "bf8"):
        for right in ("fp8", "bf8"):
            table[f"v_dot4_f32_{left}_{right}"] = bytes_to_single(left, right)
    return table


DOT: dict[str, Function] = _tables()
"""Row name -> semantics."""

DOT_CLAMPED: dict[str, Function] = {
    "v_dot2_i32_i16": integers_clamped(16, signed=True),
    "v_dot2_u32_u16": integers_clamped(16, signed=False),
    "v_dot4_i32_i8": integers_clamped(8, signed=True),
    "v_dot4_u32_u8": integers_clamped(8, signed=False),
    "v_dot8_i32_i4": integers_clamped(4, signed=True),
    "v_dot8_u32_u4": integers_clamped(4, signed=False),
    "v_dot4_i32_iu8": mixed_integers_clamped(8),
    "v_dot8_i32_iu4": mixed_integers_clamped(4),
}
"""Row name -> semantics with `clamp`."""

DOT_MODIFIERS: dict[str, tuple[str, ...]] = {
    name: ("op_sel", "op_sel_hi", "neg_lo", "neg_hi") for name in DOT if "_mix" in name
} | {"v_dot4_i32_iu8": ("neg_lo",), "v_dot8_i32_iu4": ("neg_lo",)}
"""Row name -> modifiers whose values follow the operands."""
