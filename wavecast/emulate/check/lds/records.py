"""Records of the dwords of LDS: who stored to each last, and who loaded it.

A store's record, one word per dword: its number and stream, bytes, wave + 1, whether it was atomic,
instruction; and which bytes of the dword have been written at all. It needs no barrier phase: a
number of this phase is beyond all that were done at the last barrier. A load's record, four words:
phase and instruction; number, stream and wave of the last load; and the waves that read each byte
in that phase.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from wavecast.emulate.check import log
from wavecast.emulate.check.counters import NUMBER_BITS, STREAM_BITS, STREAMS, WAVES
from wavecast.emulate.check.shadow import ShadowField, Watched, together
from wavecast.emulate.values import I1, I32, I64, PTR, constant, element, splat

NUMBER, WRITTEN = ShadowField(0, NUMBER_BITS), ShadowField(NUMBER_BITS, 4)
STREAM = ShadowField(34, STREAM_BITS)
BYTES, WAVE = ShadowField(37, 4), ShadowField(41, 6)
ATOMIC, INSTRUCTION = ShadowField(47, 1), ShadowField(48, 16)
READ_PHASE = ShadowField(0, 48)
LAST_NUMBER, LAST_STREAM, LAST_WAVE = (
    ShadowField(0, NUMBER_BITS),
    ShadowField(32, STREAM_BITS),
    ShadowField(40, 6),
)
READ_WORDS = 4
"""64-bit words of a load's record."""
LOAD_RECORD = ir.VectorType(I64, READ_WORDS)
ONES = (1 << 64) - 1
AUTHOR = sum(field.mask << field.first for field in (NUMBER, STREAM, WAVE, ATOMIC))
"""What stores of one instruction of one wave have in common."""
READERS = ir.VectorType(I32, 4)
"""Masks of waves, one per byte of the dword."""
assert WAVES == 32
assert STREAMS == 1 << STREAM_BITS


class LdsRecords:
    """The records that an access of LDS finds and makes."""

    def __init__(self, shadow: Watched, *, stores: bool | None = None) -> None:
        self.watched, self.out = shadow, shadow.out
        builder = self.out.builder
        self.stores = shadow.stores if stores is None else stores
        self.me = builder.add(shadow.wave, I64(1))
        self.bit = builder.shl(I32(1), builder.trunc(shadow.wave, I32))
        self.writes = shadow.word(log.LDS_WRITES, PTR)
        self.reads = shadow.word(log.LDS_READS, PTR)
        self.reader = self._reader()

    def write_slot(self, dword: Any) -> Any:
        """The address of a dword's record of stores."""
        return element(self.out.builder, self.writes, dword, I64)

    def read_slot(self, dword: Any) -> Any:
        """The address of a dword's record of loads."""
        builder = self.out.builder
        return element(builder, self.reads, builder.mul(dword, I64(READ_WORDS)), I64)

    def again(self, written: Any) -> Any:
        """Whether a record is of this very store (i1)."""
        builder, fields = self.out.builder, (NUMBER, STREAM, WAVE, INSTRUCTION)
        mask = sum(field.mask << field.first for field in fields)
        record = self.store(I64(0), I64(0))
        apart = builder.and_(builder.xor(written, record), I64(mask))
        return builder.icmp_unsigned("==", apart, I64(0))

    def store(self, ever: Any, bytes_: Any) -> Any:
        """The record of this store to some bytes of a dword; bytes `ever` have been written."""
        shadow, builder = self.watched, self.out.builder
        return together(
            builder, NUMBER.at(builder, shadow.number), WRITTEN.at(builder, ever),
            STREAM.at(builder, shadow.stream), BYTES.at(builder, bytes_),
            WAVE.at(builder, self.me), I64(int(shadow.atomic) << ATOMIC.first),
            INSTRUCTION.at(builder, shadow.instruction),
        )  # fmt: skip

    def with_reader(self, record: Any) -> Any:
        """A load's record with this wave among the readers of all four bytes."""
        builder = self.out.builder
        phase = READ_PHASE.of(builder, builder.extract_element(record, I32(0)))
        now = builder.and_(self.watched.phase, I64(READ_PHASE.mask))
        readers = builder.and_(record, ir.Constant(LOAD_RECORD, [0, 0, ONES, ONES]))
        same = builder.icmp_unsigned("==", phase, now)
        readers = builder.select(same, readers, ir.Constant(LOAD_RECORD, [0] * READ_WORDS))
        return builder.or_(readers, self.reader)

    def _reader(self) -> Any:
        """What a load of whole dwords by this wave adds to a load's record."""
        shadow, builder = self.watched, self.out.builder
        phase = builder.and_(shadow.phase, I64(READ_PHASE.mask))
        last = together(
            builder, LAST_NUMBER.at(builder, shadow.number),
            LAST_STREAM.at(builder, shadow.stream), LAST_WAVE.at(builder, self.me),
        )  # fmt: skip
        wide = builder.zext(self.bit, I64)
        both = builder.or_(wide, builder.shl(wide, I64(32)))
        head = builder.or_(phase, INSTRUCTION.at(builder, shadow.instruction))
        total: Any = ir.Constant(LOAD_RECORD, [0] * READ_WORDS)
        for index, word in enumerate((head, last, both, both)):
            total = builder.insert_element(total, word, I32(index))
        return total

    def by_byte(self, bytes_: Any, value: Any = None) -> Any:
        """This wave's bit (or `value`) for the bytes of a mask, 0 for the others."""
        builder = self.out.builder
        flags = builder.trunc(bytes_, ir.IntType(4))
        mask = builder.bitcast(flags, ir.VectorType(I1, 4))
        bits = splat(builder, self.bit if value is None else value, 4)
        return builder.select(mask, bits, constant(0, 32, 4))

    def any_bit(self, value: Any) -> Any:
        """All words of a vector or'ed, i64."""
        count = value.type.count
        if count == 1:
            return self.out.builder.extract_element(value, I32(0))
        return self.out.intrinsic(f"llvm.vector.reduce.or.v{count}i64", I64, value)


__all__ = [
    "ATOMIC",
    "AUTHOR",
    "BYTES",
    "INSTRUCTION",
    "LAST_NUMBER",
    "LAST_STREAM",
    "LAST_WAVE",
    "LOAD_RECORD",
    "NUMBER",
    "ONES",
    "READERS",
    "READ_PHASE",
    "READ_WORDS",
    "STREAM",
    "WAVE",
    "WRITTEN",
    "LdsRecords",
]
