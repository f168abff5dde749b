"""Scalar instructions: operands in, semantics, results out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower import hardware, jumps, mode
from wavecast.emulate.lower.emitter import Emitter, WaveEmitter
from wavecast.emulate.lower.operands import scalar_operand
from wavecast.emulate.lower.ops import LlvmOps
from wavecast.emulate.values import I64
from wavecast.isa import semantics
from wavecast.isa.instruction import Decoded, Instruction, OperandClass
from wavecast.isa.opcode import OpcodeFlag, OperandAccess, OperandKind, OperandRole

_SYMBOLS = (OperandClass.EXPRESSION, OperandClass.LABEL)


def lower(emitter: WaveEmitter, instruction: Instruction) -> None:
    """Lower a scalar instruction. Raises Unsupported for one without a meaning."""
    decoded, flags = instruction.decoded, instruction.opcode.flags
    emitter.pending.flush_before(decoded)
    if OpcodeFlag.GETPC in flags:
        jumps.read_counter(emitter, instruction)
        return
    if flags & hardware.FLAGS:
        hardware.lower(emitter, decoded)
        return

    def symbol(text: str, bits: int) -> Any:
        return jumps.symbol_value(emitter, instruction.index, text, bits)

    compute(emitter, decoded, symbol)


def is_computation(decoded: Decoded) -> bool:
    """Whether an instruction reads and writes nothing but scalar registers and constants."""
    flags = decoded.opcode.flags
    if OpcodeFlag.GETPC in flags or flags & hardware.FLAGS:
        return False
    return all(operand.kind not in _SYMBOLS for operand in decoded.operands)


def compute(
    emitter: Emitter, decoded: Decoded, symbol: Callable[[str, int], Any] | None = None
) -> None:
    """Execute an instruction on scalar registers. `symbol` gives the value of an expression as an
    integer of so many bits. Raises Unsupported for an instruction without a meaning."""
    meaning = semantics.of(decoded.opcode)
    if meaning is None:
        raise Unsupported(f"no semantics for {decoded.mnemonic}")
    outputs = meaning.evaluate(_operations(emitter), *_inputs(emitter, decoded, symbol))
    _write_outputs(emitter, decoded, outputs)


def condition(emitter: WaveEmitter, instruction: Instruction) -> Any:
    """Whether a conditional branch is taken (i1). Raises Unsupported for one without a meaning."""
    meaning = semantics.of(instruction.opcode)
    if meaning is None:
        raise Unsupported(f"no semantics for {instruction.mnemonic}")
    inputs, lanes = [], emitter.layout.lanes
    for name in instruction.opcode.implicit_reads:
        value = emitter.special(name, lanes)
        if name != "scc" and lanes == 32:
            value = emitter.builder.zext(value, I64)
        inputs.append(value)
    (is_taken,) = meaning.evaluate(_operations(emitter), *inputs)
    return is_taken


def _operations(emitter: Emitter) -> LlvmOps:
    operations = LlvmOps(emitter.builder, 0, emitter.machine, emitter.layout.lanes)
    operations.overflow = mode.overflow(emitter)
    return operations


def _inputs(
    emitter: Emitter, decoded: Decoded, symbol: Callable[[str, int], Any] | None
) -> list[Any]:
    """The values of the sources, then those of the registers read implicitly."""
    inputs = []
    width = 32
    for operand, role in zip(decoded.operands, decoded.roles, strict=True):
        bits = _width(emitter, role)
        if role.kind is not OperandKind.IMMEDIATE:
            width = max(width, bits)
        if role.access is OperandAccess.WRITE or role.kind is OperandKind.LABEL:
            continue
        if symbol is not None and operand.kind in _SYMBOLS:
            inputs.append(symbol(operand.text, bits))
        else:
            inputs.append(scalar_operand(emitter, operand, role, bits))
    for name in decoded.opcode.implicit_reads:
        inputs.append(emitter.special(name, width))
    return inputs


def _width(emitter: Emitter, role: OperandRole) -> int:
    if role.kind is OperandKind.LANE_MASK:
        return emitter.layout.lanes
    return 32 * role.dwords if role.dwords else 32


def _write_outputs(emitter: Emitter, decoded: Decoded, outputs: tuple[Any, ...]) -> None:
    values = iter(outputs)
    for operand, role in zip(decoded.operands, decoded.roles, strict=True):
        if role.access in (OperandAccess.WRITE, OperandAccess.READ_WRITE):
            value = next(values)
            if operand.bits:
                emitter.set_scalar_bits(operand.bits.bit_length() - operand.count, value)
    for name in decoded.opcode.implicit_writes:
        emitter.set_special(name, next(values))


__all__ = ["compute", "condition", "is_computation", "lower"]
