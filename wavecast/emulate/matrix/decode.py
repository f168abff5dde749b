"""LLVM IR that converts raw element bits to f32, f64 or i32 vectors, and results back.

Every conversion to a wider type is exact. Rounding to a narrower type is to nearest, ties to even.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from wavecast.dtypes import Encoding, SpecialValues
from wavecast.emulate.matrix.formats import F16, F32, Integer
from wavecast.emulate.matrix.host import Host
from wavecast.emulate.values import I16, I32, constant

F32_TYPE = ir.FloatType()
_QUIET_NAN = 0x7FC00000
_SIGN = 0x80000000


def float_vector(count: int) -> ir.VectorType:
    """`<count x float>`."""
    return ir.VectorType(F32_TYPE, count)


def float_constant(value: float, count: int) -> ir.Constant:
    """The same float in every lane."""
    return ir.Constant(float_vector(count), [value] * count)


class ElementDecoder:
    """Emits conversions of `<count x i32>` vectors whose low bits hold one element each."""

    def __init__(self, builder: ir.IRBuilder, host: Host, count: int) -> None:
        self.builder = builder
        self.host = host
        self.count = count

    def _constant(self, value: int) -> ir.Constant:
        return constant(value, 32, self.count)

    def _and(self, value: Any, mask: int) -> Any:
        return self.builder.and_(value, self._constant(mask))

    def _shift_left(self, value: Any, amount: int) -> Any:
        return self.builder.shl(value, self._constant(amount)) if amount else value

    def _as_float(self, value: Any) -> Any:
        return self.builder.bitcast(value, float_vector(self.count))

    def _as_bits(self, value: Any) -> Any:
        return self.builder.bitcast(value, ir.VectorType(I32, self.count))

    def to_float(self, raw: Any, kind: Encoding) -> Any:
        """f32 values of raw elements. Bits above the element may be set."""
        if kind == F32:
            return self._as_float(raw)
        if kind.exponent == F32.exponent:
            return self._as_float(self._shift_left(raw, 32 - kind.bits))
        if (
            self.host.half_conversion
            and kind.exponent < 6
            and kind.specials is not SpecialValues.FNUZ
        ):
            return self._through_half(raw, kind)
        return self._by_integers(raw, kind)

    def _through_half(self, raw: Any, kind: Encoding) -> Any:
        """Align with f16, convert, scale by the difference of the biases."""
        if kind == F16:
            half = self.builder.trunc(raw, ir.VectorType(I16, self.count))
            return self._extend(half)
        shift = F16.mantissa - kind.mantissa
        magnitude = self._and(self._shift_left(raw, shift), ((1 << (kind.bits - 1)) - 1) << shift)
        sign = self._and(self._shift_left(raw, 16 - kind.bits), 0x8000)
        half = self.builder.trunc(self.builder.or_(magnitude, sign), ir.VectorType(I16, self.count))
        value = self._extend(half)
        if kind.bias != F16.bias:
            scale = float_constant(2.0 ** (F16.bias - kind.bias), self.count)
            value = self.builder.fmul(value, scale)
        return self._replace_nan(value, raw, kind)

    def _extend(self, half: Any) -> Any:
        typed = self.builder.bitcast(half, ir.VectorType(ir.HalfType(), self.count))
        return self.builder.fpext(typed, float_vector(self.count))

    def _by_integers(self, raw: Any, kind: Encoding) -> Any:
        """Rebias in the integer domain; denormals by subtracting their implicit one."""
        builder = self.builder
        shift = F32.mantissa - kind.mantissa
        rebias = (F32.bias - kind.bias) << F32.mantissa
        exponent_mask = ((1 << kind.exponent) - 1) << F32.mantissa
        magnitude = self._and(self._shift_left(raw, shift), ((1 << (kind.bits - 1)) - 1) << shift)
        normal = builder.add(magnitude, self._constant(rebias))
        exponent = self._and(magnitude, exponent_mask)
        smallest = rebias + (1 << F32.mantissa)
        lifted = self._as_float(builder.add(magnitude, self._constant(smallest)))
        implicit_one = self._as_float(self._constant(smallest))
        denormal = self._as_bits(builder.fsub(lifted, implicit_one))
        is_denormal = builder.icmp_unsigned("==", exponent, self._constant(0))
        bits = builder.select(is_denormal, denormal, normal)
        if kind.specials is SpecialValues.IEEE:
            infinite = builder.or_(magnitude, self._constant(0xFF << F32.mantissa))
            is_special = builder.icmp_unsigned("==", exponent, self._constant(exponent_mask))
            bits = builder.select(is_special, infinite, bits)
        sign = self._and(self._shift_left(raw, 32 - kind.bits), _SIGN)
        return self._replace_nan(self._as_float(builder.or_(bits, sign)), raw, kind)

    def _replace_nan(self, value: Any, raw: Any, kind: Encoding) -> Any:
        if kind.specials is SpecialValues.ONE_NAN:
            mask = (1 << (kind.bits - 1)) - 1
            pattern = mask
        elif kind.specials is SpecialValues.FNUZ:
            mask = (1 << kind.bits) - 1
            pattern = 1 << (kind.bits - 1)
        else:
            return value
        is_nan = self.builder.icmp_unsigned("==", self._and(raw, mask), self._constant(pattern))
        nan = self._as_float(self._constant(_QUIET_NAN))
        return self.builder.select(is_nan, nan, value)

    def round_to_xf32(self, value: Any) -> Any:
        """f32 rounded to 10 mantissa bits, to nearest, ties to even; NaN and infinity stay."""
        builder = self.builder
        bits = self._as_bits(value)
        odd = self._and(builder.lshr(bits, self._constant(13)), 1)
        rounded = builder.add(builder.add(bits, self._constant(0xFFF)), odd)
        rounded = self._and(rounded, 0xFFFFE000)
        magnitude = self._and(bits, 0x7FFFFFFF)
        special = builder.icmp_unsigned(">=", magnitude, self._constant(0x7F800000))
        return self._as_float(builder.select(special, bits, rounded))

    def to_integer(self, raw: Any, kind: Integer) -> Any:
        """i32 values of raw elements. Bits above the element may be set."""
        if kind.bits == 32:
            return raw
        if not kind.signed:
            return self._and(raw, (1 << kind.bits) - 1)
        shift = self._constant(32 - kind.bits)
        return self.builder.ashr(self.builder.shl(raw, shift), shift)

    def to_scale(self, raw: Any) -> Any:
        """f32 value 2^(x - 127) of E8M0 bytes; 255 is NaN."""
        byte = self._and(raw, 0xFF)
        normal = self._shift_left(byte, F32.mantissa)
        least = self._constant(1 << (F32.mantissa - 1))
        builder = self.builder
        bits = builder.select(builder.icmp_unsigned("==", byte, self._constant(0)), least, normal)
        nan = builder.icmp_unsigned("==", byte, self._constant(0xFF))
        return self._as_float(builder.select(nan, self._constant(_QUIET_NAN), bits))

    def from_float(self, value: Any, kind: Encoding) -> Any:
        """i32 vector with the bits of f32 values as f32, bf16 or f16."""
        if kind == F32:
            return self._as_bits(value)
        if kind.exponent == F32.exponent:
            return self._narrow_bf16(self._as_bits(value))
        if self.host.half_conversion:
            half = self.builder.fptrunc(value, ir.VectorType(ir.HalfType(), self.count))
            bits = self.builder.bitcast(half, ir.VectorType(I16, self.count))
            return self.builder.zext(bits, ir.VectorType(I32, self.count))
        return self._narrow_f16(self._as_bits(value))

    def _narrow_bf16(self, bits: Any) -> Any:
        builder = self.builder
        odd = self._and(builder.lshr(bits, self._constant(16)), 1)
        rounded = builder.add(builder.add(bits, self._constant(0x7FFF)), odd)
        magnitude = self._and(bits, 0x7FFFFFFF)
        nan = builder.icmp_unsigned(">", magnitude, self._constant(0x7F800000))
        quiet = builder.or_(bits, self._constant(0x400000))
        return builder.lshr(builder.select(nan, quiet, rounded), self._constant(16))

    def _narrow_f16(self, bits: Any) -> Any:
        """f16 bits by integers, for hosts without the conversion."""
        builder = self.builder
        sign = self._and(builder.lshr(bits, self._constant(16)), 0x8000)
        magnitude = self._and(bits, 0x7FFFFFFF)
        odd = self._and(builder.lshr(magnitude, self._constant(13)), 1)
        rebias = (F16.bias - F32.bias) << F32.mantissa
        normal = builder.add(magnitude, self._constant(rebias + 0xFFF))
        normal = builder.lshr(builder.add(normal, odd), self._constant(13))
        # adding 0.5 leaves the denormal's bits, rounded, at the bottom of the sum
        half = self._as_float(self._constant(0x3F000000))
        shifted = self._as_bits(builder.fadd(self._as_float(magnitude), half))
        denormal = builder.sub(shifted, self._constant(0x3F000000))
        small = builder.icmp_unsigned("<", magnitude, self._constant(0x38800000))
        result = builder.select(small, denormal, normal)
        large = builder.icmp_unsigned(">=", magnitude, self._constant(0x477FF000))
        result = builder.select(large, self._constant(0x7C00), result)
        nan = builder.icmp_unsigned(">", magnitude, self._constant(0x7F800000))
        quiet = builder.or_(
            self._and(builder.lshr(magnitude, self._constant(13)), 0x3FF),
            self._constant(0x7E00),
        )
        return builder.or_(builder.select(nan, quiet, result), sign)
