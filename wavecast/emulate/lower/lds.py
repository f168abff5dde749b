"""LDS instructions: one or two locations, atomics, counters, transposing loads, lane exchange."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower import runtime, state, swizzle
from wavecast.emulate.lower.access import AccessTarget, MemoryAccess
from wavecast.emulate.lower.access_targets import constant_row, instruction_offset, lds_target
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.frame import masked_store
from wavecast.emulate.lower.sites import (
    atomic_operation,
    call,
    copied_rows,
    data_operands,
    data_rows,
    local_rows,
    shape_letters,
)
from wavecast.emulate.values import (
    I1,
    I32,
    I64,
    PTR,
    constant,
    context_word,
    element,
    load,
    splat,
)
from wavecast.isa.instruction import Decoded, Instruction, Operand
from wavecast.isa.opcode import MemoryKind, OperandRole
from wavecast.isa.opcode import OperandAccess as Use

_COUNTERS = frozenset({"append", "consume"})


def lower(emitter: WaveEmitter, instruction: Instruction) -> None:
    """Lower one LDS instruction. Raises Unsupported."""
    memory, form = instruction.memory, instruction.opcode.memory_form
    assert memory is not None
    if form.exchange == "swizzle":
        _swizzle(emitter, instruction.decoded)
    elif form.exchange:
        _permute(emitter, instruction)
    elif form.operation in _COUNTERS:
        _count(emitter, instruction)
    elif form.transpose:
        _transpose(emitter, instruction)
    elif memory.kind is MemoryKind.ATOMIC:
        _atomic(emitter, instruction)
    elif memory.kind in (MemoryKind.LOAD, MemoryKind.STORE):
        _move(emitter, instruction)
    else:
        raise Unsupported(f"{memory.kind.value} of LDS")


def offsets_of(decoded: Decoded, size: int) -> list[int]:
    """Byte offsets of the locations an instruction goes to, `size` bytes each."""
    form = decoded.opcode.memory_form
    if form.offsets == 1:
        return [instruction_offset(decoded)]
    unit = size * form.stride
    return [unit * instruction_offset(decoded, f"offset{index}") for index in range(2)]


def _targets(
    emitter: WaveEmitter, decoded: Decoded, size: int, *, overwrites: int
) -> list[AccessTarget]:
    """The targets; what the first of two accesses writes does not change the second."""
    offsets = offsets_of(decoded, size)
    targets = [lds_target(emitter, decoded, offset) for offset in offsets]
    if len(targets) == 2 and overwrites & decoded.operands[1].bits:
        saved = copied_rows(emitter, targets[0].address, 1)
        targets = [AccessTarget("local", saved, offset=target.offset) for target in targets]
    return targets


def _move(emitter: WaveEmitter, instruction: Instruction) -> None:
    memory, decoded = instruction.memory, instruction.decoded
    assert memory is not None
    count = decoded.opcode.memory_form.offsets
    size = memory.bytes // count
    operands = [operand for operand, _ in data_operands(decoded)]
    access = MemoryAccess(
        memory.kind.value, "local", emitter.layout.lanes, size, shape_letters(decoded)
    )
    load_ = memory.kind is MemoryKind.LOAD
    overwrites = operands[0].bits if load_ else 0
    for index, target in enumerate(_targets(emitter, decoded, size, overwrites=overwrites)):
        if load_:
            rows = data_rows(emitter, operands[0], index * size // 4)
        else:
            rows = data_rows(emitter, operands[index])
        call(emitter, instruction, access, target, rows=rows)


def _split(decoded: Decoded) -> tuple[Operand | None, list[tuple[Operand, OperandRole]]]:
    """The returned operand, and the data operands."""
    operands = data_operands(decoded)
    returned = next((o for o, role in operands if role.access is Use.WRITE), None)
    return returned, [pair for pair in operands if pair[1].access is not Use.WRITE]


def _atomic(emitter: WaveEmitter, instruction: Instruction) -> None:
    memory, decoded = instruction.memory, instruction.decoded
    assert memory is not None
    form = decoded.opcode.memory_form
    operation = atomic_operation(emitter, decoded)
    size = memory.bytes // form.offsets
    returned, data = _split(decoded)
    if not data:  # the arrival of asynchronous copies, which are done here
        arrive(emitter, instruction, lds_target(emitter, decoded, instruction_offset(decoded)))
        return
    role = data[0][1]
    element_type = role.type if operation == "pk_add" else role.type.partition("x")[0]
    access = MemoryAccess(
        operation,
        "local",
        emitter.layout.lanes,
        size,
        ("r" if returned is not None else "n") + element_type,
    )
    rows = [data_rows(emitter, operand) for operand, _ in data]
    overwrites = returned.bits if returned is not None else 0
    targets = _targets(emitter, decoded, size, overwrites=overwrites)
    if form.offsets == 2 and overwrites & data[1][0].bits:
        rows[1] = copied_rows(emitter, rows[1], size // 4)
    for index, target in enumerate(targets):
        result = None
        if returned is not None:
            result = data_rows(emitter, returned, index * size // 4)
        if form.offsets == 2:
            call(emitter, instruction, access, target, rows=rows[index], result=result)
            continue
        first, second = (rows[1], rows[0]) if form.comparand_first else (rows[0], rows[-1])
        call(emitter, instruction, access, target, rows=first, other=second, result=result)


def arrive(emitter: WaveEmitter, instruction: Instruction, target: AccessTarget) -> None:
    """One arrival of every active lane at a barrier in LDS."""
    lanes = emitter.layout.lanes
    ones = local_rows(emitter, 2)
    for row, value in enumerate((1, 0)):
        slot = element(emitter.builder, ones, row * lanes, I32)
        emitter.builder.store(constant(value, 32, lanes), slot, align=4)
    access = MemoryAccess("arrive", "local", lanes, 8, "nu64")
    call(emitter, instruction, access, target, rows=ones)


def _count(emitter: WaveEmitter, instruction: Instruction) -> None:
    """Append and consume: a counter at M0 + offset grows or shrinks by the active lanes.

    Every active lane gets its old value. Source: AMD instruction set architecture guides,
    DS_APPEND and DS_CONSUME.
    """
    builder, decoded = emitter.builder, instruction.decoded
    words = (state.LDS_BASE, state.LDS_BYTES)
    base, limit = (context_word(builder, emitter.context, word) for word in words)
    start = builder.zext(builder.and_(emitter.special("m0", 32), I32(0xFFFF)), I64)
    inset = builder.add(start, I64(instruction_offset(decoded)))
    in_bounds = builder.icmp_unsigned("<=", builder.add(inset, I64(4)), limit)
    lanes = emitter.layout.lanes
    with builder.goto_entry_block():
        old = builder.alloca(I32)
    builder.store(I32(0), old)
    with builder.if_then(in_bounds):
        pointer = builder.inttoptr(builder.add(base, inset), PTR)
        value = load(builder, pointer, I32, 1)
        builder.store(value, old)
        active = builder.ctpop(emitter.exec_mask())
        active = active if lanes == 32 else builder.trunc(active, I32)
        grows = decoded.opcode.memory_form.operation == "append"
        changed = builder.add(value, active) if grows else builder.sub(value, active)
        builder.store(changed, pointer, align=1)
    result = splat(builder, load(builder, old, I32), lanes)
    _write(emitter, decoded.operands[0], result)


def _write(emitter: WaveEmitter, operand: Operand, value: Any) -> None:
    """Write a dword to the active lanes of a register."""
    mask = ir.VectorType(I1, emitter.layout.lanes)
    active = emitter.builder.bitcast(emitter.exec_mask(), mask)
    masked_store(emitter.builder, value, data_rows(emitter, operand), active)


def _transpose(emitter: WaveEmitter, instruction: Instruction) -> None:
    """A load, then an exchange of elements between lanes."""
    memory, decoded = instruction.memory, instruction.decoded
    assert memory is not None
    target = lds_target(emitter, decoded, instruction_offset(decoded))
    access = MemoryAccess("load", "local", emitter.layout.lanes, memory.bytes)

    def fetch(rows: Any) -> None:
        call(emitter, instruction, access, target, rows=rows)

    transposing_load(emitter, instruction, fetch)


def transposing_load(
    emitter: WaveEmitter, instruction: Instruction, fetch: Callable[[Any], None]
) -> None:
    """Exchange the elements of what `fetch` loads into rows, and write them to the destination.
    Raises Unsupported for a layout that is not documented."""
    memory, decoded = instruction.memory, instruction.decoded
    assert memory is not None
    capabilities, bits = emitter.input.capabilities, decoded.opcode.memory_form.transpose
    if bits not in capabilities.transposed_bits:
        raise Unsupported(f"transposing loads of {bits}-bit elements on this target")
    builder, lanes, dwords = emitter.builder, emitter.layout.lanes, memory.bytes // 4
    loaded, output = local_rows(emitter, dwords), local_rows(emitter, dwords)
    fetch(loaded)
    detail = f"{capabilities.transpose_lanes}b{bits}"
    exchange = MemoryAccess("transpose", "lanes", lanes, memory.bytes, detail)
    _exchange(emitter, exchange, loaded, output, constant_row(emitter, 0))
    kind = ir.VectorType(I32, lanes)
    mask = builder.bitcast(emitter.exec_mask(), ir.VectorType(I1, lanes))
    for index in range(dwords):
        value = builder.load(element(builder, output, index * lanes, I32), align=4, typ=kind)
        masked_store(builder, value, data_rows(emitter, decoded.operands[0], index), mask)


def _exchange(
    emitter: WaveEmitter,
    access: MemoryAccess,
    rows: Any,
    result: Any,
    address: Any,
    *,
    last: int = 0,
    offset: int = 0,
) -> None:
    function = runtime.declare(emitter.module, access)
    arguments = [
        emitter.context, rows, rows, result, address, I64(0), I64(last), I64(offset),
        emitter.exec_mask(),
    ]  # fmt: skip
    emitter.call(function, arguments)


def _permute(emitter: WaveEmitter, instruction: Instruction) -> None:
    """Lanes exchange dwords within the wave, or within halves of 32 lanes."""
    decoded, lanes = instruction.decoded, emitter.layout.lanes
    target, address, source = (data_rows(emitter, o) for o in decoded.operands)
    access = MemoryAccess("exchange", decoded.opcode.memory_form.exchange, lanes, 4)
    last = min(lanes, emitter.input.capabilities.lane_exchange_span) - 1
    offset = instruction_offset(decoded)
    _exchange(emitter, access, source, target, address, last=last, offset=offset)


def _swizzle(emitter: WaveEmitter, decoded: Decoded) -> None:
    """Lanes read the lane the instruction names; 0 from one that is not active."""
    builder, lanes = emitter.builder, emitter.layout.lanes
    sources = swizzle.source_lanes(decoded.modifiers.get("offset") or "0", lanes)
    kind = ir.VectorType(I32, lanes)
    rows = data_rows(emitter, decoded.operands[1])
    active = builder.bitcast(emitter.exec_mask(), ir.VectorType(I1, lanes))
    value = builder.load(rows, align=4, typ=kind)
    value = builder.select(active, value, constant(0, 32, lanes))
    order = ir.Constant(kind, sources)
    value = builder.shuffle_vector(value, ir.Constant(kind, ir.Undefined), order)
    _write(emitter, decoded.operands[0], value)


__all__ = ["lower", "offsets_of", "transposing_load"]
