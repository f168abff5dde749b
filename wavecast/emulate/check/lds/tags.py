"""Accesses of LDS in a phase that all earlier accesses are ordered before.

Where every wave has waited for what it did in LDS ahead of the last barrier, nothing before that
barrier conflicts with anything behind it. An access then only has to be compared with those of its
own phase, and with loads from memory to LDS that their waves have not waited for yet. Each access
has a number; a dword keeps that of its last store and of its last load as a tag of 32 bits (the
number above the wave + 1) and the waves that have loaded it, 12 bytes instead of the 40 of its
records. At the next barrier the tags of the phase are forgotten, except that the dword has been
written: tags are open from the first number on that something may conflict with.

What this cannot settle (another wave's open store or load, bytes that nobody has written,
addresses that are not aligned) is left to the records: `lds_spill` writes them from the open tags,
as if every access had, and for the rest of the phase there are records alone.

Memory of one host thread, 64-bit words: `WORDS` of state, then what the records of the
accesses with open tags are made of. Programs whose accesses of LDS are not all loads and stores of
whole dwords (`uses_tags`) have no tags.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
from llvmlite import ir

from wavecast.emulate import hostmemory
from wavecast.emulate.check import log
from wavecast.emulate.check.counters import DS, LOAD, WAVES, visible
from wavecast.emulate.check.lds.order import FILLED
from wavecast.emulate.check.lds.records import (
    BYTES,
    LOAD_RECORD,
    READ_WORDS,
    STREAM,
    WAVE,
    WRITTEN,
    LdsRecords,
)
from wavecast.emulate.check.lds.records import NUMBER as RECORD_NUMBER
from wavecast.emulate.check.lds.unwritten import masks_copies
from wavecast.emulate.check.named_barriers import has_named_barriers
from wavecast.emulate.check.shadow import internal_function
from wavecast.emulate.lower import state
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.values import I1, I32, I64, PTR, context_word, element, load, splat
from wavecast.isa.instruction import Instruction
from wavecast.isa.opcode import MemoryKind, Space
from wavecast.isa.program import Program

TAGGED: Final = "t"
"""Trait of accesses in programs with tags."""
STORED, LOADED, READERS, PHASES, CLEAN, NUMBER, OPEN_STORE, OPEN_LOAD, RECORDED = range(9)
"""Words: pointers to the tags of stores and of loads and to the masks of readers; one more than the
phase that was looked at last; whether all was ordered before it and tags have been kept since; the
number of the last access, and the first open ones of stores and of loads; whether there are
records."""
WAVE_COUNT: Final = RECORDED + 1
"""The word with the waves of a workgroup."""
LAST: Final = WAVE_COUNT + 1
"""From here on, for each wave, the number of its last operation in the stream of LDS."""
LAST_FILL: Final = LAST + WAVES
"""From here on, for each wave, the number of its last load from memory to LDS."""
WORDS: Final = LAST_FILL + WAVES
_ACCESSES: Final = 1024
"""Accesses that are open at most, a power of two."""
_ACCESS_WORDS: Final = 2
_WAVE_BITS: Final = 6
_WRITTEN: Final = 1
"""A tag of a number before any other: only that the dword has been written."""
_OF_CONTEXT: Final = ir.FunctionType(ir.VoidType(), [PTR])
_LAST_NUMBER: Final = (1 << 32 - _WAVE_BITS) - _ACCESSES


class TagMemory:
    """The memory of one host thread, for `dwords` of LDS and workgroups of `waves`."""

    def __init__(self, dwords: int, waves: int) -> None:
        self.words = hostmemory.zeros(WORDS + _ACCESSES * _ACCESS_WORDS, np.uint64)
        self.tags = [hostmemory.zeros(dwords, np.uint32) for _ in range(READERS + 1)]
        for word, array in enumerate(self.tags):
            self.words[word] = array.ctypes.data
        self.words[WAVE_COUNT] = waves

    def attach(self, context: np.ndarray) -> None:
        context[log.LDS_TAGS] = self.words.ctypes.data


def uses_tags(program: Program) -> bool:
    """Whether a program loads, stores and fills whole dwords of LDS, in all active lanes, and
    touches it in no other way, and has only the workgroup's barrier."""
    if masks_copies(program) or has_named_barriers(program):
        return False
    return all(map(_is_whole, program.instructions))


def _is_whole(instruction: Instruction) -> bool:
    memory = instruction.memory
    if memory is None or memory.kind is MemoryKind.PERMUTE:
        return True
    if instruction.opcode.form == "TENSOR":
        return False
    if memory.kind is MemoryKind.LOAD_TO_LDS:
        return True
    if memory.kind not in (MemoryKind.LOAD, MemoryKind.STORE):
        return memory.kind is MemoryKind.ATOMIC and memory.space not in (Space.LDS, Space.FLAT)
    count = instruction.opcode.memory_form.offsets
    whole = memory.bytes % (4 * count) == 0
    return memory.space is not Space.FLAT and (memory.space is not Space.LDS or whole)


def clear(emitter: WaveEmitter, dwords: Any, zero: Any) -> Any:
    """Forget the tags: another workgroup has LDS now. `zero(emitter, pointer, bytes)` clears
    memory. Returns whether there are records to be cleared (i1)."""
    builder = emitter.builder
    words = context_word(builder, emitter.context, log.LDS_TAGS, PTR)
    word = partial(element, builder, words, kind=I64)
    for array in (STORED, LOADED):
        pointer = load(builder, word(array), PTR, 8)
        zero(emitter, pointer, builder.shl(dwords, I64(2)))
    recorded = load(builder, word(RECORDED), I64, 8)
    for index in (PHASES, CLEAN, NUMBER, OPEN_STORE, OPEN_LOAD, RECORDED):
        builder.store(I64(0), word(index), align=8)
    zero(emitter, word(LAST), I64(8 * 2 * WAVES))
    return builder.icmp_unsigned("!=", recorded, I64(0))


class LdsTags:
    """The tags of the dwords that one access touches. `again` (i1): a store has two lanes for one
    dword."""

    def __init__(self, records: LdsRecords) -> None:
        self.records, self.out, self.watched = records, records.out, records.watched
        out, builder = self.out, self.out.builder
        self.words = self.watched.word(log.LDS_TAGS, PTR)
        self._is_fill = self.watched.kind == "tolds"
        self._fills = FILLED in self.watched.traits
        self.good, self.again = out.room(I1, I1(0)), out.room(I1, I1(0))
        self.tag, self.done = out.room(I32, I32(0)), out.room(I32, I32(0))
        self._begin()
        self.open_store, self.open_load = (
            builder.trunc(
                builder.shl(load(builder, self._slot(word), I64, 8), I64(_WAVE_BITS)), I32
            )
            for word in (OPEN_STORE, OPEN_LOAD)
        )
        self._arrays = [
            load(builder, self._slot(array), PTR, 8) for array in (STORED, LOADED, READERS)
        ]

    def _slot(self, word: Any) -> Any:
        return element(self.out.builder, self.words, word, I64)

    def _begin(self) -> None:
        """Number this access, where the phase has tags."""
        out, builder, shadow = self.out, self.out.builder, self.watched
        phase = builder.add(shadow.phase, I64(1))
        checked = load(builder, self._slot(PHASES), I64, 8)
        with builder.if_then(builder.icmp_unsigned("!=", checked, phase), likely=False):
            builder.call(_phase_function(out.module), [out.context])
        last = self._slot(builder.add(shadow.wave, I64(LAST_FILL if self._is_fill else LAST)))
        builder.store(shadow.number, last, align=8)
        clean = builder.icmp_unsigned("!=", load(builder, self._slot(CLEAN), I64, 8), I64(0))
        with builder.if_then(clean, likely=True):
            number = builder.add(load(builder, self._slot(NUMBER), I64, 8), I64(1))
            first = load(builder, self._slot(OPEN_STORE), I64, 8)  # never beyond that of loads
            fits = builder.icmp_unsigned("<", builder.sub(number, first), I64(_ACCESSES))
            with builder.if_else(fits, likely=True) as (few, many):
                with few:
                    self._number(number)
                with many:
                    self._restart()

    def _number(self, number: Any) -> None:
        """Keep what this access's records are made of."""
        builder, records = self.out.builder, self.records
        builder.store(number, self._slot(NUMBER), align=8)
        if records.stores:
            values = [records.store(I64(WRITTEN.mask), I64(BYTES.mask)), I64(0)]
        else:
            values = [builder.extract_element(records.reader, I32(n)) for n in range(2)]
        at = _values_at(builder, number)
        for offset, value in enumerate(values):
            builder.store(value, self._slot(builder.add(at, I64(offset))), align=8)
        tag = builder.or_(builder.shl(number, I64(_WAVE_BITS)), records.me)
        builder.store(builder.trunc(tag, I32), self.tag)
        builder.store(I1(1), self.good)

    def _restart(self) -> None:
        """A long phase: nothing in a workgroup of one wave conflicts with anything, else records
        are kept from here on."""
        out, builder = self.out, self.out.builder
        builder.call(_spill_function(out.module), [out.context])
        single = builder.icmp_unsigned("==", load(builder, self._slot(WAVE_COUNT), I64, 8), I64(1))
        with builder.if_then(single):
            builder.call(_phase_function(out.module), [out.context])

    def lanes_left(self, lanes: Any, locate: Callable[[Any], Any], fits: Any = None) -> Any:
        """Tag the dwords of the lanes of a mask; `locate(lane)` gives where a lane is in LDS, in
        bounds unless `fits` (i1) says no. Returns the mask of those that records are needed for:
        all or none."""
        out, builder = self.out, self.out.builder
        left = out.room(out.mask, lanes)
        tagged = out.get(self.good, I1)
        if fits is not None:
            beyond = builder.and_(tagged, builder.not_(fits))
            with builder.if_then(beyond, likely=False):
                builder.call(_spill_function(out.module), [out.context])
                builder.store(I1(0), self.good)
        with builder.if_then(out.get(self.good, I1), likely=True):
            with out.each_lane(lanes) as lane:
                self._tag_lane(locate(lane))
            with builder.if_else(out.get(self.good, I1), likely=True) as (done, open_):
                with done:
                    builder.store(out.mask(0), left)
                with open_:
                    builder.call(_spill_function(out.module), [out.context])
        records_needed = builder.icmp_unsigned("!=", out.get(left, out.mask), out.mask(0))
        with builder.if_then(records_needed, likely=False):
            builder.store(I64(1), self._slot(RECORDED), align=8)
            builder.store(I1(0), self.again)
        return out.get(left, out.mask)

    def _tag_lane(self, inset: Any) -> None:
        out, builder, count = self.out, self.out.builder, self.out.access.dwords
        kind = ir.VectorType(I32, count)
        dword = builder.lshr(inset, I64(2))
        stored_slot, loaded_slot, readers_slot = (
            element(builder, array, dword, I32) for array in self._arrays
        )
        stored, loaded = (
            builder.load(slot, align=4, typ=kind) for slot in (stored_slot, loaded_slot)
        )
        open_store, open_load, tag = (
            splat(builder, value, count)
            for value in (self.open_store, self.open_load, out.get(self.tag, I32))
        )
        conflict = builder.icmp_unsigned(">=", stored, open_store)
        if self._fills:
            conflict = self._unless_done(conflict, stored)
        else:  # a wave executes its own operations in LDS in order
            me = builder.trunc(self.records.me, I32)
            waves = builder.and_(stored, splat(builder, I32((1 << _WAVE_BITS) - 1), count))
            other = builder.icmp_unsigned("!=", waves, splat(builder, me, count))
            conflict = builder.and_(conflict, other)
        in_phase = builder.icmp_unsigned(">=", loaded, open_load)
        readers = builder.load(readers_slot, align=4, typ=kind)
        nobody = ir.Constant(kind, [0] * count)
        readers = builder.select(in_phase, readers, nobody)
        bit = splat(builder, self.records.bit, count)
        if self.records.stores:
            others = builder.and_(readers, builder.xor(bit, ir.Constant(kind, [-1] * count)))
            conflict = builder.or_(conflict, builder.icmp_unsigned("!=", others, nobody))
        good = self.watched.all_of(
            builder.not_(_any(builder, conflict)),
            builder.icmp_unsigned("==", builder.and_(inset, I64(3)), I64(0)),
        )
        if not self.records.stores:
            good = builder.and_(good, self._is_written(stored, stored_slot, dword))
        with builder.if_else(good, likely=True) as (fine, odd):
            with fine:
                if self.records.stores:
                    again = _any(builder, builder.icmp_unsigned("==", stored, tag))
                    builder.store(builder.or_(out.get(self.again, I1), again), self.again)
                    builder.store(tag, stored_slot, align=4)
                else:
                    builder.store(tag, loaded_slot, align=4)
                    builder.store(builder.or_(readers, bit), readers_slot, align=4)
            with odd:
                builder.store(I1(0), self.good)

    def _unless_done(self, conflict: Any, stored: Any) -> Any:
        """`conflict`, nowhere if all open stores that these dwords have are done: behind the first
        one that is not there are others that are."""
        out, builder, count = self.out, self.out.builder, self.out.access.dwords
        answer = self._room_for_answer()
        builder.store(I1(0), answer)
        with builder.if_then(_any(builder, conflict), likely=False):
            builder.store(I1(1), answer)
            for index in range(count):
                tag = builder.extract_element(stored, I32(index))
                again = builder.icmp_unsigned("==", tag, out.get(self.done, I32))
                is_open = builder.extract_element(conflict, I32(index))
                asked = builder.and_(is_open, builder.not_(again))
                with builder.if_then(asked, likely=False):
                    done = builder.call(_done_function(out.module), [out.context, tag])
                    builder.store(builder.and_(out.get(answer, I1), done), answer)
                    before = out.get(self.done, I32)
                    builder.store(builder.select(done, tag, before), self.done)
        all_done = splat(builder, builder.not_(out.get(answer, I1)), count)
        return builder.and_(conflict, all_done)

    def _is_written(self, stored: Any, slot: Any, dword: Any) -> Any:
        """Whether all dwords have been written whole (i1), by their tags or else their records."""
        out, builder, count = self.out, self.out.builder, self.out.access.dwords
        kind = stored.type
        empty = builder.icmp_unsigned("==", stored, ir.Constant(kind, [0] * count))
        result = self._room_for_answer()
        builder.store(I1(1), result)
        with builder.if_then(_any(builder, empty), likely=False):
            wide = ir.VectorType(I64, count)
            written = builder.load(self.records.write_slot(dword), align=8, typ=wide)
            every = ir.Constant(wide, [WRITTEN.mask << WRITTEN.first] * count)
            whole = builder.icmp_unsigned("==", builder.and_(written, every), every)
            missing = builder.and_(empty, builder.not_(whole))
            builder.store(builder.not_(_any(builder, missing)), result)
            tags = builder.select(
                builder.and_(empty, whole), ir.Constant(kind, [_WRITTEN] * count), stored
            )
            builder.store(tags, slot, align=4)
        return out.get(result, I1)

    def _room_for_answer(self) -> Any:
        with self.out.builder.goto_entry_block():
            return self.out.builder.alloca(I1)


def _values_at(builder: ir.IRBuilder, number: Any) -> Any:
    """The word from which on an access's values are kept."""
    index = builder.and_(number, I64(_ACCESSES - 1))
    return builder.add(builder.mul(index, I64(_ACCESS_WORDS)), I64(WORDS))


def _any(builder: ir.IRBuilder, flags: Any) -> Any:
    """Whether any of a vector of i1 is set (i1)."""
    bits = ir.IntType(flags.type.count)
    return builder.icmp_unsigned("!=", builder.bitcast(flags, bits), bits(0))


def _phase_function(module: ir.Module) -> ir.Function:
    """`void lds_phase(ptr context)`: begins a phase, with tags where all is ordered before it."""
    function, is_new = internal_function(module, "lds_phase", _OF_CONTEXT)
    if not is_new:
        return function
    (context,) = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    words = context_word(builder, context, log.LDS_TAGS, PTR)
    word = partial(element, builder, words, kind=I64)
    progress = context_word(builder, context, log.PROGRESS, PTR)
    phase = context_word(builder, context, state.PHASE)
    builder.store(builder.add(phase, I64(1)), word(PHASES), align=8)
    number = load(builder, word(NUMBER), I64, 8)
    waves = load(builder, word(WAVE_COUNT), I64, 8)
    had_tags = builder.icmp_unsigned("!=", load(builder, word(CLEAN), I64, 8), I64(0))
    before = builder.block
    head, body, after = (function.append_basic_block(name) for name in ("head", "wave", "after"))
    builder.branch(head)
    builder.position_at_end(head)
    wave, ordered, filled = builder.phi(I64), builder.phi(I1), builder.phi(I1)
    for value, first in ((wave, I64(0)), (ordered, I1(1)), (filled, I1(1))):
        value.add_incoming(first, before)
    builder.cbranch(builder.icmp_unsigned("<", wave, waves), body, after)
    builder.position_at_end(body)
    for total, first_word, stream in ((ordered, LAST, DS), (filled, LAST_FILL, LOAD)):
        last = load(builder, word(builder.add(wave, I64(first_word))), I64, 8)
        nothing = builder.icmp_unsigned("==", last, I64(0))
        seen = builder.or_(visible(builder, progress, phase, wave, stream, last), nothing)
        total.add_incoming(builder.and_(total, seen), body)
    wave.add_incoming(builder.add(wave, I64(1)), body)
    builder.branch(head)
    builder.position_at_end(after)
    single = builder.icmp_unsigned("==", waves, I64(1))
    good = builder.and_(builder.or_(ordered, single), builder.or_(filled, had_tags))
    good = builder.and_(good, builder.icmp_unsigned("<", number, I64(_LAST_NUMBER)))
    with builder.if_else(good, likely=True) as (tagged, recorded):
        with tagged:
            following = builder.add(number, I64(1))
            open_store = load(builder, word(OPEN_STORE), I64, 8)
            first = builder.select(had_tags, open_store, following)
            first = _first_open(builder, words, progress, phase, first, following)
            builder.store(first, word(OPEN_STORE), align=8)
            builder.store(following, word(OPEN_LOAD), align=8)
            builder.store(I64(1), word(CLEAN), align=8)
        with recorded, builder.if_then(had_tags):
            builder.call(_spill_function(module), [context])
    builder.ret_void()
    return function


def _first_open(
    builder: ir.IRBuilder, words: Any, progress: Any, phase: Any, first: Any, end: Any
) -> Any:
    """The first access from `first` on that fills LDS and is not done, else `end`."""
    function = builder.function
    before = builder.block
    head, body, more, after = (
        function.append_basic_block(name) for name in ("head", "access", "more", "after")
    )
    builder.branch(head)
    builder.position_at_end(head)
    number = builder.phi(I64)
    number.add_incoming(first, before)
    builder.cbranch(builder.icmp_unsigned("<", number, end), body, after)
    builder.position_at_end(body)
    fills, done = _is_done(builder, words, progress, phase, number)
    is_open = builder.and_(fills, builder.not_(done))
    builder.cbranch(is_open, after, more)
    builder.position_at_end(more)
    number.add_incoming(builder.add(number, I64(1)), more)
    builder.branch(head)
    builder.position_at_end(after)
    return number


def _is_done(
    builder: ir.IRBuilder, words: Any, progress: Any, phase: Any, number: Any
) -> tuple[Any, Any]:
    """Whether an access fills LDS, and whether a store was done at the last barrier (i1)."""
    at = _values_at(builder, number)
    record, loaded = (
        load(builder, element(builder, words, builder.add(at, I64(n)), I64), I64, 8)
        for n in range(_ACCESS_WORDS)
    )
    stream = STREAM.of(builder, record)
    fills = builder.and_(
        builder.icmp_unsigned("!=", stream, I64(DS)),
        builder.icmp_unsigned("==", loaded, I64(0)),  # a load has its number there
    )
    author = builder.and_(builder.sub(WAVE.of(builder, record), I64(1)), I64(WAVES - 1))
    number_in_stream = RECORD_NUMBER.of(builder, record)
    return fills, visible(builder, progress, phase, author, stream, number_in_stream)


def _done_function(module: ir.Module) -> ir.Function:
    """`i1 lds_done(ptr context, i32 tag)`: whether an open store was done at the last barrier."""
    function, is_new = internal_function(module, "lds_done", ir.FunctionType(I1, [PTR, I32]))
    if not is_new:
        return function
    context, tag = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    words, progress = (
        context_word(builder, context, index, PTR) for index in (log.LDS_TAGS, log.PROGRESS)
    )
    phase = context_word(builder, context, state.PHASE)
    number = builder.lshr(builder.zext(tag, I64), I64(_WAVE_BITS))
    builder.ret(_is_done(builder, words, progress, phase, number)[1])
    return function


def _spill_function(module: ir.Module) -> ir.Function:
    """`void lds_spill(ptr context)`: writes the records that the tags stand for; the phase has no
    tags from then on."""
    function, is_new = internal_function(module, "lds_spill", _OF_CONTEXT)
    if not is_new:
        return function
    (context,) = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    words = context_word(builder, context, log.LDS_TAGS, PTR)
    word = partial(element, builder, words, kind=I64)
    firsts = [load(builder, word(index), I64, 8) for index in (OPEN_STORE, OPEN_LOAD)]
    size = context_word(builder, context, state.LDS_BYTES)
    dwords = builder.lshr(builder.add(size, I64(3)), I64(2))
    arrays = [load(builder, word(array), PTR, 8) for array in (STORED, LOADED, READERS)]
    writes, reads = (
        context_word(builder, context, index, PTR) for index in (log.LDS_WRITES, log.LDS_READS)
    )

    def values_of(tag: Any, first: Any) -> tuple[Any, Any]:
        """Whether a tag is open (i1), and where the values of its access are."""
        number = builder.lshr(builder.zext(tag, I64), I64(_WAVE_BITS))
        return builder.icmp_unsigned(">=", number, first), word(_values_at(builder, number))

    before = builder.block
    head, body, after = (function.append_basic_block(name) for name in ("head", "dword", "after"))
    builder.branch(head)
    builder.position_at_end(head)
    dword = builder.phi(I64)
    dword.add_incoming(I64(0), before)
    builder.cbranch(builder.icmp_unsigned("<", dword, dwords), body, after)
    builder.position_at_end(body)
    stored, loaded, readers = (
        load(builder, element(builder, array, dword, I32), I32) for array in arrays
    )
    with builder.if_then(builder.icmp_unsigned("!=", stored, I32(0))):
        slot = element(builder, writes, dword, I64)
        is_open, values = values_of(stored, firsts[0])
        with builder.if_else(is_open) as (now, earlier):
            with now:
                builder.store(load(builder, values, I64, 8), slot, align=8)
            with earlier:
                ever = I64(WRITTEN.mask << WRITTEN.first)
                builder.store(builder.or_(load(builder, slot, I64, 8), ever), slot, align=8)
    is_open, values = values_of(loaded, firsts[1])
    with builder.if_then(is_open):
        slot = element(builder, reads, builder.mul(dword, I64(READ_WORDS)), I64)
        mask = builder.zext(readers, I64)
        both = builder.or_(mask, builder.shl(mask, I64(32)))
        record: Any = ir.Constant(LOAD_RECORD, [0] * READ_WORDS)
        head_word, last = (load(builder, element(builder, values, n, I64), I64, 8) for n in (0, 1))
        for index, value in enumerate((head_word, last, both, both)):
            record = builder.insert_element(record, value, I32(index))
        builder.store(record, slot, align=8)
    dword.add_incoming(builder.add(dword, I64(1)), builder.block)
    builder.branch(head)
    builder.position_at_end(after)
    following = builder.add(load(builder, word(NUMBER), I64, 8), I64(1))
    for index, value in (
        (CLEAN, I64(0)),
        (RECORDED, I64(1)),
        (OPEN_STORE, following),
        (OPEN_LOAD, following),
    ):
        builder.store(value, word(index), align=8)
    builder.ret_void()
    return function


__all__ = ["TAGGED", "LdsTags", "TagMemory", "clear", "uses_tags"]
