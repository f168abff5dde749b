"""Conversions to 8-bit floats: which instructions make them, and from which numbers.

They are instructions of the target, or code: that of Triton, recognised by the constants that it
compares with (`_SOFTWARE`), or that of the HIP headers, which mark the number (`PROBES`) because
they limit it before they convert it. Conversions with a scale are not among them: the formats of
OCP (MX) prescribe that they saturate.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from wavecast.arch import capabilities
from wavecast.dtypes import Variant, lookup
from wavecast.emulate.check.numbers.byte_stores import byte_stores
from wavecast.emulate.check.numbers.operands import NumberElement, elements_of, first_source
from wavecast.emulate.check.numbers.uses import NumberUses
from wavecast.emulate.lower.packed import entries
from wavecast.isa import semantics
from wavecast.isa.instruction import Decoded, Instruction, Operand, OperandClass
from wavecast.isa.opcode import OperandAccess
from wavecast.isa.program import Program
from wavecast.isa.semantics.formats import F32
from wavecast.isa.semantics.integers import IntegerOps
from wavecast.isa.targets import isa_target

_SMALL = ("fp8", "bf8")
_ONE = 0x3F800000
_EXPONENTS: Final = {0x3F80_0000: 127, 0x4777_7777: 142}
"""Positive numbers, as f32, and their exponents."""
PROBES: Final = {
    0x5743_0100: "float8_e4m3fn",
    0x5743_0101: "float8_e5m2",
    0x5743_0102: "float8_e4m3fnuz",
    0x5743_0103: "float8_e5m2fnuz",
}
"""Literals of the instructions with which `hip_fp8.h` marks a number in checked code, and the dtype
that it is converted to."""
_SOFTWARE: Final = {
    0x43E8_0000: (0x3C6F_FFFF, "float8_e4m3fn"),
    0x4370_0001: (0x3BEF_FFFF, "float8_e4m3fnuz"),
    0x4760_0001: (0x37DF_FFFF, "float8_e5m2fnuz"),
}
"""What Triton's code compares the bits of a magnitude with, first where the number is too large,
then where it is a denormal; and the dtype. Source: Triton, third_party/amd,
ElementwiseOpToLLVM.cpp."""
_SOFTWARE_BF8: Final = (0x8E, 0xF6F_FFFF)
"""The same for float8_e5m2, whose code takes the exponent of the number first."""


@dataclass(frozen=True, slots=True)
class Narrowing:
    """The numbers that an instruction converts to a `dtype`, or that code behind it converts.
    `stores` are those that each number reaches as a byte, None where that is not known."""

    dtype: str
    operands: tuple[tuple[Operand, NumberElement], ...] = ()
    stores: tuple[frozenset[int] | None, ...] = ()

    @property
    def limit(self) -> float:
        """The largest number of the dtype."""
        encoding = lookup(self.dtype).encoding
        assert encoding is not None
        return encoding.largest

    @property
    def first_beyond(self) -> int:
        """The pattern, as f32, of what lies between the limit and the number that would be next."""
        encoding = lookup(self.dtype).encoding
        assert encoding is not None
        step = 2.0 ** (math.floor(math.log2(self.limit)) - encoding.mantissa)
        return int.from_bytes(struct.pack("<f", self.limit + step / 2), "little")


def narrowings(program: Program, uses: NumberUses) -> dict[int, Narrowing]:
    """The conversions of a program by instruction."""
    conversions = {}
    native = Variant.FNUZ if capabilities(isa_target(program.target)).fp8_fnuz else Variant.OCP
    constants = _compared_constants(program, uses)
    for instruction in program.instructions:
        decoded = instruction.decoded
        if decoded.second is not None:
            continue
        narrowing = (
            _native(instruction, uses, native)
            or _mark_narrowing(decoded)
            or _software(instruction, uses, constants)
        )
        if narrowing is not None and narrowing.operands:
            conversions[instruction.index] = narrowing
    return conversions


def _native(instruction: Instruction, uses: NumberUses, native: Variant) -> Narrowing | None:
    decoded = instruction.decoded
    if decoded.memory is not None or decoded.opcode.matrix is not None or not decoded.roles:
        return None
    name, _, count = decoded.roles[0].type.partition("x")
    if name not in _SMALL or decoded.roles[0].access is OperandAccess.READ:
        return None
    dtype = lookup(name).in_variant(native).name
    numbers = list(_numbers(decoded, int(count or 1)))
    scale = decoded.operands[-1] if len(numbers) and _has_scale(decoded, int(count or 1)) else None
    if scale is not None and uses.constant(instruction.index, scale) != _ONE:
        return None
    stores: list[frozenset[int] | None] = [None] * len(numbers)
    if len(numbers) == 2:  # a pair of bytes: its half of the register, and which of the two
        upper = bool(entries(decoded, "op_sel")[-1:] == [1]) or decoded.operands[0].half == "h"
        stores = [byte_stores(uses, instruction.index, 2 * upper + byte) for byte in (0, 1)]
    converted = [
        (number, reached)
        for number, reached in zip(numbers, stores, strict=True)
        if number[0].kind is OperandClass.VGPR and reached != frozenset()
    ]
    return Narrowing(
        dtype,
        tuple(number for number, _ in converted),
        tuple(reached for _, reached in converted),
    )


def _numbers(decoded: Decoded, count: int) -> Iterator[tuple[Operand, NumberElement]]:
    """The first numbers among the sources."""
    for index in range(first_source(decoded), len(decoded.operands)):
        for element in elements_of(decoded, index, written=False):
            if count:
                count -= 1
                yield decoded.operands[index], element


def _has_scale(decoded: Decoded, count: int) -> bool:
    """Whether there is a number more than are converted."""
    total = sum(
        len(list(elements_of(decoded, index, written=False)))
        for index in range(first_source(decoded), len(decoded.operands))
    )
    return total > count


def is_mark(decoded: Decoded) -> bool:
    """Whether an instruction is a mark of the HIP headers."""
    return len(decoded.operands) == 3 and decoded.operands[1].value in PROBES


def _mark_narrowing(decoded: Decoded) -> Narrowing | None:
    """A mark of the HIP headers."""
    if not is_mark(decoded):
        return None
    number = decoded.operands[2], NumberElement(F32, 0)
    return Narrowing(PROBES[decoded.operands[1].value or 0], (number,), (None,))


def _compared_constants(program: Program, uses: NumberUses) -> dict[object, set[int]]:
    """The constants that comparisons of each source location have."""
    constants: dict[object, set[int]] = {}
    for instruction in program.instructions:
        if instruction.location is None or instruction.opcode.form not in ("VOPC", "VOP3"):
            continue
        for operand in instruction.decoded.operands:
            value = uses.constant(instruction.index, operand)
            if value is not None:
                constants.setdefault(instruction.location, set()).add(value)
    return constants


def _software(
    instruction: Instruction, uses: NumberUses, constants: dict[object, set[int]]
) -> Narrowing | None:
    """The place in Triton's code where it looks at the number."""
    near = constants.get(instruction.location, set())
    decoded = instruction.decoded
    if not near or len(decoded.operands) < 3:
        return None
    values = [uses.constant(instruction.index, operand) for operand in decoded.operands]
    for threshold, (denormal, dtype) in _SOFTWARE.items():
        if denormal in near and threshold in values:
            return _read(dtype, decoded)
    if near >= set(_SOFTWARE_BF8) and _takes_exponent(decoded, values[1:]):
        return _read("float8_e5m2", decoded)
    return None


def _takes_exponent(decoded: Decoded, sources: list[int | None]) -> bool:
    """Whether an instruction gives the exponent of its only operand that is not a constant."""
    meaning = semantics.of(decoded.opcode)
    if meaning is None or meaning.modifiers or sources.count(None) != 1 or decoded.modifiers:
        return False
    for number, exponent in _EXPONENTS.items():
        values = [number if value is None else value for value in sources]
        if meaning.evaluate(IntegerOps(), *values) != (exponent,):
            return False
    return True


def _read(dtype: str, decoded: Decoded) -> Narrowing:
    """The vector register that an instruction reads, as a number."""
    numbers = tuple(
        (operand, NumberElement(F32, 0))
        for operand, role in zip(decoded.operands, decoded.roles, strict=True)
        if role.access is OperandAccess.READ and operand.kind is OperandClass.VGPR
    )
    return Narrowing(dtype, numbers, (None,) * len(numbers))


__all__ = ["PROBES", "Narrowing", "is_mark", "narrowings"]
