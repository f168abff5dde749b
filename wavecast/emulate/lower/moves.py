"""Outlined loads and stores: data between memory and rows of lanes.

In the common case (`spans.py`) lanes move sixteen at a time: their elements are transposed between
memory (one lane after another) and registers (one row after another), and what follows each other
in memory moves as vectors. Otherwise lanes move one after another.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from llvmlite import ir

from wavecast.emulate.lower import state, transpose
from wavecast.emulate.lower.access import Outlined
from wavecast.emulate.lower.addresses import Resolved, is_known, lane_address, resolve
from wavecast.emulate.lower.spans import Span, span
from wavecast.emulate.values import (
    I8,
    I16,
    I32,
    I64,
    PTR,
    constant,
    context_word,
    element,
    load,
)

_RUN = 16
"""Lanes of a vector move."""
_LINE = 64
"""Bytes of a host's cache line."""
_AHEAD = 2 * _LINE
"""Bytes from what is loaded to what is prefetched: rows of tiles are one or two lines, so this is
what the next step of a loop over k or the one after it loads."""
_FEW = 4
"""Lanes of a scattered store."""
_VECTOR = 16
"""Dwords of a vector copied to LDS."""


def build_move(out: Outlined) -> None:
    """The body of a load or store."""
    builder, quick = out.builder, span(out)
    with builder.if_then(quick.good, likely=True):
        first = quick.address(I64(0))
        with builder.if_else(quick.contiguous) as (line, scattered):
            with line:
                _line(out, first)
            with scattered:
                _move_scattered(out, quick)
        builder.ret(I32(0))
    lanes = resolve(out)
    _dead(out, lanes)
    with out.each_lane(lanes.live) as lane:
        address = lane_address(out, lanes, lane)
        _lane(out, lane, builder.inttoptr(address, PTR))
    builder.ret(I32(0))


def _line(out: Outlined, first: Any) -> None:
    """Move every lane, each following the one before in memory from `first` on."""
    builder, size = out.builder, I64(out.access.bytes)
    with out.counted_loop(out.lanes // _RUN) as run:
        start = builder.mul(run, I64(_RUN))
        pointer = element(builder, first, builder.mul(start, size), I8)
        if out.access.bytes <= 4:
            _move_run(out, start, pointer)
            return
        if transpose.moves_half_runs(out.access.dwords):
            dwords = range(0, _RUN * out.access.dwords, out.access.dwords)
            _move_half_runs(out, start, [element(builder, pointer, at, I32) for at in dwords])
            return
        dwords = transpose.piece_lanes(out.access.dwords) * out.access.dwords
        total = _RUN * out.access.dwords
        parts = [element(builder, pointer, at, I32) for at in range(0, total, dwords)]
        if out.access.action == "load":
            _load_pieces(out, start, [[part] for part in parts])
            return
        pieces = transpose.to_pieces(builder, _rows(out, start, _RUN))
        for piece, part in zip(pieces, parts, strict=True):
            builder.store(piece, part, align=1)


def _move_scattered(out: Outlined, quick: Span) -> None:
    """Move every lane, wherever it is."""
    if out.access.bytes <= 4:
        lines = out.access.bytes == 4 and out.access.action == "store"
        _by_lines(out, quick, partial(_move_lanes, out, quick), able=lines)
    elif transpose.moves_half_runs(out.access.dwords):
        builder = out.builder
        with out.counted_loop(out.lanes // _RUN) as run:
            start = builder.mul(run, I64(_RUN))
            pointers = [quick.address(builder.add(start, I64(lane))) for lane in range(_RUN)]
            if out.access.action == "load":
                _prefetch(out, pointers)
            _move_half_runs(out, start, pointers)
    elif out.access.action == "load":
        _gather(out, quick)
    else:
        _by_lines(out, quick, partial(_scatter, out, quick))


def _by_lines(
    out: Outlined, quick: Span, move: Callable[[int], None], *, able: bool = True
) -> None:
    """`move(count)` of as many lanes from those before and after half the wave in turns. Rows of a
    matrix lie so far apart that lines rarely stay in the first-level cache until the next store: a
    line's lanes of both halves are stored one after the other."""
    if not able or out.access.mode in ("local", "private"):
        move(out.lanes)
        return
    with out.builder.if_else(quick.halves_are_near()) as (near, others):
        with near:
            move(out.lanes // 2)
        with others:
            move(out.lanes)


def _move_lanes(out: Outlined, quick: Span, count: int) -> None:
    with out.counted_loop(count) as lane:
        for first in range(0, out.lanes, count):
            number = out.builder.add(lane, I64(first))
            _lane(out, number, quick.address(number))


def _move_half_runs(out: Outlined, start: Any, pointers: list[Any]) -> None:
    """Move the four dwords of each of `_RUN` lanes from `start` on, which `pointers` point to."""
    builder, count = out.builder, transpose.HALF_RUN
    row, lane_kind = ir.VectorType(I32, count), ir.VectorType(I32, out.access.dwords)
    for first in range(0, _RUN, count):
        begin = builder.add(start, I64(first))
        slots = [out.slot(out.rows, index, begin) for index in range(out.access.dwords)]
        lanes = pointers[first : first + count]
        if out.access.action == "load":
            loaded = [builder.load(lane, align=1, typ=lane_kind) for lane in lanes]
            for value, slot in zip(transpose.from_lanes(builder, loaded), slots, strict=True):
                builder.store(value, slot, align=16)
        else:
            rows = [builder.load(slot, align=16, typ=row) for slot in slots]
            for value, lane in zip(transpose.to_lanes(builder, rows), lanes, strict=True):
                builder.store(value, lane, align=1)


def _gather(out: Outlined, quick: Span) -> None:
    builder, each = out.builder, transpose.piece_lanes(out.access.dwords)
    with out.counted_loop(out.lanes // _RUN) as run:
        start = builder.mul(run, I64(_RUN))
        pointers = [quick.address(builder.add(start, I64(lane))) for lane in range(_RUN)]
        _prefetch(out, pointers)
        _load_pieces(out, start, [pointers[at : at + each] for at in range(0, _RUN, each)])


def _prefetch(out: Outlined, pointers: list[Any]) -> None:
    """Ask for the lines after those that a run of consecutive lanes fills: kernels walk through
    matrices row by row, and the host does not see a pattern in loads of one host instruction
    for all of theirs."""
    if out.access.mode in ("local", "private"):
        return
    builder, name = out.builder, "llvm.prefetch.p0"
    kind = ir.FunctionType(ir.VoidType(), [PTR, I32, I32, I32])
    function = out.module.globals.get(name) or ir.Function(out.module, kind, name)
    for pointer in pointers[:: _LINE // out.access.bytes]:
        ahead = element(builder, pointer, _AHEAD, I8)
        builder.call(function, [ahead, I32(0), I32(2), I32(1)])  # to read, second level, data


def _load_pieces(out: Outlined, start: Any, pointers: list[list[Any]]) -> None:
    """Load `_RUN` lanes of two to four dwords from `start` on; `pointers` points to the equal parts
    of each piece."""
    builder, count = out.builder, out.access.dwords
    kind = ir.VectorType(I32, transpose.piece_lanes(count) * count // len(pointers[0]))
    slots = [out.slot(out.rows, index, start) for index in range(count)]
    pieces = []
    for parts in pointers:
        loaded = [builder.load(pointer, align=1, typ=kind) for pointer in parts]
        pieces.append(transpose.concatenate(builder, loaded))
    for value, slot in zip(transpose.to_rows(builder, pieces, count), slots, strict=True):
        builder.store(value, slot, align=16)


def _rows(out: Outlined, start: Any, lanes: int) -> list[Any]:
    """The data of some lanes of every register."""
    kind = ir.VectorType(I32, lanes)
    slots = [out.slot(out.rows, index, start) for index in range(out.access.dwords)]
    return [out.builder.load(slot, align=16, typ=kind) for slot in slots]


def _scatter(out: Outlined, quick: Span, lanes: int) -> None:
    """Store `_FEW` lanes at a time: hosts store two short vectors as fast as one long one."""
    builder, count = out.builder, out.access.dwords
    with out.counted_loop(lanes // _FEW) as few:
        begin = builder.mul(few, I64(_FEW))
        starts = [builder.add(begin, I64(first)) for first in range(0, out.lanes, lanes)]
        sources = []
        for start in starts:
            rows = _rows(out, start, _FEW)
            rows += rows[-1:] * (4 - count)
            halves = (rows[:2], rows[2:])
            sources.append([transpose.concatenate(builder, half) for half in halves])
        for lane in range(_FEW):
            picks = [row * _FEW + lane for row in range(count)]
            for start, (low, high) in zip(starts, sources, strict=True):
                value = transpose.shuffle(builder, low, high, picks)
                pointer = quick.address(builder.add(start, I64(lane)))
                builder.store(value, pointer, align=1)


def _small(out: Outlined) -> ir.IntType:
    return {1: I8, 2: I16}.get(out.access.bytes, I32)


def _move_run(out: Outlined, start: Any, pointer: Any) -> None:
    """Move `_RUN` elements of up to a dword that follow each other."""
    builder, small = out.builder, _small(out)
    row, packed = ir.VectorType(I32, _RUN), ir.VectorType(small, _RUN)
    slot = out.slot(out.rows, 0, start)
    if out.access.action == "load":
        value = _extend(out, builder.load(pointer, align=1, typ=packed), row)
        builder.store(_merge_half(out, value, slot, row, _RUN), slot, align=16)
        return
    value = builder.load(slot, align=16, typ=row)
    if "h" in out.access.detail:
        value = builder.lshr(value, constant(16, 32, _RUN))
    value = value if small is I32 else builder.trunc(value, packed)
    builder.store(value, pointer, align=1)


def _extend(out: Outlined, value: Any, kind: ir.Type) -> Any:
    if value.type == kind:
        return value
    extend = out.builder.sext if "s" in out.access.detail else out.builder.zext
    return extend(value, kind)


def _merge_half(out: Outlined, value: Any, slot: Any, kind: ir.Type, lanes: int) -> Any:
    """The loaded value, in the half of the register it belongs to."""
    if "k" not in out.access.detail:
        return value
    builder = out.builder
    old = builder.load(slot, align=4, typ=kind)
    value = builder.and_(value, constant(0xFFFF, 32, lanes))
    keep_mask = 0xFFFF0000
    if "h" in out.access.detail:
        value, keep_mask = builder.shl(value, constant(16, 32, lanes)), 0xFFFF
    return builder.or_(value, builder.and_(old, constant(keep_mask, 32, lanes)))


def _lane(out: Outlined, lane: Any, pointer: Any) -> None:
    """Move one lane."""
    builder, small = out.builder, _small(out)
    for index in range(out.access.dwords):
        slot = out.slot(out.rows, index, lane)
        where = element(builder, pointer, index, I32)
        if out.access.action == "load":
            value = _extend(out, load(builder, where, small, 1), I32)
            builder.store(_merge_half(out, value, slot, I32, 0), slot)
            continue
        value = load(builder, slot, I32)
        if "h" in out.access.detail:
            value = builder.lshr(value, I32(16))
        value = value if small is I32 else builder.trunc(value, small)
        builder.store(value, where, align=1)


def _dead(out: Outlined, lanes: Resolved) -> None:
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
    with out.each_lane(lanes.dead) as lane:
        if split:
            _dead_dwords(out, lanes, lane, [out.slot(out.rows, i, lane) for i in range(4)])
        else:
            for index in range(out.access.dwords):
                slot = out.slot(out.rows, index, lane)
                value = _merge_half(out, I32(0), slot, I32, 0)
                builder.store(value, slot)


def _dead_dwords(out: Outlined, lanes: Resolved, lane: Any, slots: list[Any]) -> None:
    """The dwords of one lane, each where it lies in bounds, between memory and `slots`."""
    builder = out.builder
    address = lane_address(out, lanes, lane, checked=False)
    inset = builder.sub(address, out.base)
    loads = out.access.action != "store"
    for index, slot in enumerate(slots[: out.access.dwords]):
        if loads:
            builder.store(I32(0), slot)
        end = builder.add(inset, I64(4 * index + 4))
        with builder.if_then(builder.icmp_unsigned("<=", end, out.limit), likely=False):
            dword_address = builder.add(address, I64(4 * index))
            good = is_known(builder, out.context, dword_address, I64(4))
            with builder.if_then(builder.not_(good)):
                out.fault(lane, dword_address)
            pointer = builder.inttoptr(dword_address, PTR)
            if loads:
                builder.store(load(builder, pointer, I32, 1), slot)
            else:
                builder.store(load(builder, slot, I32), pointer, align=1)


def build_to_lds(out: Outlined) -> None:
    """A load whose data goes to LDS: `rows` is the offset in LDS, lane n's data n steps later.

    Source: AMD instruction set architecture guides (CDNA3, CDNA4), "Memory Buffer Load to LDS":
    LDS address = M0 + instruction offset + lane * step (`MemoryAccess.lds_step`). Less than a dword
    is extended to one (`docs/hardware.md`). Lanes out of a buffer's bounds write 0; data beyond the
    end of LDS is dropped.
    """
    builder, quick = out.builder, span(out)
    words = (state.LDS_BASE, state.LDS_BYTES)
    base, limit = (context_word(builder, out.context, word) for word in words)
    offset = builder.ptrtoint(out.rows, I64)
    end = builder.add(offset, I64(out.lanes * out.access.lds_step))
    fits = builder.icmp_unsigned("<=", end, limit)
    with builder.if_then(builder.and_(quick.good, fits), likely=True):
        _copy(out, quick, builder.inttoptr(builder.add(base, offset), PTR))
        builder.ret(I32(0))
    lanes = resolve(out)
    kind = ir.VectorType(I32, out.access.dwords)
    step, size = I64(out.access.lds_step), I64(4 * out.access.dwords)

    def put(lane: Any, value: Any) -> None:
        inset = builder.add(offset, builder.mul(lane, step))
        in_bounds = builder.icmp_unsigned("<=", builder.add(inset, size), limit)
        with builder.if_then(in_bounds, likely=True):
            pointer = builder.inttoptr(builder.add(base, inset), PTR)
            builder.store(value, pointer, align=1)

    with out.each_lane(lanes.live) as lane:
        pointer = builder.inttoptr(lane_address(out, lanes, lane), PTR)
        put(lane, _load_dwords(out, pointer))
    if out.access.mode == "buffer":
        row = out.room(kind)
        with out.each_lane(lanes.dead) as lane:
            builder.store(constant(0, 32, out.access.dwords), row)
            if out.access.bytes > 4:
                first = builder.inttoptr(builder.ptrtoint(row, I64), PTR)
                _dead_dwords(out, lanes, lane, [element(builder, first, i, I32) for i in range(4)])
            put(lane, out.get(row, kind))
    builder.ret(I32(0))


def _load_dwords(out: Outlined, pointer: Any) -> Any:
    """The dwords of one lane, extended to one where they are less, as a vector."""
    builder, count, small = out.builder, out.access.dwords, _small(out)
    if small is I32:
        return builder.load(pointer, align=1, typ=ir.VectorType(I32, count))
    value = builder.load(pointer, align=1, typ=ir.VectorType(small, 1))
    return _extend(out, value, ir.VectorType(I32, 1))


def _copy(out: Outlined, quick: Span, target: Any) -> None:
    """Copy the data of every lane to `target`, a step after the lane before."""
    builder, count = out.builder, out.access.dwords
    together = _VECTOR // count if 4 * count == out.access.lds_step else 1
    with out.counted_loop(out.lanes // together) as group:
        start = builder.mul(group, I64(together))
        pointers = [quick.address(builder.add(start, I64(lane))) for lane in range(together)]
        _prefetch(out, pointers)
        parts = [_load_dwords(out, pointer) for pointer in pointers]
        first = element(builder, target, builder.mul(start, I64(out.access.lds_step)), I8)
        builder.store(transpose.concatenate(builder, parts), first, align=1)


__all__ = ["build_move", "build_to_lds"]
