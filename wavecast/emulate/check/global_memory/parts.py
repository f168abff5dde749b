"""Records next to the last store of a dword of global memory, where that has stored some bytes.

`PART_WORDS` words per dword: the first words of the last stores of each of its bytes, and the
second ones, of bytes that the last store of the dword has not stored. They mean something where the
record of that store says so (`HIDES`). Reads and keeps these records; the findings are of
`races.py`.
"""

from __future__ import annotations

from typing import Any

from wavecast.emulate.check.clocks.records import BYTES, HIDES, PART_WORDS
from wavecast.emulate.check.global_memory.access import PARTS_TRAIT, GlobalAccess
from wavecast.emulate.check.global_memory.aside import Judge
from wavecast.emulate.check.shadow import (
    DWORD_BYTES,
    READ_AFTER_WRITE,
    WRITE_AFTER_WRITE,
    hidden_bytes,
)
from wavecast.emulate.values import I64, PTR, element, load

Record = tuple[Any, Any]


class PartRecords:
    """The records of the bytes of one dword, from `base` (i64; 0 for none) on."""

    def __init__(self, access: GlobalAccess, base: Any, dword: Any) -> None:
        self.access, self.out = access, access.out
        builder = self.out.builder
        self.active = PARTS_TRAIT in access.watched.traits
        if self.active:
            at = builder.mul(dword, I64(PART_WORDS))
            self._row = element(builder, builder.inttoptr(base, PTR), at, I64)
            self._exist = builder.icmp_unsigned("!=", base, I64(0))

    def compare(self, judge: Judge, last: Record, bytes_: Any) -> None:
        """Compare an access with the stores that the `last` one hides."""
        if not self.active:
            return
        builder = self.out.builder
        order = WRITE_AFTER_WRITE if self.access.watched.stores else READ_AFTER_WRITE
        others = hidden_bytes(builder, last[0], BYTES, bytes_)
        hides = builder.icmp_unsigned("!=", HIDES.of(builder, last[0]), I64(0))
        some = builder.and_(hides, builder.icmp_unsigned("!=", others, I64(0)))
        with (
            builder.if_then(builder.and_(some, self._exist), likely=False),
            self.out.counted_loop(DWORD_BYTES) as byte,
        ):
            record = load(builder, self._slot(byte), I64, 8)
            number = load(builder, self._slot(byte, second=True), I64, 8)
            bit = builder.and_(builder.lshr(others, byte), I64(1))
            judge((record, number), builder.icmp_unsigned("!=", bit, I64(0)), order)

    def replace_store(self, last: Record, again: Any, bytes_: Any) -> Any:
        """Keep the record of the `last` store, which one of some bytes replaces, unless it is of
        this very access (`again`). Returns the field `HIDES` of the new record (i64)."""
        if not self.active:
            return I64(0)
        builder = self.out.builder
        left = builder.and_(BYTES.of(builder, last[0]), builder.not_(bytes_))
        left = builder.select(again, I64(0), left)
        some = builder.icmp_unsigned("!=", left, I64(0))
        with (
            builder.if_then(builder.and_(some, self._exist), likely=False),
            self.out.counted_loop(DWORD_BYTES) as byte,
        ):
            bit = builder.and_(builder.lshr(left, byte), I64(1))
            with builder.if_then(builder.icmp_unsigned("!=", bit, I64(0))):
                builder.store(last[0], self._slot(byte), align=8)
                builder.store(last[1], self._slot(byte, second=True), align=8)
        whole = builder.icmp_unsigned("==", bytes_, I64(BYTES.mask))
        hides = builder.or_(builder.zext(some, I64), HIDES.of(builder, last[0]))
        return HIDES.at(builder, builder.select(whole, I64(0), hides))

    def _slot(self, byte: Any, *, second: bool = False) -> Any:
        at = self.out.builder.add(byte, I64(DWORD_BYTES)) if second else byte
        return element(self.out.builder, self._row, at, I64)


__all__ = ["PartRecords"]
