"""What scalar instructions make of masks and constants."""

from __future__ import annotations

from collections.abc import Iterator

from wavecast.emulate.check.dataflow import lane_sets
from wavecast.emulate.check.dataflow.flows import first_cell
from wavecast.emulate.check.dataflow.lane_sets import unknown
from wavecast.emulate.check.dataflow.register_facts import Known
from wavecast.emulate.lower.operands import constant_bits
from wavecast.isa import semantics
from wavecast.isa.instruction import Decoded, Instruction, OperandClass
from wavecast.isa.opcode import OperandAccess, OperandKind
from wavecast.isa.registers import EXEC
from wavecast.isa.semantics.integers import IntegerOps


def constant_written(decoded: Decoded) -> int | None:
    """What a scalar move of a constant leaves."""
    meaning = semantics.of(decoded.opcode)
    if meaning is None or decoded.opcode.implicit_reads or len(decoded.operands) != 2:
        return None
    (target, source), (role, source_role) = decoded.operands, decoded.roles
    if source.kind is not OperandClass.CONSTANT or role.access is not OperandAccess.WRITE:
        return None
    value = constant_bits(
        source, source_role, 32 * source_role.dwords if source_role.dwords else 32
    )
    result = meaning.evaluate(IntegerOps(), value)[0]
    return result if isinstance(result, int) and target.bits else None


def masks_written(instruction: Instruction, state: Known) -> list[tuple[int | None, int]]:
    """Masks a scalar instruction writes, by cell (None: EXEC), with their signatures."""
    decoded = instruction.decoded
    kind = f"b{state.wave}"
    targets: list[int | None] = []
    for operand, role in zip(decoded.operands, decoded.roles, strict=True):
        if role.access in (OperandAccess.WRITE, OperandAccess.READ_WRITE):
            if operand.bits & EXEC:
                targets.append(None)
            elif role.type == kind and operand.bits:
                targets.append(first_cell(operand.bits))
            else:
                targets.append(-1)
    for name in decoded.opcode.implicit_writes:
        targets.append(None if name == "exec" else -1)
    if all(target == -1 for target in targets):
        return []
    values = lane_sets.evaluate_masks(decoded, state.wave, list(_inputs(instruction, state, kind)))
    if values is None:
        values = [unknown("scalar", instruction.index, index) for index in range(len(targets))]
    return [
        (target, value)
        for target, value in zip(targets, values, strict=True)
        if target is None or target >= 0
    ]


def _inputs(instruction: Instruction, state: Known, kind: str) -> Iterator[int | None]:
    decoded = instruction.decoded
    for operand, role in zip(decoded.operands, decoded.roles, strict=True):
        if role.access is OperandAccess.WRITE or role.kind is OperandKind.LABEL:
            continue
        if operand.kind is OperandClass.CONSTANT:
            continue
        if role.type != kind or not operand.bits:
            yield None
        else:
            yield state.mask(instruction, operand.bits)
    for name in decoded.opcode.implicit_reads:
        yield state.execute if name == "exec" else None


__all__ = ["constant_written", "masks_written"]
