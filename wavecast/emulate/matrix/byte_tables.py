"""8-bit floats to pairs of bf16 by tables: a host instruction looks 64 bytes up in 128.

`vpermi2b` takes the lowest seven bits of each byte (Intel 64 and IA-32 Architectures Software
Developer's Manual, VPERMI2B): a float without its sign. One table has the low bytes of the bf16,
one the high bytes. Infinity, NaN, and FNUZ's NaN in place of -0 make the operand unfit (`dots.py`),
which is then converted by arithmetic.
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
from wavecast.emulate.values import I8, I32, constant, load

_BYTES: Final = 64
_HALF = 64
"""Entries of each of the two operands a table takes."""
_SIGN = 0x80
_KIND = ir.VectorType(I8, _BYTES)
_WORDS = ir.VectorType(I32, _BYTES // 4)
_INTRINSIC = "llvm.x86.avx512.vpermi2var.qi.512"


def by_tables(source: MatrixSource, host: Host) -> bool:
    """Whether elements are looked up: 8-bit floats without scales."""
    kind = source.format
    floats = isinstance(kind, Encoding) and kind.bits == 8
    return host.byte_tables and floats and source.scale is None


class TableDecoder:
    """Makes words of two bf16 from registers of four bytes, and remembers what is not finite."""

    def __init__(self, builder: ir.IRBuilder, source: MatrixSource) -> None:
        self.builder = builder
        assert isinstance(source.format, Encoding)
        self._encoding = source.format
        self._swapped = source.format.specials is SpecialValues.FNUZ
        with builder.goto_entry_block():
            slot: Any = builder.alloca(_KIND)
            slot.align = _BYTES
            builder.store(constant(0xFF if self._swapped else 0, 8, _BYTES), slot)
        self._slot = slot
        patterns = [pattern(source.format, number) for number in range(2 * _HALF)]
        self._tables = [
            [_vector([word >> shift & 0xFF for word in patterns[first : first + _HALF]])
             for first in (0, _HALF)]
            for shift in (0, 8)
        ]  # fmt: skip

    def see(self, register: Any) -> None:
        """Take note of the elements of a register."""
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
        picks = [lane + 2 * part + other for lane in range(0, _BYTES, 4) for other in (1, 1, 0, 0)]
        order = ir.Constant(ir.VectorType(I32, _BYTES), picks)
        index = builder.shuffle_vector(raw, ir.Constant(_KIND, ir.Undefined), order)
        low, high = (self._look_up(table, index) for table in self._tables)
        halves = ir.Constant(ir.VectorType(ir.IntType(1), _BYTES), [0, 1] * (_BYTES // 2))
        signs = builder.and_(index, _vector([0, _SIGN] * (_BYTES // 2)))
        return builder.bitcast(builder.or_(builder.select(halves, high, low), signs), _WORDS)

    def unfit(self) -> Any:
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
