"""Values from lanes that are not active, fetched by ds_bpermute, where they are used.

`__shfl` and its like become this instruction. What a lane reads of a lane that is not active is
undefined, and followed as registers that nothing has written are (`registers.py`): reductions of
half a wave read such lanes and use the results of others. Lanes beyond the workgroup's last
work-item never were active: reductions read their zeros, which is not reported.

Memory of a host thread: per wave the cells, then the exchange that has last read inactive lanes.
"""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir

from wavecast.emulate.check import log
from wavecast.emulate.check.dataflow.flows import INACTIVE_CELL, fetches
from wavecast.emulate.check.log import KINDS, log_function
from wavecast.emulate.check.registers.definedness import analyse
from wavecast.emulate.check.registers.exchange import fetched_bits
from wavecast.emulate.check.registers.relevance import Definedness
from wavecast.emulate.check.registers.undefined import RegisterChecks
from wavecast.emulate.lower import state
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.reports import Kind
from wavecast.emulate.values import I32, I64, element, load
from wavecast.isa.instruction import Instruction
from wavecast.isa.program import Program

_LAST_READ: Final = INACTIVE_CELL + 1


def exchanges(program: Program) -> bool:
    """Whether lanes of a program fetch registers of others."""
    return any(fetches(instruction.decoded) for instruction in program.instructions)


class ExchangeChecks(RegisterChecks):
    """Emits the masks of lanes whose values come from inactive ones, and the looks at them."""

    masks = log.INACTIVE

    def analyse(self) -> Definedness:
        return analyse(self.kernel, inactive=True)

    def is_undefined(self, cell: int) -> bool:
        del cell
        return False

    def read(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        decoded = instruction.decoded
        if not fetches(decoded):
            return
        builder, lanes = emitter.builder, emitter.layout.lanes
        active = emitter.exec_mask()
        kind: Any = ir.IntType(lanes)
        started = load(builder, element(builder, emitter.state, state.FIRST_EXEC, I32), kind, 8)
        inactive = builder.and_(started, builder.not_(active))
        some = builder.icmp_unsigned("!=", inactive, kind(0))
        emitter.pending.settle()
        self._set(emitter, INACTIVE_CELL, kind(0))
        with builder.if_then(some, likely=False):
            fetched = builder.and_(fetched_bits(emitter, decoded, inactive), active)
            self._set(emitter, INACTIVE_CELL, fetched)
            with builder.if_then(builder.icmp_unsigned("!=", fetched, kind(0)), likely=False):
                slot = self._slot(emitter, _LAST_READ)
                builder.store(I64(instruction.index), slot, align=8)

    def log(
        self, emitter: WaveEmitter, instruction: Instruction, lanes: Any, position: Any
    ) -> None:
        """Report the exchange, with the use as the other instruction."""
        del position
        builder = emitter.builder
        exchange = load(builder, self._slot(emitter, _LAST_READ), I64, 8)
        site = builder.add(builder.mul(exchange, I64(KINDS)), I64(int(Kind.INACTIVE_LANE)))
        wide = lanes if lanes.type == I64 else builder.zext(lanes, I64)
        values = [site, wide, I64(0), I64(instruction.index + 1), I64(0)]
        builder.call(log_function(emitter.module), [emitter.context, *values])


__all__ = ["ExchangeChecks", "exchanges"]
