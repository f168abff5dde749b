"""Records of LDS next to the last store of a dword, where atomic operations replace that one.

Three words per dword, in programs with atomic operations in LDS: the last plain store, the last
atomic one of another wave than the one behind it, and the wave + 1 of the last atomic operation if
the program branches on what that returned.
"""

from __future__ import annotations

from typing import Any

from wavecast.emulate.check import log
from wavecast.emulate.check.lds.records import ATOMIC, BYTES, WAVE, LdsRecords
from wavecast.emulate.check.shadow import DECIDES_TRAIT, WITH_ATOMICS
from wavecast.emulate.values import I64, PTR, element, load

ASIDE_WORDS = 3
_PLAIN, _OTHER, _DECIDING = range(ASIDE_WORDS)


class LdsAside:
    """The records that an access of LDS finds next to the last store, and keeps."""

    def __init__(self, records: LdsRecords) -> None:
        self.records, self.watched = records, records.watched
        self.builder = records.out.builder
        self.active = WITH_ATOMICS in self.watched.traits

    def hidden_record(self, dword: Any, bytes_: Any) -> tuple[Any, Any]:
        """The record that the last store may hide, and whether it is of another wave, of some of
        these bytes and in conflict with this access (i1)."""
        shadow, builder = self.watched, self.builder
        which = _PLAIN if shadow.atomic else _OTHER
        record = load(builder, self._slot(dword, which), I64, 8)
        wave = WAVE.of(builder, record)
        overlap = builder.and_(BYTES.of(builder, record), bytes_)
        foreign = shadow.all_of(
            builder.icmp_unsigned("!=", wave, I64(0)),
            builder.icmp_unsigned("!=", wave, self.records.me),
            builder.icmp_unsigned("!=", overlap, I64(0)),
        )
        if shadow.atomic or not self.records.stores:
            return record, foreign
        deciding = load(builder, self._slot(dword, _DECIDING), I64, 8)
        free = builder.icmp_unsigned("==", deciding, self.records.me)
        return record, builder.and_(foreign, builder.not_(free))

    def replace(self, dword: Any, written: Any) -> None:
        """Keep the record of the last store, which this one replaces."""
        shadow, builder = self.watched, self.builder
        if not self.active:
            return
        slots = [self._slot(dword, which) for which in range(ASIDE_WORDS)]
        if not shadow.atomic:  # what is behind this store is behind those before it, or a race
            for slot in slots:
                builder.store(I64(0), slot, align=8)
            return
        wave = WAVE.of(builder, written)
        plain = builder.icmp_unsigned("==", ATOMIC.of(builder, written), I64(0))
        some = builder.icmp_unsigned("!=", wave, I64(0))
        with builder.if_then(some), builder.if_else(plain) as (before, among):
            with before:
                builder.store(written, slots[_PLAIN], align=8)
            with among:
                other = builder.icmp_unsigned("!=", wave, self.records.me)
                with builder.if_then(other):
                    builder.store(written, slots[_OTHER], align=8)
        deciding = self.records.me if DECIDES_TRAIT in shadow.traits else I64(0)
        builder.store(deciding, slots[_DECIDING], align=8)

    def _slot(self, dword: Any, which: int) -> Any:
        builder = self.builder
        words = self.watched.word(log.LDS_ASIDE, PTR)
        at = builder.add(builder.mul(dword, I64(ASIDE_WORDS)), I64(which))
        return element(builder, words, at, I64)


__all__ = ["ASIDE_WORDS", "LdsAside"]
