"""LDS in check mode: who wrote and who read each dword last, and races between waves.

A store's record, one word per dword: its number and stream, bytes, wave + 1, whether it was atomic,
instruction; and which bytes of the dword have been written at all. It needs no barrier phase: a
number of this phase is beyond all that were done at the last barrier. A load's record, four words:
phase and instruction; number, stream and wave of the last load; and the waves that read each byte
in that phase. Bytes that do not overlap never conflict. A load that was not waited for before its
wave's barrier may still be overtaken by a store behind it. An access of which no byte lies in the
arrays it is made for is out of bounds: compilers join accesses of neighbouring arrays.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from wavecast.emulate.check import clocks, log
from wavecast.emulate.check.counters import (
    DONE,
    DS,
    ISSUED,
    LOAD,
    NUMBER_BITS,
    ORDERED,
    STORE,
    STREAMS,
    WAVES,
    visible,
    visible_slot,
)
from wavecast.emulate.check.reach import BoundsRow
from wavecast.emulate.check.report import Kind
from wavecast.emulate.check.shadow import (
    READ_AFTER_WRITE,
    WRITE_AFTER_READ,
    WRITE_AFTER_WRITE,
    Findings,
    ShadowField,
    Watched,
    lane_conflict,
    together,
)
from wavecast.emulate.lower import state
from wavecast.emulate.lower.access import Outlined
from wavecast.emulate.lower.addresses import Resolved, resolve
from wavecast.emulate.lower.values import I1, I32, I64, PTR, constant, element, load, splat

NUMBER, WRITTEN, STREAM = ShadowField(0, NUMBER_BITS), ShadowField(31, 4), ShadowField(35, 2)
BYTES, WAVE = ShadowField(37, 4), ShadowField(41, 6)
ATOMIC, INSTRUCTION = ShadowField(47, 1), ShadowField(48, 16)
READ_PHASE = ShadowField(0, 48)
LAST_NUMBER, LAST_STREAM, LAST_WAVE = (
    ShadowField(0, NUMBER_BITS),
    ShadowField(32, 2),
    ShadowField(40, 6),
)
POLLED, POLLS = "s", "p"
"""Traits: the program has loads that only wait for a value in LDS; this is one."""
WAITS = "w"
"""Trait of these: waves must wait for what they do in global memory before others see it."""
FILLED = "d"
"""Trait: the program has loads from memory to LDS. They end out of order with the LDS operations of
the wave, which must wait for them."""
READ_WORDS = 4
"""64-bit words of a load's record."""
_RECORD = ir.VectorType(I64, READ_WORDS)
_ONES = (1 << 64) - 1
_AUTHOR = sum(field.mask << field.first for field in (NUMBER, STREAM, WAVE, ATOMIC))
"""What stores of one instruction of one wave have in common."""
_READERS = ir.VectorType(I32, 4)
"""Masks of waves, one per byte of the dword."""
assert WAVES == 32
assert STREAM.mask >= STORE


def build(out: Outlined) -> None:
    """Compare an access of LDS with the records of its dwords, and renew them."""
    watched = Watched(out)
    found = resolve(out)
    builder = out.builder
    beyond, outside = Findings(out, Kind.OUT_OF_LDS), Findings(out, Kind.OUT_OF_BOUNDS)
    row = BoundsRow(builder, out.context, watched.instruction)
    dwords = Dwords(watched)
    base = watched.word(state.LDS_BASE)
    with out.each_lane(found.dead) as lane:
        address = load(builder, element(builder, found.addresses, lane, I64), I64, 8)
        beyond.when(I1(1), lane, builder.sub(address, base))
    with out.each_lane(found.live) as lane:
        address = load(builder, element(builder, found.addresses, lane, I64), I64, 8)
        inset = builder.sub(address, base)
        own = row.overlaps(inset, I64(out.access.bytes))
        outside.when(builder.not_(own), lane, inset)
        bytes_ = watched.bytes_of(inset)
        first = builder.lshr(inset, I64(2))
        with builder.if_then(builder.not_(dwords.quick(inset, first)), likely=False):
            for index in range(out.access.dwords):
                dword_address = builder.add(address, I64(4 * index))
                changes = watched.changes(lane, index, builder.inttoptr(dword_address, PTR))
                dwords.compare_lanes(found, lane, index, dword_address, bytes_)
                dwords.touch(lane, builder.add(first, I64(index)), bytes_, changes)
    beyond.log(watched.instruction)
    outside.log(watched.instruction)
    dwords.log()
    builder.ret(I32(0))


def _all(value: int, count: int) -> ir.Constant:
    return ir.Constant(ir.VectorType(I64, count), [value] * count)


class Dwords:
    """The records of LDS, for one access."""

    def __init__(self, watched: Watched, *, stores: bool | None = None) -> None:
        self.watched, self.out = watched, watched.out
        out, builder = self.out, self.out.builder
        self.stores = watched.stores if stores is None else stores
        self.writes, self.reads = (
            watched.word(log.LDS_WRITES, PTR),
            watched.word(log.LDS_READS, PTR),
        )
        self.progress = watched.word(log.PROGRESS, PTR)
        self.me = builder.add(watched.wave, I64(1))
        self.bit = builder.shl(I32(1), builder.trunc(watched.wave, I32))
        self.races = Findings(out, Kind.LDS_RACE)
        self.empty = Findings(out, Kind.UNINITIALISED_LDS)
        self.lane_races = Findings(out, Kind.LANE_RACE)
        self.unwaited = Findings(out, Kind.MISSING_WAIT)
        self.fills = FILLED in watched.traits and watched.kind != "tolds"
        self.stream, self.number = watched.stream, watched.number
        self.reader = self._reader()

    def quick(self, inset: Any, first: Any) -> Any:
        """Record whole dwords that one wave wrote by one instruction and that are in order; False
        (i1) where there is anything to look at, and nothing is recorded.
        """
        watched, builder = self.watched, self.out.builder
        if watched.lane_bytes < 4 or watched.atomic or POLLS in watched.traits:
            return I1(0)
        count = self.out.access.dwords
        kind = ir.VectorType(I64, count)
        write_slot = element(builder, self.writes, first, I64)
        written = builder.load(write_slot, align=8, typ=kind)
        one = builder.extract_element(written, I32(0))
        wave = WAVE.of(builder, one)
        alike = builder.and_(builder.xor(written, splat(builder, one, count)), _all(_AUTHOR, count))
        foreign = builder.and_(
            builder.icmp_unsigned("!=", wave, I64(0)), builder.icmp_unsigned("!=", wave, self.me)
        )
        good = watched.all_of(
            builder.icmp_unsigned("==", builder.and_(inset, I64(3)), I64(0)),
            builder.icmp_unsigned("==", self._any(alike), I64(0)),
            builder.icmp_unsigned("==", ATOMIC.of(builder, one), I64(0)),
            builder.or_(builder.not_(foreign), self._visible(one, wave)),
            builder.not_(self._outstanding(one, wave)),
        )
        indices = [builder.add(first, I64(index)) for index in range(count)]
        slots = [
            element(builder, self.reads, builder.mul(index, I64(READ_WORDS)), I64)
            for index in indices
        ]
        records = [builder.load(slot, align=8, typ=_RECORD) for slot in slots]
        if self.stores:
            good = builder.and_(good, builder.not_(self._again(one)))
            return self._quick_store(good, records, write_slot, kind)
        full = builder.xor(written, _all(WRITTEN.mask << WRITTEN.first, count))
        missing = builder.and_(full, _all(WRITTEN.mask << WRITTEN.first, count))
        good = builder.and_(good, builder.icmp_unsigned("==", self._any(missing), I64(0)))
        with builder.if_then(good, likely=True):
            for slot, record in zip(slots, records, strict=True):
                builder.store(self._with_reader(record), slot, align=8)
        return good

    def _outstanding(self, written: Any, wave: Any) -> Any:
        """Whether a record is of a load to LDS that its wave, this one, has not waited for (i1)."""
        if not self.fills:
            return I1(0)
        watched, builder = self.watched, self.out.builder
        at = builder.add(builder.mul(watched.wave, I64(STREAMS)), I64(DONE + LOAD))
        done = load(builder, element(builder, self.progress, at, I64), I64, 8)
        return watched.all_of(
            builder.icmp_unsigned("==", wave, self.me),
            builder.icmp_unsigned("==", STREAM.of(builder, written), I64(LOAD)),
            builder.icmp_unsigned(">", NUMBER.of(builder, written), done),
        )

    def _again(self, written: Any) -> Any:
        """Whether a record is of this very store (i1)."""
        builder, fields = self.out.builder, (NUMBER, STREAM, WAVE, INSTRUCTION)
        mask = sum(field.mask << field.first for field in fields)
        own = self._store_record(I64(0), I64(0))
        apart = builder.and_(builder.xor(written, own), I64(mask))
        return builder.icmp_unsigned("==", apart, I64(0))

    def compare_lanes(
        self, found: Resolved, lane: Any, index: int, dword_address: Any, bytes_: Any
    ) -> None:
        """Another value than an earlier lane's for the same address, ahead of `touch`."""
        watched, builder = self.watched, self.out.builder
        if not watched.plain_store:
            return
        inset = builder.sub(dword_address, watched.word(state.LDS_BASE))
        slot = element(builder, self.writes, builder.lshr(inset, I64(2)), I64)
        written = load(builder, slot, I64, 8)
        overlap = builder.and_(BYTES.of(builder, written), bytes_)
        some = builder.icmp_unsigned("!=", overlap, I64(0))
        again = builder.and_(self._again(written), some)
        conflict, other = lane_conflict(watched, found, again, lane, index, dword_address)
        self.lane_races.when(conflict, lane, inset, None, other)

    def _any(self, value: Any) -> Any:
        """All words of a vector or'ed, i64."""
        count = value.type.count
        if count == 1:
            return self.out.builder.extract_element(value, I32(0))
        return self.out.intrinsic(f"llvm.vector.reduce.or.v{count}i64", I64, value)

    def _with_reader(self, record: Any) -> Any:
        """A load's record with this wave among the readers of all four bytes."""
        builder = self.out.builder
        phase = READ_PHASE.of(builder, builder.extract_element(record, I32(0)))
        now = builder.and_(self.watched.phase, I64(READ_PHASE.mask))
        kept = builder.and_(record, ir.Constant(_RECORD, [0, 0, _ONES, _ONES]))
        same = builder.icmp_unsigned("==", phase, now)
        kept = builder.select(same, kept, ir.Constant(_RECORD, [0] * READ_WORDS))
        return builder.or_(kept, self.reader)

    def _quick_store(self, good: Any, records: list[Any], write_slot: Any, kind: Any) -> Any:
        watched, builder = self.watched, self.out.builder
        now = builder.and_(watched.phase, I64(READ_PHASE.mask))
        last = builder.extract_element(records[0], I32(1))
        for record in records:
            phase = READ_PHASE.of(builder, builder.extract_element(record, I32(0)))
            readers = builder.and_(record, ir.Constant(_RECORD, [0, 0, _ONES, _ONES]))
            nobody = builder.icmp_unsigned("==", self._any(readers), I64(0))
            earlier = builder.and_(
                builder.icmp_unsigned("!=", phase, now),
                builder.icmp_unsigned("==", builder.extract_element(record, I32(1)), last),
            )
            good = builder.and_(good, builder.or_(nobody, earlier))
        wave = LAST_WAVE.of(builder, last)
        own = builder.or_(
            builder.icmp_unsigned("==", wave, self.me), builder.icmp_unsigned("==", wave, I64(0))
        )
        stream, number = LAST_STREAM.of(builder, last), LAST_NUMBER.of(builder, last)
        good = builder.and_(good, builder.or_(own, self._reached(wave, stream, number)))
        with builder.if_then(good, likely=True):
            record = self._store_record(I64(WRITTEN.mask), I64(BYTES.mask))
            builder.store(splat(builder, record, kind.count), write_slot, align=8)
        return good

    def touch(self, lane: Any, dword: Any, bytes_: Any, changes: Any) -> None:
        """Check one dword, then record the access. A store that `changes` nothing conflicts with
        no other store."""
        watched, builder = self.watched, self.out.builder
        write_slot = element(builder, self.writes, dword, I64)
        read_slot = element(builder, self.reads, builder.mul(dword, I64(READ_WORDS)), I64)
        written = load(builder, write_slot, I64, 8)
        address = builder.shl(dword, I64(2))
        wave = WAVE.of(builder, written)
        overlap = builder.and_(BYTES.of(builder, written), bytes_)
        foreign = watched.all_of(
            builder.icmp_unsigned("!=", wave, I64(0)),
            builder.icmp_unsigned("!=", wave, self.me),
            builder.icmp_unsigned("!=", overlap, I64(0)),
        )
        if self.fills:
            some = builder.icmp_unsigned("!=", overlap, I64(0))
            early = builder.and_(some, self._outstanding(written, wave))
            other = builder.add(INSTRUCTION.of(builder, written), I64(1))
            self.unwaited.when(early, lane, address, other)
        if POLLS in watched.traits:
            self._poll(foreign, wave, written)
            return
        if self.stores:
            foreign = builder.and_(foreign, changes)
        if watched.atomic or (watched.compares and not self.stores):
            plain = builder.icmp_unsigned("==", ATOMIC.of(builder, written), I64(0))
            foreign = builder.and_(foreign, plain)
        order = WRITE_AFTER_WRITE if self.stores else READ_AFTER_WRITE
        with builder.if_then(foreign):
            unordered = builder.not_(self._visible(written, wave))
            detail = builder.or_(builder.shl(wave, I64(8)), I64(order))
            other = builder.add(INSTRUCTION.of(builder, written), I64(1))
            self.races.when(unordered, lane, address, other, detail)
        if self.stores:
            self._store(lane, address, written, read_slot, write_slot, bytes_, changes)
        if watched.atomic or not self.stores:
            missing = builder.and_(bytes_, builder.not_(WRITTEN.of(builder, written)))
            self.empty.when(builder.icmp_unsigned("!=", missing, I64(0)), lane, address)
        if not self.stores:
            self._load(read_slot, bytes_)

    def _poll(self, foreign: Any, wave: Any, written: Any) -> None:
        """What another wave did in LDS before it stored what this one waits for is done: LDS
        executes the operations of a wave in order."""
        builder = self.out.builder
        with builder.if_then(foreign):
            slot = self._seen(wave)
            number = NUMBER.of(builder, written)
            before = load(builder, slot, I64, 8)
            later = builder.icmp_unsigned(">", number, before)
            builder.store(builder.select(later, number, before), slot, align=8)
            self._publish(wave)

    def _publish(self, wave: Any) -> None:
        """The workgroup sees what another wave (+ 1) has done in global memory, as behind a
        barrier."""
        watched, builder = self.watched, self.out.builder
        author = builder.and_(builder.sub(wave, I64(1)), I64(WAVES - 1))
        parity = builder.and_(watched.phase, I64(1))
        row = builder.mul(author, I64(STREAMS))
        for stream in (LOAD, STORE):
            first = DONE if WAITS in watched.traits else ISSUED
            at = builder.add(row, I64(first + stream))
            number = load(builder, element(builder, self.progress, at, I64), I64, 8)
            number = builder.and_(number, I64(NUMBER.mask))
            slot = visible_slot(builder, self.progress, author, parity, stream + ORDERED)
            word = load(builder, slot, I64, 8)
            ahead = builder.and_(builder.sub(number, word), I64(NUMBER.mask))
            later = builder.icmp_unsigned("<", ahead, I64(1 << NUMBER_BITS - 1))
            kept = builder.and_(word, I64(_ONES << 32 & _ONES))  # when the wave ended
            number = builder.or_(kept, number)
            builder.store(builder.select(later, number, word), slot, align=8)

    def _seen(self, wave: Any) -> Any:
        """The slot of the last operation of another wave (+ 1) that this one has polled for."""
        watched, builder = self.watched, self.out.builder
        author = builder.and_(builder.sub(wave, I64(1)), I64(WAVES - 1))
        row = builder.add(builder.mul(watched.wave, I64(WAVES)), author)
        words = watched.word(log.CLOCKS, PTR)
        return element(builder, words, builder.add(row, I64(clocks.SEEN)), I64)

    def _visible(self, written: Any, wave: Any) -> Any:
        """Whether a store is done and behind a barrier for this wave (i1)."""
        builder = self.out.builder
        return self._reached(wave, STREAM.of(builder, written), NUMBER.of(builder, written))

    def _reached(self, wave: Any, stream: Any, number: Any) -> Any:
        """Whether an operation was done when its wave (+ 1) came to the last barrier (i1)."""
        builder = self.out.builder
        author = builder.and_(builder.sub(wave, I64(1)), I64(WAVES - 1))
        done = visible(builder, self.progress, self.watched.phase, author, stream, number)
        if POLLED not in self.watched.traits:
            return done
        seen = load(builder, self._seen(wave), I64, 8)
        polled = builder.and_(
            builder.icmp_unsigned(">=", seen, number),
            builder.icmp_unsigned("==", stream, I64(DS)),
        )
        return builder.or_(done, polled)

    def _store(
        self,
        lane: Any,
        address: Any,
        written: Any,
        read_slot: Any,
        write_slot: Any,
        bytes_: Any,
        changes: Any,
    ) -> None:
        watched, builder = self.watched, self.out.builder
        read = load(builder, read_slot, I64, 8)
        readers = builder.load(element(builder, read_slot, 2, I64), align=8, typ=_READERS)
        mine = self._by_byte(bytes_)
        same_bytes = builder.and_(readers, self._by_byte(bytes_, I32(0xFFFFFFFF)))
        touched = builder.and_(same_bytes, builder.xor(mine, constant(-1, 32, 4)))
        others = self.out.intrinsic("llvm.vector.reduce.or.v4i32", I32, touched)
        now = builder.and_(watched.phase, I64(READ_PHASE.mask))
        same_phase = builder.icmp_unsigned("==", READ_PHASE.of(builder, read), now)
        last = load(builder, element(builder, read_slot, 1, I64), I64, 8)
        wave = LAST_WAVE.of(builder, last)
        others_last = builder.and_(
            builder.icmp_unsigned("!=", wave, self.me), builder.icmp_unsigned("!=", wave, I64(0))
        )
        pending = builder.not_(
            self._reached(wave, LAST_STREAM.of(builder, last), LAST_NUMBER.of(builder, last))
        )
        race = watched.all_of(
            I1(int(not (watched.atomic and watched.compares))),
            builder.icmp_unsigned("!=", others, I32(0)),
            builder.or_(same_phase, builder.and_(others_last, pending)),
            changes,
        )
        lowest = self.out.intrinsic("llvm.cttz.i32", I32, others, I1(0))
        reader = builder.zext(builder.add(lowest, I32(1)), I64)
        detail = builder.or_(builder.shl(reader, I64(8)), I64(WRITE_AFTER_READ))
        other = builder.add(INSTRUCTION.of(builder, read), I64(1))
        self.races.when(race, lane, address, other, detail)
        ever = builder.or_(WRITTEN.of(builder, written), bytes_)
        both = builder.or_(BYTES.of(builder, written), bytes_)
        bytes_ = builder.select(self._again(written), both, bytes_)
        builder.store(self._store_record(ever, bytes_), write_slot, align=8)

    def _store_record(self, ever: Any, bytes_: Any) -> Any:
        watched, builder = self.watched, self.out.builder
        return together(
            builder, NUMBER.at(builder, self.number), WRITTEN.at(builder, ever),
            STREAM.at(builder, self.stream), BYTES.at(builder, bytes_), WAVE.at(builder, self.me),
            I64(int(watched.atomic) << ATOMIC.first),
            INSTRUCTION.at(builder, watched.instruction),
        )  # fmt: skip

    def _reader(self) -> Any:
        """What a load of whole dwords by this wave adds to a load's record."""
        watched, builder = self.watched, self.out.builder
        phase = builder.and_(watched.phase, I64(READ_PHASE.mask))
        last = together(
            builder, LAST_NUMBER.at(builder, self.number), LAST_STREAM.at(builder, self.stream),
            LAST_WAVE.at(builder, self.me),
        )  # fmt: skip
        wide = builder.zext(self.bit, I64)
        both = builder.or_(wide, builder.shl(wide, I64(32)))
        head = builder.or_(phase, INSTRUCTION.at(builder, watched.instruction))
        total: Any = ir.Constant(_RECORD, [0] * READ_WORDS)
        for index, word in enumerate((head, last, both, both)):
            total = builder.insert_element(total, word, I32(index))
        return total

    def _by_byte(self, bytes_: Any, value: Any = None) -> Any:
        """This wave's bit (or `value`) for the bytes of a mask, 0 for the others."""
        builder = self.out.builder
        flags = builder.trunc(bytes_, ir.IntType(4))
        chosen = builder.bitcast(flags, ir.VectorType(I1, 4))
        own = splat(builder, self.bit if value is None else value, 4)
        return builder.select(chosen, own, constant(0, 32, 4))

    def _load(self, read_slot: Any, bytes_: Any) -> None:
        """Record a load: readers of earlier phases are forgotten."""
        watched, builder = self.watched, self.out.builder
        read = load(builder, read_slot, I64, 8)
        slot = element(builder, read_slot, 2, I64)
        before = builder.load(slot, align=8, typ=_READERS)
        now = builder.and_(watched.phase, I64(READ_PHASE.mask))
        same = builder.icmp_unsigned("==", READ_PHASE.of(builder, read), now)
        before = builder.select(same, before, constant(0, 32, 4))
        builder.store(builder.or_(before, self._by_byte(bytes_)), slot, align=8)
        for index in range(2):
            word = builder.extract_element(self.reader, I32(index))
            builder.store(word, element(builder, read_slot, index, I64), align=8)

    def log(self) -> None:
        self.races.log(self.watched.instruction)
        self.empty.log(self.watched.instruction)
        self.lane_races.log(self.watched.instruction)
        if self.fills:
            self.unwaited.log(self.watched.instruction)


__all__ = ["Dwords", "build"]
