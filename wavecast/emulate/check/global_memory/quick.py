"""Records of whole dwords of global memory that no access conflicts with. With several GPUs records
stay, so those that happened before count as none: most lanes of a wave find the same record.

Reads and stores records only in the range of the access's first lane. Emits no findings: what it
does not record, `global_races.py` compares and records.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from wavecast.emulate.check import log
from wavecast.emulate.check.clocks import clocks
from wavecast.emulate.check.clocks.records import (
    ATOMICITY,
    BYTES,
    GROUP,
    HIDES,
    LAUNCH,
    LOADER,
    MANY,
    NUMBER,
    PEERS,
    READ_NUMBERS,
    READS,
    RELEASES,
    WAVE,
    WRITE_NUMBERS,
    WRITES,
)
from wavecast.emulate.check.global_memory import order
from wavecast.emulate.check.global_memory.access import GlobalAccess
from wavecast.emulate.check.global_memory.aside import ATOMICS
from wavecast.emulate.values import I1, I32, I64, PTR, element, load, splat


class QuickRecords:
    """The quick path of one access."""

    def __init__(self, access: GlobalAccess) -> None:
        self.access, self.out = access, access.out
        out = access.out
        self.done, self.every, self.found, self.before = (out.room(I1) for _ in range(4))
        self.approved = out.array(I64, zeroed=True, length=2 * (2 + access.peers))
        """By kind of record (stored, loaded, loaded by each peer) the two words of the last one
        that happened before."""

    def record(self, address: Any) -> Any:
        """Record whole dwords that nobody has stored to (and, for a store, nobody has loaded);
        False (i1) for others, and nothing is recorded."""
        out, builder = self.out, self.out.builder
        atomic = ATOMICS >> int(self.access.watched.traits[0]) & 1
        if self.access.watched.lane_bytes < 4 or atomic:
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
            good = self._behind(slots, first, written, read)
        else:
            records = builder.or_(written, read) if self.access.watched.stores else written
            good = builder.icmp_unsigned("==", self._any(records), I64(0))
        if self.access.watched.stores and clocks.ORDERS in self.access.watched.traits:
            good = builder.and_(good, builder.not_(self.access.is_tracked()))
        loader = self.access.watched.site if self.access.watched.loads else I64(0)
        number = splat(builder, self.access.numbers(loader), count)
        if self.access.across and self.access.watched.stores:
            number = builder.or_(number, self._loaders(read, slots[READ_NUMBERS]))
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

    def _behind(self, slots: list[Any], first: Any, written: Any, read: Any) -> Any:
        """Whether what has stored these dwords and, for a store, what has loaded them on any GPU
        happened before (i1)."""
        builder, kind = self.out.builder, written.type
        numbers = builder.load(slots[WRITE_NUMBERS], align=8, typ=kind)
        good = builder.and_(
            self._hides_nothing(written), self._is_ordered(0, written, numbers, stored=True)
        )
        if not self.access.watched.stores:
            return good
        numbers = builder.load(slots[READ_NUMBERS], align=8, typ=kind)
        good = builder.and_(good, self._is_ordered(1, read, numbers, stored=False))
        builder.store(good, self.every)
        if self.access.peers:
            peers = builder.inttoptr(self.out.get(self.access.arrays[PEERS], I64), PTR)
            with self.out.counted_loop(self.access.peers) as peer:
                arrays = element(builder, peers, builder.shl(peer, I64(1)), I64)
                who, number = (
                    builder.load(
                        element(builder, load(builder, at, PTR, 8), first, I64), align=8, typ=kind
                    )
                    for at in (arrays, element(builder, arrays, 1, I64))
                )
                approved = builder.add(peer, I64(2))
                ordered = self._is_ordered(approved, who, number, stored=False)
                builder.store(builder.and_(self.out.get(self.every, I1), ordered), self.every)
        return self.out.get(self.every, I1)

    def _hides_nothing(self, written: Any) -> Any:
        """Whether no record of a store is of an atomic one, or of one of parts of a dword, which
        may hide others (i1)."""
        builder, count = self.out.builder, written.type.count
        fields = builder.lshr(written, splat(builder, I64(ATOMICITY.first), count))
        atomicity = builder.and_(fields, splat(builder, I64(ATOMICITY.mask), count))
        bits = builder.lshr(splat(builder, I64(ATOMICS), count), atomicity)
        hides = builder.lshr(written, splat(builder, I64(HIDES.first), count))
        odd = builder.and_(builder.or_(bits, hides), splat(builder, I64(1), count))
        return builder.icmp_unsigned("==", self._any(odd), I64(0))

    def _is_ordered(self, which: Any, who: Any, numbers: Any, *, stored: bool) -> Any:
        """Whether the records of some dwords are all the same, and happened before, or are of one
        launch that ended before (i1). Keeps the answer for the next lane."""
        builder, count = self.out.builder, who.type.count
        first_who = builder.extract_element(who, I32(0))
        number = builder.extract_element(numbers, I32(0))
        apart = builder.or_(
            builder.xor(who, splat(builder, first_who, count)),
            builder.xor(numbers, splat(builder, number, count)),
        )
        same = builder.icmp_unsigned("==", self._any(apart), I64(0))
        answer_slot = self.found
        with builder.if_else(same, likely=True) as (alike, different):
            with alike:
                at = builder.shl(which, I64(1)) if not isinstance(which, int) else I64(2 * which)
                kept_who = element(builder, self.approved, at, I64)
                kept_number = element(builder, kept_who, 1, I64)
                again = self.access.watched.all_of(
                    builder.icmp_unsigned("==", load(builder, kept_who, I64, 8), first_who),
                    builder.icmp_unsigned("==", load(builder, kept_number, I64, 8), number),
                )
                builder.store(again, answer_slot)
                with builder.if_then(builder.not_(again), likely=False):
                    ordered = self._happened_before(first_who, number, stored=stored)
                    builder.store(ordered, answer_slot)
                    with builder.if_then(ordered):
                        builder.store(first_who, kept_who, align=8)
                        builder.store(number, kept_number, align=8)
            with different:
                builder.store(self._launch_has_ended(numbers), answer_slot)
        return self.out.get(answer_slot, I1)

    def _happened_before(self, who: Any, number: Any, *, stored: bool) -> Any:
        """Whether a record is none, or happened before, which native code may not know (i1)."""
        builder, access = self.out.builder, self.access
        shadow = access.watched
        builder.store(I1(1), self.before)
        with builder.if_then(builder.icmp_unsigned("!=", who, I64(0))):
            mine = builder.and_(
                builder.icmp_unsigned("==", WAVE.of(builder, who), access.wave),
                builder.icmp_unsigned("!=", NUMBER.of(builder, number), shadow.memory_number),
            )
            within = builder.or_(mine, order.barrier_orders(shadow, who, number))
            same_group = builder.icmp_unsigned("==", GROUP.of(builder, who), access.me)
            before = builder.or_(
                order.behind(shadow, LAUNCH.of(builder, number)), builder.and_(same_group, within)
            )
            before = builder.or_(before, order.orders_record(shadow, who, number, stored=stored))
            builder.store(before, self.before)
        return self.out.get(self.before, I1)

    def _launch_has_ended(self, numbers: Any) -> Any:
        """Whether the records with these second words are of one launch that ended before (i1)."""
        builder = self.out.builder
        first = builder.extract_element(numbers, I32(0))
        apart = builder.xor(numbers, splat(builder, first, numbers.type.count))
        alike = builder.icmp_unsigned("==", LAUNCH.of(builder, self._any(apart)), I64(0))
        launch = LAUNCH.of(builder, first)
        return builder.and_(alike, order.behind(self.access.watched, launch))

    def _loaders(self, read: Any, numbers: Any) -> Any:
        """The sites by which this workgroup has loaded dwords that it stores to."""
        builder, count = self.out.builder, read.type.count

        def every(value: int) -> Any:
            return ir.Constant(read.type, [value] * count)

        group = builder.and_(read, every(GROUP.mask))
        same_group = builder.icmp_unsigned("==", group, splat(builder, self.access.me, count))
        words = builder.load(numbers, align=8, typ=read.type)
        return builder.select(
            same_group, builder.and_(words, every(LOADER.mask << LOADER.first)), every(0)
        )

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
            words = builder.load(numbers, align=8, typ=read.type)
            launches = builder.and_(words, every(LAUNCH.mask << LAUNCH.first))
            here = splat(builder, self.access.watched.word(log.LAUNCH_BITS), count)
            others = builder.and_(others, builder.icmp_unsigned("==", launches, here))
        alike = builder.icmp_unsigned("==", bytes_, every(BYTES.mask << BYTES.first))
        mine = splat(builder, self.access.who(I64(BYTES.mask)), count)
        several = builder.or_(mine, every(MANY))
        return builder.select(builder.and_(others, alike), several, mine)


__all__ = ["QuickRecords"]
