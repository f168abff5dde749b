"""Outlined exchanges between lanes: permutes through LDS hardware, and transposing loads' second
half.

The address rows are read as lane numbers times four (`exchange`); `rows` is the source.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from wavecast.emulate.lower.access import Outlined
from wavecast.emulate.values import I8, I16, I32, I64, element, load

_BLOCK = 16
"""Lanes that exchange elements in a transposing load of CDNA 4."""
_GROUP = 8
"""Lanes that do so on gfx12, where each has as many elements."""


def build_exchange(out: Outlined) -> None:
    """`exchange` moves dwords to where lanes ask, `transpose` elements of blocks of lanes."""
    if out.access.action == "transpose":
        _transpose(out)
    else:
        _exchange(out)
    out.builder.ret(I32(0))


def _exchange(out: Outlined) -> None:
    """`permute`: an active lane sends its dword to a lane, the highest sender wins; lanes nobody
    sends to get 0. `bpermute`: a lane fetches the dword of a lane, 0 from one that is not active
    unless `fi`. Lane numbers wrap around at `limit` + 1 lanes.

    Source: AMD instruction set architecture guides, DS_PERMUTE_B32 and DS_BPERMUTE_B32.
    """
    builder, mode = out.builder, out.access.mode
    buffer = out.array(I32, zeroed=True)

    def partner(lane: Any) -> Any:
        number = builder.zext(load(builder, out.slot(out.address, 0, lane), I32), I64)
        number = builder.lshr(builder.add(number, out.offset), I64(2))
        base = builder.and_(lane, builder.not_(out.limit))
        return builder.or_(base, builder.and_(number, out.limit))

    if mode == "permute":
        with out.each_lane(out.exec) as lane:
            value = load(builder, out.slot(out.rows, 0, lane), I32)
            builder.store(value, element(builder, buffer, partner(lane), I32))
        with out.each_lane(out.exec) as lane:
            value = load(builder, element(builder, buffer, lane, I32), I32)
            builder.store(value, out.slot(out.result, 0, lane))
        return
    source = out.mask(-1) if mode == "bpermute_fi" else out.exec
    with out.each_lane(source) as lane:
        value = load(builder, out.slot(out.rows, 0, lane), I32)
        builder.store(value, element(builder, buffer, lane, I32))
    fetched = out.array(I32)
    with out.each_lane(out.exec) as lane:
        value = load(builder, element(builder, buffer, partner(lane), I32), I32)
        builder.store(value, element(builder, fetched, lane, I32))
    with out.each_lane(out.exec) as lane:
        value = load(builder, element(builder, fetched, lane, I32), I32)
        builder.store(value, out.slot(out.result, 0, lane))


def _transpose(out: Outlined) -> None:
    """In blocks of 16 lanes, lane n gets column n of the rows of 16 elements that they loaded in
    order; of groups of 8, that of the groups' 8x8 elements (`_grouped`).

    With e elements per lane, row r lies in lanes r * 16 / e and following. Elements of 16 and 8
    bits are shuffled as vectors; smaller ones (16 per lane) are cut out one after another.
    """
    lanes, bits = map(int, out.access.detail.split("b"))
    if lanes == _GROUP:
        _transpose_groups(out, bits)
    elif bits in (16, 8):
        _transpose_blocks(out, bits)
    else:
        _cut(out, bits)


def _transpose_groups(out: Outlined, bits: int) -> None:
    """Element r of lane d is element d mod 8 of another lane of its group.

    Of elements of 16 bits the groups are eight lanes in order, and it is lane r of them; of 8 bits
    they are twice four lanes that are eight apart: r[1:0], d[3] and r[2] are the lower bits of
    the lane's number. Source: "gfx12-transposing-loads".
    """
    builder, per_dword = out.builder, 32 // bits
    mask = I32((1 << bits) - 1)
    with out.counted_loop(out.lanes) as lane:
        column = builder.and_(lane, I64(_GROUP - 1))
        dword = builder.udiv(column, I64(per_dword))
        shift = builder.mul(builder.urem(column, I64(per_dword)), I64(bits))
        amount = builder.trunc(shift, I32)
        base = builder.and_(lane, I64(-_GROUP & (1 << 64) - 1))
        if bits == 8:
            half = builder.and_(builder.lshr(lane, I64(1)), I64(4))
            base = builder.or_(builder.and_(lane, I64(-2 * _GROUP & (1 << 64) - 1)), half)
        for first in range(0, _GROUP, per_dword):
            total: Any = I32(0)
            for number in range(first, first + per_dword):
                item = number if bits == 16 else number & 3 | (number & 4) << 1
                source = builder.or_(base, I64(item))
                word = builder.add(builder.mul(dword, I64(out.lanes)), source)
                value = load(builder, element(builder, out.rows, word, I32), I32)
                value = builder.and_(builder.lshr(value, amount), mask)
                total = builder.or_(total, builder.shl(value, I32(bits * (number - first))))
            builder.store(total, out.slot(out.result, first // per_dword, lane))


def _transpose_blocks(out: Outlined, bits: int) -> None:
    builder = out.builder
    small = I16 if bits == 16 else I8
    per_dword, per_lane = 32 // bits, 64 // bits
    half = ir.VectorType(small, _BLOCK * per_dword)
    row = ir.VectorType(I32, _BLOCK)
    picks: list[list[int]] = [[], []]
    for dword in range(2):
        for lane in range(_BLOCK):
            for slot in range(per_dword):
                target = (dword * per_dword + slot) * _BLOCK + lane
                source, item = divmod(target, per_lane)
                part, within = divmod(item, per_dword)
                picks[dword].append((part * _BLOCK + source) * per_dword + within)
    with out.counted_loop(out.lanes // _BLOCK) as block:
        start = builder.mul(block, I64(_BLOCK))
        parts = [
            builder.bitcast(builder.load(out.slot(out.rows, i, start), align=16, typ=row), half)
            for i in range(2)
        ]
        for dword in range(2):
            order = ir.Constant(ir.VectorType(I32, len(picks[dword])), picks[dword])
            value = builder.bitcast(builder.shuffle_vector(parts[0], parts[1], order), row)
            builder.store(value, out.slot(out.result, dword, start), align=4)


def _cut(out: Outlined, bits: int) -> None:
    builder, dwords = out.builder, out.access.dwords
    wide = ir.IntType(32 * dwords)
    with out.counted_loop(out.lanes) as lane:
        first = builder.and_(lane, I64(-_BLOCK & (1 << 64) - 1))
        shift = builder.mul(builder.and_(lane, I64(_BLOCK - 1)), I64(bits))
        amount = builder.zext(shift, wide) if wide.width > 64 else shift
        total: Any = wide(0)
        for row in range(_BLOCK):
            source, value = builder.add(first, I64(row)), wide(0)
            for index in range(dwords):
                part = builder.zext(load(builder, out.slot(out.rows, index, source), I32), wide)
                value = builder.or_(value, builder.shl(part, wide(32 * index)))
            item = builder.and_(builder.lshr(value, amount), wide((1 << bits) - 1))
            total = builder.or_(total, builder.shl(item, wide(bits * row)))
        for index in range(dwords):
            part = builder.trunc(builder.lshr(total, wide(32 * index)), I32)
            builder.store(part, out.slot(out.result, index, lane))


__all__ = ["build_exchange"]
