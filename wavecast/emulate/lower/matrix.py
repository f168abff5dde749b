"""Matrix instructions: calls of the outlined functions of `wavecast.emulate.matrix`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower.operands import scalar_operand
from wavecast.emulate.lower.values import splat
from wavecast.emulate.matrix.function import matrix_function
from wavecast.emulate.matrix.spec import UnsupportedMatrix, matrix_spec
from wavecast.isa.instruction import Decoded, Operand, OperandClass
from wavecast.isa.opcode import OperandRole

if TYPE_CHECKING:
    from wavecast.emulate.lower.kernel import KernelLowering

_POSITIONS = {"d": 0, "a": 1, "b": 2, "c": 3, "index": 3, "scale_a": 4, "scale_b": 5}


def lower(lowering: KernelLowering, decoded: Decoded) -> None:
    """Lower one matrix instruction. Raises Unsupported with the reason."""
    target, lanes = lowering.program.target, lowering.layout.lanes
    try:
        spec = matrix_spec(decoded, target, lanes)
        function = matrix_function(lowering.module, decoded, target, lanes)
    except UnsupportedMatrix as error:
        raise Unsupported(error.message) from None
    arguments = []
    for name in spec.parameters:
        place = _POSITIONS[name]
        operand, role = decoded.operands[place], decoded.roles[place]
        room = lowering.indices if name == "scale_a" else lowering.spare
        arguments.append(_rows(lowering, operand, role, room))
    lowering.builder.call(function, arguments)


def _rows(lowering: KernelLowering, operand: Operand, role: OperandRole, room: Any) -> Any:
    """A pointer to the operand's first row; scalars are spread over `room`."""
    if operand.kind in (OperandClass.VGPR, OperandClass.AGPR):
        first = operand.bits.bit_length() - operand.count
        return lowering.row(lowering.layout.row(first))
    value = scalar_operand(lowering, operand, role, 32)
    lowering.builder.store(splat(lowering.builder, value, lowering.layout.lanes), room, align=8)
    return room
