"""Barriers of the workgroup: where a wave stops until the others have come.

A split barrier signals first and waits later; here all happens at the wait, and a wave that waits
without having signalled ends the launch: nobody could ever release it. Only the barrier of the
workgroup (-1) is known. Source: AMD RDNA4 instruction set architecture guide, "S_BARRIER_SIGNAL".
"""

from __future__ import annotations

from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower import state
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.values import I32, I64, element, load
from wavecast.isa.instruction import Instruction, OperandClass
from wavecast.isa.waits import arrives, awaits

_WORKGROUP = (-1, 0xFFFF, 0xFFFFFFFF)


def lower(emitter: WaveEmitter, instruction: Instruction) -> None:
    """Lower a barrier. Raises Unsupported for named ones, and for joining or leaving one."""
    opcode = instruction.opcode
    if not arrives(opcode) and not awaits(opcode):
        raise Unsupported("this barrier")
    for operand in instruction.operands:
        if operand.kind is not OperandClass.CONSTANT or operand.value not in _WORKGROUP:
            raise Unsupported("a named barrier")
    if not awaits(opcode):
        if opcode.implicit_writes:
            _tell(emitter)
        _signal(emitter)
        return
    if not arrives(opcode):
        _check_signalled(emitter, instruction)
    emitter.listener.leave(instruction)
    resume = emitter.function.append_basic_block("resume")
    emitter.resume_at(resume)
    emitter.stop(state.BARRIER, instruction.index)
    emitter.builder.position_at_end(resume)


def _signal(emitter: WaveEmitter) -> None:
    word = element(emitter.builder, emitter.state, state.SIGNALLED_OWN, I32)
    emitter.builder.store(I32(1), word)


def _check_signalled(emitter: WaveEmitter, instruction: Instruction) -> None:
    """Stop where this wave waits without having signalled; the next wait needs another signal."""
    builder = emitter.builder
    word = element(builder, emitter.state, state.SIGNALLED_OWN, I32)
    missing = builder.icmp_unsigned("==", load(builder, word, I32), I32(0))
    with builder.if_then(missing, likely=False):
        emitter.stop(state.BAD_BARRIER, instruction.index)
    builder.store(I32(0), word)


def _tell(emitter: WaveEmitter) -> None:
    """SCC: whether no wave of the workgroup has signalled since the last barrier."""
    builder = emitter.builder
    group, phase, signalled = (
        element(builder, emitter.context, word, I64)
        for word in (state.WORKGROUP, state.PHASE, state.SIGNALLED)
    )
    high = builder.shl(builder.add(load(builder, group, I64, 8), I64(1)), I64(32))
    now = builder.add(high, load(builder, phase, I64, 8))
    first = builder.icmp_unsigned("!=", load(builder, signalled, I64, 8), now)
    builder.store(now, signalled)
    emitter.set_special("scc", first)


__all__ = ["lower"]
