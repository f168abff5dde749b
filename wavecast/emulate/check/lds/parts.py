"""Records of LDS next to the last store of a dword, where that has stored some of its bytes.

A word per byte: the last store of the byte, of bytes that the last store of the dword has not
stored. It is set where that store replaces the record of another one, and means nothing without a
record, or where the last store has the byte. The word behind those of all dwords is not 0
once any was set.
"""

from __future__ import annotations

from typing import Any

from wavecast.emulate.check import log
from wavecast.emulate.check.lds.records import BYTES, LdsRecords
from wavecast.emulate.check.shadow import DWORD_BYTES, hidden_bytes
from wavecast.emulate.lower import state
from wavecast.emulate.values import I64, PTR, element, load


class LdsParts:
    """The records that an access of LDS finds of the bytes that the last store of a dword has not
    stored, and keeps."""

    def __init__(self, records: LdsRecords) -> None:
        self.records, self.out = records, records.out
        self.watched = records.watched

    def compare(self, judge: Any, dword: Any, written: Any, bytes_: Any) -> None:
        """Call `judge(record, overlaps)` for each record of bytes of an access; `written` is that
        of the last store."""
        builder = self.out.builder
        others = hidden_bytes(builder, written, BYTES, bytes_)
        with (
            builder.if_then(builder.icmp_unsigned("!=", others, I64(0)), likely=False),
            self.out.counted_loop(DWORD_BYTES) as byte,
        ):
            record = load(builder, self._slot(dword, byte), I64, 8)
            bit = builder.and_(builder.lshr(others, byte), I64(1))
            judge(record, builder.icmp_unsigned("!=", bit, I64(0)))

    def replace(self, dword: Any, written: Any, bytes_: Any) -> None:
        """Keep the record of the last store, which this one of some bytes replaces."""
        builder = self.out.builder
        left = builder.and_(BYTES.of(builder, written), builder.not_(bytes_))
        left = builder.select(self.records.again(written), I64(0), left)
        with builder.if_then(builder.icmp_unsigned("!=", left, I64(0)), likely=False):
            builder.store(I64(1), self._used(), align=8)
            with self.out.counted_loop(DWORD_BYTES) as byte:
                bit = builder.and_(builder.lshr(left, byte), I64(1))
                with builder.if_then(builder.icmp_unsigned("!=", bit, I64(0))):
                    builder.store(written, self._slot(dword, byte), align=8)

    def _slot(self, dword: Any, byte: Any) -> Any:
        builder = self.out.builder
        at = builder.add(builder.mul(dword, I64(DWORD_BYTES)), byte)
        return element(builder, self.watched.word(log.LDS_PARTS, PTR), at, I64)

    def _used(self) -> Any:
        builder = self.out.builder
        return self._slot(dwords_of(builder, self.watched.word(state.LDS_BYTES)), I64(0))


def dwords_of(builder: Any, size: Any) -> Any:
    """The dwords of some bytes of LDS."""
    return builder.lshr(builder.add(size, I64(3)), I64(2))


__all__ = ["LdsParts", "dwords_of"]
