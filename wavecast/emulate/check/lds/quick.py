"""Records of whole dwords of LDS that one wave wrote by one instruction and that are in order.

Emits no findings: what it does not record, `shadow_lds.py` compares and records.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from wavecast.emulate.check.lds.order import POLLS, LdsOrder
from wavecast.emulate.check.lds.records import (
    ATOMIC,
    AUTHOR,
    BYTES,
    LAST_NUMBER,
    LAST_STREAM,
    LAST_WAVE,
    LOAD_RECORD,
    ONES,
    READ_PHASE,
    WAVE,
    WRITTEN,
    LdsRecords,
)
from wavecast.emulate.check.named_barriers import NAMED
from wavecast.emulate.values import I1, I32, I64, splat

_BYTES = BYTES.mask << BYTES.first
_WHOLE = _BYTES | WRITTEN.mask << WRITTEN.first
"""What records of dwords have that one store has written whole: others hide those of their bytes
(`parts.py`)."""


class QuickLdsRecords:
    """The quick path of one access."""

    def __init__(self, records: LdsRecords, order: LdsOrder) -> None:
        self.records, self.order = records, order
        self.watched, self.out = records.watched, records.out

    def record(self, inset: Any, first: Any) -> Any:
        """Record whole dwords that one wave wrote by one instruction and that are in order; False
        (i1) where there is anything to look at, and nothing is recorded.
        """
        shadow, builder = self.watched, self.out.builder
        if shadow.lane_bytes < 4 or shadow.atomic or {POLLS, NAMED} & set(shadow.traits):
            return I1(0)
        count = self.out.access.dwords
        kind = ir.VectorType(I64, count)
        write_slot = self.records.write_slot(first)
        written = builder.load(write_slot, align=8, typ=kind)
        first_record = builder.extract_element(written, I32(0))
        wave = WAVE.of(builder, first_record)
        alike = builder.and_(
            builder.xor(written, splat(builder, first_record, count)), _all(AUTHOR, count)
        )
        foreign = builder.and_(
            builder.icmp_unsigned("!=", wave, I64(0)),
            builder.icmp_unsigned("!=", wave, self.records.me),
        )
        good = shadow.all_of(
            builder.icmp_unsigned("==", builder.and_(inset, I64(3)), I64(0)),
            builder.icmp_unsigned("==", self.records.any_bit(alike), I64(0)),
            builder.icmp_unsigned("==", ATOMIC.of(builder, first_record), I64(0)),
            builder.or_(builder.not_(foreign), self.order.visible(first_record, wave)),
            builder.not_(self.order.outstanding(first_record, wave)),
        )
        slots = [self.records.read_slot(builder.add(first, I64(index))) for index in range(count)]
        loads = [builder.load(slot, align=8, typ=LOAD_RECORD) for slot in slots]
        if self.records.stores:
            good = builder.and_(good, builder.not_(self.records.again(first_record)))
            none = builder.icmp_unsigned("==", wave, I64(0))
            good = builder.and_(good, builder.or_(none, self._have_all(written, _BYTES)))
            return self._store(good, loads, write_slot, kind)
        good = builder.and_(good, self._have_all(written, _WHOLE))
        with builder.if_then(good, likely=True):
            for slot, record in zip(slots, loads, strict=True):
                builder.store(self.records.with_reader(record), slot, align=8)
        return good

    def _have_all(self, written: Any, bits: int) -> Any:
        """Whether all records have some bits (i1)."""
        builder, every = self.out.builder, _all(bits, written.type.count)
        missing = builder.and_(builder.xor(written, every), every)
        return builder.icmp_unsigned("==", self.records.any_bit(missing), I64(0))

    def _store(self, good: Any, loads: list[Any], write_slot: Any, kind: Any) -> Any:
        shadow, builder = self.watched, self.out.builder
        now = builder.and_(shadow.phase, I64(READ_PHASE.mask))
        last = builder.extract_element(loads[0], I32(1))
        for record in loads:
            phase = READ_PHASE.of(builder, builder.extract_element(record, I32(0)))
            readers = builder.and_(record, ir.Constant(LOAD_RECORD, [0, 0, ONES, ONES]))
            nobody = builder.icmp_unsigned("==", self.records.any_bit(readers), I64(0))
            earlier = builder.and_(
                builder.icmp_unsigned("!=", phase, now),
                builder.icmp_unsigned("==", builder.extract_element(record, I32(1)), last),
            )
            good = builder.and_(good, builder.or_(nobody, earlier))
        wave = LAST_WAVE.of(builder, last)
        same_wave = builder.or_(
            builder.icmp_unsigned("==", wave, self.records.me),
            builder.icmp_unsigned("==", wave, I64(0)),
        )
        stream, number = LAST_STREAM.of(builder, last), LAST_NUMBER.of(builder, last)
        good = builder.and_(
            good, builder.or_(same_wave, self.order.is_before_barrier(wave, stream, number))
        )
        with builder.if_then(good, likely=True):
            record = self.records.store(I64(WRITTEN.mask), I64(BYTES.mask))
            builder.store(splat(builder, record, kind.count), write_slot, align=8)
        return good


def _all(value: int, count: int) -> ir.Constant:
    return ir.Constant(ir.VectorType(I64, count), [value] * count)


__all__ = ["QuickLdsRecords"]
