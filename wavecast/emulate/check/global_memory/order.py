"""Whether a recorded access of global memory happened before the access at hand, in native code.

Within a workgroup barriers order accesses (`counters.py`). Between workgroups nothing does but what
a wave has acquired: rows of numbers per wave of the launch (`clocks.py`), where the program has
accesses that can order workgroups.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from wavecast.emulate.check import log
from wavecast.emulate.check.clocks import clocks
from wavecast.emulate.check.clocks.atomicity import ATOMIC, Atomicity
from wavecast.emulate.check.clocks.records import ATOMICITY, GROUP, LAUNCH, NUMBER, STREAM, WAVE
from wavecast.emulate.check.counters import ORDERED, STORE, WAVES, visible
from wavecast.emulate.check.named_barriers import NAMED, is_ordered
from wavecast.emulate.check.shadow import Watched
from wavecast.emulate.values import I1, I32, I64, PTR, element, load

_I8 = ir.IntType(8)
QUERY = ir.FunctionType(I64, [PTR, I64, I64, I64, I64])
"""`i64 query(ptr context, i64 who, i64 number, i64 access, i64 address)`: 0 if the record of the
address is ordered."""
EVENT = ir.FunctionType(ir.VoidType(), [PTR, I64, PTR, I64, I64])
"""`void event(ptr context, i64 what, ptr addresses, i64 lanes, i64 number)`."""


def conflicts(builder: ir.IRBuilder, mine: Any, theirs: Any, *, within: bool) -> Any:
    """Whether two accesses of these atomicities (i64) may race (i1). `within`: both are of one
    workgroup."""
    atomic = {*ATOMIC, Atomicity.WORKGROUP} if within else set(ATOMIC)
    atomic.discard(Atomicity.RELEASING)
    unmarked = {Atomicity.UNMARKED, Atomicity.RELEASING}
    replaced = atomic - {Atomicity.UPDATE} - ({Atomicity.DATA} if within else set())
    good = {(a, b) for a in atomic for b in atomic} | {
        pair for a in unmarked for b in replaced for pair in ((a, b), (b, a))
    }
    if within:
        good -= {(Atomicity.DATA, Atomicity.STORED), (Atomicity.STORED, Atomicity.DATA)}
    table = sum(1 << 8 * a + b for a, b in good)
    index = builder.or_(builder.shl(mine, I64(3)), theirs)
    entry = builder.lshr(I64(table), index)
    return builder.not_(builder.trunc(entry, I1))


def barrier_orders(shadow: Watched, who: Any, number: Any) -> Any:
    """Whether a barrier of this workgroup, or a named one, orders a record of another of its waves
    (i1)."""
    builder = shadow.out.builder
    author = builder.and_(builder.sub(WAVE.of(builder, who), I64(1)), I64(WAVES - 1))
    stream = builder.add(STREAM.of(builder, who), I64(ORDERED))
    progress = shadow.word(log.PROGRESS, PTR)
    number = NUMBER.of(builder, number)
    is_done = visible(builder, progress, shadow.phase, author, stream, number)
    if NAMED in shadow.traits:
        is_named = is_ordered(builder, progress, shadow.wave, author, stream, number)
        is_done = builder.or_(is_done, is_named)
    return is_done


def has_acquired(
    shadow: Watched, who: Any, number: Any, mine: Any, address: Any, narrow: Any, *, stored: bool
) -> Any:
    """Whether this wave has acquired what a record tells of (i1); `stored`: it is one of a store.
    `mine` is the atomicity of the access at hand (i64). `narrow`: only the scope of the two makes
    them a race, if they are of two GPUs (i1)."""
    if clocks.ORDERS not in shadow.traits:
        return I1(0)
    out, builder = shadow.out, shadow.out.builder
    flag = _rows_reach(shadow, who, number, stored=stored)
    if clocks.ACROSS in shadow.traits:
        launch = LAUNCH.of(builder, number)
        is_ordered = builder.or_(out.get(flag, I1), behind(shadow, launch))
        builder.store(is_ordered, flag)
    with builder.if_then(builder.not_(out.get(flag, I1)), likely=False):
        query = load(
            builder,
            element(builder, out.context, log.ORDER_QUERY, I64),
            ir.PointerType(QUERY),
            8,
        )
        access = builder.or_(
            builder.shl(shadow.instruction, I64(8)), I64(int(stored) | int(shadow.loads) << 1)
        )
        access = builder.or_(access, builder.shl(mine, I64(2)))
        access = builder.or_(access, builder.shl(builder.zext(narrow, I64), I64(5)))
        answer = builder.call(query, [out.context, who, number, access, address])
        builder.store(builder.icmp_unsigned("==", answer, I64(0)), flag)
    return out.get(flag, I1)


def behind(shadow: Watched, launch: Any) -> Any:
    """Whether a launch (its number, i64) ended before this one started, or this wave has acquired
    its end and keeps that (i1)."""
    builder = shadow.out.builder
    table = shadow.word(log.KNOWN_LAUNCHES, PTR)
    before = load(builder, element(builder, table, launch, _I8), _I8, 1)
    words = shadow.word(log.CLOCKS, PTR)
    slot = builder.add(_slot(shadow, launch), I64(clocks.BEHIND))
    cached_launch = load(builder, element(builder, words, slot, I64), I64, 8)
    return builder.or_(
        builder.icmp_unsigned("!=", before, _I8(0)),
        builder.icmp_unsigned("==", cached_launch, launch),
    )


def _slot(shadow: Watched, launch: Any) -> Any:
    """The word of this wave for a launch among those by slot, i64."""
    builder = shadow.out.builder
    first = builder.mul(shadow.wave, I64(clocks.SLOTS))
    return builder.add(first, builder.and_(launch, I64(clocks.SLOTS - 1)))


def orders_record(shadow: Watched, who: Any, number: Any, *, stored: bool = True) -> Any:
    """Whether the rows that this wave keeps order a record, of a store if `stored` (i1). Asks no
    query, which would be between a poll and its event."""
    if clocks.ORDERS not in shadow.traits:
        return I1(0)
    return shadow.out.get(_rows_reach(shadow, who, number, stored=stored), I1)


def _rows_reach(shadow: Watched, who: Any, number: Any, *, stored: bool) -> Any:
    """A variable (i1): whether the rows of the last workgroup that was asked for are of this
    record's, and reach it."""
    builder = shadow.out.builder
    words = shadow.word(log.CLOCKS, PTR)
    with builder.goto_entry_block():
        flag = builder.alloca(I1)
    builder.store(I1(0), flag)
    across = clocks.ACROSS in shadow.traits
    index = _slot(shadow, LAUNCH.of(builder, number) if across else I64(0))
    group_index = builder.add(index, I64(clocks.ROWS_OF))
    group = load(builder, element(builder, words, group_index, I64), I64, 8)
    with builder.if_then(builder.icmp_unsigned("==", GROUP.of(builder, who), group)):
        slot = element(builder, words, builder.add(index, I64(clocks.ROWS)), I64)
        rows = load(builder, slot, PTR, 8)
        row = builder.sub(WAVE.of(builder, who), I64(1))
        cell = builder.add(
            builder.mul(row, I64(clocks.COLUMNS)), _column(builder, who, stored=stored)
        )
        last_number = load(builder, element(builder, rows, cell, I32), I32)
        record_number = NUMBER.of(builder, number)
        builder.store(
            builder.icmp_unsigned(">=", builder.zext(last_number, I64), record_number), flag
        )
    return flag


def _column(builder: ir.IRBuilder, who: Any, *, stored: bool) -> Any:
    """The column of `clocks.column`, i64."""
    if not stored:
        return I64(clocks.LOADED)
    atomicity = ATOMICITY.of(builder, who)
    plain = builder.or_(
        builder.icmp_unsigned("<=", atomicity, I64(Atomicity.WORKGROUP)),
        builder.icmp_unsigned("==", atomicity, I64(Atomicity.UNMARKED)),
    )
    is_store = builder.icmp_unsigned("==", STREAM.of(builder, who), I64(STORE))
    atomic = builder.select(is_store, I64(clocks.STORED), I64(clocks.LOADED))
    return builder.select(plain, I64(clocks.WRITTEN), atomic)


__all__ = [
    "EVENT",
    "QUERY",
    "barrier_orders",
    "behind",
    "conflicts",
    "has_acquired",
    "orders_record",
]
