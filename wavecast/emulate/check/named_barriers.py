"""What named barriers order: a wave that waits sees what those who signalled had done by then.

Memory of one host thread behind the words of `counters.py`: by wave the last operation of every
other wave and stream that a named barrier has ordered before it, then by barrier what those who
have signalled had seen and done, then the same as it was when the barrier last opened. A wave
that comes to its wait late, when the barrier has opened again, also sees what was ordered by then.

The phases of the workgroup's barrier know nothing of these waves: an access is ordered by either.
"""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir

from wavecast.emulate.check import log
from wavecast.emulate.check.counters import (
    NAMED_SEEN,
    NUMBER_BITS,
    STREAM_BITS,
    STREAMS,
    WAVES,
    Counters,
)
from wavecast.emulate.check.shadow import internal_function
from wavecast.emulate.lower import named_barriers, runtime, state
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.observer import Observer
from wavecast.emulate.values import I32, I64, PTR, context_word, element, load
from wavecast.isa.instruction import Instruction
from wavecast.isa.program import Program
from wavecast.isa.waits import arrives, awaits, is_named

NAMED: Final = "k"
"""Trait of accesses in programs with named barriers."""
_ROW: Final = WAVES * STREAMS
_BARRIERS: Final = state.NAMED_BARRIERS + 1
_SIGNALLED: Final = NAMED_SEEN + WAVES * _ROW
_OPENED: Final = _SIGNALLED + _BARRIERS * _ROW
WORDS: Final = _OPENED + _BARRIERS * _ROW
_NUMBERS: Final = (1 << NUMBER_BITS) - 1
_VECTOR: Final = ir.VectorType(I64, 8)
_JOIN: Final = ir.FunctionType(ir.VoidType(), [PTR, PTR])
"""`void join(ptr row, ptr other)`: the larger numbers of two rows."""
_UNORDERED_READERS: Final = ir.FunctionType(I32, [PTR, PTR, I32])
"""`i32 unordered_readers(ptr seen, ptr loads, i32 waves)`."""


def has_named_barriers(program: Program) -> bool:
    return any(map(is_named, program.instructions))


class NamedBarrierOrder(Observer):
    """Emits what signals tell and what waits see."""

    def __init__(self, counters: Counters) -> None:
        self.counters = counters

    def enter(self, emitter: WaveEmitter) -> None:
        """A wave starts: nothing is ordered before it, and no operation of it before another."""
        builder = emitter.builder
        entry = load(builder, element(builder, emitter.state, state.ENTRY, I32), I32)
        with builder.if_then(builder.icmp_unsigned("==", entry, I32(0))):
            wave = self.counters.wave
            size = builder.mul(wave, I64(_ROW))
            self._clear(emitter, builder.add(size, I64(NAMED_SEEN)), _ROW)
            column = builder.mul(wave, I64(STREAMS))
            for row in range(WAVES + 2 * _BARRIERS):
                self._clear(emitter, builder.add(column, I64(NAMED_SEEN + row * _ROW)), STREAMS)

    def before(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        if is_named(instruction) and arrives(instruction.opcode):
            self._signal(emitter, named_barriers.number_of(emitter, instruction))

    def after(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        if not is_named(instruction):
            return
        builder = emitter.builder
        if awaits(instruction.opcode):
            joined = load(builder, element(builder, emitter.state, state.JOINED, I32), I32)
            self._join(
                emitter, self._row(emitter, NAMED_SEEN), self._barrier(emitter, _OPENED, joined)
            )
        elif arrives(instruction.opcode):
            number = named_barriers.number_of(emitter, instruction)
            has_opened = builder.icmp_unsigned(
                "==", named_barriers.arrivals_of(emitter, number), I64(0)
            )
            with builder.if_then(has_opened):
                rows = (self._barrier(emitter, first, number) for first in (_OPENED, _SIGNALLED))
                self._join(emitter, *rows)

    def _signal(self, emitter: WaveEmitter, number: Any) -> None:
        """The barrier learns what this wave has seen, and what it has done by now."""
        builder, counters = emitter.builder, self.counters
        row = self._barrier(emitter, _SIGNALLED, number)
        self._join(emitter, row, self._row(emitter, NAMED_SEEN))
        mine = builder.mul(counters.wave, I64(STREAMS))
        for column, first, stream in counters.orders():
            at = builder.add(mine, I64(first + stream))
            last = load(builder, element(builder, counters.words, at, I64), I64, 8)
            slot = element(builder, row, builder.add(mine, I64(column)), I64)
            builder.store(last, slot, align=8)

    def _row(self, emitter: WaveEmitter, first: int) -> Any:
        builder = emitter.builder
        at = builder.add(builder.mul(self.counters.wave, I64(_ROW)), I64(first))
        return element(builder, self.counters.words, at, I64)

    def _barrier(self, emitter: WaveEmitter, first: int, number: Any) -> Any:
        """The row of a barrier; numbers that no barrier has share the first."""
        builder = emitter.builder
        index = builder.zext(named_barriers.index_of(emitter, number), I64)
        at = builder.add(builder.mul(index, I64(_ROW)), I64(first))
        return element(builder, self.counters.words, at, I64)

    def _join(self, emitter: WaveEmitter, row: Any, other: Any) -> None:
        function = runtime.outline(emitter.module, "check.join_rows", _JOIN, _build_join)
        emitter.builder.call(function, [row, other])

    def _clear(self, emitter: WaveEmitter, first: Any, count: int) -> None:
        builder = emitter.builder
        zero = ir.Constant(_VECTOR, [0] * _VECTOR.count)
        for index in range(0, count, _VECTOR.count):
            at = element(builder, self.counters.words, builder.add(first, I64(index)), I64)
            builder.store(zero, at, align=8)


def is_ordered(
    builder: ir.IRBuilder, progress: Any, me: Any, author: Any, stream: Any, number: Any
) -> Any:
    """Whether a named barrier has ordered the operation `number` of another wave before what the
    wave `me` does now (i1). Waves are numbers from 0 (i64), `progress` is `log.PROGRESS`."""
    row = builder.add(builder.mul(me, I64(_ROW)), builder.mul(author, I64(STREAMS)))
    at = builder.add(row, builder.add(stream, I64(NAMED_SEEN)))
    last = load(builder, element(builder, progress, at, I64), I64, 8)
    return _reaches(builder, last, number)


def loads_of(out: Any, dword: Any) -> Any:
    """The words of a dword of LDS in `log.LDS_LOADERS`: by wave the number and the stream of its
    last load."""
    builder = out.builder
    words = context_word(builder, out.context, log.LDS_LOADERS, PTR)
    return element(builder, words, builder.mul(dword, I64(WAVES)), I64)


def unordered_readers(out: Any, me: Any, dword: Any, waves: Any) -> Any:
    """Those of some waves (i32, a bit each) whose last load of a dword of LDS no named barrier has
    ordered before what the wave `me` does now."""
    builder = out.builder
    progress = context_word(builder, out.context, log.PROGRESS, PTR)
    at = builder.add(builder.mul(me, I64(_ROW)), I64(NAMED_SEEN))
    row = element(builder, progress, at, I64)
    function = _unordered_readers_function(out.module)
    return builder.call(function, [row, loads_of(out, dword), waves])


def _reaches(builder: ir.IRBuilder, last: Any, number: Any) -> Any:
    ahead = builder.and_(builder.sub(last, number), I64(_NUMBERS))
    near = builder.icmp_unsigned("<", ahead, I64(1 << NUMBER_BITS - 1))
    return builder.and_(near, builder.icmp_unsigned("!=", last, I64(0)))


def _build_join(module: ir.Module) -> None:
    function = ir.Function(module, _JOIN, runtime.OUTLINED + "check.join_rows")
    row, other = function.args
    entry, body, end = (function.append_basic_block(name) for name in ("entry", "body", "end"))
    builder = ir.IRBuilder(entry)
    builder.branch(body)
    builder.position_at_end(body)
    index = builder.phi(I64)
    index.add_incoming(I64(0), entry)
    slots = [element(builder, pointer, index, I64) for pointer in (row, other)]
    mine, theirs = (builder.load(slot, align=8, typ=_VECTOR) for slot in slots)
    larger = builder.select(builder.icmp_unsigned(">", mine, theirs), mine, theirs)
    builder.store(larger, slots[0], align=8)
    following = builder.add(index, I64(_VECTOR.count))
    index.add_incoming(following, body)
    builder.cbranch(builder.icmp_unsigned("<", following, I64(_ROW)), body, end)
    builder.position_at_end(end)
    builder.ret_void()


def _unordered_readers_function(module: ir.Module) -> ir.Function:
    function, is_new = internal_function(module, "unordered_readers", _UNORDERED_READERS)
    if not is_new:
        return function
    seen, loads, waves = function.args
    entry, head, body, end = (
        function.append_basic_block(name) for name in ("entry", "head", "body", "end")
    )
    builder = ir.IRBuilder(entry)
    builder.branch(head)
    builder.position_at_end(head)
    left, total = builder.phi(I32), builder.phi(I32)
    left.add_incoming(waves, entry)
    total.add_incoming(I32(0), entry)
    builder.cbranch(builder.icmp_unsigned("!=", left, I32(0)), body, end)
    builder.position_at_end(body)
    fewer = builder.and_(left, builder.sub(left, I32(1)))
    bit = builder.xor(left, fewer)
    wave = builder.zext(builder.cttz(left, ir.IntType(1)(1)), I64)
    word = load(builder, element(builder, loads, wave, I64), I64, 8)
    stream = builder.and_(word, I64(STREAMS - 1))
    number = builder.lshr(word, I64(STREAM_BITS))
    at = builder.add(builder.mul(wave, I64(STREAMS)), stream)
    last = load(builder, element(builder, seen, at, I64), I64, 8)
    ordered = _reaches(builder, last, number)
    more = builder.select(ordered, total, builder.or_(total, bit))
    left.add_incoming(fewer, body)
    total.add_incoming(more, body)
    builder.branch(head)
    builder.position_at_end(end)
    builder.ret(total)
    return function


__all__ = [
    "NAMED",
    "WORDS",
    "NamedBarrierOrder",
    "has_named_barriers",
    "is_ordered",
    "loads_of",
    "unordered_readers",
]
