"""What native code tells the clocks of an access that may release or observe.

Emits the calls of `log.ORDER_EVENT` and the words of the workgroup's clocks that spare them
(`clocks.py`). Reads and stores no records of accesses.
"""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir

from wavecast.emulate.check import log
from wavecast.emulate.check.clocks import clocks
from wavecast.emulate.check.clocks.atomicity import Atomicity
from wavecast.emulate.check.clocks.records import RELEASES
from wavecast.emulate.check.counters import WAVES
from wavecast.emulate.check.global_memory import order
from wavecast.emulate.check.global_memory.access import OBSERVES, RELEASES_TRAIT, ZERO, GlobalAccess
from wavecast.emulate.lower import runtime
from wavecast.emulate.values import I1, I32, I64, PTR, element, load

POLLED_ANEW: Final = ir.FunctionType(I64, [PTR, I64])
"""`i64 polled_anew(ptr words, i64 wave)`."""
_ONES = (1 << 64) - 1


def synchronise(access: GlobalAccess) -> None:
    """Tell the clocks of an access that may release or observe."""
    shadow, builder = access.watched, access.out.builder
    events = []
    if RELEASES_TRAIT in shadow.traits:
        events.append(clocks.UPDATE if shadow.atomic else clocks.RELEASE)
    if OBSERVES in shadow.traits:
        events.append(clocks.OBSERVE)
    if not events:
        if clocks.ORDERS in shadow.traits:
            builder.store(I64(0), _word(access, clocks.CLEAN), align=8)
        return
    condition = access.is_tracked()
    if shadow.plain_store:
        for unmarked in (Atomicity.UNMARKED, Atomicity.PLAIN):
            marked = builder.icmp_unsigned("!=", access.atomicity, I64(unmarked))
            condition = builder.and_(condition, marked)
        builder.store(I64(0), _word(access, clocks.CLEAN), align=8)
    with builder.if_then(condition, likely=False):
        is_polled = _is_repeated_poll(access) if OBSERVES in shadow.traits else I1(0)
        with builder.if_then(builder.not_(is_polled)):
            for event in events:
                _tell(access, event)


def _tell(access: GlobalAccess, event: int) -> None:
    """Call the clocks, where any lane takes part in an event."""
    shadow, out, builder = access.watched, access.out, access.out.builder
    live = access.lanes.live
    if event == clocks.UPDATE and ZERO in shadow.traits:
        live = _changing(access)
    with builder.if_then(builder.icmp_unsigned("!=", live, live.type(0)), likely=True):
        slot = element(builder, out.context, log.ORDER_EVENT, I64)
        function = load(builder, slot, ir.PointerType(order.EVENT), 8)
        lanes = live if out.lanes == 64 else builder.zext(live, I64)
        what = builder.or_(builder.shl(shadow.instruction, I64(8)), I64(event))
        arguments = [out.context, what, access.lanes.addresses, lanes, shadow.memory_number]
        builder.call(function, arguments)


def _changing(access: GlobalAccess) -> Any:
    """The lanes whose operand is not zero: nobody can see that an atomic operation has stored what
    was there, so it releases nothing."""
    out, builder = access.out, access.out.builder
    kind = out.mask(0).type
    lanes = out.room(kind, kind(0))
    with out.each_lane(access.lanes.live) as lane:
        index = builder.trunc(lane, kind) if out.lanes < 64 else lane
        before = out.get(lanes, kind)
        both = builder.or_(before, builder.shl(kind(1), index))
        builder.store(builder.select(access.only_loads(lane), before, both), lanes)
    return out.get(lanes, kind)


def _word(access: GlobalAccess, first: int) -> Any:
    """The slot of this wave among words of the workgroup's clocks."""
    return _element(access, access.watched.wave, first)


def _element(access: GlobalAccess, index: Any, first: int) -> Any:
    builder = access.out.builder
    words = access.watched.word(log.CLOCKS, PTR)
    return element(builder, words, builder.add(index, I64(first)), I64)


def _key_index(access: GlobalAccess) -> Any:
    """The number of this wave and the key of the instruction (`clocks.KEYS`)."""
    builder, shadow = access.out.builder, access.watched
    key = builder.urem(shadow.instruction, I64(clocks.KEYS))
    return builder.add(builder.mul(shadow.wave, I64(clocks.KEYS)), key)


def _is_repeated_poll(access: GlobalAccess) -> Any:
    """Whether all lanes access the dwords of the instruction's last event, nothing has been
    released to them since and, for an atomic operation, nothing has to be released (i1)."""
    shadow, out, builder = access.watched, access.out, access.out.builder
    live = access.lanes.live
    lanes = live if out.lanes == 64 else builder.zext(live, I64)
    key_index = _key_index(access)
    key = load(builder, _element(access, key_index, clocks.KEY), I64, 8)
    good = builder.icmp_unsigned("==", lanes, key)
    if shadow.atomic:
        clean = load(builder, _word(access, clocks.CLEAN), I64, 8)
        now = builder.add(shadow.phase, I64(1))
        released = builder.icmp_unsigned("==", clean, now)
        if ZERO in shadow.traits:
            changing = _changing(access)
            loads = builder.icmp_unsigned("==", changing, changing.type(0))
            released = builder.or_(released, loads)
        good = builder.and_(good, released)
    flag = out.room(I1, good)
    with builder.if_then(good):
        words = shadow.word(log.CLOCKS, PTR)
        row = builder.mul(key_index, I64(clocks.LANES))
        releases = out.get(access.arrays[RELEASES], I64)
        with out.each_lane(live) as lane:
            address = load(builder, element(builder, access.lanes.addresses, lane, I64), I64, 8)
            inset = builder.sub(address, out.get(access.start, I64))
            slot = builder.add(releases, builder.and_(inset, I64(~3 & _ONES)))
            at = builder.add(row, lane)
            slots, versions = (
                load(builder, element(builder, words, builder.add(at, I64(first)), I64), I64, 8)
                for first in (clocks.KEY_SLOTS, clocks.KEY_VERSIONS)
            )
            same = builder.icmp_unsigned("==", slot, slots)
            with builder.if_then(same):  # elsewhere the slot may be no memory
                version = load(builder, builder.inttoptr(slot, PTR), I32)
                unchanged = builder.icmp_unsigned("==", builder.zext(version, I64), versions)
                builder.store(builder.and_(out.get(flag, I1), unchanged), flag)
            with builder.if_then(builder.not_(same)):
                builder.store(I1(0), flag)
        with builder.if_then(out.get(flag, I1)):
            phase = builder.shl(shadow.phase, I64(clocks.PHASE_SHIFT))
            for first, value in (
                (clocks.KEY_READ, shadow.memory_number),
                (clocks.KEY_READER, builder.or_(phase, shadow.instruction)),
            ):
                builder.store(value, _element(access, key_index, first), align=8)
    return out.get(flag, I1)


def polled_anew(module: ir.Module) -> None:
    """Define `POLLED_ANEW`: whether any wave has polled without events, and its dwords have new
    releases since. If not, what a `wave` has polled needs no event."""
    function = ir.Function(module, POLLED_ANEW, runtime.OUTLINED + "check.polled_anew")
    words, wave = function.args
    entry, head, body, after, following, yes, no = (
        function.append_basic_block(name)
        for name in ("entry", "head", "body", "after", "following", "yes", "no")
    )
    builder = ir.IRBuilder(entry)

    def word(first: int, index: Any) -> Any:
        at = builder.add(index, I64(first))
        return load(builder, element(builder, words, at, I64), I64, 8)

    builder.branch(head)
    builder.position_at_end(head)
    index = builder.phi(I64)
    index.add_incoming(I64(0), entry)
    read, key = word(clocks.KEY_READ, index), word(clocks.KEY, index)
    row = builder.mul(index, I64(clocks.LANES))
    polled = builder.icmp_unsigned("!=", read, I64(0))
    some = builder.icmp_unsigned("!=", key, I64(0))
    builder.cbranch(builder.and_(polled, some), body, following)
    builder.position_at_end(body)
    lanes = builder.phi(I64)
    lanes.add_incoming(key, head)
    at = builder.add(row, builder.cttz(lanes, I1(1)))
    slot, before = word(clocks.KEY_SLOTS, at), word(clocks.KEY_VERSIONS, at)
    version = builder.zext(load(builder, builder.inttoptr(slot, PTR), I32), I64)
    builder.cbranch(builder.icmp_unsigned("==", version, before), after, yes)
    builder.position_at_end(after)
    fewer = builder.and_(lanes, builder.sub(lanes, I64(1)))
    lanes.add_incoming(fewer, after)
    builder.cbranch(builder.icmp_unsigned("!=", fewer, I64(0)), body, following)
    builder.position_at_end(following)
    successor = builder.add(index, I64(1))
    index.add_incoming(successor, following)
    more = builder.icmp_unsigned("<", successor, I64(clocks.KEYS * WAVES))
    builder.cbranch(more, head, no)
    builder.position_at_end(no)
    mine = builder.add(builder.mul(wave, I64(clocks.KEYS)), I64(clocks.KEY_READ))
    for key in range(clocks.KEYS):
        at = builder.add(mine, I64(key))
        builder.store(I64(0), element(builder, words, at, I64), align=8)
    for block, value in ((yes, 1), (no, 0)):
        builder.position_at_end(block)
        builder.ret(I64(value))


__all__ = ["POLLED_ANEW", "polled_anew", "synchronise"]
