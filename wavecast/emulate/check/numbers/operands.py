"""The floating-point numbers in the operands of an instruction, and where they lie."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from wavecast.emulate.lower.packed import entries, writes_high_half
from wavecast.emulate.lower.vector import mixed_role
from wavecast.isa import semantics
from wavecast.isa.instruction import Decoded, Operand, OperandClass
from wavecast.isa.opcode import OperandAccess
from wavecast.isa.semantics.formats import BF16, F16, F32, F64, FloatFormat

FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "xf32": F32, "f64": F64}
"""The formats of 16 bits and more, by operand type."""
_TYPE = re.compile(r"(x?[a-z]+\d+)(?:x(\d+))?")


@dataclass(frozen=True, slots=True)
class NumberElement:
    """A number in an operand: its format, the register it starts in and, for 16 bits, its half."""

    fmt: FloatFormat
    register: int
    upper: bool = False


def first_source(decoded: Decoded) -> int:
    return next(i for i, role in enumerate(decoded.roles) if role.access is OperandAccess.READ)


def elements_of(decoded: Decoded, index: int, *, written: bool) -> Iterator[NumberElement]:
    """The numbers in an operand."""
    operand, role = decoded.operands[index], decoded.roles[index]
    source = index - first_source(decoded) if role.access is OperandAccess.READ else -1
    if source >= 0:
        role = mixed_role(decoded, role, source)
    match = _TYPE.fullmatch(role.type)
    name, count = (match[1], match[2]) if match else ("", "")
    fmt = FORMATS.get(name)
    if fmt is None or operand.kind is OperandClass.EXPRESSION:
        return
    number = int(count or 1)
    if fmt.bits == 16 and number == 1:
        yield NumberElement(fmt, 0, _upper(decoded, operand, source, written=written))
    elif fmt.bits == 16:
        for item in range(number):
            yield NumberElement(fmt, item // 2, bool(item & 1))
    else:
        for item in range(number):
            yield NumberElement(fmt, item * (fmt.bits // 32))


def _upper(decoded: Decoded, operand: Operand, source: int, *, written: bool) -> bool:
    """Whether a 16-bit number lies in the upper half of its register."""
    if operand.half:
        return operand.half == "h"
    meaning = semantics.of(decoded.opcode)
    if written:
        if decoded.modifiers.get("dst_sel") == "WORD_1":
            return True
        return meaning is not None and writes_high_half(meaning, decoded)
    select = decoded.modifiers.get(f"src{source}_sel")
    if select is not None:
        return select == "WORD_1"
    picks = entries(decoded, "op_sel")
    return 0 <= source < len(picks) and bool(picks[source])


__all__ = ["FORMATS", "NumberElement", "elements_of", "first_source"]
