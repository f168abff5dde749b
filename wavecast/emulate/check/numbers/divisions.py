"""Integer divisions by zero.

LLVM expands a division into a reciprocal of the divisor as a float and corrections
(`AMDGPUTargetLowering::LowerUDIVREM`, `AMDGPUCodeGenPrepare`). It takes v_rcp_iflag_f32, which
nothing else uses, or v_rcp_f32 and scales the result by one of the constants below. A divisor of 0
is an operand of 0.
"""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir

from wavecast.emulate.check import log
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.observer import Observer
from wavecast.emulate.lower.operands import scalar_operand
from wavecast.emulate.reports import Kind
from wavecast.emulate.values import I32, constant
from wavecast.isa.instruction import Decoded, Instruction, OperandClass
from wavecast.isa.opcode import OpcodeFlag
from wavecast.isa.program import Program

_SCALES: Final = frozenset({0x4F7FFFFE, 0x5F7FFFFC})
"""2^32 and 2^64 less a little as f32: LLVM's `AMDGPUCodeGenPrepare::expandDivRem32` and
`AMDGPUTargetLowering::LowerUDIVREM64`."""
_FAR: Final = 16
"""Instructions from the reciprocal to the scaling."""


class DivisionChecks(Observer):
    """Compares the operands of reciprocals that belong to divisions of integers."""

    def __init__(self, program: Program) -> None:
        self._reciprocals = frozenset(
            instruction.index
            for instruction in program.instructions
            if OpcodeFlag.INTEGER_RECIPROCAL in instruction.opcode.flags
            or _is_scaled(program, instruction)
        )

    def before(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        if instruction.index not in self._reciprocals:
            return
        emitter.pending.settle()
        builder = emitter.builder
        zero: Any = builder.and_(_zeros(emitter, instruction.decoded), emitter.exec_mask())
        with builder.if_then(builder.icmp_unsigned("!=", zero, zero.type(0)), likely=False):
            log.emit(emitter, Kind.INTEGER_DIVISION_BY_ZERO, instruction.index, lanes=zero)


def _is_scaled(program: Program, instruction: Instruction) -> bool:
    """Whether this is a reciprocal whose result is multiplied by one of `_SCALES`."""
    decoded = instruction.decoded
    if decoded.opcode.cost_class != "trans" or len(decoded.operands) != 2:
        return False
    result = decoded.writes
    for following in program.instructions[instruction.index + 1 : instruction.index + _FAR]:
        other = following.decoded
        parts = [other] if other.second is None else [other, other.second]
        for part in parts:
            scaled = any(operand.value in _SCALES for operand in part.operands)
            if scaled and any(operand.bits == result for operand in part.operands):
                return True
    return False


def _zeros(emitter: WaveEmitter, decoded: Decoded) -> Any:
    """The lanes in which the operand is 0 of either sign."""
    builder, lanes = emitter.builder, emitter.layout.lanes
    operand, role = decoded.operands[1], decoded.roles[1]
    kind = ir.IntType(lanes)
    if operand.kind in (OperandClass.VGPR, OperandClass.AGPR):
        row = emitter.row(emitter.layout.row(operand.bits.bit_length() - 1))
        value: Any = builder.load(row, align=4, typ=ir.VectorType(I32, lanes))
        size = builder.and_(value, constant(0x7FFFFFFF, 32, lanes))
        return builder.bitcast(builder.icmp_unsigned("==", size, constant(0, 32, lanes)), kind)
    value = scalar_operand(emitter, operand, role, 32)
    size = builder.and_(value, I32(0x7FFFFFFF))
    return builder.sext(builder.icmp_unsigned("==", size, I32(0)), kind)


__all__ = ["DivisionChecks"]
