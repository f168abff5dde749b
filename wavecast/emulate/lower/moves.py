"""Outlined loads and stores: data between memory and rows of lanes.

With every lane active and good, lanes move four at a time: their elements are transposed between
memory (one lane after another) and registers (one row after another), and single elements that
follow each other move as vectors. Otherwise lanes move one after another.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from wavecast.emulate.lower import state
from wavecast.emulate.lower.access import Outlined
from wavecast.emulate.lower.addresses import Resolved, check_function, lane_address, resolve
from wavecast.emulate.lower.values import I8, I16, I32, I64, PTR, constant, element, load

_GROUP = 4
"""Lanes transposed at once."""
_RUN = 16
"""Lanes of a vector move."""


def build_move(out: Outlined) -> None:
    """The body of a load or store."""
    builder, found = out.builder, resolve(out)
    _dead(out, found)
    whole = builder.icmp_unsigned("==", found.live, out.mask(-1))
    fast = builder.and_(whole, found.trusted)
    with builder.if_else(fast, likely=True) as (together, apart):
        with together:
            _together(out, found)
        with apart, out.each_lane(found.live) as lane:
            address = lane_address(out, found, lane)
            _lane(out, lane, builder.inttoptr(address, PTR))
    builder.ret(I32(0))


def _together(out: Outlined, found: Resolved) -> None:
    """Move every lane, knowing that all addresses are good."""
    builder = out.builder
    if out.access.bytes > 4:
        with out.counted(out.lanes // _GROUP) as group:
            _transpose(out, found, builder.mul(group, I64(_GROUP)))
        return
    with builder.if_else(found.contiguous) as (line, scattered):
        with line, out.counted(out.lanes // _RUN) as run:
            start = builder.mul(run, I64(_RUN))
            where = builder.add(found.first, builder.mul(start, I64(out.access.bytes)))
            _line(out, start, builder.inttoptr(where, PTR))
        with scattered, out.counted(out.lanes) as lane:
            address = lane_address(out, found, lane, checked=False)
            _lane(out, lane, builder.inttoptr(address, PTR))


def _transpose(out: Outlined, found: Resolved, start: Any) -> None:
    """Move `_GROUP` lanes of two to four dwords each."""
    builder, count = out.builder, out.access.dwords
    each, row = ir.VectorType(I32, count), ir.VectorType(I32, _GROUP)
    lanes = [builder.add(start, I64(lane)) for lane in range(_GROUP)]
    where = [builder.inttoptr(lane_address(out, found, lane, checked=False), PTR) for lane in lanes]
    slots = [out.slot(out.rows, index, start) for index in range(count)]
    if out.access.action == "load":
        parts = [builder.load(pointer, align=1, typ=each) for pointer in where]
        low, high = _joined(builder, parts[:2]), _joined(builder, parts[2:])
        for index, slot in enumerate(slots):
            picks = [lane * count + index for lane in range(_GROUP)]
            value = builder.shuffle_vector(low, high, _picks(picks))
            builder.store(value, slot, align=16)
        return
    rows = [builder.load(slot, align=16, typ=row) for slot in slots]
    while len(rows) < _GROUP:
        rows.append(rows[-1])
    low, high = _joined(builder, rows[:2]), _joined(builder, rows[2:])
    for lane, pointer in enumerate(where):
        picks = [index * _GROUP + lane for index in range(count)]
        builder.store(builder.shuffle_vector(low, high, _picks(picks)), pointer, align=1)


def _joined(builder: ir.IRBuilder, pair: list[Any]) -> Any:
    """Two vectors end to end."""
    return builder.shuffle_vector(pair[0], pair[1], _picks(range(2 * pair[0].type.count)))


def _picks(numbers: Any) -> ir.Constant:
    numbers = list(numbers)
    return ir.Constant(ir.VectorType(I32, len(numbers)), numbers)


def _small(out: Outlined) -> ir.IntType:
    return {1: I8, 2: I16}.get(out.access.bytes, I32)


def _line(out: Outlined, start: Any, pointer: Any) -> None:
    """Move `_RUN` elements of up to a dword that follow each other."""
    builder, small = out.builder, _small(out)
    row, packed = ir.VectorType(I32, _RUN), ir.VectorType(small, _RUN)
    slot = out.slot(out.rows, 0, start)
    if out.access.action == "load":
        value = _extended(out, builder.load(pointer, align=1, typ=packed), row)
        builder.store(_merged(out, value, slot, row, _RUN), slot, align=16)
        return
    value = builder.load(slot, align=16, typ=row)
    if "h" in out.access.detail:
        value = builder.lshr(value, constant(16, 32, _RUN))
    value = value if small is I32 else builder.trunc(value, packed)
    builder.store(value, pointer, align=1)


def _extended(out: Outlined, value: Any, kind: ir.Type) -> Any:
    if value.type == kind:
        return value
    extend = out.builder.sext if "s" in out.access.detail else out.builder.zext
    return extend(value, kind)


def _merged(out: Outlined, value: Any, slot: Any, kind: ir.Type, lanes: int) -> Any:
    """The loaded value, in the half of the register it belongs to."""
    if "k" not in out.access.detail:
        return value
    builder = out.builder
    old = builder.load(slot, align=4, typ=kind)
    value = builder.and_(value, constant(0xFFFF, 32, lanes))
    kept = 0xFFFF0000
    if "h" in out.access.detail:
        value, kept = builder.shl(value, constant(16, 32, lanes)), 0xFFFF
    return builder.or_(value, builder.and_(old, constant(kept, 32, lanes)))


def _lane(out: Outlined, lane: Any, pointer: Any) -> None:
    """Move one lane."""
    builder, small = out.builder, _small(out)
    for index in range(out.access.dwords):
        slot = out.slot(out.rows, index, lane)
        where = element(builder, pointer, index, I32)
        if out.access.action == "load":
            value = _extended(out, load(builder, where, small, 1), I32)
            builder.store(_merged(out, value, slot, I32, 0), slot)
            continue
        value = load(builder, slot, I32)
        if "h" in out.access.detail:
            value = builder.lshr(value, I32(16))
        value = value if small is I32 else builder.trunc(value, small)
        builder.store(value, where, align=1)


def _dead(out: Outlined, found: Resolved) -> None:
    """Lanes out of bounds: loads give 0, stores are dropped.

    Every dword of a buffer access is checked on its own (AMD instruction set architecture guides,
    "Buffer addressing", range checking); LDS accesses are all or nothing.
    """
    if out.access.mode not in ("buffer", "local"):
        return
    builder = out.builder
    split = out.access.mode == "buffer" and out.access.bytes > 4
    if out.access.action == "store" and not split:
        return
    with out.each_lane(found.dead) as lane:
        if split:
            _dead_dwords(out, found, lane, [out.slot(out.rows, i, lane) for i in range(4)])
        else:
            for index in range(out.access.dwords):
                slot = out.slot(out.rows, index, lane)
                value = _merged(out, I32(0), slot, I32, 0)
                builder.store(value, slot)


def _dead_dwords(out: Outlined, found: Resolved, lane: Any, slots: list[Any]) -> None:
    """The dwords of one lane, each where it lies in bounds, between memory and `slots`."""
    builder = out.builder
    address = lane_address(out, found, lane, checked=False)
    inset = builder.sub(address, out.base)
    loads = out.access.action != "store"
    for index, slot in enumerate(slots[: out.access.dwords]):
        if loads:
            builder.store(I32(0), slot)
        end = builder.add(inset, I64(4 * index + 4))
        with builder.if_then(builder.icmp_unsigned("<=", end, out.limit), likely=False):
            place = builder.add(address, I64(4 * index))
            good = builder.call(check_function(out.module), [out.context, place, I64(4)])
            with builder.if_then(builder.not_(good)):
                out.fault(lane, place)
            pointer = builder.inttoptr(place, PTR)
            if loads:
                builder.store(load(builder, pointer, I32, 1), slot)
            else:
                builder.store(load(builder, slot, I32), pointer, align=1)


def build_to_lds(out: Outlined) -> None:
    """A load whose data goes to LDS: `rows` is the offset in LDS, lane n's data n elements later.

    Source: AMD instruction set architecture guide (CDNA3), "Memory buffer load to LDS":
    LDS address = M0 + instruction offset + lane * size. Lanes out of a buffer's bounds write 0;
    what lies beyond LDS is dropped.
    """
    builder, found = out.builder, resolve(out)
    words = (state.LDS_BASE, state.LDS_BYTES)
    base, limit = (
        load(builder, element(builder, out.context, word, I64), I64, 8) for word in words
    )
    offset = builder.ptrtoint(out.rows, I64)
    kind, size = ir.VectorType(I32, out.access.dwords), I64(out.access.bytes)

    def put(lane: Any, value: Any) -> None:
        place = builder.add(offset, builder.mul(lane, size))
        inside = builder.icmp_unsigned("<=", builder.add(place, size), limit)
        with builder.if_then(inside, likely=True):
            pointer = builder.inttoptr(builder.add(base, place), PTR)
            builder.store(value, pointer, align=1)

    with out.each_lane(found.live) as lane:
        pointer = builder.inttoptr(lane_address(out, found, lane), PTR)
        put(lane, builder.load(pointer, align=1, typ=kind))
    if out.access.mode == "buffer":
        row = out.room(kind)
        with out.each_lane(found.dead) as lane:
            builder.store(constant(0, 32, out.access.dwords), row)
            first = builder.inttoptr(builder.ptrtoint(row, I64), PTR)
            _dead_dwords(out, found, lane, [element(builder, first, i, I32) for i in range(4)])
            put(lane, out.get(row, kind))
    builder.ret(I32(0))


__all__ = ["build_move", "build_to_lds"]
