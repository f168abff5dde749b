"""Waves that have ended while others of their workgroup wait at a barrier.

Memory of one host thread, two 64-bit words: the last end of a wave and the last barrier reached,
each as workgroup + 1, the number of barriers passed, and instruction + 1.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from wavecast.emulate import hostmemory
from wavecast.emulate.check import log
from wavecast.emulate.check.log import KINDS, log_function
from wavecast.emulate.lower import state
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.observer import Observer
from wavecast.emulate.reports import Kind
from wavecast.emulate.values import I64, PTR, context_word, element, load
from wavecast.isa.instruction import Instruction
from wavecast.isa.opcode import Control, Role

_ENDED, _REACHED = 0, 1
_INSTRUCTION_BITS: Final = 17
_BARRIER_BITS: Final = 20
_BARRIERS: Final = (1 << _BARRIER_BITS) - 1
_GROUP_SHIFT: Final = _INSTRUCTION_BITS + _BARRIER_BITS


class Exits:
    """The memory of one host thread."""

    def __init__(self) -> None:
        self.words = hostmemory.zeros(2, np.uint64)

    def attach(self, context: np.ndarray) -> None:
        context[log.EXITS] = self.words.ctypes.data


class ExitChecks(Observer):
    """Compares, at barriers and ends, who has ended with who waits."""

    def leave(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        ends = instruction.opcode.control is Control.END
        if not ends and instruction.opcode.role is not Role.BARRIER:
            return
        builder = emitter.builder
        words = context_word(builder, emitter.context, log.EXITS, PTR)
        group = builder.add(context_word(builder, emitter.context, state.WORKGROUP), I64(1))
        barriers = builder.and_(context_word(builder, emitter.context, state.PHASE), I64(_BARRIERS))
        here = I64(instruction.index + 1)
        mine = builder.or_(
            builder.shl(group, I64(_GROUP_SHIFT)),
            builder.or_(builder.shl(barriers, I64(_INSTRUCTION_BITS)), here),
        )
        slots = [element(builder, words, number, I64) for number in (_ENDED, _REACHED)]
        other = load(builder, slots[_REACHED if ends else _ENDED], I64, 8)
        # an end counts for all later barriers, a barrier only until it is passed
        shift = I64(_INSTRUCTION_BITS if ends else _GROUP_SHIFT)
        same = builder.icmp_unsigned("==", builder.lshr(other, shift), builder.lshr(mine, shift))
        other_instruction = builder.and_(other, I64((1 << _INSTRUCTION_BITS) - 1))
        with builder.if_then(same, likely=False):
            barrier, end = (other_instruction, here) if ends else (here, other_instruction)
            self._log(emitter, barrier, end)
        builder.store(mine, slots[_ENDED if ends else _REACHED], align=8)

    def _log(self, emitter: WaveEmitter, barrier: Any, end: Any) -> None:
        """`barrier` and `end` are instructions + 1."""
        builder = emitter.builder
        index = builder.sub(barrier, I64(1))
        site = builder.add(builder.mul(index, I64(KINDS)), I64(int(Kind.EXITED_WAVE)))
        lanes: Any = emitter.exec_mask()
        if lanes.type != I64:
            lanes = builder.zext(lanes, I64)
        values = [emitter.context, site, lanes, I64(0), end, I64(0)]
        builder.call(log_function(emitter.module), values)


__all__ = ["ExitChecks", "Exits"]
