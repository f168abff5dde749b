"""LDS in check mode: compares accesses with the records of their dwords, and renews those.

Bytes that do not overlap never conflict. A load that was not waited for before its wave's barrier
may still be overtaken by a store behind it. An access of which no byte lies in the arrays it is
made for is out of bounds: compilers join accesses of neighbouring arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from wavecast.emulate.check.counters import STREAM_BITS
from wavecast.emulate.check.lds.aside import LdsAside
from wavecast.emulate.check.lds.order import POLLS, LdsOrder
from wavecast.emulate.check.lds.parts import LdsParts
from wavecast.emulate.check.lds.quick import QuickLdsRecords
from wavecast.emulate.check.lds.records import (
    ATOMIC,
    BYTES,
    INSTRUCTION,
    LAST_NUMBER,
    LAST_STREAM,
    LAST_WAVE,
    READ_PHASE,
    READERS,
    WAVE,
    WRITTEN,
    LdsRecords,
)
from wavecast.emulate.check.lds.tags import TAGGED, LdsTags
from wavecast.emulate.check.named_barriers import NAMED, loads_of, unordered_readers
from wavecast.emulate.check.pointers.reach import BoundsRow
from wavecast.emulate.check.shadow import (
    COPIES,
    DEFERS,
    READ_AFTER_WRITE,
    WRITE_AFTER_READ,
    WRITE_AFTER_WRITE,
    Findings,
    Watched,
    lane_conflict,
)
from wavecast.emulate.lower import state
from wavecast.emulate.lower.access import Outlined
from wavecast.emulate.lower.addresses import Resolved, resolve
from wavecast.emulate.reports import Kind
from wavecast.emulate.values import I1, I32, I64, PTR, constant, element, load, splat

MASKED, MASKED_OFFSETS = 0x7FFFFFFF, 1 << 16
"""The address in LDS that Triton gives lanes which are masked off, and the offsets it may get."""


def build(out: Outlined) -> None:
    """Compare an access of LDS with the records of its dwords, and renew them."""
    shadow = Watched(out)
    lanes = resolve(out)
    builder = out.builder
    beyond, outside = Findings(out, Kind.OUT_OF_LDS), Findings(out, Kind.OUT_OF_BOUNDS)
    row = BoundsRow(builder, out.context, shadow.instruction)
    dwords = Dwords(shadow)
    base = shadow.word(state.LDS_BASE)
    with out.each_lane(lanes.dead) as lane:
        address = load(builder, element(builder, lanes.addresses, lane, I64), I64, 8)
        inset = builder.sub(address, base)
        masked = builder.icmp_unsigned("<", builder.sub(inset, I64(MASKED)), I64(MASKED_OFFSETS))
        beyond.when(builder.not_(masked), lane, inset)

    def locate(lane: Any) -> tuple[Any, Any]:
        """The address of a lane, and where in LDS that is."""
        address = load(builder, element(builder, lanes.addresses, lane, I64), I64, 8)
        return address, builder.sub(address, base)

    if COPIES not in shadow.traits:  # where the row has bounds of global memory
        size = I64(out.access.bytes)
        span = builder.sub(lanes.lowest, base), builder.sub(lanes.highest, base)
        some_outside = builder.not_(row.overlaps_all(*span, size))
        with builder.if_then(some_outside, likely=False), out.each_lane(lanes.live) as lane:
            _, inset = locate(lane)
            outside.when(builder.not_(row.overlaps(inset, size)), lane, inset)
    left = lanes.live
    if TAGGED in shadow.traits:
        tags = LdsTags(dwords.records)
        left = tags.lanes_left(lanes.live, lambda lane: locate(lane)[1])
        if shadow.plain_store:
            with builder.if_then(out.get(tags.again, I1), likely=False):
                dwords.compare_all_lanes(lanes, locate)
    with out.each_lane(left) as lane:
        address, inset = locate(lane)
        first = builder.lshr(inset, I64(2))
        with builder.if_then(builder.not_(dwords.quick.record(inset, first)), likely=False):
            dwords.access(lane, address, inset, lanes)
    beyond.log(shadow.instruction)
    outside.log(shadow.instruction)
    dwords.log()
    builder.ret(I32(0))


class Dwords:
    """The dwords of LDS that one access touches."""

    def __init__(self, shadow: Watched, *, stores: bool | None = None) -> None:
        self.watched, self.out = shadow, shadow.out
        self.records = LdsRecords(shadow, stores=stores)
        self.order = LdsOrder(self.records)
        self.quick = QuickLdsRecords(self.records, self.order)
        self.aside = LdsAside(self.records)
        self.parts = LdsParts(self.records)
        self.races = Findings(self.out, Kind.LDS_RACE)
        self.empty = Findings(self.out, Kind.UNINITIALISED_LDS)
        self.lane_races = Findings(self.out, Kind.LANE_RACE)
        self.unwaited = Findings(self.out, Kind.MISSING_WAIT)

    def access(self, lane: Any, address: Any, inset: Any, lanes: Resolved | None = None) -> None:
        """Compare and record what a lane accesses at an address, which is `inset` in LDS and need
        not be aligned; with `lanes`, also what they store to the same address."""
        shadow, builder, count = self.watched, self.out.builder, self.out.access.dwords
        touched, first = shadow.bytes_from(inset), builder.lshr(inset, I64(2))
        before = I1(0)
        for index in range(count):
            dword_address = builder.add(address, I64(4 * index))
            changes = shadow.changes(lane, index, builder.inttoptr(dword_address, PTR))
            bytes_ = builder.and_(builder.lshr(touched, I64(4 * index)), I64(BYTES.mask))
            if lanes is not None:
                self.compare_lanes(lanes, lane, index, dword_address, bytes_)
            either = builder.or_(before, changes)  # a dword of the store may lie in two
            self.touch(lane, builder.add(first, I64(index)), bytes_, either)
            before = changes
        rest = builder.lshr(touched, I64(4 * count))
        with builder.if_then(builder.icmp_unsigned("!=", rest, I64(0)), likely=False):
            self.touch(lane, builder.add(first, I64(count)), rest, before)

    def compare_lanes(
        self, lanes: Resolved, lane: Any, index: int, dword_address: Any, bytes_: Any
    ) -> None:
        """Another value than an earlier lane's for the same address, ahead of `touch`."""
        shadow, builder = self.watched, self.out.builder
        if not shadow.plain_store:
            return
        inset = builder.sub(dword_address, shadow.word(state.LDS_BASE))
        slot = self.records.write_slot(builder.lshr(inset, I64(2)))
        written = load(builder, slot, I64, 8)
        overlap = builder.and_(BYTES.of(builder, written), bytes_)
        some = builder.icmp_unsigned("!=", overlap, I64(0))
        again = builder.and_(self.records.again(written), some)
        conflict, other = lane_conflict(shadow, lanes, again, lane, index, dword_address)
        self.lane_races.when(conflict, lane, inset, None, other)

    def compare_all_lanes(self, lanes: Resolved, locate: Callable[[Any], tuple[Any, Any]]) -> None:
        """The same for a store of which two lanes have a dword in common; `locate(lane)` gives a
        lane's address, and its offset in LDS."""
        out, shadow, builder = self.out, self.watched, self.out.builder
        differs = out.room(I1, I1(0))
        kind = ir.VectorType(I64, out.lanes)
        addresses = builder.load(lanes.addresses, align=8, typ=kind)
        with out.each_lane(lanes.live) as lane:  # most have the value of the lane before them
            address, _ = locate(lane)
            same = builder.icmp_unsigned("==", addresses, splat(builder, address, out.lanes))
            number = lane if out.lanes == 64 else builder.trunc(lane, out.mask)
            lower = builder.sub(builder.shl(out.mask(1), number), out.mask(1))
            before = builder.and_(builder.bitcast(same, out.mask), builder.and_(lower, lanes.live))
            with builder.if_then(builder.icmp_unsigned("!=", before, out.mask(0))):
                zeros = builder.ctlz(before, I1(0))
                nearest = builder.sub(out.mask(out.lanes - 1), zeros)
                nearest = nearest if out.lanes == 64 else builder.zext(nearest, I64)
                for index in range(out.access.dwords):
                    values = (shadow.stored_dword(which, index) for which in (lane, nearest))
                    other = builder.icmp_unsigned("!=", *values)
                    builder.store(builder.or_(out.get(differs, I1), other), differs)
        with builder.if_then(out.get(differs, I1), likely=False):
            self._report_lanes(lanes, locate)

    def _report_lanes(self, lanes: Resolved, locate: Callable[[Any], tuple[Any, Any]]) -> None:
        shadow, builder = self.watched, self.out.builder
        with self.out.each_lane(lanes.live) as lane:
            address, inset = locate(lane)
            for index in range(self.out.access.dwords):
                at, offset = (builder.add(value, I64(4 * index)) for value in (address, inset))
                conflict, other = lane_conflict(shadow, lanes, I1(1), lane, index, at)
                self.lane_races.when(conflict, lane, offset, None, other)

    def touch(self, lane: Any, dword: Any, bytes_: Any, changes: Any) -> None:
        """Check one dword, then record the access. A store that `changes` nothing conflicts with
        no other store."""
        shadow, builder = self.watched, self.out.builder
        write_slot = self.records.write_slot(dword)
        read_slot = self.records.read_slot(dword)
        written = load(builder, write_slot, I64, 8)
        address = builder.shl(dword, I64(2))
        wave = WAVE.of(builder, written)
        overlap = builder.and_(BYTES.of(builder, written), bytes_)
        some = builder.icmp_unsigned("!=", overlap, I64(0))
        if self.order.fills:
            early = builder.and_(some, self.order.outstanding(written, wave))
            other = builder.add(INSTRUCTION.of(builder, written), I64(1))
            self.unwaited.when(early, lane, address, other)
        if POLLS in shadow.traits:
            self.order.poll(self._is_foreign(wave, some), wave, written)
            return
        self._judge(self._conflicts(written, some, changes), lane, address, written)
        if self.aside.active and (shadow.atomic or self.records.stores or not shadow.compares):
            hidden, foreign = self.aside.hidden_record(dword, bytes_)
            if self.records.stores:
                foreign = builder.and_(foreign, changes)
            self._judge(foreign, lane, address, hidden)
        self.parts.compare(
            lambda record, overlaps: self._judge(
                self._conflicts(record, overlaps, changes), lane, address, record
            ),
            dword,
            written,
            bytes_,
        )
        if self.records.stores:
            self.aside.replace(dword, written)
            self.parts.replace(dword, written, bytes_)
            self._store(lane, dword, written, read_slot, write_slot, bytes_, changes)
        if shadow.atomic or not self.records.stores:
            missing = builder.and_(bytes_, builder.not_(WRITTEN.of(builder, written)))
            if DEFERS not in shadow.traits:
                self.empty.when(builder.icmp_unsigned("!=", missing, I64(0)), lane, address)
        if not self.records.stores:
            self._load(dword, read_slot, bytes_)

    def _is_foreign(self, wave: Any, overlaps: Any) -> Any:
        return self.watched.all_of(
            self.out.builder.icmp_unsigned("!=", wave, I64(0)),
            self.out.builder.icmp_unsigned("!=", wave, self.records.me),
            overlaps,
        )

    def _conflicts(self, written: Any, overlaps: Any, changes: Any) -> Any:
        """Whether a store that `overlaps` is of another wave, and may race with this one (i1)."""
        shadow, builder = self.watched, self.out.builder
        foreign = self._is_foreign(WAVE.of(builder, written), overlaps)
        if self.records.stores:
            foreign = builder.and_(foreign, changes)
        if shadow.atomic or (shadow.compares and not self.records.stores):
            plain = builder.icmp_unsigned("==", ATOMIC.of(builder, written), I64(0))
            foreign = builder.and_(foreign, plain)
        return foreign

    def _judge(self, foreign: Any, lane: Any, address: Any, written: Any) -> None:
        """A race with a store of another wave, where that is `foreign`."""
        builder, wave = self.out.builder, WAVE.of(self.out.builder, written)
        order = WRITE_AFTER_WRITE if self.records.stores else READ_AFTER_WRITE
        with builder.if_then(foreign):
            unordered = builder.not_(self.order.visible(written, wave))
            detail = builder.or_(builder.shl(wave, I64(8)), I64(order))
            other = builder.add(INSTRUCTION.of(builder, written), I64(1))
            self.races.when(unordered, lane, address, other, detail)

    def _store(
        self,
        lane: Any,
        dword: Any,
        written: Any,
        read_slot: Any,
        write_slot: Any,
        bytes_: Any,
        changes: Any,
    ) -> None:
        shadow, builder = self.watched, self.out.builder
        read = load(builder, read_slot, I64, 8)
        readers = builder.load(element(builder, read_slot, 2, I64), align=8, typ=READERS)
        mine = self.records.by_byte(bytes_)
        same_bytes = builder.and_(readers, self.records.by_byte(bytes_, I32(0xFFFFFFFF)))
        other_readers = builder.and_(same_bytes, builder.xor(mine, constant(-1, 32, 4)))
        others = self.out.intrinsic("llvm.vector.reduce.or.v4i32", I32, other_readers)
        if NAMED in shadow.traits:
            others = unordered_readers(self.out, shadow.wave, dword, others)
        now = builder.and_(shadow.phase, I64(READ_PHASE.mask))
        same_phase = builder.icmp_unsigned("==", READ_PHASE.of(builder, read), now)
        last = load(builder, element(builder, read_slot, 1, I64), I64, 8)
        wave = LAST_WAVE.of(builder, last)
        others_last = builder.and_(
            builder.icmp_unsigned("!=", wave, self.records.me),
            builder.icmp_unsigned("!=", wave, I64(0)),
        )
        pending = builder.not_(
            self.order.is_before_barrier(
                wave, LAST_STREAM.of(builder, last), LAST_NUMBER.of(builder, last)
            )
        )
        race = shadow.all_of(
            I1(int(not (shadow.atomic and shadow.compares))),
            builder.icmp_unsigned("!=", others, I32(0)),
            builder.or_(same_phase, builder.and_(others_last, pending)),
            changes,
        )
        lowest = self.out.intrinsic("llvm.cttz.i32", I32, others, I1(0))
        reader = builder.zext(builder.add(lowest, I32(1)), I64)
        detail = builder.or_(builder.shl(reader, I64(8)), I64(WRITE_AFTER_READ))
        other = builder.add(INSTRUCTION.of(builder, read), I64(1))
        self.races.when(race, lane, builder.shl(dword, I64(2)), other, detail)
        ever = builder.or_(WRITTEN.of(builder, written), bytes_)
        both = builder.or_(BYTES.of(builder, written), bytes_)
        bytes_ = builder.select(self.records.again(written), both, bytes_)
        builder.store(self.records.store(ever, bytes_), write_slot, align=8)

    def _load(self, dword: Any, read_slot: Any, bytes_: Any) -> None:
        """Record a load: readers of earlier phases are forgotten."""
        shadow, builder = self.watched, self.out.builder
        if NAMED in shadow.traits:
            number = builder.shl(shadow.number, I64(STREAM_BITS))
            slot = element(builder, loads_of(self.out, dword), shadow.wave, I64)
            builder.store(builder.or_(number, shadow.stream), slot, align=8)
        read = load(builder, read_slot, I64, 8)
        slot = element(builder, read_slot, 2, I64)
        before = builder.load(slot, align=8, typ=READERS)
        now = builder.and_(shadow.phase, I64(READ_PHASE.mask))
        same = builder.icmp_unsigned("==", READ_PHASE.of(builder, read), now)
        before = builder.select(same, before, constant(0, 32, 4))
        builder.store(builder.or_(before, self.records.by_byte(bytes_)), slot, align=8)
        for index in range(2):
            word = builder.extract_element(self.records.reader, I32(index))
            builder.store(word, element(builder, read_slot, index, I64), align=8)

    def log(self) -> None:
        self.races.log(self.watched.instruction)
        self.empty.log(self.watched.instruction)
        self.lane_races.log(self.watched.instruction)
        if self.order.fills:
            self.unwaited.log(self.watched.instruction)


__all__ = ["Dwords", "build"]
