"""Memory instructions: operands to the arguments of an outlined access, and a call of it."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower import lds, scalar_memory, state, tensor_copies
from wavecast.emulate.lower.access import AccessTarget, MemoryAccess
from wavecast.emulate.lower.access_targets import access_target, instruction_offset
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.sites import (
    atomic_operation,
    call,
    data_operands,
    data_rows,
    first_row,
    local_rows,
    shape_letters,
)
from wavecast.emulate.values import I32, I64, PTR, constant, context_word, splat
from wavecast.isa.instruction import Instruction
from wavecast.isa.opcode import MemoryKind, OperandKind, Space
from wavecast.isa.opcode import OperandAccess as Use

_MODIFIERS = frozenset(
    [
        "offset",
        "offset0",
        "offset1",
        "offen",
        "idxen",
        "glc",
        "slc",
        "dlc",
        "sc0",
        "sc1",
        "nt",
        "nv",
        "scale_offset",
        "th",
        "scope",
        "lds",
        "gds",
    ]
)


_FAR_AWAY = 1 << 30
"""LDS addresses that nobody computes by mistake."""


def lower(emitter: WaveEmitter, instruction: Instruction) -> None:
    """Lower one memory instruction. Raises Unsupported for forms without a meaning here."""
    memory = instruction.memory
    if memory is None or memory.space is Space.SCALAR:
        scalar_memory.lower(emitter, instruction)
        return
    unknown = sorted(set(instruction.modifiers) - _MODIFIERS)
    if unknown or "gds" in instruction.modifiers:
        raise Unsupported(f"the modifier {(unknown or ['gds'])[0]}")
    form = instruction.opcode.memory_form
    if form.formatted or form.block:
        raise Unsupported("formatted and block accesses")
    if memory.space is Space.LDS or memory.kind is MemoryKind.PERMUTE:
        lds.lower(emitter, instruction)
    elif form.transpose:
        _transpose(emitter, instruction)
    elif memory.kind in (MemoryKind.LOAD, MemoryKind.STORE):
        _move(emitter, instruction)
    elif memory.kind is MemoryKind.ATOMIC:
        _atomic(emitter, instruction)
    elif instruction.opcode.form == "TENSOR":
        tensor_copies.lower(emitter, instruction)
    elif _by_lane(instruction):
        _asynchronous(emitter, instruction)
    elif memory.kind is MemoryKind.LOAD_TO_LDS:
        _to_lds(emitter, instruction)
    else:
        raise Unsupported(f"{memory.kind.value} of {memory.space.value} memory")


def _each_target(emitter: WaveEmitter, instruction: Instruction, emit: object) -> None:
    """Emit the access; for a descriptor that may be the one of scratch, both kinds of it."""
    assert callable(emit)
    target = access_target(emitter, instruction)
    if target.private is None:
        emit(target)
        return
    with emitter.builder.if_else(target.is_private) as (scratch, memory):
        with scratch:
            emit(target.private)
        with memory:
            emit(target)


def _move(emitter: WaveEmitter, instruction: Instruction) -> None:
    memory = instruction.memory
    assert memory is not None
    letters = shape_letters(instruction.decoded)
    rows = data_rows(emitter, data_operands(instruction.decoded)[0][0])

    def emit(target: AccessTarget) -> None:
        lanes = emitter.layout.lanes
        access = MemoryAccess(memory.kind.value, target.mode, lanes, memory.bytes, letters)
        call(emitter, instruction, access, target, rows=rows)

    _each_target(emitter, instruction, emit)


def _transpose(emitter: WaveEmitter, instruction: Instruction) -> None:
    memory = instruction.memory
    assert memory is not None
    target = access_target(emitter, instruction)
    access = MemoryAccess("load", target.mode, emitter.layout.lanes, memory.bytes)

    def fetch(rows: Any) -> None:
        call(emitter, instruction, access, target, rows=rows)

    lds.transposing_load(emitter, instruction, fetch)


def _atomic(emitter: WaveEmitter, instruction: Instruction) -> None:
    memory, decoded = instruction.memory, instruction.decoded
    assert memory is not None
    operation = atomic_operation(emitter, decoded)
    operands = data_operands(decoded)
    returned = [o for o, role in operands if role.access is Use.WRITE]
    data, role = next((o, role) for o, role in operands if role.access is not Use.WRITE)
    if role.access is Use.RETURN and data.bits & decoded.writes:
        returned = [data]
    rows = data_rows(emitter, data)
    lanes = emitter.layout.lanes
    other = rows
    if operation == "cmpswap":  # new value first, then the comparand
        other = emitter.row(first_row(emitter, data) + memory.bytes // 4)
    result = data_rows(emitter, returned[0]) if returned else rows
    element = role.type if operation == "pk_add" else role.type.partition("x")[0]
    detail = ("r" if returned else "n") + element

    def emit(target: AccessTarget) -> None:
        access = MemoryAccess(operation, target.mode, lanes, memory.bytes, detail)
        call(emitter, instruction, access, target, rows=rows, other=other, result=result)

    _each_target(emitter, instruction, emit)


def _by_lane(instruction: Instruction) -> bool:
    """Whether a copy between memory and LDS has an LDS address per lane (gfx1250)."""
    decoded = instruction.decoded
    assert decoded.memory is not None
    copies = decoded.memory.kind in (MemoryKind.LOAD_TO_LDS, MemoryKind.STORE_FROM_LDS)
    addressed = any(role.kind is OperandKind.VECTOR for role in decoded.roles)
    return copies and addressed


def _asynchronous(emitter: WaveEmitter, instruction: Instruction) -> None:
    """A copy at once; the instruction's offset applies to both addresses.

    A lane whose LDS address is out of range copies nothing and touches no memory: Triton masks
    lanes with the address 0x7fffffff. Lanes beyond `_FAR_AWAY` are taken for masked by checks too.
    Sources: LLVM, "AMDGPU DMA Operations", GFX1250; Triton 3.9, AsyncCopyGlobalToLocal on gfx1250.
    """
    memory, decoded = instruction.memory, instruction.decoded
    assert memory is not None
    lanes, builder = emitter.layout.lanes, emitter.builder
    rows = local_rows(emitter, max(1, memory.bytes // 4))
    offset = I64(instruction_offset(decoded) & (1 << 64) - 1)
    address = data_rows(emitter, data_operands(decoded)[0][0])
    near, far = AccessTarget("local", address, offset=offset), access_target(emitter, instruction)
    wide = ir.VectorType(I64, lanes)
    first = builder.zext(builder.load(address, align=4, typ=ir.VectorType(I32, lanes)), wide)
    last = builder.add(first, splat(builder, builder.add(offset, I64(memory.bytes)), lanes))
    limit = splat(builder, context_word(builder, emitter.context, state.LDS_BYTES), lanes)
    active, mask = emitter.exec_mask(), ir.IntType(lanes)
    present, in_range = (
        builder.and_(active, builder.bitcast(bits, mask))
        for bits in (
            builder.icmp_unsigned("<", first, constant(_FAR_AWAY, 64, lanes)),
            builder.icmp_unsigned("<=", last, limit),
        )
    )
    load, store = ((far, in_range), (near, present))
    if memory.kind is MemoryKind.STORE_FROM_LDS:
        load, store = store, load
    for action, (target, lane_mask) in (("load", load), ("store", store)):
        access = MemoryAccess(action, target.mode, lanes, memory.bytes, "n")
        with emitter.masked(lane_mask):
            call(emitter, instruction, access, target, rows=rows)


def _to_lds(emitter: WaveEmitter, instruction: Instruction) -> None:
    memory, builder = instruction.memory, emitter.builder
    assert memory is not None
    address_bits = emitter.input.capabilities.load_to_lds_m0_bits
    if memory.space is Space.SCRATCH or not address_bits:
        raise Unsupported("this load to LDS")
    start = emitter.special("m0", 32)
    if address_bits < 32:
        start = builder.and_(start, I32((1 << address_bits) - 1))
    offset = int(instruction.modifiers.get("offset") or "0", 0)
    start = builder.add(builder.zext(start, I64), I64(offset & (1 << 64) - 1))
    rows = builder.inttoptr(start, PTR)
    letters = "s" if instruction.opcode.memory_form.sign_extended else "n"

    def emit(target: AccessTarget) -> None:
        access = MemoryAccess("tolds", target.mode, emitter.layout.lanes, memory.bytes, letters)
        call(emitter, instruction, access, target, rows=rows)

    _each_target(emitter, instruction, emit)
