"""Semantics of conversions to and from 8-, 6- and 4-bit floating-point formats.

Overflow without MODE.FP16_OVFL is NaN in fp8 and infinity in bf8, with it the largest number; fp6,
bf6 and fp4 always give the largest number, also for NaN, for which they have no pattern (the guides
do not say which result hardware gives). Scales are powers of two: the exponent of a float.
Converting down divides by them, converting up multiplies. Sources: the guides of MI300 (CDNA3),
CDNA4 and RDNA4, chapters on VOP1 and VOP3; OCP specifications named in `formats`.
"""

from __future__ import annotations

from typing import Final, TypeVar

from wavecast.isa.semantics.combine import Function
from wavecast.isa.semantics.formats import BF16, F16, F32, F64, FloatFormat, format_of
from wavecast.isa.semantics.ops import Ops
from wavecast.isa.semantics.registers import (
    bits_of,
    dwords,
    elements,
    from_dwords,
    pack,
    part,
    with_part,
)
from wavecast.isa.semantics.rounding import (
    double_to_single_odd,
    from_double,
    narrow,
    narrow_stochastically,
    to_double,
    widen,
)

V = TypeVar("V")

_LARGE = {"f32": F32, "f16": F16, "bf16": BF16}


def next_random(o: Ops[V], a: V) -> V:
    """One step of the generator of v_prng_b32: a shift register with taps 0xc5."""
    taps = o.select(o.less_signed(a, o.zero(32), 32), o.const(197, 32), o.zero(32), 32)
    return o.xor(o.shl(a, o.const(1, 32), 32), taps, 32)


def random_step(o: Ops[V], a: V) -> tuple[V]:
    return (next_random(o, a),)


def _format(o: Ops[V], name: str) -> FloatFormat:
    return format_of(name, o.machine.target)


# without a scale


def one_up(small: str, large: FloatFormat) -> Function:
    """One byte, chosen by `byte_sel`."""

    def evaluate(o: Ops[V], a: V, position: V) -> tuple[V]:
        wide = widen(o, part(o, a, 8, position), _format(o, small))
        return (narrow(o, wide, large),)

    return evaluate


def pair_up(small: str, large: FloatFormat) -> Function:
    """Two bytes, from the half that entry 0 of `op_sel` chooses."""

    def evaluate(o: Ops[V], a: V, op_sel: V) -> tuple[V]:
        half = part(o, a, 16, bits_of(o, op_sel, 0))
        wide = [widen(o, item, _format(o, small)) for item in elements(o, [half], 8, 2)]
        values = [narrow(o, item, large) for item in wide]
        return (from_dwords(o, pack(o, values, large.bits)),)  # type: ignore[return-value]

    return evaluate


def pair_down(small: str) -> Function:
    """Two F32 into the half of `old` that entry 2 of `op_sel` chooses."""

    def evaluate(o: Ops[V], old: V, a: V, b: V, op_sel: V) -> tuple[V]:
        values = [narrow(o, item, _format(o, small)) for item in (a, b)]
        (pair,) = pack(o, values, 8)
        return (with_part(o, old, pair, 16, bits_of(o, op_sel, 2)),)

    return evaluate


def pair_of_halves_down(small: str) -> Function:
    def evaluate(o: Ops[V], a: V) -> tuple[V]:
        wide = [widen(o, item, F16) for item in elements(o, [a], 16, 2)]
        (pair,) = pack(o, [narrow(o, item, _format(o, small)) for item in wide], 8)
        return (pair,)

    return evaluate


def stochastic_byte(small: str, large: FloatFormat) -> Function:
    """Into the byte of `old` that `byte_sel`, or entries 2 and 3 of `op_sel`, choose."""

    def evaluate(o: Ops[V], old: V, a: V, random: V, op_sel: V, byte_sel: V) -> tuple[V]:
        value = widen(o, a, large)
        byte = narrow_stochastically(o, value, random, _format(o, small))
        position = o.or_(bits_of(o, op_sel, 2, 2), byte_sel, 32)
        return (with_part(o, old, byte, 8, position),)

    return evaluate


def stochastic_half(fmt: FloatFormat) -> Function:
    """Into the half of `old` that entry 2 of `op_sel` chooses."""

    def evaluate(o: Ops[V], old: V, a: V, random: V, op_sel: V) -> tuple[V]:
        half = narrow_stochastically(o, a, random, fmt)
        return (with_part(o, old, half, 16, bits_of(o, op_sel, 2)),)

    return evaluate


# with a scale


def _scale(o: Ops[V], scale: V, inverse: bool) -> V:
    """2^(e - 127) or its inverse as F64, e the exponent field of an F32; NaN where e is 255."""
    field = o.low_bits(o.lshr(scale, o.const(F32.fraction, 32), 32), 8, 32)
    middle = F64.bias + (F32.bias if inverse else -F32.bias)
    biased = o.sub(o.const(middle, 32), field, 32) if inverse else None
    biased = o.add(field, o.const(middle, 32), 32) if biased is None else biased
    power = o.shl(o.zero_extend(biased, 32, 64), o.const(F64.fraction, 64), 64)
    wrong = o.eq(field, o.const(255, 32), 32)
    return o.select(wrong, o.const(F64.nan, 64), power, 64)


def _down(o: Ops[V], a: V, large: FloatFormat, scale: V, small: str, random: V | None = None) -> V:
    fmt = _format(o, small)
    scaled = double_to_single_odd(o, o.f_mul(to_double(o, a, large), scale, F64))
    if random is not None:
        return narrow_stochastically(o, scaled, random, fmt)
    return narrow(o, scaled, fmt)


def _up(o: Ops[V], a: V, small: str, scale: V, large: FloatFormat) -> V:
    wide = to_double(o, a, _format(o, small))
    return from_double(o, o.f_mul(wide, scale, F64), large)


def scaled_pair_down(small: str, large: FloatFormat) -> Function:
    """Two values into the part of `old` that `op_sel` chooses. F32 come in two operands."""
    bits = format_of(small).bits
    half_entry = 3 if large is F32 else 2

    def insert(o: Ops[V], old: V, values: list[V], scale: V, op_sel: V) -> tuple[V]:
        factor = _scale(o, scale, inverse=True)
        (pair,) = pack(o, [_down(o, item, large, factor, small) for item in values], bits)
        position = bits_of(o, op_sel, half_entry) if bits == 8 else bits_of(o, op_sel, 2, 2)
        return (with_part(o, old, pair, 2 * bits, position),)

    def singles(o: Ops[V], old: V, a: V, b: V, scale: V, op_sel: V) -> tuple[V]:
        return insert(o, old, [a, b], scale, op_sel)

    def halves(o: Ops[V], old: V, pair: V, scale: V, op_sel: V) -> tuple[V]:
        return insert(o, old, elements(o, [pair], 16, 2), scale, op_sel)

    return singles if large is F32 else halves


def scaled_stochastic_byte(small: str, large: FloatFormat) -> Function:
    def evaluate(o: Ops[V], old: V, a: V, random: V, scale: V, op_sel: V) -> tuple[V]:
        byte = _down(o, a, large, _scale(o, scale, inverse=True), small, random)
        return (with_part(o, old, byte, 8, bits_of(o, op_sel, 2, 2)),)

    return evaluate


def scaled_stochastic_pair(large: FloatFormat) -> Function:
    """Two fp4 into one byte of `old`; the second takes the next random number."""

    def evaluate(o: Ops[V], old: V, pair: V, random: V, scale: V, op_sel: V) -> tuple[V]:
        words = dwords(o, pair, 2 * large.bits)
        values = elements(o, words, large.bits, 2)
        (byte,) = pack(o, _all_down(o, values, large, scale, "fp4", random), 4)
        return (with_part(o, old, byte, 8, bits_of(o, op_sel, 2, 2)),)

    return evaluate


def _all_down(
    o: Ops[V], values: list[V], large: FloatFormat, scale: V, small: str, random: V | None
) -> list[V]:
    factor = _scale(o, scale, inverse=True)
    results = []
    for value in values:
        results.append(_down(o, value, large, factor, small, random))
        random = None if random is None else next_random(o, random)
    return results


def scaled_pair_up(small: str, large: FloatFormat) -> Function:
    """Two values from the half (fp8, bf8) or byte (fp4) that `op_sel` chooses."""
    bits = format_of(small).bits

    def evaluate(o: Ops[V], a: V, scale: V, op_sel: V) -> tuple[V | tuple[V, ...]]:
        pair = part(o, a, 2 * bits, bits_of(o, op_sel, 0, 1 if bits == 8 else 2))
        factor = _scale(o, scale, inverse=False)
        values = [_up(o, item, small, factor, large) for item in elements(o, [pair], bits, 2)]
        return (from_dwords(o, pack(o, values, large.bits)),)

    return evaluate


def scaled_one_up(small: str) -> Function:
    """One byte, chosen by entries 0 and 1 of `op_sel`, as F32."""

    def evaluate(o: Ops[V], a: V, scale: V, op_sel: V) -> tuple[V]:
        byte = part(o, a, 8, bits_of(o, op_sel, 0, 2))
        return (_up(o, byte, small, _scale(o, scale, inverse=False), F32),)

    return evaluate


def scaled_one_up_to_half(small: str) -> Function:
    """As F16 into the half of `old` that entry 2 of `op_sel` chooses."""

    def evaluate(o: Ops[V], old: V, a: V, scale: V, op_sel: V) -> tuple[V]:
        byte = part(o, a, 8, bits_of(o, op_sel, 0, 2))
        half = _up(o, byte, small, _scale(o, scale, inverse=False), F16)
        return (with_part(o, old, half, 16, bits_of(o, op_sel, 2)),)

    return evaluate


def block_down(small: str, large: FloatFormat, count: int) -> Function:
    """A block of `count` values in consecutive registers."""

    def evaluate(o: Ops[V], a: tuple[V, ...], scale: V) -> tuple[V | tuple[V, ...]]:
        values = elements(o, dwords(o, a, count * large.bits), large.bits, count)
        return (_block(o, _all_down(o, values, large, scale, small, None), small),)

    return evaluate


def stochastic_block_down(small: str, large: FloatFormat, count: int) -> Function:
    def evaluate(o: Ops[V], a: tuple[V, ...], random: V, scale: V) -> tuple[V | tuple[V, ...]]:
        values = elements(o, dwords(o, a, count * large.bits), large.bits, count)
        return (_block(o, _all_down(o, values, large, scale, small, random), small),)

    return evaluate


def interleaved_block_down(small: str) -> Function:
    """Twice 16 F32: first of one operand, first of the other, and so on."""

    def evaluate(
        o: Ops[V], a: tuple[V, ...], b: tuple[V, ...], scale: V
    ) -> tuple[V | tuple[V, ...]]:
        values = [item for pair in zip(a, b, strict=True) for item in pair]
        return (_block(o, _all_down(o, values, F32, scale, small, None), small),)

    return evaluate


def _block(o: Ops[V], values: list[V], small: str) -> V | tuple[V, ...]:
    return from_dwords(o, pack(o, values, format_of(small).bits))


def block_up(small: str, large: FloatFormat, count: int) -> Function:
    bits = format_of(small).bits

    def evaluate(o: Ops[V], a: tuple[V, ...], scale: V) -> tuple[V | tuple[V, ...]]:
        factor = _scale(o, scale, inverse=False)
        parts = elements(o, dwords(o, a, count * bits), bits, count)
        values = [_up(o, item, small, factor, large) for item in parts]
        return (from_dwords(o, pack(o, values, large.bits)),)

    return evaluate


def scaled_block_up(small: str, large: FloatFormat, count: int) -> Function:
    """As `block_up`, with the E8M0 scale in the lowest byte of the operand.

    With `scale_sel` 8 (blocks of 16, of 8-bit floats) lanes 16 to 31 take theirs from the second
    byte of the lane 16 below. Sources: Triton, ScaledUpcastFp4Op and ScaledUpcastFp8Op on gfx1250
    (`TritonAMDGPUToLLVM/Utility.h`, August 2026); Comgr (ROCm/llvm-project), hotswap,
    emitCvtScalePk8Bf16Fp4CrossTargetExpansion. What other selections take is not published.
    """
    up = block_up(small, large, count)

    def evaluate(o: Ops[V], a: tuple[V, ...], scale: V, *selection: V) -> tuple[V | tuple[V, ...]]:
        byte = o.low_bits(scale, 8, 32)
        if selection:
            below = o.shuffle(scale, o.and_(o.lane(), o.const(~16, 32), 32))
            other = o.low_bits(o.lshr(below, o.const(8, 32), 32), 8, 32)
            upper = o.nonzero(o.and_(o.lane(), o.const(16, 32), 32), 32)
            selected = o.and_(upper, o.nonzero(selection[0], 32), 1)
            byte = o.select(selected, other, byte, 32)
        return up(o, a, o.shl(byte, o.const(F32.fraction, 32), 32))

    return evaluate


def _tables() -> dict[str, Function]:
    table: dict[str, Function] = {
        "v_prng_b32": random_step,
        "v_cvt_sr_f16_f32": stochastic_half(F16),
        "v_cvt_sr_bf16_f32": stochastic_half(BF16),
    }
    for small in ("fp8", "bf8"):
        for name in ("f32", "f16"):
            large = _LARGE[name]
            table[f"v_cvt_{name}_{small}"] = one_up(small, large)
            table[f"v_cvt_pk_{name}_{small}"] = pair_up(small, large)
            table[f"v_cvt_sr_{small}_{name}"] = stochastic_byte(small, large)
        table[f"v_cvt_pk_{small}_f32"] = pair_down(small)
        table[f"v_cvt_pk_{small}_f16"] = pair_of_halves_down(small)
    for name, large in _LARGE.items():
        table |= _scaled_rows(name, large)
    return table


def _scaled_rows(name: str, large: FloatFormat) -> dict[str, Function]:
    """Scaled rows to and from one larger format."""
    prefix = "v_cvt_scalef32"
    table: dict[str, Function] = {}
    for small in ("fp8", "bf8", "fp4"):
        table[f"{prefix}_pk_{small}_{name}"] = scaled_pair_down(small, large)
        table[f"{prefix}_pk_{name}_{small}"] = scaled_pair_up(small, large)
        table[f"{prefix}_pk8_{small}_{name}"] = block_down(small, large, 8)
        table[f"{prefix}_sr_pk8_{small}_{name}"] = stochastic_block_down(small, large, 8)
    table[f"{prefix}_sr_pk_fp4_{name}"] = scaled_stochastic_pair(large)
    for small in ("fp8", "bf8"):
        table[f"{prefix}_sr_{small}_{name}"] = scaled_stochastic_byte(small, large)
        if name == "f32":
            table[f"{prefix}_f32_{small}"] = scaled_one_up(small)
        if name == "f16":
            table[f"{prefix}_f16_{small}"] = scaled_one_up_to_half(small)
    for small, count in (("fp8", 8), ("bf8", 8), ("fp4", 8), ("fp6", 16), ("bf6", 16)):
        table[f"v_cvt_scale_pk{count}_{name}_{small}"] = scaled_block_up(small, large, count)
    for small in ("fp6", "bf6"):
        table[f"{prefix}_pk16_{small}_{name}"] = block_down(small, large, 16)
        table[f"{prefix}_sr_pk16_{small}_{name}"] = stochastic_block_down(small, large, 16)
        table[f"{prefix}_sr_pk32_{small}_{name}"] = stochastic_block_down(small, large, 32)
        table[f"{prefix}_pk32_{name}_{small}"] = block_up(small, large, 32)
        if name == "f32":
            table[f"{prefix}_2xpk16_{small}_f32"] = interleaved_block_down(small)
        else:
            table[f"{prefix}_pk32_{small}_{name}"] = block_down(small, large, 32)
    return table


def _modifiers() -> dict[str, tuple[str, ...]]:
    modifiers: dict[str, tuple[str, ...]] = {
        "v_cvt_sr_f16_f32": ("op_sel",),
        "v_cvt_sr_bf16_f32": ("op_sel",),
    }
    for small in ("fp8", "bf8"):
        modifiers[f"v_cvt_pk_{small}_f32"] = ("op_sel",)
        for name in ("f32", "f16"):
            modifiers[f"v_cvt_{name}_{small}"] = ("byte_sel",)
            modifiers[f"v_cvt_pk_{name}_{small}"] = ("op_sel",)
            modifiers[f"v_cvt_sr_{small}_{name}"] = ("op_sel", "byte_sel")
        for name in _LARGE:
            modifiers[f"v_cvt_scale_pk8_{name}_{small}"] = ("scale_sel",)
    blocks = ("_pk8_", "_pk16_", "_pk32_", "_2xpk16_")
    for name in _tables():
        if name.startswith("v_cvt_scalef32_") and not any(block in name for block in blocks):
            modifiers[name] = ("op_sel",)
    return modifiers


SMALL_FORMATS: dict[str, Function] = _tables()
"""Row name -> semantics."""

SCALE_SELECTIONS: Final = (0, 8)
"""The values of `scale_sel` that have a meaning (`scaled_block_up`)."""

SMALL_FORMAT_MODIFIERS: dict[str, tuple[str, ...]] = _modifiers()
"""Row name -> modifiers whose values follow the operands."""
