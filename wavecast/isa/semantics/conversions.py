"""Semantics of conversions between floating-point formats and integers.

Sources: the guides named in `floats`. They leave open how `v_cvt_pk_u8_f32`, `v_cvt_pk_i16_f32`
and `v_cvt_pk_u16_f32` round; here they cut off, as the other conversions to integers do.
"""

from __future__ import annotations

from struct import pack, unpack
from typing import TypeVar

from wavecast.isa.semantics.arithmetic import DOUBLE, HALF, SINGLE, Float
from wavecast.isa.semantics.combine import Function
from wavecast.isa.semantics.formats import BF16, F16, F32, F64, FloatFormat
from wavecast.isa.semantics.ops import Direction, Ops
from wavecast.isa.semantics.rounding import Rounding, narrow, widen

V = TypeVar("V")


def _single(value: float) -> int:
    return unpack("<I", pack("<f", value))[0]


def _pack_pair(o: Ops[V], low: V, high: V) -> V:
    """Two 16-bit values in 32 bits, packed into one register."""
    return o.or_(o.low_half(low), o.shl(high, o.const(16, 32), 32), 32)


# between floating-point formats


def half_from_single(o: Ops[V], a: V) -> tuple[V]:
    return (HALF.result(o, narrow(o, SINGLE.operand(o, a), F16)),)


def single_from_half(o: Ops[V], a: V) -> tuple[V]:
    return (SINGLE.result(o, widen(o, HALF.operand(o, a), F16)),)


def single_from_high_half(o: Ops[V], a: V) -> tuple[V]:
    return single_from_half(o, o.high_half(a))


def single_from_brain(o: Ops[V], a: V) -> tuple[V]:
    return (widen(o, o.low_half(a), BF16),)


def single_from_double(o: Ops[V], a: V) -> tuple[V]:
    return (SINGLE.result(o, o.f_convert(DOUBLE.operand(o, a), F64, F32)),)


def double_from_single(o: Ops[V], a: V) -> tuple[V]:
    return (o.f_convert(SINGLE.operand(o, a), F32, F64),)


def pair_from_singles(fmt: FloatFormat, rounding: Rounding) -> Function:
    def evaluate(o: Ops[V], a: V, b: V) -> tuple[V]:
        low, high = (narrow(o, SINGLE.operand(o, value), fmt, rounding) for value in (a, b))
        if fmt is F16:
            low, high = HALF.result(o, low), HALF.result(o, high)
        return (_pack_pair(o, low, high),)

    return evaluate


def pack_halves(o: Ops[V], a: V, b: V) -> tuple[V]:
    return (_pack_pair(o, HALF.operand(o, a), HALF.operand(o, b)),)


# integers


def from_integer(f: Float, signed: bool) -> Function:
    def evaluate(o: Ops[V], a: V) -> tuple[V]:
        return (o.f_from_int(a, 32, signed, f.fmt),)

    return evaluate


def half_from_integer(signed: bool) -> Function:
    """From 16 bits."""

    def evaluate(o: Ops[V], a: V) -> tuple[V]:
        wide = o.extend(o.truncate(a, 32, 16), 16, 32, signed)
        return (narrow(o, o.f_from_int(wide, 32, signed, F32), F16),)

    return evaluate


def from_byte(position: int) -> Function:
    def evaluate(o: Ops[V], a: V) -> tuple[V]:
        byte = o.low_bits(o.lshr(a, o.const(8 * position, 32), 32), 8, 32)
        return (o.f_from_int(byte, 32, False, F32),)

    return evaluate


def to_integer(f: Float, signed: bool) -> Function:
    """Towards zero; saturates, NaN gives 0."""

    def evaluate(o: Ops[V], a: V) -> tuple[V]:
        return (o.f_to_int(f.operand(o, a), f.fmt, 32, signed),)

    return evaluate


def rounded_to_integer(direction: Direction, plus_half: bool) -> Function:
    def evaluate(o: Ops[V], a: V) -> tuple[V]:
        a = SINGLE.operand(o, a)
        if plus_half:
            a = o.f_add(a, o.const(_single(0.5), 32), F32)
        return (o.f_to_int(o.f_round(a, F32, direction), F32, 32, True),)

    return evaluate


def _saturate(o: Ops[V], a: V, low: int, high: int, signed: bool = True) -> V:
    """An integer of 32 bits limited to a range, then cut to 16 bits."""
    a = o.minimum(a, o.const(high, 32), 32, signed)
    if signed:
        a = o.maximum(a, o.const(low, 32), 32, signed=True)
    return o.low_half(a)


def _limits(signed: bool, bits: int = 16) -> tuple[int, int]:
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)


def half_to_integer(signed: bool) -> Function:
    """To 16 bits, towards zero; saturates."""

    def evaluate(o: Ops[V], a: V) -> tuple[V]:
        whole = o.f_to_int(widen(o, HALF.operand(o, a), F16), F32, 32, True)
        return (_saturate(o, whole, *_limits(signed)),)

    return evaluate


def pair_of_integers(signed: bool) -> Function:
    """Two 32-bit integers, each limited to 16 bits."""

    def evaluate(o: Ops[V], a: V, b: V) -> tuple[V]:
        low, high = (_saturate(o, value, *_limits(signed), signed) for value in (a, b))
        return (_pack_pair(o, low, high),)

    return evaluate


def pair_from_single_integers(signed: bool) -> Function:
    def evaluate(o: Ops[V], a: V, b: V) -> tuple[V]:
        whole = [o.f_to_int(SINGLE.operand(o, value), F32, 32, True) for value in (a, b)]
        low, high = (_saturate(o, value, *_limits(signed)) for value in whole)
        return (_pack_pair(o, low, high),)

    return evaluate


def _to_norm16(o: Ops[V], f: Float, a: V, signed: bool) -> V:
    """-1 to 1 (0 to 1 unsigned) as -32767 to 32767 (0 to 65535), to the nearest; NaN gives 0."""
    single = widen(o, f.operand(o, a), f.fmt)
    limit = 32767 if signed else 65535
    scaled = o.f_round(o.f_mul(single, o.const(_single(limit), 32), F32), F32, "even")
    whole = o.f_to_int(scaled, F32, 32, True)
    return _saturate(o, whole, -limit if signed else 0, limit)


def to_norm16(f: Float, signed: bool) -> Function:
    def evaluate(o: Ops[V], a: V) -> tuple[V]:
        return (_to_norm16(o, f, a, signed),)

    return evaluate


def pair_normalised(f: Float, signed: bool) -> Function:
    def evaluate(o: Ops[V], a: V, b: V) -> tuple[V]:
        return (_pack_pair(o, _to_norm16(o, f, a, signed), _to_norm16(o, f, b, signed)),)

    return evaluate


def offset_from_four_bits(o: Ops[V], a: V) -> tuple[V]:
    """A signed 4-bit integer in sixteenths."""
    count = o.const(28, 32)
    whole = o.f_from_int(o.ashr(o.shl(a, count, 32), count, 32), 32, True, F32)
    return (o.f_mul(whole, o.const(_single(1 / 16), 32), F32),)


def insert_byte(o: Ops[V], a: V, position: V, old: V) -> tuple[V]:
    """A float as an unsigned byte in place `position` (modulo 4) of `old`."""
    whole = o.f_to_int(SINGLE.operand(o, a), F32, 32, False)
    byte = o.minimum(whole, o.const(255, 32), 32, signed=False)
    shift = o.shl(o.low_bits(position, 2, 32), o.const(3, 32), 32)
    other_bytes = o.and_not(old, o.shl(o.const(255, 32), shift, 32), 32)
    return (o.or_(other_bytes, o.shl(byte, shift, 32), 32),)


def accumulate_byte(o: Ops[V], old: V, a: V, position: V) -> tuple[V]:
    return insert_byte(o, a, position, old)


# saturating packs


def _limited_byte(o: Ops[V], a: V, signed: bool, bits: int = 8) -> V:
    low, high = _limits(signed, bits)
    a = o.maximum(a, o.const(low, 32), 32, signed=True)
    return o.low_bits(o.minimum(a, o.const(high, 32), 32, signed=True), bits, 32)


def shifted_bytes(signed: bool) -> Function:
    def evaluate(o: Ops[V], a: V, b: V, amount: V) -> tuple[V]:
        count = o.low_bits(amount, 5, 32)
        low, high = (_limited_byte(o, o.ashr(value, count, 32), signed) for value in (a, b))
        return (o.or_(low, o.shl(high, o.const(8, 32), 32), 32),)

    return evaluate


def bytes_of_halves(o: Ops[V], a: V) -> tuple[V]:
    low = _limited_byte(o, o.sign_extend(o.truncate(a, 32, 16), 16, 32), signed=False)
    high = _limited_byte(o, o.ashr(a, o.const(16, 32), 32), signed=False)
    return (o.or_(low, o.shl(high, o.const(8, 32), 32), 32),)


def nibbles_of_bytes(signed: bool) -> Function:
    """Four bytes limited to four bits each."""

    def evaluate(o: Ops[V], a: V) -> tuple[V]:
        result = o.zero(32)
        for position in range(4):
            up = o.shl(a, o.const(24 - 8 * position, 32), 32)
            byte = o.ashr(up, o.const(24, 32), 32) if signed else o.lshr(up, o.const(24, 32), 32)
            nibble = _limited_byte(o, byte, signed, 4)
            result = o.or_(result, o.shl(nibble, o.const(4 * position, 32), 32), 32)
        return (result,)

    return evaluate


def _tables() -> dict[str, Function]:
    table: dict[str, Function] = {
        "v_cvt_f16_f32": half_from_single,
        "v_cvt_f32_f16": single_from_half,
        "v_cvt_f32_bf16": single_from_brain,
        "v_cvt_f32_f64": single_from_double,
        "v_cvt_f64_f32": double_from_single,
        "v_cvt_pk_rtz_f16_f32": pair_from_singles(F16, "zero"),
        "v_cvt_pk_f16_f32": pair_from_singles(F16, "even"),
        "v_cvt_pk_bf16_f32": pair_from_singles(BF16, "even"),
        "v_pack_b32_f16": pack_halves,
        "v_cvt_floor_i32_f32": rounded_to_integer("floor", plus_half=False),
        "v_cvt_nearest_i32_f32": rounded_to_integer("floor", plus_half=True),
        "v_cvt_off_f32_i4": offset_from_four_bits,
        "v_cvt_pk_u8_f32": insert_byte,
        "v_cvt_pkaccum_u8_f32": accumulate_byte,
        "v_ashr_pk_i8_i32": shifted_bytes(signed=True),
        "v_ashr_pk_u8_i32": shifted_bytes(signed=False),
        "v_sat_pk_u8_i16": bytes_of_halves,
        "v_sat_pk4_i4_i8": nibbles_of_bytes(signed=True),
        "v_sat_pk4_u4_u8": nibbles_of_bytes(signed=False),
        "s_cvt_f16_f32": half_from_single,
        "s_cvt_f32_f16": single_from_half,
        "s_cvt_hi_f32_f16": single_from_high_half,
        "s_cvt_pk_rtz_f16_f32": pair_from_singles(F16, "zero"),
    }
    for position in range(4):
        table[f"v_cvt_f32_ubyte{position}"] = from_byte(position)
    for kind, signed in (("i", True), ("u", False)):
        table |= _integers(kind, signed)
    return table


def _integers(kind: str, signed: bool) -> dict[str, Function]:
    """Rows that exist for signed and unsigned integers."""
    return {
        f"v_cvt_f32_{kind}32": from_integer(SINGLE, signed),
        f"s_cvt_f32_{kind}32": from_integer(SINGLE, signed),
        f"v_cvt_f64_{kind}32": from_integer(DOUBLE, signed),
        f"v_cvt_f16_{kind}16": half_from_integer(signed),
        f"v_cvt_{kind}32_f32": to_integer(SINGLE, signed),
        f"s_cvt_{kind}32_f32": to_integer(SINGLE, signed),
        f"v_cvt_{kind}32_f64": to_integer(DOUBLE, signed),
        f"v_cvt_{kind}16_f16": half_to_integer(signed),
        f"v_cvt_pk_{kind}16_{kind}32": pair_of_integers(signed),
        f"v_cvt_pk_{kind}16_f32": pair_from_single_integers(signed),
        f"v_cvt_norm_{kind}16_f16": to_norm16(HALF, signed),
        f"v_cvt_pk_norm_{kind}16_f16": pair_normalised(HALF, signed),
        f"v_cvt_pk_norm_{kind}16_f32": pair_normalised(SINGLE, signed),
    }


CONVERSIONS: dict[str, Function] = _tables()
"""Row name -> semantics."""
