"""What native code tells the clocks of an access that may release or observe.

Emits the calls of `log.ORDER_EVENT` and the words of the workgroup's clocks that spare them
(`clocks.py`). Reads and stores no records of accesses.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from wavecast.emulate.check import clocks, log, order
from wavecast.emulate.check.atomicity import Atomicity
from wavecast.emulate.check.global_access import OBSERVES, RELEASES_TRAIT, GlobalAccess
from wavecast.emulate.check.records import RELEASES
from wavecast.emulate.lower.values import I1, I32, I64, PTR, element, load

_ONES = (1 << 64) - 1


def synchronise(access: GlobalAccess) -> None:
    """Tell the clocks of an access that may release or observe."""
    watched, out, builder = access.watched, access.out, access.out.builder
    events = []
    if RELEASES_TRAIT in watched.traits:
        events.append(clocks.UPDATE if watched.atomic else clocks.RELEASE)
    if OBSERVES in watched.traits:
        events.append(clocks.OBSERVE)
    if not events:
        if clocks.ORDERS in watched.traits:
            builder.store(I64(0), _word(access, clocks.CLEAN), align=8)
        return
    wanted = access.tracked()
    if watched.plain_store:
        marked = builder.icmp_unsigned("!=", access.atomicity, I64(Atomicity.UNMARKED))
        wanted = builder.and_(wanted, marked)
        builder.store(I64(0), _word(access, clocks.CLEAN), align=8)
    with builder.if_then(wanted, likely=False):
        known = _polled(access) if OBSERVES in watched.traits else I1(0)
        with builder.if_then(builder.not_(known)):
            slot = element(builder, out.context, log.ORDER_EVENT, I64)
            function = load(builder, slot, ir.PointerType(order.EVENT), 8)
            live, addresses = access.lanes.live, access.lanes.addresses
            lanes = live if out.lanes == 64 else builder.zext(live, I64)
            for event in events:
                what = builder.or_(builder.shl(watched.instruction, I64(8)), I64(event))
                arguments = [out.context, what, addresses, lanes, watched.memory_number]
                builder.call(function, arguments)


def _word(access: GlobalAccess, first: int) -> Any:
    """The slot of this wave among words of the workgroup's clocks."""
    builder = access.out.builder
    words = access.watched.word(log.CLOCKS, PTR)
    return element(builder, words, builder.add(access.watched.wave, I64(first)), I64)


def _polled(access: GlobalAccess) -> Any:
    """Whether all lanes access the dword of this wave's last event, nothing has been released
    to it since and, for an atomic operation, nothing has to be released (i1)."""
    watched, out, builder = access.watched, access.out, access.out.builder
    lane = out.lowest(access.lanes.live)
    first = load(builder, element(builder, access.lanes.addresses, lane, I64), I64, 8)
    with builder.goto_entry_block():
        same, found = builder.alloca(I1), builder.alloca(I1)
    builder.store(I1(1), same)
    builder.store(I1(0), found)
    with out.each_lane(access.lanes.live) as lane:
        other = load(builder, element(builder, access.lanes.addresses, lane, I64), I64, 8)
        alike = builder.icmp_unsigned("==", other, first)
        builder.store(builder.and_(out.get(same, I1), alike), same)
    inset = builder.sub(first, out.get(access.start, I64))
    dword = builder.and_(inset, I64(~3 & _ONES))
    slot = builder.add(out.get(access.arrays[RELEASES], I64), dword)
    key = load(builder, _word(access, clocks.KEY), I64, 8)
    good = builder.and_(out.get(same, I1), builder.icmp_unsigned("==", slot, key))
    if watched.atomic:
        clean = load(builder, _word(access, clocks.CLEAN), I64, 8)
        now = builder.add(watched.phase, I64(1))
        good = builder.and_(good, builder.icmp_unsigned("==", clean, now))
    with builder.if_then(good):
        version = load(builder, builder.inttoptr(slot, PTR), I32)
        before = load(builder, _word(access, clocks.KEY_VERSION), I64, 8)
        unchanged = builder.icmp_unsigned("==", builder.zext(version, I64), before)
        builder.store(unchanged, found)
        with builder.if_then(unchanged):
            builder.store(watched.memory_number, _word(access, clocks.KEY_READ), align=8)
    return out.get(found, I1)


__all__ = ["synchronise"]
