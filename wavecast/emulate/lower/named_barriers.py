"""Named barriers of a workgroup (gfx1250): 16, each with the waves that it expects.

`s_barrier_init` gives a barrier its number of members, `s_barrier_join` makes a wave wait for it,
and the last of as many signals opens it for all that have joined. M0 has the barrier in bits 5:0,
the members in 21:16; a signal with members sets their number. Source: LLVM, SIISelLowering.cpp,
`lowerWithM0` of `s_barrier_init` and `s_barrier_signal_var`; IntrinsicsAMDGPU.td. A wait sees only
barriers that open after the wave has joined or last waited.
"""

from __future__ import annotations

from typing import Any

from wavecast.arch import capabilities
from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower import state
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.values import I32, I64, context_word, element, load
from wavecast.isa.instruction import Instruction, OperandClass
from wavecast.isa.targets import isa_target
from wavecast.isa.waits import awaits
from wavecast.wording import count

_ARRIVAL = 1 << 16
_OPENING = 1 << 32
"""A barrier is a 64-bit word: members in 16 bits, arrivals in 16, then how often it has opened."""
_FIELD = _ARRIVAL - 1


def lower(emitter: WaveEmitter, instruction: Instruction) -> None:
    """Lower an instruction of a named barrier. Raises Unsupported for those that leave one, ask
    for its state or for the first signal, or wake its waves."""
    name, target = instruction.opcode.name, emitter.input.program.target
    if not capabilities(isa_target(target)).named_barriers:
        raise Unsupported(f"named barriers of {target}")
    if awaits(instruction.opcode):
        _wait(emitter, instruction)
        return
    _check_number(emitter, instruction)
    if name == "s_barrier_init":
        _clear_of_other_workgroup(emitter)
        barrier = _barrier(emitter, number_of(emitter, instruction))
        openings = emitter.builder.and_(load(emitter.builder, barrier, I64, 8), I64(-_OPENING))
        members = emitter.builder.zext(_members(emitter), I64)
        emitter.builder.store(emitter.builder.or_(openings, members), barrier)
    elif name == "s_barrier_join":
        _clear_of_other_workgroup(emitter)
        number = number_of(emitter, instruction)
        emitter.builder.store(number, element(emitter.builder, emitter.state, state.JOINED, I32))
        _remember_openings(emitter, number, state.NAMED_PASSED, state.JOINED_AT)
    elif name == "s_barrier_signal":
        _clear_of_other_workgroup(emitter)
        _signal(emitter, instruction)
    else:
        raise Unsupported(f"{instruction.mnemonic} of a named barrier")


def number_of(emitter: WaveEmitter, instruction: Instruction) -> Any:
    """The number of the barrier that an operand names, 1 to 16 (i32)."""
    operand = instruction.operands[0]
    if operand.kind is not OperandClass.CONSTANT or operand.value is None:
        return emitter.builder.and_(emitter.special("m0", 32), I32(0x3F))
    if not 1 <= operand.value <= state.NAMED_BARRIERS:
        raise Unsupported(
            f"the named barrier {operand.text}: a workgroup has {state.NAMED_BARRIERS}, from 1 on"
        )
    return I32(operand.value)


def _check_number(emitter: WaveEmitter, instruction: Instruction) -> None:
    """Stop where M0 has a number that no barrier has."""
    builder, number = emitter.builder, number_of(emitter, instruction)
    if instruction.operands[0].kind is OperandClass.CONSTANT:
        return
    before_first = builder.sub(number, I32(1))
    wrong = builder.icmp_unsigned(">=", before_first, I32(state.NAMED_BARRIERS))
    with builder.if_then(wrong, likely=False):
        word = element(builder, emitter.context, state.FAULT_ADDRESS, I64)
        builder.store(builder.zext(number, I64), word, align=8)
        emitter.stop(state.BAD_NAMED_BARRIER, instruction.index)


def _members(emitter: WaveEmitter) -> Any:
    """M0[21:16] (i32)."""
    builder = emitter.builder
    return builder.and_(builder.lshr(emitter.special("m0", 32), I32(16)), I32(0x3F))


def index_of(emitter: WaveEmitter, number: Any) -> Any:
    """Where a barrier is among all (i32), 0 for numbers that no barrier has: there waves stop."""
    exists = emitter.builder.icmp_unsigned("<=", number, I32(state.NAMED_BARRIERS))
    return emitter.builder.select(exists, number, I32(0))


def arrivals_of(emitter: WaveEmitter, number: Any) -> Any:
    """How often a barrier has been signalled since it last opened (i64)."""
    builder = emitter.builder
    word = load(builder, _barrier(emitter, number), I64, 8)
    return builder.and_(builder.lshr(word, I64(16)), I64(_FIELD))


def _barrier(emitter: WaveEmitter, number: Any) -> Any:
    """A pointer to the word of a barrier; of 0, no barrier, to the first word."""
    builder = emitter.builder
    index = builder.add(index_of(emitter, number), I32(state.NAMED))
    return element(builder, emitter.context, builder.zext(index, I64), I64)


def _clear_of_other_workgroup(emitter: WaveEmitter) -> None:
    """Clear the barriers where the workgroup before this one has left its own."""
    builder = emitter.builder
    owner = element(builder, emitter.context, state.NAMED_OWNER, I64)
    group = builder.add(context_word(builder, emitter.context, state.WORKGROUP), I64(1))
    with builder.if_then(builder.icmp_unsigned("!=", load(builder, owner, I64, 8), group)):
        for word in range(state.NAMED, state.NAMED + state.NAMED_BARRIERS + 1):
            builder.store(I64(0), element(builder, emitter.context, word, I64), align=8)
        builder.store(group, owner, align=8)


def _openings(emitter: WaveEmitter, number: Any) -> Any:
    builder = emitter.builder
    word = load(builder, _barrier(emitter, number), I64, 8)
    return builder.trunc(builder.lshr(word, I64(32)), I32)


def _remember_openings(emitter: WaveEmitter, number: Any, *words: int) -> None:
    """Write how often a barrier has opened to words of the wave."""
    openings = _openings(emitter, number)
    for word in words:
        emitter.builder.store(openings, element(emitter.builder, emitter.state, word, I32))


def _signal(emitter: WaveEmitter, instruction: Instruction) -> None:
    """Count an arrival; the last one opens the barrier."""
    builder = emitter.builder
    barrier = _barrier(emitter, number_of(emitter, instruction))
    word = load(builder, barrier, I64, 8)
    if instruction.operands[0].kind is not OperandClass.CONSTANT:
        members = builder.zext(_members(emitter), I64)
        others = builder.or_(builder.and_(word, I64(~_FIELD)), members)
        word = builder.select(builder.icmp_unsigned("!=", members, I64(0)), others, word)
    word = builder.add(word, I64(_ARRIVAL))
    arrivals = builder.and_(builder.lshr(word, I64(16)), I64(_FIELD))
    expected = builder.and_(word, I64(_FIELD))
    without = builder.and_(word, I64(~(_FIELD * _ARRIVAL)))
    opened = builder.add(without, I64(_OPENING))
    last = builder.icmp_unsigned("==", arrivals, expected)
    builder.store(builder.select(last, opened, word), barrier, align=8)


def _wait(emitter: WaveEmitter, instruction: Instruction) -> None:
    """Pause until the barrier that this wave has joined opens. The end of the launch says of a
    wave that waits without having joined one that nobody can release it."""
    builder = emitter.builder
    look, stay, over = (
        emitter.function.append_basic_block(name) for name in ("look", "stay", "over")
    )
    builder.branch(look)
    builder.position_at_end(look)
    joined = load(builder, element(builder, emitter.state, state.JOINED, I32), I32)
    passed = load(builder, element(builder, emitter.state, state.NAMED_PASSED, I32), I32)
    is_open = builder.icmp_unsigned("!=", _openings(emitter, joined), passed)
    is_member = builder.icmp_unsigned("!=", joined, I32(0))
    builder.cbranch(builder.and_(is_member, is_open), over, stay)
    builder.position_at_end(stay)
    emitter.resume_at(look)
    emitter.stop(state.PAUSED, instruction.index)
    builder.position_at_end(over)
    _remember_openings(emitter, joined, state.NAMED_PASSED)


def describe_wait(context: Any, wave: Any) -> str:
    """What a wave that at a barrier waits for, by the words of its context, u64[n], and its own,
    u32[n]."""
    number = int(wave[state.JOINED])
    if not number:
        return "but has joined no barrier"
    word = int(context[state.NAMED + number])
    members, arrivals, openings = word & _FIELD, word >> 16 & _FIELD, word >> 32
    text = f"for barrier {number}, which {arrivals} of {count(members, 'wave')} have signalled"
    passed, joined = int(wave[state.NAMED_PASSED]), int(wave[state.JOINED_AT])
    if openings and passed == joined == openings & 0xFFFFFFFF:
        return f"{text} since it opened, before it was joined"
    return f"{text} since it opened last" if openings else text


__all__ = ["arrivals_of", "describe_wait", "index_of", "lower", "number_of"]
