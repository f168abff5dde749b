"""Outlined counts of one access of global memory or scratch: blocks, order, strides, collisions.

Addresses of active lanes are written one after another, sorted where they are not, and counted:
in sorted order the blocks a lane adds are those after the last block of the lane before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from wavecast.emulate.lower import state
from wavecast.emulate.lower.access import Outlined
from wavecast.emulate.lower.addresses import resolve
from wavecast.emulate.trace import layout
from wavecast.emulate.values import (
    I32,
    I64,
    PTR,
    constant,
    context_word,
    element,
    load,
    splat,
)

_STEP = 8
"""Lanes counted at once."""
_WIDE = ir.VectorType(I64, _STEP)


def build(out: Outlined) -> None:
    """Add to the counters at `rows` what the access would touch."""
    builder = out.builder
    lanes = resolve(out, checked=False)
    some = builder.icmp_unsigned("!=", lanes.live, out.mask(0))
    with builder.if_then(some, likely=True):
        _count(out, lanes.addresses, lanes.live)
    builder.ret(I32(0))


def bump(out: Outlined, word: int, amount: Any) -> None:
    """Add an i64 to a counter."""
    builder = out.builder
    slot = element(builder, out.rows, word, I64)
    builder.store(builder.add(load(builder, slot, I64, 8), amount), slot, align=8)


def extreme(out: Outlined, word: int, name: str, value: Any) -> None:
    """Keep the larger or smaller (`umax`, `smin`, `smax`) of a counter and an i64."""
    builder = out.builder
    slot = element(builder, out.rows, word, I64)
    bound = out.intrinsic(f"llvm.{name}.i64", I64, load(builder, slot, I64, 8), value)
    builder.store(bound, slot, align=8)


def lanes_in(out: Outlined, mask: Any) -> Any:
    """How many lanes a mask has, i64."""
    count = out.intrinsic(f"llvm.ctpop.i{out.lanes}", out.mask, mask)
    return count if out.lanes == 64 else out.builder.zext(count, I64)


def _count(out: Outlined, addresses: Any, live: Any) -> None:
    builder = out.builder
    count = lanes_in(out, live)
    bump(out, layout.REQUESTS, I64(1))
    bump(out, layout.LANES, count)
    line = _Line(out, count)
    line.gather(addresses, live)
    falls, least, most = line.strides()
    several = builder.icmp_unsigned(">", count, I64(1))
    even = builder.icmp_unsigned("==", least, most)
    follows = builder.and_(even, builder.icmp_unsigned("==", least, I64(line.width)))
    follows = builder.or_(follows, builder.not_(several))
    bump(out, layout.CONTIGUOUS, builder.zext(follows, I64))
    same = builder.and_(even, builder.icmp_unsigned("==", least, I64(0)))
    bump(out, layout.BROADCAST, builder.zext(builder.and_(same, several), I64))
    with builder.if_then(several, likely=True):
        extreme(out, layout.LEAST_STRIDE, "smin", least)
        extreme(out, layout.MOST_STRIDE, "smax", most)
    with builder.if_then(falls, likely=False):
        line.sort()
    # scratch is interleaved: every dword of a lane is in another row
    rows = out.access.dwords if out.access.mode == "private" else 1
    for word, bytes_ in zip(
        (layout.BLOCKS_32, layout.BLOCKS_64, layout.BLOCKS_128), layout.SIZES, strict=True
    ):
        blocks = line.blocks(bytes_)
        bump(out, word, builder.mul(blocks, I64(rows)) if rows > 1 else blocks)
    if out.access.detail == "atomic":
        bump(out, layout.COLLISIONS, line.repeats())


class _Line:
    """Addresses of the active lanes, one after another from index `_STEP` on.

    The first is repeated before them, the last after them up to a whole number of steps.
    """

    def __init__(self, out: Outlined, count: Any) -> None:
        self.out = out
        self.count = count
        self.width = 4 if out.access.mode == "private" else out.access.bytes
        """Bytes that follow one another at each address."""
        slot = out.room(ir.ArrayType(I64, out.lanes + 2 * _STEP))
        self.room = out.builder.inttoptr(out.builder.ptrtoint(slot, I64), PTR)
        self.first = element(out.builder, self.room, _STEP, I64)
        rounded = out.builder.add(count, I64(_STEP - 1))
        self.steps = out.builder.lshr(rounded, I64(3))

    def gather(self, addresses: Any, live: Any) -> None:
        """Take the addresses of the lanes in a mask that is not empty."""
        out, builder = self.out, self.out.builder
        whole = builder.icmp_unsigned("==", live, out.mask(-1))
        with builder.if_else(whole, likely=True) as (all_lanes, some):
            with all_lanes, out.counted_loop(out.lanes // _STEP) as chunk:
                start = builder.mul(chunk, I64(_STEP))
                value = self._memory_addresses(
                    load(builder, element(builder, addresses, start, I64), _WIDE, 8), start
                )
                builder.store(value, element(builder, self.first, start, I64), align=8)
            with some:
                fill = out.room(I64, I64(0))
                with out.each_lane(live) as lane:
                    value = load(builder, element(builder, addresses, lane, I64), I64, 8)
                    at = out.get(fill, I64)
                    builder.store(
                        self._memory_addresses(value, lane),
                        element(builder, self.first, at, I64),
                        align=8,
                    )
                    builder.store(builder.add(at, I64(1)), fill)
        self._pad()

    def _memory_addresses(self, value: Any, lane: Any) -> Any:
        """Addresses as memory sees them: for scratch, interleaved by lane and dword.

        Source: LLVM, User Guide for AMDGPU Backend, "Private address space": swizzled by dword
        and lane.
        """
        out, builder = self.out, self.out.builder
        if out.access.mode != "private":
            return value
        base, size = (
            context_word(builder, out.context, word)
            for word in (state.SCRATCH_BASE, state.SCRATCH_BYTES)
        )
        if isinstance(value.type, ir.VectorType):
            base, size = splat(builder, base, _STEP), splat(builder, size, _STEP)
            numbers = ir.Constant(_WIDE, list(range(_STEP)))
            lane = builder.add(splat(builder, lane, _STEP), numbers)
        kind = value.type
        inset = builder.sub(builder.sub(value, base), builder.mul(lane, size))
        row = builder.mul(builder.lshr(inset, _whole(kind, 2)), _whole(kind, 4 * out.lanes))
        within = builder.and_(inset, _whole(kind, 3))
        return builder.add(builder.add(row, builder.shl(lane, _whole(kind, 2))), within)

    def _pad(self) -> None:
        """Put the copies before and after the addresses."""
        builder = self.out.builder
        first = load(builder, self.first, I64, 8)
        before = element(builder, self.room, _STEP - 1, I64)
        builder.store(first, before, align=8)
        end = element(builder, self.first, self.count, I64)
        last = load(builder, element(builder, end, -1, I64), I64, 8)
        builder.store(splat(builder, last, _STEP), end, align=8)

    @contextmanager
    def _each_step(self) -> Iterator[Any]:
        """A loop over steps: the number of the first lane of each."""
        out, builder = self.out, self.out.builder
        before = builder.block
        body, after = (out.function.append_basic_block(name) for name in ("step", "counted"))
        builder.branch(body)
        builder.position_at_end(body)
        index = builder.phi(I64)
        index.add_incoming(I64(0), before)
        yield builder.shl(index, I64(3))
        following = builder.add(index, I64(1))
        index.add_incoming(following, builder.block)
        builder.cbranch(builder.icmp_unsigned("<", following, self.steps), body, after)
        builder.position_at_end(after)

    def _pair(self, start: Any) -> tuple[Any, Any]:
        """Addresses of a step, and of the lanes before them."""
        builder = self.out.builder
        here = element(builder, self.first, start, I64)
        return load(builder, here, _WIDE, 8), load(
            builder, element(builder, here, -1, I64), _WIDE, 8
        )

    def strides(self) -> tuple[Any, Any, Any]:
        """Whether some address is below the one before it (i1), least and most stride (i64)."""
        out, builder = self.out, self.out.builder
        least = out.room(_WIDE, constant(layout.NO_STRIDE, 64, _STEP))
        most = out.room(_WIDE, constant(~layout.NO_STRIDE, 64, _STEP))
        numbers = ir.Constant(_WIDE, list(range(_STEP)))
        with self._each_step() as start:
            value, before = self._pair(start)
            number = builder.add(splat(builder, start, _STEP), numbers)
            mask = builder.icmp_unsigned("<", number, splat(builder, self.count, _STEP))
            mask = builder.and_(mask, builder.icmp_unsigned("!=", number, constant(0, 64, _STEP)))
            stride = builder.sub(value, before)
            for slot, name, rest in (
                (least, "smin", layout.NO_STRIDE),
                (most, "smax", ~layout.NO_STRIDE),
            ):
                candidates = builder.select(mask, stride, constant(rest, 64, _STEP))
                bound = out.intrinsic(f"llvm.{name}.v8i64", _WIDE, out.get(slot, _WIDE), candidates)
                builder.store(bound, slot)
        low = out.intrinsic("llvm.vector.reduce.smin.v8i64", I64, out.get(least, _WIDE))
        high = out.intrinsic("llvm.vector.reduce.smax.v8i64", I64, out.get(most, _WIDE))
        return builder.icmp_signed("<", low, I64(0)), low, high

    def sort(self) -> None:
        """Insertion sort: addresses of lanes are nearly in order, or few."""
        out, builder = self.out, self.out.builder
        at = out.room(I64, I64(1))
        test, body, slide, move, insert, exit_block = (
            out.function.append_basic_block(name)
            for name in ("sort", "pick", "slide", "move", "place", "sorted")
        )
        builder.branch(test)
        builder.position_at_end(test)
        index = out.get(at, I64)
        builder.cbranch(builder.icmp_unsigned("<", index, self.count), body, exit_block)
        builder.position_at_end(body)
        value = load(builder, element(builder, self.first, index, I64), I64, 8)
        builder.branch(slide)
        builder.position_at_end(slide)
        hole = builder.phi(I64)
        hole.add_incoming(index, body)
        below = builder.sub(hole, I64(1))
        # at hole 0 the element read is the copy before the first: the comparison goes unused
        other = load(builder, element(builder, self.first, below, I64), I64, 8)
        bigger = builder.icmp_unsigned(">", other, value)
        more = builder.and_(builder.icmp_unsigned("!=", hole, I64(0)), bigger)
        builder.cbranch(more, move, insert)
        builder.position_at_end(move)
        builder.store(other, element(builder, self.first, hole, I64), align=8)
        hole.add_incoming(below, move)
        builder.branch(slide)
        builder.position_at_end(insert)
        builder.store(value, element(builder, self.first, hole, I64), align=8)
        builder.store(builder.add(index, I64(1)), at)
        builder.branch(test)
        builder.position_at_end(exit_block)
        self._pad()

    def blocks(self, size: int) -> Any:
        """Aligned blocks of `size` bytes the sorted accesses touch, i64."""
        out, builder = self.out, self.out.builder
        amount = constant(size.bit_length() - 1, 64, _STEP)
        reach = constant(self.width - 1, 64, _STEP)
        total = out.room(_WIDE, constant(0, 64, _STEP))
        with self._each_step() as start:
            value, before = self._pair(start)
            last = builder.lshr(builder.add(value, reach), amount)
            previous_last = builder.lshr(builder.add(before, reach), amount)
            start_ = builder.sub(builder.lshr(value, amount), constant(1, 64, _STEP))
            lower = out.intrinsic("llvm.smax.v8i64", _WIDE, start_, previous_last)
            builder.store(builder.add(out.get(total, _WIDE), builder.sub(last, lower)), total)
        later_blocks = out.intrinsic("llvm.vector.reduce.add.v8i64", I64, out.get(total, _WIDE))
        first = load(builder, self.first, I64, 8)
        shift = I64(size.bit_length() - 1)
        end = builder.lshr(builder.add(first, I64(self.width - 1)), shift)
        first_blocks = builder.add(builder.sub(end, builder.lshr(first, shift)), I64(1))
        return builder.add(later_blocks, first_blocks)

    def repeats(self) -> Any:
        """Lanes whose address is that of the lane before them in sorted order, i64."""
        out, builder = self.out, self.out.builder
        total = out.room(I64, I64(0))
        with self._each_step() as start:
            value, before = self._pair(start)
            same = builder.icmp_unsigned("==", value, before)
            mask = builder.zext(builder.bitcast(same, ir.IntType(_STEP)), I64)
            count = out.intrinsic("llvm.ctpop.i64", I64, mask)
            builder.store(builder.add(out.get(total, I64), count), total)
        # the copy before the first and those after the last are equal to their neighbours
        padding = builder.sub(builder.shl(self.steps, I64(3)), self.count)
        extra = builder.add(padding, I64(1))
        return builder.sub(out.get(total, I64), extra)


def _whole(kind: ir.Type, value: int) -> ir.Constant:
    return constant(value, 64, _STEP if isinstance(kind, ir.VectorType) else 0)


__all__ = ["build", "bump", "extreme", "lanes_in"]
