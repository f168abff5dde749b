"""Where a memory instruction's lanes point: operands to the mode and arguments of an access."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from wavecast.emulate.lower import buffers
from wavecast.emulate.lower.operands import scalar_operand
from wavecast.emulate.lower.values import I32, I64, constant
from wavecast.isa.instruction import Decoded, Instruction, Operand, OperandClass
from wavecast.isa.opcode import OperandKind, OperandRole, Space

if TYPE_CHECKING:
    from wavecast.emulate.lower.kernel import KernelLowering

_ALL_ONES = (1 << 64) - 1
_ZERO = ir.Constant(I64, 0)
_REGISTERS = (OperandClass.SGPR, OperandClass.SPECIAL)


@dataclass(frozen=True, slots=True)
class Place:
    """Mode and address arguments of an access (`addresses.py`). `private` is the same access if the
    descriptor turns out to be the one of scratch, which `is_private` (i1) says at run time."""

    mode: str
    address: Any
    base: Any = _ZERO
    limit: Any = _ZERO
    offset: Any = _ZERO
    private: Place | None = None
    is_private: Any = None


def named(decoded: Decoded, kind: OperandKind) -> tuple[Operand, OperandRole] | None:
    """The operand of a kind, None where the form has none."""
    for operand, role in zip(decoded.operands, decoded.roles, strict=True):
        if role.kind is kind:
            return operand, role
    return None


def constant_row(lowering: KernelLowering, step: int) -> Any:
    """A row that holds `step` times the lane number: for addresses without a register."""
    name = f"lanes.{step}"
    found: Any = lowering.module.globals.get(name)
    if found is None:
        kind = ir.ArrayType(I32, lowering.layout.lanes)
        found = ir.GlobalVariable(lowering.module, kind, name)
        found.initializer = ir.Constant(
            kind, [step * lane for lane in range(lowering.layout.lanes)]
        )
        found.global_constant = True
        found.linkage = "internal"
        found.align = 64
    return lowering.builder.gep(found, [I64(0)], source_etype=I32)


def instruction_offset(decoded: Decoded, name: str = "offset") -> int:
    """The offset in the instruction, in bytes (for `offset0` and `offset1` in elements)."""
    return int(decoded.modifiers.get(name) or "0", 0)


def address_row(lowering: KernelLowering, decoded: Decoded) -> Any:
    """The row of the address register; zeros for `off`, lane numbers where the form says so."""
    if decoded.opcode.memory_form.by_lane:
        return constant_row(lowering, 4)
    found = named(decoded, OperandKind.ADDRESS)
    if found is None or found[0].kind is not OperandClass.VGPR:
        return constant_row(lowering, 0)
    bits = found[0].bits
    return lowering.row(lowering.layout.row((bits & -bits).bit_length() - 1))


def place_of(lowering: KernelLowering, instruction: Instruction) -> Place:
    """The place a global, flat, scratch or buffer access goes to."""
    decoded = instruction.decoded
    assert decoded.memory is not None
    if decoded.memory.space is Space.BUFFER:
        return _buffer(lowering, instruction)
    builder = lowering.builder
    address = address_row(lowering, decoded)
    if "scale_offset" in decoded.modifiers:
        address = _scaled(lowering, address, decoded.memory.bytes)
    offset: Any = I64(instruction_offset(decoded) & _ALL_ONES)
    base = named(decoded, OperandKind.SCALAR_ADDRESS)
    scalar = base is not None and base[0].kind in _REGISTERS and bool(base[0].bits)
    if decoded.memory.space is Space.SCRATCH:
        if scalar and base is not None:
            amount = builder.zext(scalar_operand(lowering, base[0], base[1], 32), I64)
            offset = builder.add(offset, amount)
        return Place("private", address, offset=offset)
    if not scalar or base is None:
        found = named(decoded, OperandKind.ADDRESS)
        lanes = found is not None and found[0].kind is OperandClass.VGPR
        mode = _lane_mode(lowering, decoded.memory.space) if lanes else "narrow"
        return Place(mode, address, offset=offset)
    return Place("narrow", address, scalar_operand(lowering, base[0], base[1], 64), offset=offset)


def _lane_mode(lowering: KernelLowering, space: Space) -> str:
    """How 64-bit addresses of lanes are taken: `flat` where the program makes any of LDS."""
    return "flat" if space is Space.FLAT and lowering.apertures else "wide"


def _scaled(lowering: KernelLowering, address: Any, size: int) -> Any:
    """A row of offsets in units of the access (gfx1250, `scale_offset`), as bytes."""
    builder, lanes = lowering.builder, lowering.layout.lanes
    row = builder.load(address, align=4, typ=ir.VectorType(I32, lanes))
    builder.store(builder.mul(row, constant(size, 32, lanes)), lowering.spare, align=4)
    return lowering.spare


def _buffer(lowering: KernelLowering, instruction: Instruction) -> Place:
    """A place in the buffer of a descriptor."""
    decoded, builder = instruction.decoded, lowering.builder
    resource, shift = named(decoded, OperandKind.RESOURCE), named(decoded, OperandKind.OFFSET)
    assert resource is not None
    descriptor = buffers.descriptor(lowering, resource[0])
    inset: Any = I64(instruction_offset(decoded))
    amount: Any = _ZERO
    if shift is not None:
        amount = builder.zext(scalar_operand(lowering, shift[0], shift[1], 32), I64)
    offset = builder.add(inset, amount)
    address = address_row(lowering, decoded)
    scratch, is_private = None, None
    if buffers.may_be_scratch(lowering):
        # scratch is interleaved by lanes, and the scalar offset counts bytes of the whole wave
        own = builder.udiv(amount, I64(lowering.layout.lanes))
        scratch = Place("private", address, offset=builder.add(inset, own))
        is_private = buffers.is_scratch(lowering, descriptor)
    limit = descriptor.records
    if "idxen" in decoded.modifiers:
        address, limit, offset = buffers.indexed(
            lowering, instruction, descriptor, address, inset, amount
        )
    else:
        buffers.refuse(lowering, instruction, descriptor, is_private)
        if "offen" not in decoded.modifiers:
            address = constant_row(lowering, 0)
    return Place("buffer", address, descriptor.base, limit, offset, scratch, is_private)


def local_place(lowering: KernelLowering, decoded: Decoded, offset: int) -> Place:
    """A place in LDS. Forms addressed by lane number start at M0."""
    amount: Any = I64(offset)
    if decoded.opcode.memory_form.by_lane:
        start = lowering.builder.and_(lowering.special("m0", 32), I32(0xFFFF))
        amount = lowering.builder.add(amount, lowering.builder.zext(start, I64))
    return Place("local", address_row(lowering, decoded), offset=amount)


__all__ = [
    "Place",
    "address_row",
    "constant_row",
    "instruction_offset",
    "local_place",
    "named",
    "place_of",
]
