"""Races in global memory: the records of a dword against the access at hand.

The dwords of known ranges have two records (`records.py`), and others next to atomic accesses
(`global_aside.py`), compared by `order.py`. Emits the
findings and the records of the access; a plain store also ends the releases of its dword. Calls no
events of the clocks (`global_releases.py`).
"""

from __future__ import annotations

from typing import Any

from wavecast.emulate.check import log
from wavecast.emulate.check.clocks import clocks
from wavecast.emulate.check.clocks.atomicity import Atomicity
from wavecast.emulate.check.clocks.records import (
    ASIDE,
    ATOMICITY,
    BYTES,
    GROUP,
    HIDES,
    INSTRUCTION,
    LAUNCH,
    LOADER,
    MANY,
    NUMBER,
    PARTS,
    PEERS,
    READ_NUMBERS,
    READS,
    RELEASES,
    SYSTEM,
    VOLATILE,
    WAVE,
    WRITE_NUMBERS,
    WRITES,
)
from wavecast.emulate.check.global_memory import order
from wavecast.emulate.check.global_memory.access import SYSTEM_TRAIT, ZERO, GlobalAccess
from wavecast.emulate.check.global_memory.aside import AsideRecords
from wavecast.emulate.check.global_memory.parts import PartRecords
from wavecast.emulate.check.log import LAUNCH_SHIFT
from wavecast.emulate.check.shadow import (
    READ_AFTER_WRITE,
    WRITE_AFTER_READ,
    WRITE_AFTER_WRITE,
    Findings,
    lane_conflict,
)
from wavecast.emulate.lower.addresses import range_of
from wavecast.emulate.reports import Kind
from wavecast.emulate.values import I1, I32, I64, PTR, element, load

_ONES = (1 << 64) - 1


class GlobalRaces:
    """The findings of one access."""

    def __init__(self, access: GlobalAccess) -> None:
        self.access, self.out = access, access.out
        out = access.out
        self.between = Findings(out, Kind.WORKGROUP_RACE)
        self.within = Findings(out, Kind.GLOBAL_RACE)
        self.replicas = Findings(out, Kind.REPLICATED_READ)
        self.same = Findings(out, Kind.SAME_VALUE)
        self.lane_race = Findings(out, Kind.LANE_RACE)

    def touch(self, lane: Any, address: Any) -> None:
        """Check and record the dwords of one lane."""
        out, builder = self.out, self.out.builder
        index = range_of(builder, out.context, address, I64(1))
        in_range = builder.icmp_signed(">=", index, I64(0))
        with builder.if_then(in_range, likely=True):
            start = load(builder, self.access.bound(index, 0), I64, 8)
            stop = load(builder, self.access.bound(index, 1), I64, 8)
            arrays = [load(builder, self.access.array(index, n), PTR, 8) for n in range(PARTS + 1)]
            inset = builder.sub(address, start)
            first = builder.lshr(inset, I64(2))
            bytes_ = self.access.watched.bytes_of(address)
            has_records = builder.icmp_unsigned("!=", builder.ptrtoint(arrays[WRITES], I64), I64(0))
            for number in range(out.access.dwords):
                dword_address = builder.add(address, I64(4 * number))
                fits = builder.icmp_unsigned("<", dword_address, stop)
                with builder.if_then(fits, likely=True), builder.if_then(has_records):
                    dword = builder.add(first, I64(number))
                    self._dword(lane, number, dword_address, arrays, dword, bytes_)

    def _dword(
        self, lane: Any, index: int, dword_address: Any, arrays: list[Any], dword: Any, bytes_: Any
    ) -> None:
        shadow, builder = self.access.watched, self.out.builder
        slots = [element(builder, base, dword, I64) for base in arrays[:RELEASES]]
        written, write_number, read, read_number = (load(builder, s, I64, 8) for s in slots)
        changes = shadow.changes(lane, index, builder.inttoptr(dword_address, PTR))
        mine = self._effective(lane)
        last = written, write_number
        aside = AsideRecords(self.access, builder.ptrtoint(arrays[ASIDE], I64), dword)
        self._check_last_store(lane, dword_address, last, read, bytes_, changes, mine)
        self._compare_aside(aside, lane, dword_address, last, bytes_, changes, mine)
        parts = PartRecords(self.access, builder.ptrtoint(arrays[PARTS], I64), dword)
        self._compare_parts(parts, lane, dword_address, last, bytes_, changes, mine)
        if not shadow.stores:
            aside.replace_load((read, read_number), mine)
            every = self._with_lanes(read, read_number, bytes_)
            self._read(slots, (read, read_number), every, bytes_)
            return
        self._lanes(lane, index, dword_address, written, write_number, bytes_)
        overlap = builder.and_(BYTES.of(builder, read), bytes_)
        clash = builder.and_(builder.icmp_unsigned("!=", overlap, I64(0)), changes)
        self._judge(
            lane,
            dword_address,
            (read, read_number),
            clash,
            WRITE_AFTER_READ,
            mine,
            written,
            write_number,
        )
        self._peers(lane, dword_address, arrays[PEERS], dword, (bytes_, changes, mine))
        if ZERO in shadow.traits:  # a poll does not replace the record of what it reads
            with builder.if_else(self.access.only_loads(lane)) as (loads, stores):
                with loads:
                    aside.replace_load((read, read_number), I64(Atomicity.AGENT))
                    every = self._with_lanes(read, read_number, bytes_)
                    self._read(slots, (read, read_number), every, bytes_, I64(Atomicity.AGENT))
                with stores:
                    aside.replace_store(last, mine)
                    self._store(slots, last, (read, read_number), bytes_, parts)
        else:
            aside.replace_store(last, mine)
            self._store(slots, last, (read, read_number), bytes_, parts)
        if shadow.plain_store and clocks.ORDERS in shadow.traits:
            has_releases = builder.icmp_unsigned(
                "!=", builder.ptrtoint(arrays[RELEASES], I64), I64(0)
            )
            with builder.if_then(has_releases, likely=False):  # ends the releases before it
                builder.store(I32(0), element(builder, arrays[RELEASES], dword, I32), align=4)

    def _compare_aside(
        self,
        aside: AsideRecords,
        lane: Any,
        dword_address: Any,
        last: tuple[Any, Any],
        bytes_: Any,
        changes: Any,
        mine: Any,
    ) -> None:
        def judge(record: tuple[Any, Any], clash: Any, order_: int) -> None:
            nothing = I64(0)
            changed = changes if order_ == WRITE_AFTER_WRITE else None
            self._judge(lane, dword_address, record, clash, order_, mine, nothing, nothing, changed)

        aside.compare(judge, last, mine, bytes_)

    def _compare_parts(
        self,
        parts: PartRecords,
        lane: Any,
        dword_address: Any,
        last: tuple[Any, Any],
        bytes_: Any,
        changes: Any,
        mine: Any,
    ) -> None:
        def judge(record: tuple[Any, Any], clash: Any, order_: int) -> None:
            nothing = I64(0)
            changed = changes if order_ == WRITE_AFTER_WRITE else None
            self._judge(lane, dword_address, record, clash, order_, mine, nothing, nothing, changed)

        parts.compare(judge, last, bytes_)

    def _store(
        self,
        slots: list[Any],
        written: tuple[Any, Any],
        read: tuple[Any, Any],
        bytes_: Any,
        parts: PartRecords,
    ) -> None:
        """Record a store of `bytes_` over the records of the dword."""
        builder = self.out.builder
        again = self._again(*written) if parts.active else I1(0)
        hides = parts.replace_store(written, again, bytes_)
        same_group = builder.icmp_unsigned("==", GROUP.of(builder, read[0]), self.access.me)
        loader = builder.select(same_group, LOADER.of(builder, read[1]), I64(0))
        stored = self._with_lanes(*written, bytes_)
        who = builder.or_(self.access.who(stored), hides)
        builder.store(who, slots[WRITES], align=8)
        builder.store(self.access.numbers(loader), slots[WRITE_NUMBERS], align=8)

    def _peers(
        self, lane: Any, dword_address: Any, pointers: Any, dword: Any, stored: tuple[Any, Any, Any]
    ) -> None:
        """What the other GPUs have loaded, against a store: its bytes, whether it changes them and
        its atomicity."""
        if not self.access.peers:
            return
        builder, (bytes_, changes, mine) = self.out.builder, stored
        with self.out.counted_loop(self.access.peers) as peer:
            arrays = element(builder, pointers, builder.shl(peer, I64(1)), I64)
            read, number = (
                load(builder, element(builder, load(builder, at, PTR, 8), dword, I64), I64, 8)
                for at in (arrays, element(builder, arrays, 1, I64))
            )
            overlap = builder.and_(BYTES.of(builder, read), bytes_)
            clash = builder.and_(builder.icmp_unsigned("!=", overlap, I64(0)), changes)
            with builder.if_then(clash, likely=False):
                record, nothing = (read, number), I64(0)
                self._judge(
                    lane, dword_address, record, clash, WRITE_AFTER_READ, mine, nothing, nothing
                )

    def _effective(self, lane: Any) -> Any:
        """The atomicity of this lane's access: adding zero only loads."""
        shadow, builder = self.access.watched, self.out.builder
        if ZERO not in shadow.traits:
            return self.access.atomicity
        loads = self.access.only_loads(lane)
        return builder.select(loads, I64(Atomicity.AGENT), self.access.atomicity)

    def _check_last_store(
        self,
        lane: Any,
        dword_address: Any,
        record: Any,
        read: Any,
        bytes_: Any,
        changes: Any,
        mine: Any,
    ) -> None:
        """The last store: a race, or the same value twice."""
        shadow, builder = self.access.watched, self.out.builder
        overlap = builder.and_(BYTES.of(builder, record[0]), bytes_)
        clash = builder.icmp_unsigned("!=", overlap, I64(0))
        order_ = WRITE_AFTER_WRITE if shadow.stores else READ_AFTER_WRITE
        self._judge(lane, dword_address, record, clash, order_, mine, read, changes=changes)

    def _lanes(
        self, lane: Any, index: int, dword_address: Any, who: Any, number: Any, bytes_: Any
    ) -> None:
        """An earlier lane of this instruction has stored another value to the same address."""
        shadow, builder = self.access.watched, self.out.builder
        if not shadow.plain_store:
            return
        overlap = builder.and_(BYTES.of(builder, who), bytes_)
        some = builder.icmp_unsigned("!=", overlap, I64(0))
        again = builder.and_(self._again(who, number), some)
        conflict, other = lane_conflict(
            shadow, self.access.lanes, again, lane, index, dword_address
        )
        self.lane_race.when(conflict, lane, dword_address, None, other)

    def _again(self, who: Any, number: Any) -> Any:
        """Whether a record is of this very access (i1)."""
        shadow, builder = self.access.watched, self.out.builder
        apart = I64((BYTES.mask << BYTES.first | HIDES.mask << HIDES.first) ^ _ONES)
        author = self.access.who(I64(0))
        mine = NUMBER.at(builder, shadow.memory_number)
        return shadow.all_of(
            builder.icmp_unsigned("==", builder.and_(who, apart), author),
            builder.icmp_unsigned("==", NUMBER.of(builder, number), mine),
        )

    def _with_lanes(self, who: Any, number: Any, bytes_: Any) -> Any:
        """Bytes of the dword at hand, with those that earlier lanes of this access recorded."""
        if self.access.watched.lane_bytes >= 4:
            return bytes_
        builder = self.out.builder
        both = builder.or_(BYTES.of(builder, who), bytes_)
        return builder.select(self._again(who, number), both, bytes_)

    def _judge(
        self,
        lane: Any,
        dword_address: Any,
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
            same = builder.icmp_unsigned("==", group, self.access.me)
            theirs = ATOMICITY.of(builder, who)
            other = builder.add(INSTRUCTION.of(builder, who), I64(1))
            with builder.if_else(same, likely=True) as (local, foreign):
                with local:
                    wave = WAVE.of(builder, who)
                    able = builder.and_(
                        builder.icmp_unsigned("!=", wave, self.access.wave),
                        order.conflicts(builder, mine, theirs, within=True),
                    )
                    with builder.if_then(able, likely=False):
                        race = builder.not_(order.barrier_orders(self.access.watched, who, number))
                        detail = builder.or_(builder.shl(wave, I64(8)), I64(order_))
                        replica = self._replica(order_, record, other_record, other_number)
                        self.replicas.when(
                            builder.and_(race, replica), lane, dword_address, other, detail
                        )
                        race = builder.and_(race, builder.not_(replica))
                        self._race(self.within, race, lane, dword_address, other, detail, changes)
                with foreign:
                    able = order.conflicts(builder, mine, theirs, within=False)
                    volatile = VOLATILE.of(builder, who)
                    mixed = self._mixes_volatile(volatile, order_)
                    able = builder.or_(able, self._unordered_data(volatile, theirs, mine, order_))
                    if self.access.watched.stores:
                        able = builder.or_(able, mixed)
                    else:
                        mixed = builder.and_(mixed, builder.not_(able))
                        before = order.orders_record(self.access.watched, who, number)
                        mixed = builder.and_(mixed, builder.not_(before))
                        detail = self._detail(group, number, order_)
                        self.between.when(mixed, lane, dword_address, other, detail)
                    narrow = builder.and_(self._is_narrow(who, number), builder.not_(able))
                    with builder.if_then(builder.or_(able, narrow)):
                        race = builder.not_(
                            order.has_acquired(
                                self.access.watched,
                                who,
                                number,
                                mine,
                                dword_address,
                                narrow,
                                stored=order_ != WRITE_AFTER_READ,
                            )
                        )
                        detail = self._detail(group, number, order_)
                        self._race(self.between, race, lane, dword_address, other, detail, changes)

    def _detail(self, group: Any, number: Any, order_: int) -> Any:
        """What the log says of the other side: order, workgroup and launch (`log.py`)."""
        builder = self.out.builder
        several = builder.icmp_unsigned("==", group, I64(MANY))
        author = builder.select(several, I64(0), group)
        detail = builder.or_(builder.shl(author, I64(8)), I64(order_))
        if not self.access.across:
            return detail
        return builder.or_(detail, builder.shl(LAUNCH.of(builder, number), I64(LAUNCH_SHIFT)))

    def _is_narrow(self, who: Any, number: Any) -> Any:
        """Whether a record is of another launch, and not both accesses are of system scope (i1):
        they are atomic to each other only if the launches are of one GPU."""
        builder = self.out.builder
        if not self.access.across:
            return I1(0)
        launch = builder.shl(LAUNCH.of(builder, number), I64(LAUNCH.first))
        here = self.access.watched.word(log.LAUNCH_BITS)
        foreign = builder.icmp_unsigned("!=", launch, here)
        if SYSTEM_TRAIT not in self.access.watched.traits:
            return foreign
        return builder.and_(foreign, builder.icmp_unsigned("==", SYSTEM.of(builder, who), I64(0)))

    def _mixes_volatile(self, theirs: Any, order_: int) -> Any:
        """Whether of a volatile store and another access only one is volatile (i1). A volatile load
        may read what atomic operations store: it is a relaxed one of system scope."""
        builder, mine = self.out.builder, self.access.volatile
        apart = builder.xor(theirs, mine)
        if order_ == READ_AFTER_WRITE:
            apart = builder.and_(apart, theirs)
        elif order_ == WRITE_AFTER_READ:
            apart = builder.and_(apart, mine)
        return builder.icmp_unsigned("!=", apart, I64(0))

    def _unordered_data(self, volatile: Any, theirs: Any, mine: Any, order_: int) -> Any:
        """Whether two accesses are volatile and may race (i1). A load that decides a branch may
        wait for the store."""
        builder = self.out.builder
        both = builder.icmp_unsigned("!=", builder.and_(volatile, self.access.volatile), I64(0))
        if order_ == WRITE_AFTER_WRITE:
            return both
        loaded = mine if order_ == READ_AFTER_WRITE else theirs
        return builder.and_(both, builder.icmp_unsigned("==", loaded, I64(Atomicity.DATA)))

    def _race(
        self,
        kind: Findings,
        race: Any,
        lane: Any,
        dword_address: Any,
        other: Any,
        detail: Any,
        changes: Any,
    ) -> None:
        """A race; where both store the same value, a note."""
        builder = self.out.builder
        if changes is not None and self.access.watched.plain_store:
            if kind is self.between:
                alike = builder.and_(race, builder.not_(changes))
                self.same.when(alike, lane, dword_address, other, detail)
            race = builder.and_(race, changes)
        kind.when(race, lane, dword_address, other, detail)

    def _replica(self, order_: int, record: Any, other_record: Any, other_number: Any) -> Any:
        """Whether two waves of the workgroup have loaded this by the same instruction, of which one
        stores in place: a load replicated over waves."""
        builder, shadow = self.out.builder, self.access.watched
        if order_ == READ_AFTER_WRITE:  # the one that stored had loaded it by this instruction
            return builder.icmp_unsigned("==", LOADER.of(builder, record[1]), shadow.site)
        if order_ == WRITE_AFTER_READ:  # this one had, and has stored since
            loader = LOADER.of(builder, other_number)
            read = LOADER.of(builder, record[1])
            return shadow.all_of(
                builder.icmp_unsigned("==", loader, read),
                builder.icmp_unsigned("==", GROUP.of(builder, other_record), self.access.me),
                builder.icmp_unsigned("==", WAVE.of(builder, other_record), self.access.wave),
            )
        return I1(0)

    def _read(
        self,
        slots: list[Any],
        record: tuple[Any, Any],
        every: Any,
        bytes_: Any,
        atomicity: Any = None,
    ) -> None:
        """Record a load of `bytes_`; its lanes up to this one have read `every` of the dword. It
        replaces that of another launch."""
        builder, (read, number) = self.out.builder, record
        group = GROUP.of(builder, read)
        foreign = builder.and_(
            builder.icmp_unsigned("!=", group, I64(0)),
            builder.icmp_unsigned("!=", group, self.access.me),
        )
        if self.access.across:
            launch = builder.shl(LAUNCH.of(builder, number), I64(LAUNCH.first))
            here = self.access.watched.word(log.LAUNCH_BITS)
            foreign = builder.and_(foreign, builder.icmp_unsigned("==", launch, here))
        alike = builder.icmp_unsigned("==", BYTES.of(builder, read), bytes_)
        mine = self.access.who(every, atomicity)
        several = builder.or_(mine, I64(MANY))
        who = builder.select(builder.and_(foreign, alike), several, mine)
        builder.store(who, slots[READS], align=8)
        builder.store(self.access.numbers(self.access.watched.site), slots[READ_NUMBERS], align=8)

    def log(self) -> None:
        for findings in (
            self.between, self.within, self.replicas, self.same,
            self.lane_race,
        ):  # fmt: skip
            findings.log(self.access.watched.instruction)


__all__ = ["GlobalRaces"]
