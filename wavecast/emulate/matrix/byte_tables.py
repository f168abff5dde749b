"""Floats of 8 and 4 bits to pairs of bf16 by tables: a host instruction looks 64 bytes up in 128.

`vpermi2b` takes the lowest seven bits of each byte (Intel 64 and IA-32 Architectures Software
Developer's Manual, VPERMI2B): an 8-bit float without its sign. One table has the low bytes of the
bf16, one the high bytes. 4-bit floats take 16 entries of each. Block scales that are powers of two
are added to the exponents of what is not zero.

Infinity, NaN, FNUZ's NaN in place of -0, and scales beyond 2^+-40 make the operand unfit
(`dots.py`), which is then converted by arithmetic.
"""

from __future__ import annotations

import math
import struct
from typing import Any, Final

from llvmlite import ir

from wavecast.dtypes import Encoding, SpecialValues
from wavecast.emulate.matrix import dots
from wavecast.emulate.matrix.host import Host
from wavecast.emulate.matrix.spec import MatrixSource
from wavecast.emulate.values import I8, I16, I32, constant, load

_BYTES: Final = 64
_HALF = 64
"""Entries of each of the two operands a table takes."""
_SIGN = 0x80
_BIAS, _MANTISSA = 127, 7
_FAR = 40
"""Powers of two that scales may be from 1: every float of 8 bits stays fit."""
_KIND = ir.VectorType(I8, _BYTES)
_WORDS = ir.VectorType(I32, _BYTES // 4)
_INTRINSIC = "llvm.x86.avx512.vpermi2var.qi.512"


def by_tables(source: MatrixSource, host: Host) -> bool:
    """Whether elements are looked up: floats of 8 or 4 bits, without scales or with E8M0."""
    kind = source.format
    floats = isinstance(kind, Encoding) and kind.bits in (4, 8)
    return host.byte_tables and floats and source.scale_format is None


class TableDecoder:
    """Makes words of two bf16 from registers of four bytes, and remembers what is not finite."""

    def __init__(self, builder: ir.IRBuilder, source: MatrixSource) -> None:
        self.builder = builder
        assert isinstance(source.format, Encoding)
        self._encoding = source.format
        kind = source.format
        self.elements = 32 // kind.bits
        """Elements of a register."""
        self._swapped = kind.specials is SpecialValues.FNUZ
        self._slot = self._scale_slot = None
        if kind.specials is not SpecialValues.NONE:
            self._slot = self._room(constant(0xFF if self._swapped else 0, 8, _BYTES))
        if source.scale is not None:
            self._scale_slot = self._room(constant(0, 32, _BYTES // 4))
        signs = 1 << (kind.bits - 1)
        patterns = [pattern(kind, number) for number in range(min(signs, 2 * _HALF))]
        if kind.bits == 4:
            patterns += [word | _SIGN << 8 for word in patterns]
            low, high = ([word >> shift & 0xFF for word in patterns] for shift in (0, 8))
            self._tables = [[_vector([*low, *high, *[0] * 32]), _vector([0] * _HALF)]]
        else:
            self._tables = [
                [_vector([word >> shift & 0xFF for word in patterns[first : first + _HALF]])
                 for first in (0, _HALF)]
                for shift in (0, 8)
            ]  # fmt: skip

    def _room(self, value: Any) -> Any:
        """Memory of the function that begins with a value."""
        with self.builder.goto_entry_block():
            slot: Any = self.builder.alloca(value.type)
            slot.align = _BYTES
            self.builder.store(value, slot)
            return slot

    def see(self, register: Any) -> None:
        """Take note of the elements of a register."""
        if self._slot is None:
            return
        builder = self.builder
        raw = builder.bitcast(register, _KIND)
        if self._swapped:  # the one NaN becomes 0
            name, value = "umin", builder.xor(raw, constant(_SIGN, 8, _BYTES))
        else:
            name, value = "umax", builder.and_(raw, constant(_SIGN - 1, 8, _BYTES))
        before = load(builder, self._slot, _KIND, _BYTES)
        builder.store(dots.extreme(builder, name, before, value), self._slot, align=_BYTES)

    def word(self, register: Any, part: int) -> Any:
        """Elements 2 · `part` (the high half) and the one after it of every lane."""
        builder = self.builder
        raw = builder.bitcast(register, _KIND)
        if self.elements == 8:
            return self._narrow_word(raw, part)
        picks = [lane + 2 * part + other for lane in range(0, _BYTES, 4) for other in (1, 1, 0, 0)]
        order = ir.Constant(ir.VectorType(I32, _BYTES), picks)
        index = builder.shuffle_vector(raw, ir.Constant(_KIND, ir.Undefined), order)
        low, high = (self._look_up(table, index) for table in self._tables)
        halves = ir.Constant(ir.VectorType(ir.IntType(1), _BYTES), [0, 1] * (_BYTES // 2))
        signs = builder.and_(index, _vector([0, _SIGN] * (_BYTES // 2)))
        return builder.bitcast(builder.or_(builder.select(halves, high, low), signs), _WORDS)

    def _narrow_word(self, raw: Any, part: int) -> Any:
        """As `word`, of 4-bit floats: byte `part` has both, the even one below."""
        builder = self.builder
        picks = [lane + part for lane in range(0, _BYTES, 4) for _ in range(4)]
        order = ir.Constant(ir.VectorType(I32, _BYTES), picks)
        both = builder.shuffle_vector(raw, ir.Constant(_KIND, ir.Undefined), order)
        words = builder.bitcast(both, _WORDS)
        odd = builder.bitcast(builder.lshr(words, constant(4, 32, _BYTES // 4)), _KIND)
        lanes = _BYTES // 4
        even_part = builder.and_(both, _vector([0, 0, 15, 15] * lanes))
        odd_part = builder.and_(odd, _vector([15, 15, 0, 0] * lanes))
        index = builder.or_(builder.or_(even_part, odd_part), _vector([0, 16, 0, 16] * lanes))
        return builder.bitcast(self._look_up(self._tables[0], index), _WORDS)

    def exponents(self, scale: Any) -> Any:
        """What a scale of each lane, a byte E8M0 in an i32, adds to words; takes note of it."""
        builder, lanes = self.builder, _BYTES // 4
        beyond = builder.sub(scale, constant(_BIAS - _FAR, 32, lanes))
        before = load(builder, self._scale_slot, _WORDS, _BYTES)
        after = dots.extreme(builder, "umax", before, beyond)
        builder.store(after, self._scale_slot, align=_BYTES)
        power = builder.sub(scale, constant(_BIAS, 32, lanes))
        power = builder.shl(power, constant(_MANTISSA, 32, lanes))
        low = builder.and_(power, constant(0xFFFF, 32, lanes))
        return builder.or_(low, builder.shl(power, constant(16, 32, lanes)))

    def scaled(self, word: Any, exponents: Any) -> Any:
        """A word with its elements scaled."""
        builder, halves = self.builder, ir.VectorType(I16, _BYTES // 2)
        values, added = (builder.bitcast(vector, halves) for vector in (word, exponents))
        size = builder.and_(values, constant(0x7FFF, 16, _BYTES // 2))
        nonzero = builder.icmp_unsigned("!=", size, constant(0, 16, _BYTES // 2))
        scaled = builder.select(nonzero, builder.add(values, added), values)
        return builder.bitcast(scaled, _WORDS)

    def unfit(self) -> Any:
        """i1: some element is infinite or NaN, or a scale too far from 1; None where no operand of
        the format is."""
        builder, unfit = self.builder, None
        if self._scale_slot is not None:
            beyond = load(builder, self._scale_slot, _WORDS, _BYTES)
            far: Any = builder.icmp_unsigned(">", beyond, constant(2 * _FAR, 32, _BYTES // 4))
            unfit = dots.any_lane(builder, far)
        if self._slot is None:
            return unfit
        special = self._special()
        return special if unfit is None else builder.or_(unfit, special)

    def _special(self) -> Any:
        """i1: some element is infinite or NaN."""
        builder = self.builder
        value = load(builder, self._slot, _KIND, _BYTES)
        if self._swapped:
            wrong: Any = builder.icmp_unsigned("==", value, constant(0, 8, _BYTES))
        else:
            first = next(n for n in range(2 * _HALF) if not _finite(self._encoding, n))
            wrong = builder.icmp_unsigned(">=", value, constant(first, 8, _BYTES))
        return dots.any_lane(builder, wrong)

    def _look_up(self, table: list[Any], index: Any) -> Any:
        module = self.builder.module
        function = module.globals.get(_INTRINSIC)
        if function is None:
            kind = ir.FunctionType(_KIND, [_KIND] * 3)
            function = ir.Function(module, kind, _INTRINSIC)
        return self.builder.call(function, [table[0], index, table[1]])


def _vector(values: list[int]) -> Any:
    return ir.Constant(_KIND, values)


def _finite(kind: Encoding, number: int) -> bool:
    """Whether the encoding `number` without a sign is finite."""
    top = (1 << (kind.exponent + kind.mantissa)) - 1
    if kind.specials is SpecialValues.IEEE:
        return number >> kind.mantissa != (1 << kind.exponent) - 1
    return kind.specials is not SpecialValues.ONE_NAN or number != top


def pattern(kind: Encoding, number: int) -> int:
    """The bits of the bf16 of an 8-bit float without its sign; any where it is not finite."""
    if not _finite(kind, number):
        return 0
    exponent, mantissa = divmod(number, 1 << kind.mantissa)
    whole = mantissa + (1 << kind.mantissa if exponent else 0)
    value = math.ldexp(whole, max(exponent, 1) - kind.bias - kind.mantissa)
    return struct.unpack("<I", struct.pack("<f", value))[0] >> 16


__all__ = ["TableDecoder", "by_tables", "pattern"]
