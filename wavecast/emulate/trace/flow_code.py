"""The code of an access whose value is followed: it notes the marks of what is loaded, and marks
what is stored (`memory_flow.py`)."""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir

from wavecast.emulate.lower import state
from wavecast.emulate.lower.access import Outlined
from wavecast.emulate.lower.addresses import range_of, resolve
from wavecast.emulate.trace import layout, memory_flow
from wavecast.emulate.values import I8, I16, I32, I64, PTR, context_word, element, load

SCALAR: Final = "scalar"
"""Mode of accesses of scalar memory: lanes of a dword each, from `base` on."""


def scratch_marks(builder: ir.IRBuilder, context: Any, words: Any, lanes: int) -> tuple[Any, Any]:
    """The first mark (host address, i64) of the running wave's scratch, and how many it has."""
    size = builder.mul(context_word(builder, context, state.SCRATCH_BYTES), I64(lanes))
    before = builder.mul(context_word(builder, context, state.WAVE), size)
    marks = load(builder, element(builder, words, memory_flow.SCRATCH_MARKS, I64), I64, 8)
    return builder.add(marks, builder.shl(before, I64(1))), size


class _Marks:
    """Where the marks of host addresses lie, in the code of an access."""

    def __init__(self, out: Outlined) -> None:
        self.out = out
        builder, context = out.builder, out.context
        self.words = context_word(builder, context, layout.FLOW, PTR)
        self.lds = self.word(memory_flow.LDS_MARKS)
        self.ranges = self.word(memory_flow.RANGES)
        size = context_word(builder, context, state.LDS_BYTES)
        self._near = [(self.lds, context_word(builder, context, state.LDS_BASE), size)]
        marks, size = scratch_marks(builder, context, self.words, out.lanes)
        none = builder.icmp_unsigned("==", self.word(memory_flow.SCRATCH_MARKS), I64(0))
        scratch = builder.select(none, I64(0), marks)
        self._near.append((scratch, context_word(builder, context, state.SCRATCH_BASE), size))

    def word(self, index: int) -> Any:
        return load(self.out.builder, element(self.out.builder, self.words, index, I64), I64, 8)

    def of(self, address: Any) -> Any:
        """The host address (i64) of the marks of the access at `address`, 0 where none are kept."""
        mode, builder = self.out.access.mode, self.out.builder
        if mode == "local":
            return self._at(*self._near[0], address)
        if mode == "private":
            return self._at(*self._near[1], address)
        marks = self._global(address)
        for row in self._near if mode == "flat" else ():
            here = builder.icmp_unsigned("<", builder.sub(address, row[1]), row[2])
            marks = builder.select(here, self._at(*row, address), marks)
        return marks

    def _at(self, marks: Any, base: Any, size: Any, address: Any) -> Any:
        del size
        builder = self.out.builder
        at = builder.add(marks, builder.shl(builder.sub(address, base), I64(1)))
        return builder.select(builder.icmp_unsigned("==", marks, I64(0)), I64(0), at)

    def _global(self, address: Any) -> Any:
        builder, size = self.out.builder, I64(self.out.access.bytes)
        number = range_of(builder, self.out.context, address, size)
        known = builder.icmp_signed(">=", number, I64(0))
        known = builder.and_(known, builder.icmp_unsigned("!=", self.ranges, I64(0)))
        result = self.out.room(I64, I64(0))
        builder.store(I64(0), result)
        with builder.if_then(known):
            table = builder.inttoptr(self.ranges, PTR)
            delta = load(builder, element(builder, table, number, I64), I64, 8)
            builder.store(builder.add(delta, builder.shl(address, I64(1))), result)
        return self.out.get(result, I64)


def build(out: Outlined) -> None:
    """Note the marks of what is loaded, and mark what is stored. The numbers are that of the first
    dword of a load, -1 for none, and the mark of the first dword of a store."""
    builder, action = out.builder, out.access.detail
    number, mark = (builder.ptrtoint(rows, I64) for rows in (out.other, out.result))
    marks = _Marks(out)
    addresses, live = _lanes(out)
    stored = _marks_of_store(out, mark, max(out.access.bytes, 4))
    if action == "tolds":
        _fill(out, marks, stored)
    with out.each_lane(live) as lane:
        address = load(builder, element(builder, addresses, lane, I64), I64, 8)
        at = marks.of(address)
        with builder.if_then(builder.icmp_unsigned("!=", at, I64(0))):
            pointer = builder.inttoptr(at, PTR)
            if action != "store":
                with builder.if_then(builder.icmp_signed(">=", number, I64(0))):
                    _note(out, marks, pointer, number)
            if action in ("store", "atomic"):
                part = (
                    stored if out.access.bytes >= 4 else _first(builder, stored, out.access.bytes)
                )
                builder.store(part, pointer, align=2)
    builder.ret(I32(0))


def _lanes(out: Outlined) -> tuple[Any, Any]:
    """The addresses of lanes, and which access memory; of scalar memory the dwords from its
    address on."""
    if out.access.mode != SCALAR:
        lanes = resolve(out, checked=False)
        return lanes.addresses, lanes.live
    builder, addresses = out.builder, out.array(I64)
    with out.each_lane(out.exec) as lane:
        address = builder.add(out.base, builder.shl(lane, I64(2)))
        builder.store(address, element(builder, addresses, lane, I64), align=8)
    return addresses, out.exec


def _marks_of_store(out: Outlined, mark: Any, size: int) -> Any:
    """The marks of `size` bytes: those of its dwords, 0 each where `mark` is 0."""
    builder, kind = out.builder, ir.VectorType(I16, size)
    dwords = ir.Constant(kind, [byte // 4 for byte in range(size)])
    first = builder.insert_element(ir.Constant(kind, [0] * size), builder.trunc(mark, I16), I32(0))
    first = builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(I32, size), [0] * size))
    some = builder.icmp_unsigned("!=", mark, I64(0))
    return builder.select(some, builder.add(first, dwords), ir.Constant(kind, [0] * size))


def _first(builder: ir.IRBuilder, vector: Any, count: int) -> Any:
    order = ir.Constant(ir.VectorType(I32, count), list(range(count)))
    return builder.shuffle_vector(vector, vector, order)


def _note(out: Outlined, marks: _Marks, pointer: Any, number: Any) -> None:
    """Note every mark of an access with the dword that it comes to."""
    builder, size = out.builder, out.access.bytes
    present = builder.load(pointer, align=2, typ=ir.VectorType(I16, size))
    bits = ir.IntType(16 * size)
    some = builder.icmp_unsigned("!=", builder.bitcast(present, bits), bits(0))
    with builder.if_then(some, likely=False):
        table = builder.inttoptr(marks.word(memory_flow.TABLE), PTR)
        loads = marks.word(memory_flow.LOADS)
        for byte in range(size):
            mark = builder.zext(builder.extract_element(present, I32(byte)), I64)
            column = builder.add(number, I64(byte // 4))
            at = builder.add(builder.mul(mark, loads), column)
            builder.store(I8(1), element(builder, table, at, I8))


def _fill(out: Outlined, marks: _Marks, stored: Any) -> None:
    """Mark what a load to LDS writes there."""
    builder = out.builder
    followed = builder.icmp_unsigned("!=", marks.lds, I64(0))
    limit = context_word(builder, out.context, state.LDS_BYTES)
    with builder.if_then(followed), out.each_lane(out.exec) as lane:
        step = builder.mul(lane, I64(out.access.lds_step))
        inset = builder.add(builder.ptrtoint(out.rows, I64), step)
        end = builder.add(inset, I64(4 * out.access.dwords))
        with builder.if_then(builder.icmp_unsigned("<=", end, limit)):
            at = builder.add(marks.lds, builder.shl(inset, I64(1)))
            builder.store(stored, builder.inttoptr(at, PTR), align=2)


__all__ = ["SCALAR", "build", "scratch_marks"]
