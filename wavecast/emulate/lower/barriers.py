"""Barriers of the workgroup and of the cluster: where a wave stops until the others have come.

A split barrier signals first and waits later; at that of the workgroup (-1) all happens at the
wait, and a wave that waits without having signalled ends the launch: nobody could ever release it.
One wave of each workgroup signals the barrier of the cluster (-3), all wait for it; without a
cluster both do nothing. Source: AMD RDNA4 instruction set architecture guide, "S_BARRIER_SIGNAL";
LLVM "User Guide for AMDGPU Backend", barriers of gfx1250.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower import named_barriers, state
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.values import I32, I64, PTR, context_word, element, load
from wavecast.isa.instruction import Instruction, OperandClass
from wavecast.isa.waits import arrives, awaits, is_named, is_of_cluster

_WORKGROUP = (-1, 0xFFFF, 0xFFFFFFFF)


def lower(emitter: WaveEmitter, instruction: Instruction) -> None:
    """Lower a barrier. Raises Unsupported for leaving one, and for what asks for its state."""
    opcode = instruction.opcode
    if is_named(instruction):
        named_barriers.lower(emitter, instruction)
        return
    if not arrives(opcode) and not awaits(opcode):
        raise Unsupported("leaving a barrier, and asking for its state, are not supported")
    if is_of_cluster(instruction):
        _lower_cluster(emitter, instruction)
        return
    for operand in instruction.operands:
        if operand.kind is not OperandClass.CONSTANT or operand.value not in _WORKGROUP:
            raise Unsupported(f"the barrier {operand.text}")
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


def _lower_cluster(emitter: WaveEmitter, instruction: Instruction) -> None:
    """Lower a signal at the barrier of the cluster, or a wait for it."""
    opcode, builder = instruction.opcode, emitter.builder
    if opcode.implicit_writes:
        raise Unsupported("the first signal at the barrier of a cluster")
    if not awaits(opcode):
        barrier = context_word(builder, emitter.context, state.CLUSTER, PTR)
        with builder.if_then(_exists(builder, barrier)):
            _arrive(emitter, barrier)
        return
    look, test, go, stay, over = (
        emitter.function.append_basic_block(name) for name in ("look", "test", "go", "stay", "over")
    )
    builder.branch(look)
    builder.position_at_end(look)
    barrier = context_word(builder, emitter.context, state.CLUSTER, PTR)
    builder.cbranch(_exists(builder, barrier), test, over)
    builder.position_at_end(test)
    passed = element(builder, emitter.state, state.CLUSTER_PASSED, I32)
    before = load(builder, passed, I32)
    times = element(builder, barrier, 1, I64).get_reference()
    opened = emitter.emit_value(I64, f"load atomic i64, ptr {times} acquire, align 8")
    builder.cbranch(builder.icmp_unsigned(">", opened, builder.zext(before, I64)), go, stay)
    builder.position_at_end(go)
    builder.store(builder.add(before, I32(1)), passed)
    builder.branch(over)
    builder.position_at_end(stay)
    emitter.resume_at(look)
    emitter.stop(state.PAUSED, instruction.index)
    builder.position_at_end(over)


def _exists(builder: ir.IRBuilder, barrier: Any) -> Any:
    return builder.icmp_unsigned("!=", builder.ptrtoint(barrier, I64), I64(0))


def _arrive(emitter: WaveEmitter, barrier: Any) -> None:
    """Count a workgroup; the last one of the cluster opens the barrier."""
    builder = emitter.builder
    count, times = barrier.get_reference(), element(builder, barrier, 1, I64).get_reference()
    before = emitter.emit_value(I64, f"atomicrmw add ptr {count}, i64 1 acq_rel")
    size = context_word(builder, emitter.context, state.CLUSTER_SIZE)
    with builder.if_then(builder.icmp_unsigned("==", builder.add(before, I64(1)), size)):
        emitter.emit_text(f"store atomic i64 0, ptr {count} release, align 8")
        emitter.emit_value(I64, f"atomicrmw add ptr {times}, i64 1 acq_rel")


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
