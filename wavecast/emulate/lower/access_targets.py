"""Where a memory instruction's lanes point: operands to the mode and arguments of an access."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from wavecast.emulate.lower import buffers
from wavecast.emulate.lower.access import AccessTarget, buffer_offset
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.operands import scalar_operand
from wavecast.emulate.values import I32, I64, constant, element, splat
from wavecast.isa.instruction import Decoded, Instruction, Operand, OperandClass
from wavecast.isa.opcode import OperandKind, OperandRole, Space

_ALL_ONES = (1 << 64) - 1
_ZERO = ir.Constant(I64, 0)
_REGISTERS = (OperandClass.SGPR, OperandClass.SPECIAL)


def operand_of_kind(decoded: Decoded, kind: OperandKind) -> tuple[Operand, OperandRole] | None:
    """The operand of a kind, None where the form has none."""
    for operand, role in zip(decoded.operands, decoded.roles, strict=True):
        if role.kind is kind:
            return operand, role
    return None


def constant_row(emitter: WaveEmitter, step: int) -> Any:
    """A row that holds `step` times the lane number: for addresses without a register."""
    name = f"lanes.{step}"
    table: Any = emitter.module.globals.get(name)
    if table is None:
        kind = ir.ArrayType(I32, emitter.layout.lanes)
        table = ir.GlobalVariable(emitter.module, kind, name)
        table.initializer = ir.Constant(kind, [step * lane for lane in range(emitter.layout.lanes)])
        table.global_constant = True
        table.linkage = "internal"
        table.align = 64
    return emitter.builder.gep(table, [I64(0)], source_etype=I32)


def instruction_offset(decoded: Decoded, name: str = "offset") -> int:
    """The offset in the instruction, in bytes (for `offset0` and `offset1` in elements)."""
    return int(decoded.modifiers.get(name) or "0", 0)


def address_row(emitter: WaveEmitter, decoded: Decoded) -> Any:
    """The row of the address register; zeros for `off`, lane numbers where the form says so."""
    if decoded.opcode.memory_form.by_lane:
        return constant_row(emitter, 4)
    address_operand = operand_of_kind(decoded, OperandKind.ADDRESS)
    if address_operand is None or address_operand[0].kind is not OperandClass.VGPR:
        return constant_row(emitter, 0)
    bits = address_operand[0].bits
    return emitter.row(emitter.layout.row((bits & -bits).bit_length() - 1))


def access_target(emitter: WaveEmitter, instruction: Instruction) -> AccessTarget:
    """The target of a global, flat, scratch or buffer access."""
    decoded = instruction.decoded
    assert decoded.memory is not None
    if decoded.memory.space is Space.BUFFER:
        return _buffer(emitter, instruction)
    builder = emitter.builder
    address = address_row(emitter, decoded)
    if "scale_offset" in decoded.modifiers:
        address = _scale_offsets(emitter, address, decoded.memory.bytes)
    offset: Any = I64(instruction_offset(decoded) & _ALL_ONES)
    base = operand_of_kind(decoded, OperandKind.SCALAR_ADDRESS)
    scalar = base is not None and base[0].kind in _REGISTERS and bool(base[0].bits)
    if decoded.memory.space is Space.SCRATCH:
        if scalar and base is not None:
            amount = builder.zext(scalar_operand(emitter, base[0], base[1], 32), I64)
            offset = builder.add(offset, amount)
        return AccessTarget("private", address, offset=offset)
    if not scalar or base is None:
        address_operand = operand_of_kind(decoded, OperandKind.ADDRESS)
        lanes = address_operand is not None and address_operand[0].kind is OperandClass.VGPR
        mode = _lane_mode(emitter, decoded.memory.space) if lanes else "narrow"
        return AccessTarget(mode, address, offset=offset)
    start = scalar_operand(emitter, base[0], base[1], 64)
    if _lane_mode(emitter, decoded.memory.space) == "flat":
        return AccessTarget("flat", _whole_addresses(emitter, address, start), offset=offset)
    return AccessTarget("narrow", address, start, offset=offset)


def _lane_mode(emitter: WaveEmitter, space: Space) -> str:
    """How 64-bit addresses of lanes are taken: `flat` where the program makes any of LDS."""
    return "flat" if space is Space.FLAT and emitter.input.apertures else "wide"


def _whole_addresses(emitter: WaveEmitter, offsets: Any, start: Any) -> Any:
    """Rows of the lower and upper halves of addresses: `start` (i64) and a row of offsets."""
    builder, lanes = emitter.builder, emitter.layout.lanes
    narrow, wide = ir.VectorType(I32, lanes), ir.VectorType(I64, lanes)
    row = builder.zext(builder.load(offsets, align=4, typ=narrow), wide)
    whole = builder.add(row, splat(builder, start, lanes))
    upper = builder.lshr(whole, constant(32, 64, lanes))
    builder.store(builder.trunc(whole, narrow), emitter.temporary, align=4)
    above = element(builder, emitter.temporary, lanes, I32)
    builder.store(builder.trunc(upper, narrow), above, align=4)
    return emitter.temporary


def _scale_offsets(emitter: WaveEmitter, address: Any, size: int) -> Any:
    """A row of offsets in units of the access (gfx1250, `scale_offset`), as bytes."""
    builder, lanes = emitter.builder, emitter.layout.lanes
    row = builder.load(address, align=4, typ=ir.VectorType(I32, lanes))
    builder.store(builder.mul(row, constant(size, 32, lanes)), emitter.spare, align=4)
    return emitter.spare


def _buffer(emitter: WaveEmitter, instruction: Instruction) -> AccessTarget:
    """A target in the buffer of a descriptor."""
    decoded, builder = instruction.decoded, emitter.builder
    resource, shift = (
        operand_of_kind(decoded, OperandKind.RESOURCE),
        operand_of_kind(decoded, OperandKind.OFFSET),
    )
    assert resource is not None
    descriptor = buffers.descriptor(emitter, resource[0])
    inset: Any = I64(instruction_offset(decoded))
    amount: Any = _ZERO
    if shift is not None:
        amount = builder.zext(scalar_operand(emitter, shift[0], shift[1], 32), I64)
    offset = buffer_offset(builder, inset, amount)
    address = address_row(emitter, decoded)
    scratch, is_private = None, None
    if buffers.may_be_scratch(emitter):
        # scratch is interleaved by lanes, and the scalar offset counts bytes of the whole wave
        lane_offset = builder.udiv(amount, I64(emitter.layout.lanes))
        scratch = AccessTarget("private", address, offset=builder.add(inset, lane_offset))
        is_private = descriptor.adds_lane
    limit = descriptor.records
    if "idxen" in decoded.modifiers:
        address, limit, amount = buffers.indexed_offsets(
            emitter, instruction, descriptor, address, inset, amount
        )
        offset = buffer_offset(builder, _ZERO, amount)
    else:
        buffers.refuse(emitter, instruction, descriptor, is_private)
        if "offen" not in decoded.modifiers:
            address = constant_row(emitter, 0)
    return AccessTarget("buffer", address, descriptor.base, limit, offset, scratch, is_private)


def lds_target(emitter: WaveEmitter, decoded: Decoded, offset: int) -> AccessTarget:
    """A target in LDS. Forms addressed by lane number start at M0."""
    amount: Any = I64(offset)
    if decoded.opcode.memory_form.by_lane:
        start = emitter.builder.and_(emitter.special("m0", 32), I32(0xFFFF))
        amount = emitter.builder.add(amount, emitter.builder.zext(start, I64))
    return AccessTarget("local", address_row(emitter, decoded), offset=amount)


__all__ = [
    "access_target",
    "address_row",
    "constant_row",
    "instruction_offset",
    "lds_target",
    "operand_of_kind",
]
