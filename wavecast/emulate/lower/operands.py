"""Operand values: constants in the format their role wants, scalar registers."""

from __future__ import annotations

import re
import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from llvmlite import ir

from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower import state
from wavecast.emulate.lower.emitter import Emitter
from wavecast.isa.instruction import Operand, OperandClass
from wavecast.isa.opcode import OperandRole

if TYPE_CHECKING:
    from wavecast.isa.program import Program

_FLOAT_TEXT = re.compile(r"-?(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?")
_FORMATS = {"f16": ("<e", 16), "f32": ("<f", 32), "f64": ("<d", 64)}
_PAIRS = ("f32x2", "b32x2")
"""Types of sources of two dwords both of which a constant is."""


def constant_bits(operand: Operand, role: OperandRole, bits: int) -> int:
    """The bit pattern of a constant operand at its role's type.

    Spelled floats take the operand's format, or the one of its width where it has none; a 32-bit
    literal of a 64-bit float is its high half; integers are sign-extended. Of a pair of
    dwords a constant is both, whatever op_sel says: LLVM 24 writes `1.0` for <poison, 1.0>. Raises
    Unsupported.
    """
    if role.type in _PAIRS and bits == 64:
        half = constant_bits(operand, replace(role, type="f32"), 32)
        return half << 32 | half
    text = operand.text.strip("|").lstrip("-") if operand.absolute else operand.text
    kind = role.type.partition("x")[0]
    if _FLOAT_TEXT.fullmatch(text):
        if kind == "bf16":
            return struct.unpack("<I", struct.pack("<f", float(text)))[0] >> 16
        code, width = _FORMATS.get(kind, _FORMATS["f64" if bits == 64 else "f32"])
        pattern = int.from_bytes(struct.pack(code, float(text)), "little")
        return pattern & ((1 << max(bits, width)) - 1)
    if operand.value is None:
        raise Unsupported(f"the operand {operand.text!r}")
    value = operand.value
    if kind == "f64" and not -16 <= value <= 64 and value >> 32 == 0:
        value <<= 32
    return value & ((1 << bits) - 1)


APERTURES: Final = {
    "src_shared_base": state.SHARED_APERTURE,
    "src_private_base": state.PRIVATE_APERTURE,
    "shared_base": state.SHARED_APERTURE,
    "private_base": state.PRIVATE_APERTURE,
}
"""Registers without storage that hold where LDS and scratch begin among flat addresses."""


def uses_apertures(program: Program) -> bool:
    """Whether a program makes flat addresses of LDS or scratch."""
    return any(
        operand.text in APERTURES
        for instruction in program.instructions
        for operand in instruction.decoded.operands
    )


def _aperture(name: str, bits: int) -> int:
    """The value of a register without storage: the base of an aperture in its high half."""
    if name == "null":
        return 0
    if name not in APERTURES:
        raise Unsupported(f"the register {name}")
    return APERTURES[name] << 32 & (1 << bits) - 1


def scalar_operand(emitter: Emitter, operand: Operand, role: OperandRole, bits: int) -> Any:
    """The value of a scalar operand as an integer of `bits`. Raises Unsupported."""
    if operand.kind is OperandClass.CONSTANT:
        return ir.Constant(ir.IntType(bits), constant_bits(operand, role, bits))
    if operand.kind in (OperandClass.SGPR, OperandClass.SPECIAL):
        if operand.text == "null" or not operand.bits:
            return ir.Constant(ir.IntType(bits), _aperture(operand.text, bits))
        first = operand.bits.bit_length() - operand.bits.bit_count()
        if operand.text in ("scc", "src_scc"):
            return emitter.builder.zext(emitter.special("scc", 1), ir.IntType(bits))
        if role.type == "f32x2" and emitter.input.capabilities.packed_scalar_twice:
            low = emitter.builder.zext(emitter.scalar_bits(first, 1), ir.IntType(64))
            high = emitter.builder.shl(low, ir.Constant(ir.IntType(64), 32))
            return emitter.builder.or_(low, high)
        value = emitter.scalar_bits(first, operand.bits.bit_count())
        width = value.type.width
        if width > bits:
            value = emitter.builder.trunc(value, ir.IntType(bits))
        elif width < bits:
            value = emitter.builder.zext(value, ir.IntType(bits))
        return value
    raise Unsupported(f"the operand {operand.text!r}")
