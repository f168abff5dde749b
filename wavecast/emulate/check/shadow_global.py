"""Global memory in check mode: races within and between workgroups, memory never written.

Ranges no instruction of the kernel may store to have no records. The dwords of others have two, for
the last store and the last loads: workgroup + 1, turn, wave + 1, bytes, whether it was atomic,
instruction. Workgroup and turn share `PLACE`: a launch gives the workgroup the low bits it needs
(`group_bits`) and the turn the others. Where several workgroups have read, all bits of the
workgroup are set; where they read different bytes only the last is kept. Workgroups that both do
atomic operations count as ordered (`__init__.py`). Memory that was allocated and never written
holds a pattern (`mode.py`): loads compare with it.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from wavecast.emulate.check import log
from wavecast.emulate.check.report import Kind
from wavecast.emulate.check.shadow import (
    READ_AFTER_WRITE,
    WRITE_AFTER_READ,
    WRITE_AFTER_WRITE,
    Findings,
    ShadowField,
    Watched,
    together,
)
from wavecast.emulate.check.shadow_lds import Dwords
from wavecast.emulate.lower import state
from wavecast.emulate.lower.access import Outlined
from wavecast.emulate.lower.addresses import Resolved, range_of, resolve
from wavecast.emulate.lower.values import I1, I32, I64, PTR, element, load, splat

PLACE, WAVE = ShadowField(0, 37), ShadowField(37, 6)
BYTES, ATOMIC, INSTRUCTION = ShadowField(43, 4), ShadowField(47, 1), ShadowField(48, 16)
_ONES = (1 << 64) - 1
MOST_GROUPS = (1 << 26) - 2
"""Workgroups of a launch that leave room for 2048 turns."""


def group_bits(groups: int) -> int:
    """Bits that hold the number of a workgroup + 1, and "several"."""
    return (groups + 1).bit_length()


def build(out: Outlined) -> None:
    """Check an access of global memory and record it."""
    watched = Watched(out)
    found = resolve(out)
    builder = out.builder
    dwords = _Dwords(watched)
    dwords.settle(found)
    into_lds = Dwords(watched, stores=True) if watched.out.access.detail == "tolds" else None
    flat = Dwords(watched) if out.access.mode == "flat" else None
    with out.each_lane(found.live) as lane:
        address = load(builder, element(builder, found.addresses, lane, I64), I64, 8)
        with builder.if_then(builder.not_(dwords.quick(address)), likely=False):
            dwords.touch(lane, address)
        if flat is not None:
            _touch_lds(watched, flat, lane, address)
    dwords.log()
    if flat is not None:
        flat.log()
    if into_lds is not None:
        offset = builder.ptrtoint(out.rows, I64)
        limit = watched.word(state.LDS_BYTES)
        with out.each_lane(out.exec) as lane:
            inset = builder.add(offset, builder.mul(lane, I64(out.access.lds_step)))
            end = builder.add(inset, I64(4 * out.access.dwords))
            first = builder.lshr(inset, I64(2))
            with (
                builder.if_then(builder.icmp_unsigned("<=", end, limit), likely=True),
                builder.if_then(builder.not_(into_lds.quick(inset, first)), likely=False),
            ):
                for index in range(out.access.dwords):
                    into_lds.touch(lane, builder.add(first, I64(index)), I64(0xF), I1(1))
        into_lds.log()
    builder.ret(I32(0))


def _touch_lds(watched: Watched, dwords: Dwords, lane: Any, address: Any) -> None:
    """The LDS side of a flat access, where a lane's address lies in LDS."""
    out, builder = watched.out, watched.out.builder
    inset = builder.sub(address, watched.word(state.LDS_BASE))
    inside = builder.icmp_unsigned("<", inset, watched.word(state.LDS_BYTES))
    with builder.if_then(inside, likely=False):
        first, bytes_ = builder.lshr(inset, I64(2)), watched.bytes_of(inset)
        for index in range(out.access.dwords):
            pointer = builder.inttoptr(builder.add(address, I64(4 * index)), PTR)
            changes = watched.changes(lane, index, pointer)
            dwords.touch(lane, builder.add(first, I64(index)), bytes_, changes)


class _Dwords:
    """The records of global memory, for one access."""

    def __init__(self, watched: Watched) -> None:
        self.watched, self.out = watched, watched.out
        out, builder = self.out, self.out.builder
        self.me = builder.add(watched.workgroup, I64(1))
        self.wave = builder.add(watched.wave, I64(1))
        bits = watched.word(log.GROUP_BITS)
        self.many = builder.sub(builder.shl(I64(1), bits), I64(1))
        self.here = PLACE.at(builder, builder.or_(self.me, builder.shl(watched.turn, bits)))
        self.between = Findings(out, Kind.WORKGROUP_RACE)
        self.within = Findings(out, Kind.GLOBAL_RACE)
        self.fresh = Findings(out, Kind.UNINITIALISED_GLOBAL)
        self.replicas = Findings(out, Kind.REPLICATED_READ)
        self.shadows = watched.word(log.SHADOWS, PTR)
        self.releases = watched.word(log.RELEASES, PTR)
        self.beyond = Findings(out, Kind.OUT_OF_BOUNDS)
        masks = watched.word(log.ALLOWED, PTR)
        slot = element(builder, masks, watched.instruction, I64)
        self.allowed = load(builder, slot, I64, 8)
        self.canary = watched.word(log.CANARY)
        self.ranges = watched.word(state.RANGES, PTR)
        own = load(builder, element(builder, self.releases, watched.workgroup, I32), I32)
        self.acquires = builder.icmp_unsigned("!=", own, I32(0))
        self.start, self.stop = out.room(I64, I64(0)), out.room(I64, I64(0))
        self.writes, self.reads = out.room(I64, I64(0)), out.room(I64, I64(0))
        self.done = out.room(I1)

    def settle(self, found: Resolved) -> None:
        """Find the range of the first lane, in which the others are looked for first."""
        out, builder = self.out, self.out.builder
        with builder.if_then(builder.icmp_unsigned("!=", found.live, out.mask(0)), likely=True):
            lane = out.lowest(found.live)
            address = load(builder, element(builder, found.addresses, lane, I64), I64, 8)
            index = range_of(builder, out.context, address, I64(1))
            near = builder.icmp_unsigned("<", index, I64(64))  # -1 is far
            moved = builder.lshr(self.allowed, builder.and_(index, I64(63)))
            allowed = builder.trunc(moved, I1)
            with builder.if_then(builder.and_(near, allowed), likely=True):
                twice = builder.shl(index, I64(1))
                for slot, base, offset in (
                    (self.start, self.ranges, 0),
                    (self.stop, self.ranges, 1),
                    (self.writes, self.shadows, 0),
                    (self.reads, self.shadows, 1),
                ):
                    word = element(builder, base, builder.add(twice, I64(offset)), I64)
                    builder.store(load(builder, word, I64, 8), slot)

    def quick(self, address: Any) -> Any:
        """Record whole dwords that nobody has stored to (and, for a store, nobody has loaded) and
        that are not fresh memory; False (i1) for others, and nothing is recorded."""
        out, builder = self.out, self.out.builder
        if self.watched.lane_bytes < 4 or self.watched.atomic:
            return I1(0)
        builder.store(I1(0), self.done)
        start, stop = out.get(self.start, I64), out.get(self.stop, I64)
        inset = builder.sub(address, start)
        end = builder.add(inset, I64(out.access.bytes))
        inside = self.watched.all_of(
            builder.icmp_unsigned("<", inset, builder.sub(stop, start)),
            builder.icmp_unsigned("<=", end, builder.sub(stop, start)),
            builder.icmp_unsigned("==", builder.and_(address, I64(3)), I64(0)),
        )
        recorded = builder.icmp_unsigned("!=", out.get(self.writes, I64), I64(0))
        with (
            builder.if_then(inside, likely=True),
            builder.if_else(recorded) as (records, nothing),
        ):
            with records:
                self._quick_inside(address, builder.lshr(inset, I64(2)), stop)
            with nothing:
                good = self._seasoned(address, stop) if self.watched.loads else I1(1)
                builder.store(good, self.done)
        return out.get(self.done, I1)

    def _quick_inside(self, address: Any, first: Any, stop: Any) -> None:
        out, builder = self.out, self.out.builder
        count = out.access.dwords
        kind = ir.VectorType(I64, count)
        slots = [
            element(builder, builder.inttoptr(out.get(slot, I64), PTR), first, I64)
            for slot in (self.writes, self.reads)
        ]
        written, read = (builder.load(slot, align=8, typ=kind) for slot in slots)
        touched = builder.or_(written, read) if self.watched.stores else written
        good = builder.icmp_unsigned("==", self._any(touched), I64(0))
        if self.watched.loads:
            good = builder.and_(good, self._seasoned(address, stop))
        with builder.if_then(good, likely=True):
            builder.store(I1(1), self.done)
            if self.watched.stores:
                record = self._store_record(I64(BYTES.mask))
                builder.store(splat(builder, record, count), slots[0], align=8)
            else:
                builder.store(self._loads(read), slots[1], align=8)

    def _any(self, value: Any) -> Any:
        """All words of a vector or'ed, i64."""
        count = value.type.count
        if count == 1:
            return self.out.builder.extract_element(value, I32(0))
        return self.out.intrinsic(f"llvm.vector.reduce.or.v{count}i64", I64, value)

    def _seasoned(self, address: Any, stop: Any) -> Any:
        """Whether no dword of a lane is half of the pattern of memory never written (i1)."""
        builder = self.out.builder
        good: Any = builder.icmp_unsigned("==", self.canary, I64(0))
        different: Any = I1(1)
        for number in range(0, self.out.access.dwords + 1, 2):
            inset = 4 * min(number, self.out.access.dwords - 1)
            place = builder.and_(builder.add(address, I64(inset)), I64(~7 & _ONES))
            whole = builder.icmp_unsigned("<=", builder.add(place, I64(8)), stop)
            held = builder.select(whole, place, builder.and_(address, I64(~7 & _ONES)))
            value = load(builder, builder.inttoptr(held, PTR), I64, 8)
            unlike = builder.icmp_unsigned("!=", value, self.canary)
            different = builder.and_(different, builder.and_(whole, unlike))
        return builder.or_(good, different)

    def _loads(self, read: Any) -> Any:
        """Records of loads renewed: several workgroups where another has read the same bytes."""
        builder, count = self.out.builder, read.type.count

        def every(value: int) -> Any:
            return ir.Constant(read.type, [value] * count)

        many, here = (splat(builder, value, count) for value in (self.many, self.here))
        workgroup, me = builder.and_(read, many), splat(builder, self.me, count)
        bytes_ = builder.and_(read, every(BYTES.mask << BYTES.first))
        others = builder.and_(
            builder.icmp_unsigned("!=", workgroup, every(0)),
            builder.icmp_unsigned("!=", workgroup, me),
        )
        alike = builder.icmp_unsigned("==", bytes_, every(BYTES.mask << BYTES.first))
        who = builder.select(builder.and_(others, alike), builder.or_(here, many), here)
        rest = self._load_record(I64(0), I64(BYTES.mask))
        return builder.or_(who, splat(builder, rest, count))

    def touch(self, lane: Any, address: Any) -> None:
        """Check and record the dwords of one lane."""
        out, builder = self.out, self.out.builder
        index = range_of(builder, out.context, address, I64(1))
        known = builder.icmp_signed(">=", index, I64(0))
        with builder.if_then(known, likely=True):
            far = builder.icmp_unsigned(">", index, I64(63))
            bit = builder.and_(builder.lshr(self.allowed, builder.and_(index, I64(63))), I64(1))
            denied = builder.icmp_unsigned("==", bit, I64(0))
            self.beyond.when(builder.and_(denied, builder.not_(far)), lane, address)
            twice = builder.shl(index, I64(1))
            start = load(builder, element(builder, self.ranges, twice, I64), I64, 8)
            next_word = builder.add(twice, I64(1))
            stop = load(builder, element(builder, self.ranges, next_word, I64), I64, 8)
            writes = load(builder, element(builder, self.shadows, twice, I64), PTR, 8)
            reads = load(builder, element(builder, self.shadows, next_word, I64), PTR, 8)
            inset = builder.sub(address, start)
            first = builder.lshr(inset, I64(2))
            bytes_ = self.watched.bytes_of(address)
            watched = builder.icmp_unsigned("!=", builder.ptrtoint(writes, I64), I64(0))
            for number in range(out.access.dwords):
                place = builder.add(address, I64(4 * number))
                fits = builder.icmp_unsigned("<", place, stop)
                with builder.if_then(fits, likely=True):
                    with builder.if_then(watched):
                        dword = builder.add(first, I64(number))
                        slots = [element(builder, base, dword, I64) for base in (writes, reads)]
                        pointer = builder.inttoptr(place, PTR)
                        changes = self.watched.changes(lane, number, pointer)
                        self._dword(lane, place, slots, bytes_, changes)
                    if self.watched.loads:
                        self._compare(lane, place, stop)

    def _compare(self, lane: Any, place: Any, stop: Any) -> None:
        """Is this dword half of the pattern of memory never written?"""
        builder = self.out.builder
        aligned = builder.and_(place, I64(~7 & ((1 << 64) - 1)))
        whole = builder.icmp_unsigned("<=", builder.add(aligned, I64(8)), stop)
        asked = builder.icmp_unsigned("!=", self.canary, I64(0))
        with builder.if_then(builder.and_(whole, asked)):
            value = load(builder, builder.inttoptr(aligned, PTR), I64, 8)
            self.fresh.when(builder.icmp_unsigned("==", value, self.canary), lane, place)

    def _dword(self, lane: Any, place: Any, slots: list[Any], bytes_: Any, changes: Any) -> None:
        watched, builder = self.watched, self.out.builder
        written = load(builder, slots[0], I64, 8)
        order = WRITE_AFTER_WRITE if watched.stores else READ_AFTER_WRITE
        overlap = builder.and_(BYTES.of(builder, written), bytes_)
        clash = builder.icmp_unsigned("!=", overlap, I64(0))
        if watched.stores:
            clash = builder.and_(clash, changes)
        if watched.atomic or (watched.compares and not watched.stores):
            plain = builder.icmp_unsigned("==", ATOMIC.of(builder, written), I64(0))
            clash = builder.and_(clash, plain)
        read = load(builder, slots[1], I64, 8)
        self._judge(lane, place, written, clash, order, read)
        if not watched.stores:
            self._read(slots[1], bytes_)
            return
        if not (watched.atomic and watched.compares):
            overlap = builder.and_(BYTES.of(builder, read), bytes_)
            clash = builder.and_(builder.icmp_unsigned("!=", overlap, I64(0)), changes)
            self._judge(lane, place, read, clash, WRITE_AFTER_READ, None)
        builder.store(self._store_record(bytes_), slots[0], align=8)

    def _store_record(self, bytes_: Any) -> Any:
        atomic = I64(int(self.watched.atomic) << ATOMIC.first)
        return self.out.builder.or_(self._load_record(self.here, bytes_), atomic)

    def _load_record(self, place: Any, bytes_: Any) -> Any:
        builder = self.out.builder
        return together(
            builder, place, WAVE.at(builder, self.wave), BYTES.at(builder, bytes_),
            INSTRUCTION.at(builder, self.watched.instruction),
        )  # fmt: skip

    def _judge(self, lane: Any, place: Any, record: Any, clash: Any, order: int, read: Any) -> None:
        """Findings from the other side's record, where bytes overlap. `read` is the record of
        loads."""
        builder = self.out.builder
        present = builder.icmp_unsigned("!=", record, I64(0))
        with builder.if_then(builder.and_(present, clash)):
            workgroup = builder.and_(record, self.many)
            same = builder.icmp_unsigned("==", workgroup, self.me)
            other = builder.add(INSTRUCTION.of(builder, record), I64(1))
            with builder.if_else(same, likely=True) as (own, foreign):
                with own:
                    wave = WAVE.of(builder, record)
                    race = builder.and_(
                        builder.icmp_unsigned("!=", wave, self.wave),
                        builder.icmp_unsigned("==", PLACE.of(builder, record), self.here),
                    )
                    detail = builder.or_(builder.shl(wave, I64(8)), I64(order))
                    if read is None or order != READ_AFTER_WRITE:
                        self.within.when(race, lane, place, other, detail)
                    else:
                        replica = builder.and_(race, self._replica(read))
                        self.replicas.when(replica, lane, place, other, detail)
                        race = builder.and_(race, builder.not_(replica))
                        self.within.when(race, lane, place, other, detail)
                with foreign:
                    race = builder.not_(self._ordered(workgroup))
                    several = builder.icmp_unsigned("==", workgroup, self.many)
                    named = builder.select(several, I64(0), workgroup)
                    detail = builder.or_(builder.shl(named, I64(8)), I64(order))
                    self.between.when(race, lane, place, other, detail)

    def _replica(self, read: Any) -> Any:
        """Whether another wave of the workgroup has read this by the same instruction in this turn,
        before it was overwritten: a load replicated over waves, of which one stores in place."""
        builder = self.out.builder
        return self.watched.all_of(
            builder.icmp_unsigned("==", PLACE.of(builder, read), self.here),
            builder.icmp_unsigned("==", INSTRUCTION.of(builder, read), self.watched.instruction),
            builder.icmp_unsigned("!=", WAVE.of(builder, read), self.wave),
        )

    def _ordered(self, workgroup: Any) -> Any:
        """Whether atomic operations of both workgroups may order them (i1)."""
        builder = self.out.builder
        several = builder.icmp_unsigned("==", workgroup, self.many)
        index = builder.select(several, self.watched.workgroup, builder.sub(workgroup, I64(1)))
        theirs = load(builder, element(builder, self.releases, index, I32), I32)
        return builder.and_(self.acquires, builder.icmp_unsigned("!=", theirs, I32(0)))

    def _read(self, slot: Any, bytes_: Any) -> None:
        """Record a load."""
        builder = self.out.builder
        read = load(builder, slot, I64, 8)
        workgroup = builder.and_(read, self.many)
        known = builder.and_(
            builder.icmp_unsigned("!=", workgroup, I64(0)),
            builder.icmp_unsigned("!=", workgroup, self.me),
        )
        alike = builder.icmp_unsigned("==", BYTES.of(builder, read), bytes_)
        many = builder.and_(known, alike)
        who = builder.select(many, builder.or_(self.here, self.many), self.here)
        builder.store(self._load_record(who, bytes_), slot, align=8)

    def log(self) -> None:
        for findings in (self.beyond, self.between, self.within, self.fresh, self.replicas):
            findings.log(self.watched.instruction)


__all__ = ["MOST_GROUPS", "build", "group_bits"]
