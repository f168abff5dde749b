"""What a wave has asked of memory and what it has waited for, as numbers.

Every operation of a counter gets the next number of its stream; a wait that leaves N outstanding
has seen all but the last N done (operations of a counter end in order; those that do not, scalar
loads, are waited for with 0). Where a wave says it has come to a barrier the number done becomes
visible to the workgroup, once that has passed the barrier.

What a barrier makes visible in global memory is counted by itself: the waves of a workgroup that
share one cache see each other's operations in the order of issue, without waits
(`waits_at_barriers`).

Memory of one host thread, 64-bit words: what is visible by parity of the barrier phase, wave and
stream, then issued and done by wave and stream. A word of what is visible has the number in its
low half; in its high half, once the wave has ended, one more than the phase it ended in: all of it
is visible in later phases. The phase is the number of barriers the workgroup has passed.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np

from wavecast.arch import capabilities
from wavecast.emulate import hostmemory
from wavecast.emulate.check import log
from wavecast.emulate.lower import state
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.observer import Observer
from wavecast.emulate.values import I32, I64, PTR, context_word, element, load
from wavecast.isa.counters import LIMITS, counter_set, events
from wavecast.isa.instruction import Instruction
from wavecast.isa.opcode import Control, Role
from wavecast.isa.program import Kernel
from wavecast.isa.targets import isa_target
from wavecast.isa.waits import arrives, is_named, wait_counters

STREAMS: Final = 8
DS, LOAD, STORE, ASYNC, TENSOR = range(5)
"""Streams of LDS operations, of loads (and, on gfx9, stores), of stores, and of asynchronous copies
between memory and LDS, by lanes and of tensors (gfx1250)."""
STREAM_BITS: Final = 3
ORDERED: Final = 4
"""Added to LOAD or STORE: what barriers order in global memory."""
WAVES: Final = 32
"""Waves a workgroup has at most."""
ISSUED: Final = 2 * WAVES * STREAMS
DONE: Final = ISSUED + WAVES * STREAMS
WORDS: Final = DONE + WAVES * STREAMS
NAMED_SEEN: Final = WORDS
"""From here on, in programs with named barriers: by wave, other wave and stream the last operation
that a named barrier has ordered before it (`named_barriers.py`)."""
NUMBER_BITS: Final = 30
"""Bits of a number. Of two numbers the later one is found as long as a wave has issued fewer than
2^29 operations of a stream between them."""
_NUMBERS: Final = (1 << NUMBER_BITS) - 1


def streams(target: str) -> dict[str, int]:
    """Counter name -> stream."""
    by_counter = {"dscnt": DS, "lgkmcnt": DS, "loadcnt": LOAD, "vmcnt": LOAD}
    by_counter |= {"storecnt": STORE, "vscnt": STORE, "asynccnt": ASYNC, "tensorcnt": TENSOR}
    limits = LIMITS[counter_set(target)]
    return {counter: stream for counter, stream in by_counter.items() if counter in limits}


def issues(instruction: Instruction, target: str) -> tuple[int, ...]:
    """The streams an instruction takes a number of."""
    by_counter = streams(target)
    counters = [event.queue.counter for event in events(instruction.decoded, target)]
    return tuple(by_counter[counter] for counter in counters if counter in by_counter)


def waits_at_barriers(kernel: Kernel) -> bool:
    """Whether the waves of a workgroup must wait for accesses of global memory before a barrier
    that is to order them: where they may run on several compute units.

    Source: LLVM, "User Guide for AMDGPU Backend", memory model: threadgroup split and WGP mode; its
    code for gfx1250, which waits for stores in front of every barrier.
    """
    directives = kernel.descriptor.directives
    able = capabilities(isa_target(kernel.program.target))
    over_two = able.wgp_mode and directives.get("workgroup_processor_mode", 1)
    return bool(able.workgroup_waits or over_two or directives.get("tg_split", 0))


class Progress:
    """The memory of one host thread, with more `words` behind that of the counters."""

    def __init__(self, words: int = WORDS) -> None:
        self.words = hostmemory.zeros(words, np.uint64)
        self.arrivals = hostmemory.zeros(1, np.uint64)

    def attach(self, context: np.ndarray) -> None:
        context[log.PROGRESS] = self.words.ctypes.data
        context[log.ARRIVALS] = self.arrivals.ctypes.data


class Counters(Observer):
    """Emits the counting. Other observers ask it for the number of the operation at hand."""

    def __init__(self, kernel: Kernel) -> None:
        self.target = kernel.program.target
        self._streams = streams(self.target)
        self._numbered = set(self._streams.values())
        self._memory = self._numbered & {LOAD, STORE}
        self.waits = waits_at_barriers(kernel)

    def enter(self, emitter: WaveEmitter) -> None:
        builder = emitter.builder

        word = partial(context_word, builder, emitter.context)
        self.words = word(log.PROGRESS, PTR)
        self.wave, self.phase = word(state.WAVE, I64), word(state.PHASE, I64)
        self.parity = builder.and_(self.phase, I64(1))
        entry = load(builder, element(builder, emitter.state, state.ENTRY, I32), I32)
        with builder.if_then(builder.icmp_unsigned("==", entry, I32(0))):
            for stream in range(STREAMS):
                for slot in (
                    self._visible(emitter, self.wave, 0, stream),
                    self._visible(emitter, self.wave, 1, stream),
                    self._counter_slot(emitter, ISSUED, stream),
                    self._counter_slot(emitter, DONE, stream),
                ):
                    builder.store(I64(0), slot, align=8)

    def before(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        builder = emitter.builder
        if instruction.opcode.role is Role.WAIT:
            for counter, outstanding in wait_counters(instruction, self.target).items():
                stream = self._streams.get(counter)
                if stream is None:
                    continue
                slot = self._counter_slot(emitter, DONE, stream)
                issued = self.last_issued(emitter, stream)
                completions = builder.sub(issued, I64(outstanding))
                more = builder.icmp_signed(">", completions, load(builder, slot, I64, 8))
                with builder.if_then(more):
                    builder.store(completions, slot, align=8)
        if arrives(instruction.opcode) and not is_named(instruction):
            self._publish(emitter)
        for stream in issues(instruction, self.target):
            number = builder.add(self.last_issued(emitter, stream), I64(1))
            builder.store(number, self._counter_slot(emitter, ISSUED, stream), align=8)

    def _publish(self, emitter: WaveEmitter) -> None:
        """What is done by now is visible in the next phase."""
        builder = emitter.builder
        other = builder.xor(self.parity, I64(1))
        for stream in sorted(self._numbered):
            completions = load(builder, self._counter_slot(emitter, DONE, stream), I64, 8)
            following = self._visible(emitter, self.wave, other, stream)
            builder.store(builder.and_(completions, I64(_NUMBERS)), following, align=8)
            if stream in self._memory:
                ordered = completions if self.waits else self.last_issued(emitter, stream)
                following = self._visible(emitter, self.wave, other, stream + ORDERED)
                builder.store(builder.and_(ordered, I64(_NUMBERS)), following, align=8)

    def leave(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        if instruction.opcode.control is not Control.END:
            return
        builder = emitter.builder
        other = builder.xor(self.parity, I64(1))
        end_mark = builder.shl(builder.add(self.phase, I64(1)), I64(32))
        for stream in sorted(self._numbered | {stream + ORDERED for stream in self._memory}):
            mine = self._visible(emitter, self.wave, self.parity, stream)
            builder.store(builder.or_(load(builder, mine, I64, 8), end_mark), mine, align=8)
            following = self._visible(emitter, self.wave, other, stream)
            builder.store(end_mark, following, align=8)

    def orders(self) -> list[tuple[int, int, int]]:
        """What a wave tells at a barrier: columns, and the words and streams they get."""
        first = DONE if self.waits else ISSUED
        memory = [(stream + ORDERED, first, stream) for stream in sorted(self._memory)]
        return [(stream, DONE, stream) for stream in sorted(self._numbered)] + memory

    def last_issued(self, emitter: WaveEmitter, stream: int) -> Any:
        """The number of the last operation of a stream, i64."""
        return load(emitter.builder, self._counter_slot(emitter, ISSUED, stream), I64, 8)

    def _counter_slot(self, emitter: WaveEmitter, first: int, stream: int) -> Any:
        builder = emitter.builder
        index = builder.add(builder.mul(self.wave, I64(STREAMS)), I64(first + stream))
        return element(builder, self.words, index, I64)

    def _visible(self, emitter: WaveEmitter, wave: Any, parity: Any, stream: int) -> Any:
        return visible_slot(emitter.builder, self.words, wave, parity, stream)


def visible(builder: Any, words: Any, phase: Any, wave: Any, stream: Any, number: Any) -> Any:
    """Whether the operation `number` of a wave's stream was done when its wave came to the last
    barrier before `phase`, or its wave ended in an earlier phase (i1)."""
    parity = builder.and_(phase, I64(1))
    word = load(builder, visible_slot(builder, words, wave, parity, stream), I64, 8)
    ahead = builder.and_(builder.sub(word, number), I64(_NUMBERS))
    is_done = builder.icmp_unsigned("<", ahead, I64(1 << NUMBER_BITS - 1))
    end_phase = builder.lshr(word, I64(32))
    now = builder.and_(builder.add(phase, I64(1)), I64((1 << 32) - 1))
    earlier = builder.and_(
        builder.icmp_unsigned("!=", end_phase, I64(0)), builder.icmp_unsigned("!=", end_phase, now)
    )
    return builder.or_(is_done, earlier)


def visible_slot(builder: Any, words: Any, wave: Any, parity: Any, stream: Any) -> Any:
    """Where the number of `wave`'s operations visible in a phase of `parity` lies."""
    half = builder.mul(parity, I64(WAVES * STREAMS)) if not isinstance(parity, int) else I64(
        parity * WAVES * STREAMS
    )  # fmt: skip
    index = builder.add(half, builder.mul(wave, I64(STREAMS)))
    stream = I64(stream) if isinstance(stream, int) else stream
    return element(builder, words, builder.add(index, stream), I64)


__all__ = [
    "ASYNC",
    "DONE",
    "DS",
    "ISSUED",
    "LOAD",
    "NUMBER_BITS",
    "ORDERED",
    "STORE",
    "STREAMS",
    "STREAM_BITS",
    "TENSOR",
    "WAVES",
    "Counters",
    "Progress",
    "issues",
    "streams",
    "visible",
    "visible_slot",
    "waits_at_barriers",
]
