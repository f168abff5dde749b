"""Records next to the last store and the last load of a dword, where atomic accesses replace those.

An atomic access conflicts with plain ones that other atomic ones have followed, and a plain access
with atomic ones of others that an own one has followed. Reads and keeps these records; the findings
are of `global_races.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wavecast.emulate.check.clocks.atomicity import ATOMIC, Atomicity
from wavecast.emulate.check.clocks.records import (
    ASIDE_RECORDS,
    ATOMICITY,
    BYTES,
    DECIDES,
    GROUP,
    LOADER,
    OTHER_GROUP,
    OTHER_WAVE,
    PLAIN_READ,
    PLAIN_WRITE,
    WAVE,
)
from wavecast.emulate.check.global_memory import order
from wavecast.emulate.check.global_memory.access import GlobalAccess
from wavecast.emulate.check.shadow import (
    READ_AFTER_WRITE,
    WITH_ATOMICS,
    WRITE_AFTER_READ,
    WRITE_AFTER_WRITE,
)
from wavecast.emulate.values import I1, I64, PTR, element, load

ATOMICS = sum(1 << value for value in {*ATOMIC, Atomicity.WORKGROUP} - {Atomicity.RELEASING})
"""A bit per atomicity of accesses that are atomic at least within a workgroup."""

Record = tuple[Any, Any]
Judge = Callable[[Record, Any, int], None]
"""Called with a record, whether its bytes overlap (i1), and the order of the two accesses."""


class AsideRecords:
    """The records of one dword, from `base` (i64; 0 for none) on."""

    def __init__(self, access: GlobalAccess, base: Any, dword: Any) -> None:
        self.access, self.builder = access, access.out.builder
        self.active = WITH_ATOMICS in access.watched.traits
        if self.active:
            at = self.builder.mul(dword, I64(2 * ASIDE_RECORDS))
            self._row = element(self.builder, self.builder.inttoptr(base, PTR), at, I64)
            self._exist = self.builder.icmp_unsigned("!=", base, I64(0))

    def compare(self, judge: Judge, last: Any, mine: Any, bytes_: Any) -> None:
        """Compare an access of atomicity `mine` with records that the `last` store hides."""
        if not self.active:
            return
        stores, builder = self.access.watched.stores, self.builder
        with (
            builder.if_then(self._exist, likely=False),
            builder.if_else(self._is_atomic(mine)) as (atomic, plain),
        ):
            with atomic:
                first = WRITE_AFTER_WRITE if stores else READ_AFTER_WRITE
                self._judge(judge, PLAIN_WRITE, bytes_, first)
                if stores:
                    self._judge(judge, PLAIN_READ, bytes_, WRITE_AFTER_READ)
            with plain:
                free = self._branches_on_atomic(last) if stores else I1(0)
                with builder.if_then(builder.not_(free)):
                    for which in (OTHER_GROUP, OTHER_WAVE):
                        first = WRITE_AFTER_WRITE if stores else READ_AFTER_WRITE
                        self._judge(judge, which, bytes_, first)

    def replace_store(self, last: Record, mine: Any) -> None:
        """Keep the record of the `last` store, which one of atomicity `mine` replaces."""
        if not self.active:
            return
        builder = self.builder
        with (
            builder.if_then(self._exist, likely=False),
            builder.if_else(self._is_atomic(mine)) as (atomic, plain),
        ):
            with atomic:
                self._keep_last(last)
            with plain:  # what is behind this store is behind those that it hides, or a race
                for which in (PLAIN_WRITE, OTHER_GROUP, OTHER_WAVE):
                    self._set(which, (I64(0), I64(0)))

    def replace_load(self, last: Record, mine: Any) -> None:
        """Keep the record of the `last` load, if it is plain and one of atomicity `mine` is not."""
        if not self.active:
            return
        builder = self.builder
        plain = builder.not_(self._is_atomic(ATOMICITY.of(builder, last[0])))
        present = builder.icmp_unsigned("!=", last[0], I64(0))
        hides = builder.and_(builder.and_(plain, present), self._is_atomic(mine))
        with builder.if_then(builder.and_(hides, self._exist), likely=False):
            self._set(PLAIN_READ, last)

    def _keep_last(self, last: Record) -> None:
        builder, who = self.builder, last[0]
        with builder.if_then(builder.icmp_unsigned("!=", who, I64(0))):
            atomic = self._is_atomic(ATOMICITY.of(builder, who))
            with builder.if_else(atomic) as (among, before):
                with before:
                    self._set(PLAIN_WRITE, last)
                with among:
                    same_group = builder.icmp_unsigned("==", GROUP.of(builder, who), self.access.me)
                    with builder.if_else(same_group) as (within, foreign):
                        with foreign:
                            self._set(OTHER_GROUP, last)
                        with within:
                            wave = WAVE.of(builder, who)
                            other = builder.icmp_unsigned("!=", wave, self.access.wave)
                            with builder.if_then(other):
                                self._set(OTHER_WAVE, last)

    def _judge(self, judge: Judge, which: int, bytes_: Any, order_: int) -> None:
        builder = self.builder
        who, number = (load(builder, slot, I64, 8) for slot in self._slots(which))
        overlap = builder.and_(BYTES.of(builder, who), bytes_)
        clash = builder.icmp_unsigned("!=", overlap, I64(0))
        loader = LOADER.mask << LOADER.first  # says nothing of a replicated load here
        judge((who, builder.and_(number, I64(~loader))), clash, order_)

    def _branches_on_atomic(self, last: Any) -> Any:
        """Whether this workgroup branches on what its atomic operation, the last store, returned
        (i1): a store behind it is behind the atomic operations before it, as all are of one
        dword."""
        builder, shadow = self.builder, self.access.watched
        same_group = builder.icmp_unsigned("==", GROUP.of(builder, last[0]), self.access.me)
        decides = builder.icmp_unsigned("!=", DECIDES.of(builder, last[0]), I64(0))
        wave = builder.icmp_unsigned("==", WAVE.of(builder, last[0]), self.access.wave)
        within = builder.or_(wave, order.barrier_orders(shadow, *last))
        return shadow.all_of(same_group, decides, within)

    def _is_atomic(self, atomicity: Any) -> Any:
        builder = self.builder
        return builder.trunc(builder.lshr(I64(ATOMICS), atomicity), I1)

    def _slots(self, which: int) -> tuple[Any, Any]:
        first = element(self.builder, self._row, 2 * which, I64)
        return first, element(self.builder, first, 1, I64)

    def _set(self, which: int, record: Record) -> None:
        for slot, word in zip(self._slots(which), record, strict=True):
            self.builder.store(word, slot, align=8)


__all__ = ["ATOMICS", "AsideRecords"]
