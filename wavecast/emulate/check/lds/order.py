"""Which operations in LDS are done before an access: behind a barrier, waited for, polled for."""

from __future__ import annotations

from typing import Any

from wavecast.emulate.check import log
from wavecast.emulate.check.clocks import clocks
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
from wavecast.emulate.check.lds.records import NUMBER, ONES, STREAM, LdsRecords
from wavecast.emulate.check.named_barriers import NAMED, is_ordered
from wavecast.emulate.check.shadow import COPIES
from wavecast.emulate.values import I1, I64, PTR, element, load

POLLED, POLLS = "s", "p"
"""Traits: the program has loads that only wait for a value in LDS; this is one."""
WAITS = "w"
"""Trait of these: waves must wait for what they do in global memory before others see it."""
FILLED = "d"
"""Trait: the program has loads from memory to LDS. They end out of order with the LDS operations of
the wave, which must wait for them."""


class LdsOrder:
    """What is done of what records of LDS name, for one access."""

    def __init__(self, records: LdsRecords) -> None:
        self.watched, self.out, self.me = records.watched, records.out, records.me
        self.progress = self.watched.word(log.PROGRESS, PTR)
        copies = self.watched.kind == "tolds" or COPIES in self.watched.traits
        self.fills = FILLED in self.watched.traits and not copies

    def outstanding(self, written: Any, wave: Any) -> Any:
        """Whether a record is of a load to LDS that its wave, this one, has not waited for (i1)."""
        if not self.fills:
            return I1(0)
        shadow, builder = self.watched, self.out.builder
        stream = STREAM.of(builder, written)
        at = builder.add(builder.mul(shadow.wave, I64(STREAMS)), builder.add(stream, I64(DONE)))
        completions = load(builder, element(builder, self.progress, at, I64), I64, 8)
        return shadow.all_of(
            builder.icmp_unsigned("==", wave, self.me),
            builder.icmp_unsigned("!=", stream, I64(DS)),
            builder.icmp_unsigned(">", NUMBER.of(builder, written), completions),
        )

    def visible(self, written: Any, wave: Any) -> Any:
        """Whether a store is done and behind a barrier for this wave (i1)."""
        builder = self.out.builder
        return self.is_before_barrier(
            wave, STREAM.of(builder, written), NUMBER.of(builder, written)
        )

    def is_before_barrier(self, wave: Any, stream: Any, number: Any) -> Any:
        """Whether an operation was done when its wave (+ 1) came to the last barrier, or to a named
        one that orders it (i1)."""
        builder = self.out.builder
        author = builder.and_(builder.sub(wave, I64(1)), I64(WAVES - 1))
        is_done = visible(builder, self.progress, self.watched.phase, author, stream, number)
        if NAMED in self.watched.traits:
            who = self.watched.wave, author
            is_named = is_ordered(builder, self.progress, *who, stream, number)
            is_done = builder.or_(is_done, is_named)
        if POLLED not in self.watched.traits:
            return is_done
        last_poll = load(builder, self._polled_slot(wave), I64, 8)
        polled = builder.and_(
            builder.icmp_unsigned(">=", last_poll, number),
            builder.icmp_unsigned("==", stream, I64(DS)),
        )
        return builder.or_(is_done, polled)

    def poll(self, foreign: Any, wave: Any, written: Any) -> None:
        """What another wave did in LDS before it stored what this one waits for is done: LDS
        executes the operations of a wave in order."""
        builder = self.out.builder
        with builder.if_then(foreign):
            slot = self._polled_slot(wave)
            number = NUMBER.of(builder, written)
            before = load(builder, slot, I64, 8)
            later = builder.icmp_unsigned(">", number, before)
            builder.store(builder.select(later, number, before), slot, align=8)
            self._publish(wave)

    def _publish(self, wave: Any) -> None:
        """The workgroup sees what another wave (+ 1) has done in global memory, as behind a
        barrier."""
        shadow, builder = self.watched, self.out.builder
        author = builder.and_(builder.sub(wave, I64(1)), I64(WAVES - 1))
        parity = builder.and_(shadow.phase, I64(1))
        row = builder.mul(author, I64(STREAMS))
        for stream in (LOAD, STORE):
            first = DONE if WAITS in shadow.traits else ISSUED
            at = builder.add(row, I64(first + stream))
            number = load(builder, element(builder, self.progress, at, I64), I64, 8)
            number = builder.and_(number, I64(NUMBER.mask))
            slot = visible_slot(builder, self.progress, author, parity, stream + ORDERED)
            word = load(builder, slot, I64, 8)
            ahead = builder.and_(builder.sub(number, word), I64(NUMBER.mask))
            later = builder.icmp_unsigned("<", ahead, I64(1 << NUMBER_BITS - 1))
            end_bits = builder.and_(word, I64(ONES << 32 & ONES))  # when the wave ended
            number = builder.or_(end_bits, number)
            builder.store(builder.select(later, number, word), slot, align=8)

    def _polled_slot(self, wave: Any) -> Any:
        """The slot of the last operation of another wave (+ 1) that this one has polled for."""
        shadow, builder = self.watched, self.out.builder
        author = builder.and_(builder.sub(wave, I64(1)), I64(WAVES - 1))
        row = builder.add(builder.mul(shadow.wave, I64(WAVES)), author)
        words = shadow.word(log.CLOCKS, PTR)
        return element(builder, words, builder.add(row, I64(clocks.SEEN)), I64)


__all__ = ["FILLED", "POLLED", "POLLS", "WAITS", "LdsOrder"]
