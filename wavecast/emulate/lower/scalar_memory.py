"""Scalar memory: loads, stores and atomics for the whole wave, and clocks."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower import buffers, hardware, state
from wavecast.emulate.lower.addresses import is_known
from wavecast.emulate.lower.atomics import integer_result
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.operands import scalar_operand
from wavecast.emulate.values import I32, I64, PTR, element, load
from wavecast.isa.instruction import Decoded, Instruction, Operand, OperandClass
from wavecast.isa.opcode import MemoryKind, OperandKind

_ALL_ONES = (1 << 64) - 1
_ASK_TIME = "sendmsg(MSG_RTN_GET_REALTIME)"
_MODIFIERS = frozenset(["offset", "glc", "slc", "dlc", "sc0", "sc1", "nt", "nv", "th", "scope"]) | {
    "scale_offset"
}


def lower(emitter: WaveEmitter, instruction: Instruction) -> None:
    """Lower one scalar memory instruction. Raises Unsupported."""
    decoded, memory = instruction.decoded, instruction.memory
    unknown = sorted(set(decoded.modifiers) - _MODIFIERS)
    if unknown:
        raise Unsupported(f"the modifier {unknown[0]}")
    if memory is None:
        _clock(emitter, decoded)
        return
    data = decoded.operands[0]
    role, operand = next(
        (role, operand)
        for role, operand in zip(decoded.roles[1:], decoded.operands[1:], strict=True)
        if role.kind in (OperandKind.SCALAR, OperandKind.RESOURCE)
    )
    inset = _offset(emitter, decoded)
    if role.kind is OperandKind.RESOURCE:
        _buffer(emitter, instruction, data, operand, inset)
        return
    builder = emitter.builder
    address = builder.add(scalar_operand(emitter, operand, role, 64), inset)
    if memory.bytes >= 4:
        emitter.listener.scalar_address(instruction, address)
        address = builder.and_(address, I64(~3 & _ALL_ONES))
    emitter.listener.scalar_access(instruction, address, memory.bytes)
    _check(emitter, instruction, address, I64(memory.bytes))
    if memory.kind is MemoryKind.ATOMIC:
        _atomic(emitter, instruction, address)
        return
    if memory.kind is MemoryKind.STORE:
        for index in range(memory.bytes // 4):
            value = emitter.scalar(_first(data) + index)
            builder.store(value, _at(emitter, address, index), align=4)
        return
    if memory.bytes < 4:
        _set_small(emitter, decoded, builder.inttoptr(address, PTR), memory.bytes)
        return
    for index in range(memory.bytes // 4):
        value = load(builder, _at(emitter, address, index), I32, 4)
        emitter.set_scalar_bits(_first(data) + index, value)


def _atomic(emitter: WaveEmitter, instruction: Instruction, address: Any) -> None:
    """Change memory by an operation of one scalar value; with `glc` its old value is the result.

    A compare-and-swap has the new value in the first half of its data, the expected one in the
    second. Source: AMD instruction set architecture guides (CDNA2, CDNA3), "Scalar memory".
    """
    builder, decoded, memory = emitter.builder, instruction.decoded, instruction.memory
    assert memory is not None
    action, wide = decoded.opcode.memory_form.operation, memory.bytes == 8
    first = _first(decoded.operands[0])
    element_type = decoded.roles[0].type

    def value(register: int) -> Any:
        low = emitter.scalar(register)
        if not wide:
            return low
        high = builder.shl(builder.zext(emitter.scalar(register + 1), I64), I64(32))
        return builder.or_(builder.zext(low, I64), high)

    data = value(first)
    comparand = value(first + memory.bytes // 4) if action == "cmpswap" else None
    pointer = builder.inttoptr(address, PTR)
    initial = load(builder, pointer, data.type, memory.bytes)
    before = builder.block
    again, exit_block = (builder.append_basic_block(name) for name in ("again", "done"))
    builder.branch(again)
    builder.position_at_end(again)
    old = builder.phi(data.type)
    old.add_incoming(initial, before)
    if comparand is not None:
        new = builder.select(builder.icmp_unsigned("==", old, comparand), data, old)
    elif action == "swap":
        new = data
    else:
        new = integer_result(builder, action, element_type, old, data)
    pair = builder.cmpxchg(pointer, old, new, "seq_cst", "seq_cst")
    old.add_incoming(builder.extract_value(pair, 0), again)
    builder.cbranch(builder.extract_value(pair, 1), exit_block, again)
    builder.position_at_end(exit_block)
    if not instruction.writes:
        return
    emitter.set_scalar_bits(first, builder.trunc(old, I32) if wide else old)
    if wide:
        emitter.set_scalar_bits(first + 1, builder.trunc(builder.lshr(old, I64(32)), I32))


def _first(operand: Operand) -> int:
    return (operand.bits & -operand.bits).bit_length() - 1


def _at(emitter: WaveEmitter, address: Any, index: int) -> Any:
    builder = emitter.builder
    return builder.inttoptr(builder.add(address, I64(4 * index)), PTR)


def _offset(emitter: WaveEmitter, decoded: Decoded) -> Any:
    """Register (unsigned) plus constant (signed) offset, i64."""
    builder = emitter.builder
    total: Any = I64(int(decoded.modifiers.get("offset") or "0", 0) & _ALL_ONES)
    for operand, role in zip(decoded.operands, decoded.roles, strict=True):
        if role.kind is not OperandKind.OFFSET:
            continue
        if operand.kind is OperandClass.CONSTANT:
            assert operand.value is not None
            value = operand.value
            if value >> 31 == 1:  # a negative offset printed as 32 bits
                value -= 1 << 32
            total = builder.add(total, I64(value & _ALL_ONES))
        else:
            amount = builder.zext(scalar_operand(emitter, operand, role, 32), I64)
            if "scale_offset" in decoded.modifiers and decoded.memory is not None:
                amount = builder.mul(amount, I64(decoded.memory.bytes))
            total = builder.add(total, amount)
    return total


def _check(emitter: WaveEmitter, instruction: Instruction, address: Any, size: Any) -> None:
    """Leave the wave unless the whole access lies in a known range."""
    builder = emitter.builder
    good = is_known(builder, emitter.context, address, size)
    with builder.if_then(builder.not_(good), likely=False):
        builder.store(address, element(builder, emitter.context, state.FAULT_ADDRESS, I64))
        builder.store(I64(0), element(builder, emitter.context, state.FAULT_LANE, I64))
        emitter.stop(state.BAD_ADDRESS, instruction.index)


def _set_small(emitter: WaveEmitter, decoded: Decoded, pointer: Any, size: int) -> None:
    """Set the destination to a byte or a half at `pointer`, extended."""
    builder = emitter.builder
    small = load(builder, pointer, ir.IntType(8 * size), 1)
    extend = builder.sext if decoded.roles[0].type.startswith("i") else builder.zext
    emitter.set_scalar_bits(_first(decoded.operands[0]), extend(small, I32))


def _buffer(
    emitter: WaveEmitter, instruction: Instruction, data: Operand, source: Operand, inset: Any
) -> None:
    """Loads through a descriptor: dwords beyond its records are 0.

    Source: AMD instruction set architecture guides, "Scalar memory", s_buffer_load: records are
    bytes, or units of the stride where the descriptor has one.
    """
    memory, decoded = instruction.memory, instruction.decoded
    assert memory is not None
    if memory.kind is not MemoryKind.LOAD:
        raise Unsupported("scalar stores through a descriptor")
    builder = emitter.builder
    descriptor = buffers.descriptor(emitter, source)
    stride = builder.zext(descriptor.stride, I64)
    record_bytes = builder.select(builder.icmp_unsigned("==", stride, I64(0)), I64(1), stride)
    limit = builder.mul(descriptor.records, record_bytes)
    unit = min(memory.bytes, 4)
    if unit == 4:
        inset = builder.and_(inset, I64(~3 & _ALL_ONES))
    for index in range(max(1, memory.bytes // 4)):
        start = builder.add(inset, I64(4 * index))
        register = _first(data) + index
        emitter.set_scalar_bits(register, I32(0))
        end = builder.add(start, I64(unit))
        with builder.if_then(builder.icmp_unsigned("<=", end, limit), likely=True):
            address = builder.add(descriptor.base, start)
            emitter.listener.scalar_access(instruction, address, unit)
            _check(emitter, instruction, address, I64(unit))
            pointer = builder.inttoptr(address, PTR)
            if unit == 4:
                emitter.set_scalar_bits(register, load(builder, pointer, I32, 1))
            else:
                _set_small(emitter, decoded, pointer, unit)


def message(emitter: WaveEmitter, decoded: Decoded) -> None:
    """A message with an answer: only the one that asks for the time has one here. Raises
    Unsupported."""
    if not any(operand.text == _ASK_TIME for operand in decoded.operands):
        raise Unsupported("this message")
    _clock(emitter, decoded)


def _clock(emitter: WaveEmitter, decoded: Decoded) -> None:
    emitter.set_scalar_bits(_first(decoded.operands[0]), hardware.cycles(emitter))


__all__ = ["lower", "message"]
