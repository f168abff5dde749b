"""Records of whole dwords of global memory that no access conflicts with.

Reads and stores records only in the range of the access's first lane. Emits no findings: what it
does not record, `global_races.py` compares and records.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from wavecast.emulate.check import clocks, log, order
from wavecast.emulate.check.global_access import GlobalAccess
from wavecast.emulate.check.records import (
    BYTES,
    GROUP,
    LAUNCH,
    MANY,
    PEERS,
    READ_NUMBERS,
    READS,
    RELEASES,
    WRITE_NUMBERS,
    WRITES,
)
from wavecast.emulate.lower.values import I1, I32, I64, PTR, element, load, splat


class QuickRecords:
    """The quick path of one access."""

    def __init__(self, access: GlobalAccess) -> None:
        self.access, self.out = access, access.out
        self.done = access.out.room(I1)

    def record(self, address: Any) -> Any:
        """Record whole dwords that nobody has stored to (and, for a store, nobody has loaded);
        False (i1) for others, and nothing is recorded."""
        out, builder = self.out, self.out.builder
        if self.access.watched.lane_bytes < 4 or self.access.watched.atomic:
            return I1(0)
        builder.store(I1(0), self.done)
        start, stop = out.get(self.access.start, I64), out.get(self.access.stop, I64)
        inset = builder.sub(address, start)
        end = builder.add(inset, I64(out.access.bytes))
        in_bounds = self.access.watched.all_of(
            builder.icmp_unsigned("<", inset, builder.sub(stop, start)),
            builder.icmp_unsigned("<=", end, builder.sub(stop, start)),
            builder.icmp_unsigned("==", builder.and_(address, I64(3)), I64(0)),
        )
        recorded = builder.icmp_unsigned("!=", out.get(self.access.arrays[WRITES], I64), I64(0))
        with (
            builder.if_then(in_bounds, likely=True),
            builder.if_else(recorded) as (records, nothing),
        ):
            with records:
                self._record_known(builder.lshr(inset, I64(2)))
            with nothing:
                builder.store(I1(1), self.done)
        return out.get(self.done, I1)

    def _record_known(self, first: Any) -> None:
        out, builder = self.out, self.out.builder
        count = out.access.dwords
        kind = ir.VectorType(I64, count)
        slots = [
            element(builder, builder.inttoptr(out.get(slot, I64), PTR), first, I64)
            for slot in self.access.arrays[:RELEASES]
        ]
        written, read = (builder.load(slots[n], align=8, typ=kind) for n in (WRITES, READS))
        if self.access.across:
            good = self._behind(slots, first, kind)
        else:
            touched = builder.or_(written, read) if self.access.watched.stores else written
            good = builder.icmp_unsigned("==", self._any(touched), I64(0))
        if self.access.watched.stores and clocks.ORDERS in self.access.watched.traits:
            good = builder.and_(good, builder.not_(self.access.tracked()))
        loader = self.access.watched.site if self.access.watched.loads else I64(0)
        number = splat(builder, self.access.numbers(loader), count)
        with builder.if_then(good, likely=True):
            builder.store(I1(1), self.done)
            if self.access.watched.stores:
                record = splat(builder, self.access.who(I64(BYTES.mask)), count)
                builder.store(record, slots[WRITES], align=8)
                builder.store(number, slots[WRITE_NUMBERS], align=8)
            else:
                numbers = slots[READ_NUMBERS]
                builder.store(self._loads(read, numbers), slots[READS], align=8)
                builder.store(number, slots[READ_NUMBERS], align=8)

    def _behind(self, slots: list[Any], first: Any, kind: Any) -> Any:
        """Whether launches that ended before have stored these dwords and, for a store, loaded them
        on any GPU (i1)."""
        builder = self.out.builder
        good = self._ended(slots[WRITE_NUMBERS], kind)
        if not self.access.watched.stores:
            return good
        good = builder.and_(good, self._ended(slots[READ_NUMBERS], kind))
        with builder.goto_entry_block():
            every = builder.alloca(I1)
        builder.store(good, every)
        if self.access.peers:
            peers = builder.inttoptr(self.out.get(self.access.arrays[PEERS], I64), PTR)
            with self.out.counted(self.access.peers) as peer:
                index = builder.add(builder.shl(peer, I64(1)), I64(1))
                numbers = load(builder, element(builder, peers, index, I64), PTR, 8)
                ended = self._ended(element(builder, numbers, first, I64), kind)
                builder.store(builder.and_(self.out.get(every, I1), ended), every)
        return self.out.get(every, I1)

    def _ended(self, numbers: Any, kind: Any) -> Any:
        """Whether the records with these second words are of one launch that ended before (i1)."""
        builder = self.out.builder
        found = builder.load(numbers, align=8, typ=kind)
        launch = LAUNCH.of(builder, builder.extract_element(found, I32(0)))
        same = builder.xor(
            found, splat(builder, builder.extract_element(found, I32(0)), kind.count)
        )
        alike = builder.icmp_unsigned("==", LAUNCH.of(builder, self._any(same)), I64(0))
        return builder.and_(alike, order.behind(self.access.watched, launch))

    def _any(self, value: Any) -> Any:
        """All words of a vector or'ed, i64."""
        count = value.type.count
        if count == 1:
            return self.out.builder.extract_element(value, I32(0))
        return self.out.intrinsic(f"llvm.vector.reduce.or.v{count}i64", I64, value)

    def _loads(self, read: Any, numbers: Any) -> Any:
        """Records of loads renewed: several workgroups where another of the launch has read the
        same bytes."""
        builder, count = self.out.builder, read.type.count

        def every(value: int) -> Any:
            return ir.Constant(read.type, [value] * count)

        group = builder.and_(read, every(GROUP.mask))
        bytes_ = builder.and_(read, every(BYTES.mask << BYTES.first))
        others = builder.and_(
            builder.icmp_unsigned("!=", group, every(0)),
            builder.icmp_unsigned("!=", group, splat(builder, self.access.me, count)),
        )
        if self.access.across:
            found = builder.load(numbers, align=8, typ=read.type)
            launches = builder.and_(found, every(LAUNCH.mask << LAUNCH.first))
            here = splat(builder, self.access.watched.word(log.LAUNCH_BITS), count)
            others = builder.and_(others, builder.icmp_unsigned("==", launches, here))
        alike = builder.icmp_unsigned("==", bytes_, every(BYTES.mask << BYTES.first))
        mine = splat(builder, self.access.who(I64(BYTES.mask)), count)
        several = builder.or_(mine, every(MANY))
        return builder.select(builder.and_(others, alike), several, mine)


__all__ = ["QuickRecords"]
