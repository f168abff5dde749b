"""Global memory in check mode: races within and between workgroups.

Ranges no instruction of the kernel may store to have no records. The dwords of others have two
(`records.py`), compared with the access at hand (`order.py`).

Traits of an access: its atomicity (a digit); `clocks.ORDERS`; `v` where it counts as a store in its
stream; `r` releases; `w` observes; `z` updates nothing with a zero.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from wavecast.emulate.check import clocks, log, order
from wavecast.emulate.check.atomicity import Atomicity
from wavecast.emulate.check.counters import DONE, ISSUED, LOAD, STORE, STREAMS
from wavecast.emulate.check.records import (
    ATOMICITY,
    BYTES,
    GROUP,
    INSTRUCTION,
    LOADER,
    MANY,
    NUMBER,
    READ_NUMBERS,
    READS,
    RELEASES,
    STREAM,
    TABLE_WORDS,
    WAVE,
    WRITE_NUMBERS,
    WRITES,
)
from wavecast.emulate.check.report import Kind
from wavecast.emulate.check.shadow import (
    READ_AFTER_WRITE,
    WRITE_AFTER_READ,
    WRITE_AFTER_WRITE,
    Findings,
    Watched,
    lane_conflict,
    together,
)
from wavecast.emulate.check.shadow_lds import Dwords
from wavecast.emulate.lower import state
from wavecast.emulate.lower.access import Outlined
from wavecast.emulate.lower.addresses import Resolved, range_of, resolve
from wavecast.emulate.lower.values import I1, I32, I64, PTR, element, load, splat

SCALAR = "scalar"
"""Mode of scalar loads. Compilers widen them, so what else they read is not compared with anything
but records."""
COUNTED_AS_STORE, RELEASES_TRAIT, OBSERVES, ZERO = "v", "r", "w", "z"
_ONES = (1 << 64) - 1


def build(out: Outlined) -> None:
    """Check an access of global memory and record it."""
    watched = Watched(out)
    found = _scalar(out) if out.access.mode == SCALAR else resolve(out)
    builder = out.builder
    dwords = _Dwords(watched, found)
    into_lds = Dwords(watched, stores=True) if watched.kind == "tolds" else None
    flat = Dwords(watched) if out.access.mode == "flat" else None
    with out.each_lane(found.live) as lane:
        address = load(builder, element(builder, found.addresses, lane, I64), I64, 8)
        with builder.if_then(builder.not_(dwords.quick(address)), likely=False):
            dwords.touch(lane, address)
        if flat is not None:
            _touch_lds(watched, flat, lane, address)
    dwords.synchronise()
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


def _scalar(out: Outlined) -> Resolved:
    """The dwords from `base` on, one per lane."""
    builder = out.builder
    addresses = out.array(I64)
    with out.each_lane(out.exec) as lane:
        address = builder.add(out.base, builder.shl(lane, I64(2)))
        builder.store(address, element(builder, addresses, lane, I64), align=8)
    last = builder.add(out.base, I64(4 * (out.lanes - 1)))
    return Resolved(addresses, out.exec, out.mask(0), I1(1), out.base, last)


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

    def __init__(self, watched: Watched, found: Resolved) -> None:
        self.watched, self.out, self.lanes = watched, watched.out, found
        out, builder = self.out, self.out.builder
        self.me = builder.add(watched.workgroup, I64(1))
        self.wave = builder.add(watched.wave, I64(1))
        self.between = Findings(out, Kind.WORKGROUP_RACE)
        self.within = Findings(out, Kind.GLOBAL_RACE)
        self.replicas = Findings(out, Kind.REPLICATED_READ)
        self.same = Findings(out, Kind.SAME_VALUE)
        self.lane_race = Findings(out, Kind.LANE_RACE)
        self.shadows = watched.word(log.SHADOWS, PTR)
        self.ranges = watched.word(state.RANGES, PTR)
        self.start, self.stop = out.room(I64, I64(0)), out.room(I64, I64(0))
        self.arrays = [out.room(I64, I64(0)) for _ in range(RELEASES + 1)]
        self.done = out.room(I1)
        self._settle()
        self.atomicity = self._atomicity()

    def _settle(self) -> None:
        """Find the range of the first lane, in which the others are looked for first."""
        out, builder, found = self.out, self.out.builder, self.lanes
        with builder.if_then(builder.icmp_unsigned("!=", found.live, out.mask(0)), likely=True):
            lane = out.lowest(found.live)
            address = load(builder, element(builder, found.addresses, lane, I64), I64, 8)
            index = range_of(builder, out.context, address, I64(1))
            known = builder.icmp_signed(">=", index, I64(0))
            with builder.if_then(known, likely=True):
                for slot, pointer in (
                    (self.start, self._bound(index, 0)),
                    (self.stop, self._bound(index, 1)),
                    *((slot, self._array(index, n)) for n, slot in enumerate(self.arrays)),
                ):
                    builder.store(load(builder, pointer, I64, 8), slot)

    def _bound(self, index: Any, which: int) -> Any:
        builder = self.out.builder
        twice = builder.shl(index, I64(1))
        return element(builder, self.ranges, builder.add(twice, I64(which)), I64)

    def _array(self, index: Any, which: int) -> Any:
        builder = self.out.builder
        row = builder.mul(index, I64(TABLE_WORDS))
        return element(builder, self.shadows, builder.add(row, I64(which)), I64)

    def _tracked(self) -> Any:
        """Whether releases of the first lane's range are kept (i1)."""
        kept = self.out.get(self.arrays[RELEASES], I64)
        return self.out.builder.icmp_unsigned("!=", kept, I64(0))

    def _atomicity(self) -> Any:
        """How atomic this access is, i64: a store that may be a release is known by its waits."""
        watched, builder = self.watched, self.out.builder
        stated = I64(int(watched.traits[0]))
        if RELEASES_TRAIT not in watched.traits or not watched.plain_store:
            return stated
        if watched.traits[0] != str(int(Atomicity.UNMARKED)):
            return stated
        words = watched.word(log.PROGRESS, PTR)
        total = I64(0)
        for stream in (LOAD, STORE):
            at = builder.add(builder.mul(watched.wave, I64(STREAMS)), I64(stream))
            issued, done = (
                load(builder, element(builder, words, builder.add(at, I64(first)), I64), I64, 8)
                for first in (ISSUED, DONE)
            )
            total = builder.add(total, builder.sub(issued, done))
        waited = builder.icmp_unsigned("==", total, I64(1))  # this store itself
        release = builder.and_(waited, self._tracked())
        return builder.select(release, I64(Atomicity.RELEASING), stated)

    def synchronise(self) -> None:
        """Tell the clocks of an access that may release or observe."""
        watched, out, builder = self.watched, self.out, self.out.builder
        events = []
        if RELEASES_TRAIT in watched.traits:
            events.append(clocks.UPDATE if watched.atomic else clocks.RELEASE)
        if OBSERVES in watched.traits:
            events.append(clocks.OBSERVE)
        if not events:
            if clocks.ORDERS in watched.traits:
                builder.store(I64(0), self._word(clocks.CLEAN), align=8)
            return
        wanted = self._tracked()
        if watched.plain_store:
            marked = builder.icmp_unsigned("!=", self.atomicity, I64(Atomicity.UNMARKED))
            wanted = builder.and_(wanted, marked)
            builder.store(I64(0), self._word(clocks.CLEAN), align=8)
        with builder.if_then(wanted, likely=False):
            known = self._polled() if OBSERVES in watched.traits else I1(0)
            with builder.if_then(builder.not_(known)):
                slot = element(builder, out.context, log.ORDER_EVENT, I64)
                function = load(builder, slot, ir.PointerType(order.EVENT), 8)
                live, addresses = self.lanes.live, self.lanes.addresses
                lanes = live if out.lanes == 64 else builder.zext(live, I64)
                for event in events:
                    what = builder.or_(builder.shl(watched.instruction, I64(8)), I64(event))
                    arguments = [out.context, what, addresses, lanes, watched.memory_number]
                    builder.call(function, arguments)

    def _word(self, first: int) -> Any:
        """The slot of this wave among words of the workgroup's clocks."""
        builder = self.out.builder
        words = self.watched.word(log.CLOCKS, PTR)
        return element(builder, words, builder.add(self.watched.wave, I64(first)), I64)

    def _polled(self) -> Any:
        """Whether all lanes access the dword of this wave's last event, nothing has been released
        to it since and, for an atomic operation, nothing has to be released (i1)."""
        watched, out, builder = self.watched, self.out, self.out.builder
        lane = out.lowest(self.lanes.live)
        first = load(builder, element(builder, self.lanes.addresses, lane, I64), I64, 8)
        with builder.goto_entry_block():
            same, found = builder.alloca(I1), builder.alloca(I1)
        builder.store(I1(1), same)
        builder.store(I1(0), found)
        with out.each_lane(self.lanes.live) as lane:
            other = load(builder, element(builder, self.lanes.addresses, lane, I64), I64, 8)
            alike = builder.icmp_unsigned("==", other, first)
            builder.store(builder.and_(out.get(same, I1), alike), same)
        inset = builder.sub(first, out.get(self.start, I64))
        dword = builder.and_(inset, I64(~3 & _ONES))
        slot = builder.add(out.get(self.arrays[RELEASES], I64), dword)
        key = load(builder, self._word(clocks.KEY), I64, 8)
        good = builder.and_(out.get(same, I1), builder.icmp_unsigned("==", slot, key))
        if watched.atomic:
            clean = load(builder, self._word(clocks.CLEAN), I64, 8)
            now = builder.add(watched.turn, I64(1))
            good = builder.and_(good, builder.icmp_unsigned("==", clean, now))
        with builder.if_then(good):
            version = load(builder, builder.inttoptr(slot, PTR), I32)
            before = load(builder, self._word(clocks.KEY_VERSION), I64, 8)
            unchanged = builder.icmp_unsigned("==", builder.zext(version, I64), before)
            builder.store(unchanged, found)
            with builder.if_then(unchanged):
                builder.store(watched.memory_number, self._word(clocks.KEY_READ), align=8)
        return out.get(found, I1)

    def quick(self, address: Any) -> Any:
        """Record whole dwords that nobody has stored to (and, for a store, nobody has loaded);
        False (i1) for others, and nothing is recorded."""
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
        recorded = builder.icmp_unsigned("!=", out.get(self.arrays[WRITES], I64), I64(0))
        with (
            builder.if_then(inside, likely=True),
            builder.if_else(recorded) as (records, nothing),
        ):
            with records:
                self._quick_inside(builder.lshr(inset, I64(2)))
            with nothing:
                builder.store(I1(1), self.done)
        return out.get(self.done, I1)

    def _quick_inside(self, first: Any) -> None:
        out, builder = self.out, self.out.builder
        count = out.access.dwords
        kind = ir.VectorType(I64, count)
        slots = [
            element(builder, builder.inttoptr(out.get(slot, I64), PTR), first, I64)
            for slot in self.arrays[:RELEASES]
        ]
        written, read = (builder.load(slots[n], align=8, typ=kind) for n in (WRITES, READS))
        touched = builder.or_(written, read) if self.watched.stores else written
        good = builder.icmp_unsigned("==", self._any(touched), I64(0))
        if self.watched.stores and clocks.ORDERS in self.watched.traits:
            good = builder.and_(good, builder.not_(self._tracked()))
        loader = self.watched.site if self.watched.loads else I64(0)
        number = splat(builder, self._numbers(loader), count)
        with builder.if_then(good, likely=True):
            builder.store(I1(1), self.done)
            if self.watched.stores:
                record = splat(builder, self._who(I64(BYTES.mask)), count)
                builder.store(record, slots[WRITES], align=8)
                builder.store(number, slots[WRITE_NUMBERS], align=8)
            else:
                builder.store(self._loads(read), slots[READS], align=8)
                builder.store(number, slots[READ_NUMBERS], align=8)

    def _any(self, value: Any) -> Any:
        """All words of a vector or'ed, i64."""
        count = value.type.count
        if count == 1:
            return self.out.builder.extract_element(value, I32(0))
        return self.out.intrinsic(f"llvm.vector.reduce.or.v{count}i64", I64, value)

    def _loads(self, read: Any) -> Any:
        """Records of loads renewed: several workgroups where another has read the same bytes."""
        builder, count = self.out.builder, read.type.count

        def every(value: int) -> Any:
            return ir.Constant(read.type, [value] * count)

        group = builder.and_(read, every(GROUP.mask))
        bytes_ = builder.and_(read, every(BYTES.mask << BYTES.first))
        others = builder.and_(
            builder.icmp_unsigned("!=", group, every(0)),
            builder.icmp_unsigned("!=", group, splat(builder, self.me, count)),
        )
        alike = builder.icmp_unsigned("==", bytes_, every(BYTES.mask << BYTES.first))
        mine = splat(builder, self._who(I64(BYTES.mask)), count)
        several = builder.or_(mine, every(MANY))
        return builder.select(builder.and_(others, alike), several, mine)

    def touch(self, lane: Any, address: Any) -> None:
        """Check and record the dwords of one lane."""
        out, builder = self.out, self.out.builder
        index = range_of(builder, out.context, address, I64(1))
        known = builder.icmp_signed(">=", index, I64(0))
        with builder.if_then(known, likely=True):
            start = load(builder, self._bound(index, 0), I64, 8)
            stop = load(builder, self._bound(index, 1), I64, 8)
            arrays = [load(builder, self._array(index, n), PTR, 8) for n in range(RELEASES + 1)]
            inset = builder.sub(address, start)
            first = builder.lshr(inset, I64(2))
            bytes_ = self.watched.bytes_of(address)
            watched = builder.icmp_unsigned("!=", builder.ptrtoint(arrays[WRITES], I64), I64(0))
            for number in range(out.access.dwords):
                place = builder.add(address, I64(4 * number))
                fits = builder.icmp_unsigned("<", place, stop)
                with builder.if_then(fits, likely=True), builder.if_then(watched):
                    dword = builder.add(first, I64(number))
                    self._dword(lane, number, place, arrays, dword, bytes_)

    def _dword(
        self, lane: Any, index: int, place: Any, arrays: list[Any], dword: Any, bytes_: Any
    ) -> None:
        watched, builder = self.watched, self.out.builder
        slots = [element(builder, base, dword, I64) for base in arrays[:RELEASES]]
        written, write_number, read, read_number = (load(builder, s, I64, 8) for s in slots)
        changes = watched.changes(lane, index, builder.inttoptr(place, PTR))
        mine = self._effective(lane)
        self._written(lane, place, (written, write_number), read, bytes_, changes, mine)
        if not watched.stores:
            self._read(slots, read, bytes_)
            return
        self._lanes(lane, index, place, written, write_number, bytes_)
        overlap = builder.and_(BYTES.of(builder, read), bytes_)
        clash = builder.and_(builder.icmp_unsigned("!=", overlap, I64(0)), changes)
        self._judge(
            lane, place, (read, read_number), clash, WRITE_AFTER_READ, mine, written, write_number
        )
        own = builder.icmp_unsigned("==", GROUP.of(builder, read), self.me)
        loader = builder.select(own, LOADER.of(builder, read_number), I64(0))
        builder.store(self._who(bytes_), slots[WRITES], align=8)
        builder.store(self._numbers(loader), slots[WRITE_NUMBERS], align=8)
        if watched.plain_store and clocks.ORDERS in watched.traits:
            kept = builder.icmp_unsigned("!=", builder.ptrtoint(arrays[RELEASES], I64), I64(0))
            with builder.if_then(kept, likely=False):  # ends the releases before it
                builder.store(I32(0), element(builder, arrays[RELEASES], dword, I32), align=4)

    def _effective(self, lane: Any) -> Any:
        """The atomicity of this lane's access: adding zero only loads."""
        watched, builder = self.watched, self.out.builder
        if ZERO not in watched.traits:
            return self.atomicity
        value = load(builder, self.out.slot(self.out.rows, 0, lane), I32)
        nothing = builder.icmp_unsigned("==", value, I32(0))
        return builder.select(nothing, I64(Atomicity.AGENT), self.atomicity)

    def _written(
        self, lane: Any, place: Any, record: Any, read: Any, bytes_: Any, changes: Any, mine: Any
    ) -> None:
        """The last store: a race, or the same value twice."""
        watched, builder = self.watched, self.out.builder
        overlap = builder.and_(BYTES.of(builder, record[0]), bytes_)
        clash = builder.icmp_unsigned("!=", overlap, I64(0))
        order_ = WRITE_AFTER_WRITE if watched.stores else READ_AFTER_WRITE
        self._judge(lane, place, record, clash, order_, mine, read, changes=changes)

    def _lanes(self, lane: Any, index: int, place: Any, who: Any, number: Any, bytes_: Any) -> None:
        """An earlier lane of this instruction has stored another value to the same address."""
        watched, builder = self.watched, self.out.builder
        if not watched.plain_store:
            return
        own = self._who(I64(0))
        apart = I64(BYTES.mask << BYTES.first ^ _ONES)
        again = watched.all_of(
            builder.icmp_unsigned("==", builder.and_(who, apart), own),
            builder.icmp_unsigned(
                "==", NUMBER.of(builder, number), NUMBER.at(builder, watched.memory_number)
            ),
            builder.icmp_unsigned("!=", builder.and_(BYTES.of(builder, who), bytes_), I64(0)),
        )
        conflict, other = lane_conflict(watched, self.lanes, again, lane, index, place)
        self.lane_race.when(conflict, lane, place, None, other)

    def _who(self, bytes_: Any) -> Any:
        """The first word of a record of this access."""
        builder, watched = self.out.builder, self.watched
        stream = STORE if COUNTED_AS_STORE in watched.traits else LOAD
        return together(
            builder, self.me, WAVE.at(builder, self.wave), BYTES.at(builder, bytes_),
            ATOMICITY.at(builder, self.atomicity), I64(stream << STREAM.first),
            INSTRUCTION.at(builder, watched.instruction),
        )  # fmt: skip

    def _judge(
        self,
        lane: Any,
        place: Any,
        record: tuple[Any, Any],
        clash: Any,
        order_: int,
        mine: Any,
        other_record: Any,
        other_number: Any = None,
        changes: Any = None,
    ) -> None:
        """Findings from a record whose bytes overlap where `clash`. `other_record` is the record
        of loads for one of a store, and the reverse."""
        builder, (who, number) = self.out.builder, record
        present = builder.icmp_unsigned("!=", who, I64(0))
        with builder.if_then(builder.and_(present, clash)):
            group = GROUP.of(builder, who)
            same = builder.icmp_unsigned("==", group, self.me)
            theirs = ATOMICITY.of(builder, who)
            other = builder.add(INSTRUCTION.of(builder, who), I64(1))
            with builder.if_else(same, likely=True) as (own, foreign):
                with own:
                    wave = WAVE.of(builder, who)
                    able = builder.and_(
                        builder.icmp_unsigned("!=", wave, self.wave),
                        order.conflicts(builder, mine, theirs, within=True),
                    )
                    with builder.if_then(able, likely=False):
                        race = builder.not_(order.barrier_orders(self.watched, who, number))
                        detail = builder.or_(builder.shl(wave, I64(8)), I64(order_))
                        replica = self._replica(order_, record, other_record, other_number)
                        self.replicas.when(builder.and_(race, replica), lane, place, other, detail)
                        race = builder.and_(race, builder.not_(replica))
                        self._race(self.within, race, lane, place, other, detail, changes)
                with foreign:
                    able = order.conflicts(builder, mine, theirs, within=False)
                    with builder.if_then(able):
                        race = builder.not_(
                            order.acquired(
                                self.watched,
                                who,
                                number,
                                mine,
                                place,
                                stored=order_ != WRITE_AFTER_READ,
                            )
                        )
                        several = builder.icmp_unsigned("==", group, I64(MANY))
                        named = builder.select(several, I64(0), group)
                        detail = builder.or_(builder.shl(named, I64(8)), I64(order_))
                        self._race(self.between, race, lane, place, other, detail, changes)

    def _race(
        self,
        kind: Findings,
        race: Any,
        lane: Any,
        place: Any,
        other: Any,
        detail: Any,
        changes: Any,
    ) -> None:
        """A race; where both store the same value, a note."""
        builder = self.out.builder
        if changes is not None and self.watched.plain_store:
            if kind is self.between:
                alike = builder.and_(race, builder.not_(changes))
                self.same.when(alike, lane, place, other, detail)
            race = builder.and_(race, changes)
        kind.when(race, lane, place, other, detail)

    def _replica(self, order_: int, record: Any, other_record: Any, other_number: Any) -> Any:
        """Whether two waves of the workgroup have loaded this by the same instruction, of which one
        stores in place: a load replicated over waves."""
        builder, watched = self.out.builder, self.watched
        if order_ == READ_AFTER_WRITE:  # the one that stored had loaded it by this instruction
            return builder.icmp_unsigned("==", LOADER.of(builder, record[1]), watched.site)
        if order_ == WRITE_AFTER_READ:  # this one had, and has stored since
            loader = LOADER.of(builder, other_number)
            read = LOADER.of(builder, record[1])
            return watched.all_of(
                builder.icmp_unsigned("==", loader, read),
                builder.icmp_unsigned("==", GROUP.of(builder, other_record), self.me),
                builder.icmp_unsigned("==", WAVE.of(builder, other_record), self.wave),
            )
        return I1(0)

    def _read(self, slots: list[Any], read: Any, bytes_: Any) -> None:
        """Record a load."""
        builder = self.out.builder
        group = GROUP.of(builder, read)
        known = builder.and_(
            builder.icmp_unsigned("!=", group, I64(0)), builder.icmp_unsigned("!=", group, self.me)
        )
        alike = builder.icmp_unsigned("==", BYTES.of(builder, read), bytes_)
        mine = self._who(bytes_)
        several = builder.or_(mine, I64(MANY))
        who = builder.select(builder.and_(known, alike), several, mine)
        builder.store(who, slots[READS], align=8)
        builder.store(self._numbers(self.watched.site), slots[READ_NUMBERS], align=8)

    def _numbers(self, loader: Any) -> Any:
        """The second word of a record of this access."""
        number = NUMBER.at(self.out.builder, self.watched.memory_number)
        return self.out.builder.or_(number, LOADER.at(self.out.builder, loader))

    def log(self) -> None:
        for findings in (
            self.between, self.within, self.replicas, self.same,
            self.lane_race,
        ):  # fmt: skip
            findings.log(self.watched.instruction)


__all__ = ["COUNTED_AS_STORE", "OBSERVES", "RELEASES_TRAIT", "SCALAR", "ZERO", "build"]
