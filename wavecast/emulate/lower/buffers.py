"""Buffer descriptors: base, stride, number of records; and the bounds of indexed access.

Source: AMD instruction set architecture guides (CDNA3, RDNA3, RDNA4), "Buffer resource descriptor"
and "Range checking".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from wavecast.emulate.lower import state
from wavecast.emulate.lower.values import I32, I64, constant, splat
from wavecast.isa.instruction import Instruction, Operand
from wavecast.isa.targets import TARGET_SETS, isa_target

if TYPE_CHECKING:
    from wavecast.emulate.lower.kernel import KernelLowering

_FAR = 0xFFFFFFFF
"""An offset no buffer reaches."""
ADD_LANE = 1 << 23
"""Word 3: the lane number is added to the index. On gfx9 scratch is reached that way."""


@dataclass(frozen=True, slots=True)
class Descriptor:
    """Values of a descriptor: base (i64), records (i64), stride, swizzle bits, word 3 (i32)."""

    base: Any
    records: Any
    stride: Any
    swizzle: Any
    flags: Any


def is_gfx9(lowering: KernelLowering) -> bool:
    return isa_target(lowering.program.target) in TARGET_SETS["gfx9"]


def descriptor(lowering: KernelLowering, operand: Operand) -> Descriptor:
    """Take the descriptor in four scalar registers apart."""
    builder = lowering.builder
    first = (operand.bits & -operand.bits).bit_length() - 1
    low, high, records, flags = (lowering.scalar(first + index) for index in range(4))
    top = builder.zext(builder.and_(high, I32(0xFFFF)), I64)
    base = builder.or_(builder.zext(low, I64), builder.shl(top, I64(32)))
    stride = builder.and_(builder.lshr(high, I32(16)), I32(0x3FFF))
    # gfx9 has a bit for the cache (30) beside the one for addresses (31)
    bits = 0x80000000 if is_gfx9(lowering) else 0xC0000000
    swizzle = builder.and_(high, I32(bits))
    return Descriptor(base, builder.zext(records, I64), stride, swizzle, flags)


def may_be_scratch(lowering: KernelLowering) -> bool:
    """True for code that reaches scratch through a descriptor (gfx90a)."""
    return lowering.program.target.startswith("gfx90a")


def is_scratch(lowering: KernelLowering, found: Descriptor) -> Any:
    """True at run time for the descriptor that waves receive for their scratch."""
    bits = lowering.builder.and_(found.flags, I32(ADD_LANE))
    return lowering.builder.icmp_unsigned("!=", bits, I32(0))


def refuse_swizzle(
    lowering: KernelLowering, instruction: Instruction, found: Descriptor, is_private: Any
) -> None:
    """Stop at run time where the descriptor swizzles addresses."""
    builder = lowering.builder
    swizzled = builder.icmp_unsigned("!=", found.swizzle, I32(0))
    if is_private is not None:
        swizzled = builder.and_(swizzled, builder.not_(is_private))
    with builder.if_then(swizzled, likely=False):
        lowering.stop(state.SWIZZLED, instruction.index)


def indexed(
    lowering: KernelLowering,
    instruction: Instruction,
    found: Descriptor,
    address: Any,
    offen: bool,
) -> tuple[Any, Any]:
    """Offsets of an indexed access: a row of index * stride + offset, and its limit in bytes.

    Lanes whose index is out of range get an offset beyond every limit. gfx9 counts records in units
    of the stride where there is one. Later targets choose by bits 29:28 of word 3: index and
    offset, index alone, no check unless empty, or bytes.
    """
    refuse_swizzle(lowering, instruction, found, None)
    builder, lanes = lowering.builder, lowering.layout.lanes
    kind, wide = ir.VectorType(I32, lanes), ir.VectorType(I64, lanes)
    index = builder.zext(builder.load(address, align=4, typ=kind), wide)
    inset: Any = constant(0, 64, lanes)
    if offen:
        second = builder.gep(address, [I64(lanes)], source_etype=I32)
        inset = builder.zext(builder.load(second, align=4, typ=kind), wide)
    stride = builder.zext(found.stride, I64)
    total = builder.add(builder.mul(index, splat(builder, stride, lanes)), inset)
    below = builder.icmp_unsigned("<", index, splat(builder, found.records, lanes))
    if is_gfx9(lowering):
        bytewise = builder.icmp_unsigned("==", stride, I64(0))
        good = below
    else:
        choice = builder.and_(builder.lshr(found.flags, I32(28)), I32(3))
        assert instruction.memory is not None
        size = instruction.memory.bytes + int(instruction.modifiers.get("offset") or "0", 0)
        end = builder.add(inset, constant(size, 64, lanes))
        fits = builder.icmp_unsigned("<=", end, splat(builder, stride, lanes))
        bytewise = builder.icmp_unsigned("==", choice, I32(3))
        any_index = builder.and_(
            builder.icmp_unsigned("==", choice, I32(2)),
            builder.icmp_unsigned("!=", found.records, I64(0)),
        )
        index_only = builder.icmp_unsigned("==", choice, I32(1))
        good = builder.and_(below, builder.or_(fits, splat(builder, index_only, lanes)))
        below_two = builder.icmp_unsigned("<", choice, I32(2))
        good = builder.or_(
            builder.and_(good, splat(builder, below_two, lanes)), splat(builder, any_index, lanes)
        )
    small = builder.icmp_unsigned("<", total, constant(_FAR, 64, lanes))
    good = builder.and_(builder.or_(good, splat(builder, bytewise, lanes)), small)
    room = builder.select(good, builder.trunc(total, kind), constant(_FAR, 32, lanes))
    builder.store(room, lowering.spare, align=4)
    return lowering.spare, builder.select(bytewise, found.records, I64(_FAR))


__all__ = [
    "ADD_LANE",
    "Descriptor",
    "descriptor",
    "indexed",
    "is_gfx9",
    "is_scratch",
    "may_be_scratch",
    "refuse_swizzle",
]
