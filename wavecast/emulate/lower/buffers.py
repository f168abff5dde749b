"""Buffer descriptors: base, stride, number of records; and the bounds of indexed access.

Source: AMD instruction set architecture guides (CDNA3, RDNA3, RDNA4), "Buffer resource descriptor"
and "Range checking".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from wavecast.emulate.lower import state
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.values import I1, I32, I64, constant, splat
from wavecast.isa.instruction import Instruction, Operand
from wavecast.isa.opcode import MemoryKind

_STRUCTURED, _INDEX_ONLY, _UNCHECKED, _RAW = range(4)
"""How bounds are checked: index and offset, index alone, not unless empty, or bytes."""
_FAR = 0xFFFFFFFF
"""An offset no buffer reaches."""
ADD_LANE = 1 << 23
"""Word 3: the lane number is added to the index. On gfx9 scratch is reached that way."""


@dataclass(frozen=True, slots=True)
class Descriptor:
    """Values of a descriptor: base, records (i64), stride (i32, bytes); bits that are not 0 where
    addresses are swizzled, word 3 for its other fields (i32); `adds_lane` (i1); `bounds` (i32), how
    bounds are checked, where targets choose (`_in_range`)."""

    base: Any
    records: Any
    stride: Any
    swizzle: Any
    flags: Any
    adds_lane: Any
    bounds: Any


def descriptor(emitter: WaveEmitter, operand: Operand) -> Descriptor:
    """Take the descriptor in four scalar registers apart."""
    first = (operand.bits & -operand.bits).bit_length() - 1
    words = [emitter.scalar(first + index) for index in range(4)]
    able = emitter.input.capabilities
    return _wide(emitter.builder, words) if able.wide_buffer_base else _narrow(emitter, words)


def _narrow(emitter: WaveEmitter, words: list[Any]) -> Descriptor:
    """A base of 48 bits and records of 32. gfx12.0 scales the stride (bits 19:18 of word 3)."""
    builder, able = emitter.builder, emitter.input.capabilities
    low, high, records, flags = words
    top = builder.zext(builder.and_(high, I32(0xFFFF)), I64)
    base = builder.or_(builder.zext(low, I64), builder.shl(top, I64(32)))
    stride = builder.and_(builder.lshr(high, I32(16)), I32(0x3FFF))
    if able.buffer_stride_scale:
        stride = _scale(builder, stride, builder.lshr(flags, I32(18)))
    # where one bit chooses swizzling (31), the one below it is for the cache
    swizzle = builder.and_(high, I32((0, 0x80000000, 0xC0000000)[able.buffer_swizzle_bits]))
    adds_lane = builder.icmp_unsigned("!=", builder.and_(flags, I32(ADD_LANE)), I32(0))
    bounds = builder.and_(builder.lshr(flags, I32(28)), I32(3))
    return Descriptor(base, builder.zext(records, I64), stride, swizzle, flags, adds_lane, bounds)


def _wide(builder: ir.IRBuilder, words: list[Any]) -> Descriptor:
    """gfx1250: bits 56:0 base, 101:57 records, 121:108 stride, 123:122 its scale, 127:124 flags.

    Of the flags, bit 127 checks bytes; without it a descriptor with a stride counts records, and
    offsets in a record are not checked. The other three are taken for swizzling, which is refused.
    Sources: LLVM, SIISelLowering, lowerPointerAsRsrcIntrin (fields); rocjitsu (ROCm/rocm-systems,
    2026), gfx1250/addr_calc.cpp (bounds). The scale is assumed to be that of gfx12.0.
    """
    low, high, middle, flags = words
    top = builder.zext(builder.and_(high, I32(0x01FFFFFF)), I64)
    base = builder.or_(builder.zext(low, I64), builder.shl(top, I64(32)))
    records = builder.or_(
        builder.zext(builder.lshr(high, I32(25)), I64),
        builder.shl(builder.zext(middle, I64), I64(7)),
    )
    last = builder.zext(builder.and_(flags, I32(0x3F)), I64)
    records = builder.or_(records, builder.shl(last, I64(39)))
    stride = builder.and_(builder.lshr(flags, I32(12)), I32(0x3FFF))
    is_raw = builder.or_(
        builder.icmp_signed("<", flags, I32(0)), builder.icmp_unsigned("==", stride, I32(0))
    )
    bounds = builder.select(is_raw, I32(_RAW), I32(_INDEX_ONLY))
    scale = builder.lshr(flags, I32(26))
    swizzle = builder.and_(flags, I32(0x70000000))
    return Descriptor(base, records, _scale(builder, stride, scale), swizzle, flags, I1(0), bounds)


def _scale(builder: ir.IRBuilder, stride: Any, scale: Any) -> Any:
    """A stride times 1, 4, 8 or 32, by the low two bits of `scale` (i32)."""
    choice = builder.shl(builder.and_(scale, I32(3)), I32(2))
    shift = builder.and_(builder.lshr(I32(0x5320), choice), I32(15))
    return builder.shl(stride, shift)


def may_be_scratch(emitter: WaveEmitter) -> bool:
    """True for code that reaches scratch through a descriptor."""
    return not emitter.input.capabilities.architected_scratch


def refuse(
    emitter: WaveEmitter, instruction: Instruction, resource: Descriptor, is_private: Any
) -> None:
    """Stop at run time where a descriptor used without an index adds lane numbers or has flags of
    gfx1250 (`_wide`). Without an index nothing is swizzled (rocjitsu, addr_calc_buffer.h)."""
    builder = emitter.builder
    bad = resource.adds_lane
    if emitter.input.capabilities.wide_buffer_base:
        bad = _is_swizzled(emitter, resource)
    if is_private is not None:
        bad = builder.and_(bad, builder.not_(is_private))
    _stop_if(emitter, instruction, bad)


def _stop_if(emitter: WaveEmitter, instruction: Instruction, bad: Any) -> None:
    with emitter.builder.if_then(bad, likely=False):
        emitter.stop(state.BAD_DESCRIPTOR, instruction.index)


def _is_swizzled(emitter: WaveEmitter, resource: Descriptor) -> Any:
    return emitter.builder.icmp_unsigned("!=", resource.swizzle, I32(0))


@dataclass(frozen=True, slots=True)
class _Swizzle:
    """`on` (i1); binary logarithms (i64) of the number of interleaved indices and of the bytes of
    an interleaved element. Off, one index is interleaved, which is linear."""

    on: Any
    indices: Any
    element: Any


def _swizzle(emitter: WaveEmitter, instruction: Instruction, resource: Descriptor) -> _Swizzle:
    """How an indexed access swizzles; stops at run time where that is not supported.

    Elements have 4 bytes, or 4 or 16 by the bits 31:30 of word 1. An access must not be larger than
    one. Sources: the guides, "Buffer Resource" and "Swizzled Buffer Addressing".
    """
    builder, able = emitter.builder, emitter.input.capabilities
    assert instruction.memory is not None
    on = _is_swizzled(emitter, resource)
    field = builder.zext(builder.and_(builder.lshr(resource.flags, I32(21)), I32(3)), I64)
    indices = builder.select(on, builder.add(field, I64(3)), I64(0))
    wide: Any = I1(0)
    is_supported: Any = I1(1)
    if able.buffer_swizzle_bits > 1:
        wide = builder.icmp_unsigned("==", resource.swizzle, I32(0xC0000000))
        is_supported = builder.or_(
            wide, builder.icmp_unsigned("==", resource.swizzle, I32(0x40000000))
        )
    if able.wide_buffer_base:  # other fields
        is_supported = I1(0)
    size = instruction.memory.bytes
    fits = builder.or_(wide, I1(size <= 4)) if size <= 16 else I1(0)
    good = builder.and_(
        is_supported, builder.and_(fits, builder.icmp_unsigned("!=", resource.stride, I32(0)))
    )
    bad = builder.and_(on, builder.not_(good))
    _stop_if(emitter, instruction, builder.or_(bad, resource.adds_lane))
    return _Swizzle(on, indices, builder.select(wide, I64(4), I64(2)))


def indexed_offsets(
    emitter: WaveEmitter,
    instruction: Instruction,
    resource: Descriptor,
    address: Any,
    inset: Any,
    amount: Any,
) -> tuple[Any, Any, Any]:
    """Offsets of an indexed access: a row of offsets, their limit, and what is added to them.

    `inset` is the offset in the instruction and `amount` the scalar one (i64, bytes). Linear
    buffers have record after record; swizzled ones have an element of every index of a group, then
    the next element of each (the guides, "Swizzled Buffer Addressing"). The scalar offset is added
    to the result, on gfx12 to the offset in the record. Lanes whose index is out of range get an
    offset beyond every limit.
    """
    builder, lanes = emitter.builder, emitter.layout.lanes
    kind, wide = ir.VectorType(I32, lanes), ir.VectorType(I64, lanes)
    swizzle = _swizzle(emitter, instruction, resource)
    index = builder.zext(builder.load(address, align=4, typ=kind), wide)
    offset = splat(builder, inset, lanes)
    if "offen" in instruction.modifiers:
        second = builder.gep(address, [I64(lanes)], source_etype=I32)
        short = builder.add(
            splat(builder, builder.trunc(inset, I32), lanes),
            builder.load(second, align=4, typ=kind),
        )
        offset = builder.zext(short, wide)
    bytewise, good = _in_range(emitter, instruction, resource, swizzle.on, index, offset)
    if emitter.input.capabilities.buffer_offset_in_record:
        whole = builder.add(offset, splat(builder, amount, lanes))
        wrapped = builder.and_(whole, constant(0xFFFFFFFF, 64, lanes))
        offset, amount = builder.select(swizzle.on, wrapped, whole), I64(0)
    total = _record_offset(emitter, resource, swizzle, index, offset)
    small = builder.icmp_unsigned("<", total, constant(_FAR, 64, lanes))
    good = builder.and_(builder.or_(good, splat(builder, bytewise, lanes)), small)
    room = builder.select(good, builder.trunc(total, kind), constant(_FAR, 32, lanes))
    builder.store(room, emitter.spare, align=4)
    return emitter.spare, builder.select(bytewise, resource.records, I64(_FAR)), amount


def _record_offset(
    emitter: WaveEmitter, resource: Descriptor, swizzle: _Swizzle, index: Any, offset: Any
) -> Any:
    """Bytes from the base to an offset in the record of an index, a vector of i64."""
    builder, lanes = emitter.builder, emitter.layout.lanes
    indices, element, stride = (
        splat(builder, value, lanes)
        for value in (swizzle.indices, swizzle.element, builder.zext(resource.stride, I64))
    )
    one = constant(1, 64, lanes)
    within = builder.and_(offset, builder.sub(builder.shl(one, element), one))
    member = builder.and_(index, builder.sub(builder.shl(one, indices), one))
    row = builder.add(
        builder.mul(builder.lshr(index, indices), stride), builder.sub(offset, within)
    )
    inner = builder.add(builder.shl(member, element), within)
    return builder.add(builder.shl(row, indices), inner)


def _in_range(
    emitter: WaveEmitter,
    instruction: Instruction,
    resource: Descriptor,
    swizzled: Any,
    index: Any,
    offset: Any,
) -> tuple[Any, Any]:
    """Whether the bytes are checked (i1) and, where not, the lanes whose record is in range.

    gfx9 counts records in units of the stride where there is one. Later targets choose
    (`Descriptor.bounds`; bytes become index and offset where swizzled). Stops at run time where
    only some dwords of a lane are in its record.
    """
    builder, lanes = emitter.builder, emitter.layout.lanes
    below = builder.icmp_unsigned("<", index, splat(builder, resource.records, lanes))
    if not emitter.input.capabilities.buffer_bounds_modes:
        return builder.icmp_unsigned("==", resource.stride, I32(0)), below
    assert instruction.memory is not None
    stride = splat(builder, builder.zext(resource.stride, I64), lanes)
    end = builder.add(offset, constant(instruction.memory.bytes, 64, lanes))
    fits = builder.icmp_unsigned("<=", end, stride)
    structured, index_only, unchecked, raw = (
        builder.icmp_unsigned("==", resource.bounds, I32(number))
        for number in (_STRUCTURED, _INDEX_ONLY, _UNCHECKED, _RAW)
    )
    structured = builder.or_(structured, builder.and_(raw, swizzled))
    filled = builder.icmp_unsigned("!=", resource.records, I64(0))
    by_offset = builder.and_(fits, splat(builder, structured, lanes))
    if instruction.memory.bytes > 4 and instruction.memory.kind is not MemoryKind.ATOMIC:
        first = builder.add(offset, constant(4, 64, lanes))
        some = builder.and_(builder.icmp_unsigned("<=", first, stride), builder.not_(fits))
        some = builder.and_(builder.and_(some, below), splat(builder, structured, lanes))
        active = builder.and_(builder.bitcast(some, ir.IntType(lanes)), emitter.exec_mask())
        bad = builder.icmp_unsigned("!=", active, ir.IntType(lanes)(0))
        _stop_if(emitter, instruction, bad)
    good = builder.and_(below, builder.or_(by_offset, splat(builder, index_only, lanes)))
    good = builder.or_(good, splat(builder, builder.and_(unchecked, filled), lanes))
    return builder.and_(raw, builder.not_(swizzled)), good


__all__ = [
    "ADD_LANE",
    "Descriptor",
    "descriptor",
    "indexed_offsets",
    "may_be_scratch",
    "refuse",
]
