"""Lanes that read registers of lanes which are not active, through ds_bpermute.

`__shfl` and its like become this instruction. Lanes beyond the workgroup's last work-item never
were active: reductions read their zeros, which is not reported.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from wavecast.emulate.check import log
from wavecast.emulate.check.exchange import fetched_bits
from wavecast.emulate.check.report import Kind
from wavecast.emulate.lower import state
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.observer import Observer
from wavecast.emulate.lower.values import I32, element, load
from wavecast.isa.instruction import Instruction


class ExchangeChecks(Observer):
    """Compares the lanes that are read with those that are active."""

    def before(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        decoded = instruction.decoded
        if decoded.memory is None or decoded.opcode.memory_form.exchange != "bpermute":
            return
        builder, lanes = emitter.builder, emitter.layout.lanes
        active = emitter.exec_mask()
        kind: Any = ir.IntType(lanes)
        started = load(builder, element(builder, emitter.state, state.FIRST_EXEC, I32), kind, 8)
        inactive = builder.and_(started, builder.not_(active))
        some = builder.icmp_unsigned("!=", inactive, kind(0))
        emitter.pending.settle()
        with builder.if_then(some, likely=False):
            read = builder.and_(fetched_bits(emitter, decoded, inactive), active)
            with builder.if_then(builder.icmp_unsigned("!=", read, kind(0)), likely=False):
                log.emit(emitter, Kind.INACTIVE_LANE, instruction.index, lanes=read)


__all__ = ["ExchangeChecks"]
