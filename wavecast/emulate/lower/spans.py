"""The common case of an access, found without going through the lanes.

Every lane is active, and the lowest and the highest of their offsets say that all of them lie in
bounds and in one known range. What fails this test is resolved lane by lane (`addresses.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from wavecast.emulate.lower import state, transpose
from wavecast.emulate.lower.access import Outlined
from wavecast.emulate.lower.addresses import is_known
from wavecast.emulate.values import I1, I32, I64, PTR, constant, context_word, element, load, splat

_LINE = 64
"""Bytes of a host's cache line."""


@dataclass(frozen=True, slots=True)
class Span:
    """`good` (i1): the case holds. Lane n then accesses `base` + its 32-bit offset + n * `step`
    (i64, or None for 0). `short` (i32 or None) is added to that offset in 32 bits. `offsets` are
    those of all lanes. `contiguous` (i1): lane n is n elements after lane 0."""

    out: Outlined
    good: Any
    offsets: Any
    base: Any
    step: Any
    short: Any
    contiguous: Any

    def halves_are_near(self) -> Any:
        """i1: each lane of the upper half is in the line of its like of the lower half, or in the
        next, and lanes of the lower half ascend by more, so that no two overlap: results of matrix
        instructions lie so."""
        out, builder, half = self.out, self.out.builder, self.out.lanes // 2
        size = out.access.bytes
        parts = (range(half), range(half, 2 * half), range(half - 1), range(1, half))
        low, high, before, after = (
            transpose.shuffle(builder, self.offsets, self.offsets, part) for part in parts
        )
        distances = builder.sub(high, low)
        distance = builder.extract_element(distances, I32(0))
        same = builder.icmp_unsigned("==", distances, splat(builder, distance, half))
        least = _LINE + size
        gaps = builder.sub(builder.sub(after, before), constant(least, 32, half - 1))
        ascends = builder.icmp_unsigned("<", gaps, constant((1 << 31) - least, 32, half - 1))
        near = builder.icmp_unsigned("<=", builder.sub(distance, I32(size)), I32(_LINE - size))
        name = "llvm.vector.reduce.and.v{}i1"
        for mask, count in ((same, half), (ascends, half - 1)):
            near = builder.and_(near, out.intrinsic(name.format(count), I1, mask))
        return near

    def address(self, lane: Any) -> Any:
        """The address of a lane, as a pointer."""
        builder = self.out.builder
        offset = load(builder, element(builder, self.out.address, lane, I32), I32)
        if self.short is not None:
            offset = builder.add(offset, self.short)
        address = builder.add(self.base, builder.zext(offset, I64))
        if self.step is not None:
            address = builder.add(address, builder.mul(lane, self.step))
        return builder.inttoptr(address, PTR)


def span(out: Outlined) -> Span:
    """Emit the test of the common case."""
    builder, lanes, mode = out.builder, out.lanes, out.access.mode
    kind = ir.VectorType(I32, lanes)
    row, whole, short = builder.load(out.address, align=4, typ=kind), out.offset, None
    if mode == "buffer":
        whole, short = builder.lshr(whole, I64(32)), builder.trunc(whole, I32)
        row = builder.add(row, splat(builder, short, lanes))
    lowest, highest = (
        builder.zext(out.intrinsic(f"llvm.vector.reduce.{name}.v{lanes}i32", I32, row), I64)
        for name in ("umin", "umax")
    )
    good = builder.icmp_unsigned("==", out.exec, out.mask(-1))
    base, step = out.base, None
    end = builder.add(builder.add(highest, whole), I64(out.access.bytes))
    if mode in ("local", "private"):
        first = state.LDS_BASE if mode == "local" else state.SCRATCH_BASE
        base, limit = (context_word(builder, out.context, word) for word in (first, first + 1))
        good = builder.and_(good, builder.icmp_unsigned("<=", end, limit))
        if mode == "private":  # offsets may be negative
            start = builder.add(lowest, whole)
            good = builder.and_(good, builder.icmp_unsigned("<=", start, limit))
            step = limit
    elif mode == "buffer":
        good = builder.and_(good, builder.icmp_unsigned("<=", end, out.limit))
    elif mode == "wide":
        above = builder.load(element(builder, out.address, lanes, I32), align=4, typ=kind)
        top = builder.extract_element(above, I32(0))
        same = builder.icmp_unsigned("==", above, splat(builder, top, lanes))
        good = builder.and_(good, out.intrinsic(f"llvm.vector.reduce.and.v{lanes}i1", I1, same))
        base = builder.shl(builder.zext(top, I64), I64(32))
    base = builder.add(base, whole)
    if mode not in ("local", "private"):
        size = builder.add(builder.sub(highest, lowest), I64(out.access.bytes))
        first = builder.add(base, lowest)
        good = builder.and_(good, is_known(builder, out.context, first, size))
    return Span(out, good, row, base, step, short, _contiguous(out, row, step))


def _contiguous(out: Outlined, row: Any, step: Any) -> Any:
    if step is not None:
        return I1(0)
    builder, lanes = out.builder, out.lanes
    origin = splat(builder, builder.extract_element(row, I32(0)), lanes)
    line = ir.Constant(row.type, [out.access.bytes * lane for lane in range(lanes)])
    same = builder.icmp_unsigned("==", builder.sub(row, origin), line)
    return out.intrinsic(f"llvm.vector.reduce.and.v{lanes}i1", I1, same)


__all__ = ["Span", "span"]
