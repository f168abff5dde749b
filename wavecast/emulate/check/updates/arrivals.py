"""Comparisons by which workgroups find out which of them arrives last: `atomicAdd(c, 1) == n - 1`,
or `>= n - 1`.

What an atomic operation returns is followed to comparisons of integers, also through LDS. The last
arrival has the value that is equal, or the first one on its side of the order. These values stay,
by comparison: how many there were, the smallest and the largest. `unreset.py` compares them from
launch to launch.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from llvmlite import ir

from wavecast.emulate.check import log
from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.observer import Observer
from wavecast.emulate.lower.operands import scalar_operand
from wavecast.emulate.values import I32, I64, PTR, constant, context_word, element, splat
from wavecast.isa import semantics
from wavecast.isa.defuse import ENTRY, DefUse, bits_of
from wavecast.isa.instruction import Instruction, Operand, OperandClass
from wavecast.isa.opcode import (
    MemoryKind,
    Opcode,
    OpcodeFlag,
    OperandAccess,
    OperandKind,
    OperandRole,
    Space,
)
from wavecast.isa.program import Program
from wavecast.isa.semantics.integers import IntegerOps

_SIGNS: Final = {"add": 1, "inc": 1, "sub": -1, "dec": -1}
"""Operations that count, and the direction."""
_OF_ONE: Final = frozenset({"inc", "dec"})
_INTEGERS: Final = {"i32": 32, "u32": 32, "b32": 32, "i64": 64, "u64": 64, "b64": 64}
_GLOBAL = frozenset({Space.GLOBAL, Space.BUFFER, Space.FLAT})
_SAMPLES = 16
_Comparison = tuple[int, ...]
"""What a comparison gives where its first operand is equal, smaller and larger."""
_EQUALITIES: Final = frozenset({(1, 0, 0), (0, 1, 1)})
_COMPARISONS: Final = _EQUALITIES | {(0, 1, 0), (1, 0, 1), (0, 0, 1), (1, 1, 0)}
RESULT_WORDS: Final = 3
COUNT, SMALLEST, LARGEST = range(RESULT_WORDS)
"""64-bit words by comparison."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """The instruction `atomic` adds `step` to a counter of `bytes`, and `comparison` compares what
    it returned with the operand number `target`. `order` is None for equality, else whether an
    equal value is on the side of the smaller ones."""

    atomic: int
    comparison: int
    target: int
    step: int
    bytes: int
    order: bool | None


def arrivals(program: Program) -> list[Arrival]:
    """The comparisons of a program."""
    counting = [instruction for instruction in program.instructions if _counts(instruction)]
    if not counting:
        return []
    chains = DefUse(program)
    return [arrival for atomic in counting for arrival in _arrivals(chains, atomic)]


def results() -> list[int]:
    """The words of a comparison that has not been executed."""
    return [0, (1 << 64) - 1, 0]


def _counts(instruction: Instruction) -> bool:
    memory = instruction.memory
    return (
        memory is not None
        and memory.kind is MemoryKind.ATOMIC
        and memory.space in _GLOBAL
        and bool(instruction.writes)
        and instruction.opcode.memory_form.operation in _SIGNS
    )


def _arrivals(chains: DefUse, atomic: Instruction) -> Iterator[Arrival]:
    assert atomic.memory is not None
    derived = _dependents(chains, atomic.index)
    step = _step(chains, atomic)
    for index in sorted({user for definition in derived for user in chains.uses(definition)}):
        comparison = chains.program.instructions[index]
        if comparison_of(comparison) not in _COMPARISONS:
            continue
        from_counter = [
            bool(_writers(chains, index, operand) & derived)
            for operand in comparison.decoded.operands[-2:]
        ]
        if from_counter.count(True) == 1:
            target = -1 if from_counter[0] else -2
            order = _order(comparison_of(comparison), counter_first=from_counter[0])
            yield Arrival(atomic.index, index, target, step, atomic.memory.bytes, order)


def _dependents(chains: DefUse, atomic: int) -> set[int]:
    """The instructions that make values of what one returns, itself included."""
    instructions = chains.program.instructions
    loads = [i.index for i in instructions if _is_lds(i, MemoryKind.LOAD)]
    derived, work = {atomic}, [atomic]
    while work:
        for user in chains.uses(work.pop()):
            instruction = instructions[user]
            following = [user]
            if _is_lds(instruction, MemoryKind.STORE):
                following = loads
            elif not _passes_on(instruction):
                continue
            work += [index for index in following if index not in derived]
            derived.update(following)
    return derived


def _passes_on(instruction: Instruction) -> bool:
    """Whether an instruction makes values of values, of other lanes too."""
    memory = instruction.memory
    return not _compares(instruction) and (memory is None or memory.kind is MemoryKind.PERMUTE)


def _is_lds(instruction: Instruction, kind: MemoryKind) -> bool:
    memory = instruction.memory
    return memory is not None and memory.space is Space.LDS and memory.kind is kind


def _writers(chains: DefUse, index: int, operand: Operand) -> set[int]:
    """The instructions that make the value of an operand."""
    bits = bits_of(operand.bits)
    return {definition for bit in bits for definition in chains.definitions(index, bit)} - {ENTRY}


def _step(chains: DefUse, atomic: Instruction) -> int:
    """What an operation adds: the constant, else 1, which is what most counters count by."""
    operation = atomic.opcode.memory_form.operation
    sign = _SIGNS[operation]
    if operation in _OF_ONE:
        return sign
    pairs = zip(atomic.operands, atomic.decoded.roles, strict=True)
    data = [
        operand
        for operand, role in pairs
        if role.kind is OperandKind.VECTOR and operand.bits & atomic.reads
    ]
    values = set()
    for writer in _writers(chains, atomic.index, data[-1]) if data else ():
        decoded = chains.program.instructions[writer].decoded
        moves = OpcodeFlag.MOVE in decoded.opcode.flags and decoded.second is None
        values.add(decoded.operands[-1].value if moves else None)
    value = values.pop() if len(values) == 1 else None
    if not value:
        return sign
    value &= (1 << 32) - 1
    return sign * (value - (value >> 31 << 32))


def _compares(instruction: Instruction) -> bool:
    """Whether an instruction makes bits of lanes or SCC and nothing else."""
    decoded = instruction.decoded
    written = [role for role in decoded.roles if role.access is not OperandAccess.READ]
    scalar = not written and instruction.opcode.implicit_writes == ("scc",)
    masks = bool(written) and all(role.kind is OperandKind.LANE_MASK for role in written)
    return scalar or masks or "exec" in instruction.opcode.implicit_writes


def compares_equal(instruction: Instruction) -> bool:
    """Whether an instruction tells equal integers from others."""
    return comparison_of(instruction) in _EQUALITIES


def comparison_of(instruction: Instruction) -> _Comparison:
    """The comparison of integers that an instruction makes: what it gives where its first operand
    is equal, smaller and larger; () for others."""
    decoded = instruction.decoded
    if not _compares(instruction) or len(decoded.operands) < 2 or decoded.second is not None:
        return ()
    if "sdwa" in decoded.encoding or "dpp" in decoded.encoding or not _width(decoded.roles[-2]):
        return ()
    return _comparison(decoded.opcode)


def _order(comparison: _Comparison, *, counter_first: bool) -> bool | None:
    """The `order` of an arrival whose counter is the first operand, or the second."""
    equal, smaller, larger = comparison
    if smaller == larger:
        return None
    return equal == (smaller if counter_first else larger)


def _width(role: OperandRole) -> int:
    return _INTEGERS.get(role.type, 0)


def _comparison(opcode: Opcode) -> _Comparison:
    """What a row gives for pairs of integers, () where that is not always the same."""
    meaning = semantics.of(opcode)
    if meaning is None or meaning.modifiers:
        return ()
    numbers = random.Random(0)
    ops, outcomes = IntegerOps(), []
    for _ in range(_SAMPLES):
        operand, other = numbers.randrange(1 << 15), numbers.randrange(1 << 15, 1 << 16)
        row = [
            meaning.evaluate(ops, *pair)[0]
            for pair in ((operand, operand), (operand, other), (other, operand))
        ]
        outcomes.append(tuple(row))
    return outcomes[0] if len(set(outcomes)) == 1 else ()


class ArrivalChecks(Observer):
    """Emits what keeps the values of last arrivals."""

    def __init__(self, compared: Sequence[Arrival]) -> None:
        self.numbers: dict[int, int] = {}
        """The number of each comparison."""
        self.arrivals: dict[int, Arrival] = {}
        for arrival in compared:
            self.numbers.setdefault(arrival.comparison, len(self.numbers))
            self.arrivals[arrival.comparison] = arrival

    def before(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        number = self.numbers.get(instruction.index)
        if number is None:
            return
        emitter.pending.settle()
        emitter.pending.flush_before(instruction.decoded)
        builder, lanes = emitter.builder, emitter.layout.lanes
        arrival = self.arrivals[instruction.index]
        positions = (-2, -1) if arrival.target == -1 else (-1, -2)
        counter, target = (_values(emitter, instruction, position) for position in positions)
        last: Any = builder.bitcast(_is_last(emitter, arrival, counter, target), ir.IntType(lanes))
        last = builder.and_(last, emitter.exec_mask())
        with builder.if_then(builder.icmp_unsigned("!=", last, last.type(0)), likely=False):
            lane = builder.cttz(last, ir.IntType(1)(0))
            value = builder.extract_element(counter, lane)
            value = value if value.type == I64 else builder.zext(value, I64)
            words = context_word(builder, emitter.context, log.EQUALITIES, PTR)
            first = RESULT_WORDS * number
            changes = ((COUNT, "add", I64(1)), (SMALLEST, "umin", value), (LARGEST, "umax", value))
            for word, operation, operand in changes:
                slot = element(builder, words, first + word, I64)
                builder.atomic_rmw(operation, slot, operand, "monotonic")


def _is_last(emitter: WaveEmitter, arrival: Arrival, counter: Any, target: Any) -> Any:
    """By lane, whether a value is the first one of which the comparison says that it is last."""
    builder = emitter.builder
    if arrival.order is None:
        return builder.icmp_unsigned("==", counter, target)
    width = counter.type.element.width
    before = builder.sub(counter, constant(arrival.step, width, emitter.layout.lanes))
    smaller = "<=" if arrival.order else "<"
    here, there = (builder.icmp_signed(smaller, value, target) for value in (counter, before))
    return builder.xor(here, there)


def _values(emitter: WaveEmitter, instruction: Instruction, position: int) -> Any:
    """An operand of a comparison, by lane."""
    builder, lanes = emitter.builder, emitter.layout.lanes
    decoded = instruction.decoded
    operand, role = decoded.operands[position], decoded.roles[position]
    width = _width(decoded.roles[-2])
    if operand.kind not in (OperandClass.VGPR, OperandClass.AGPR):
        return splat(builder, scalar_operand(emitter, operand, role, width), lanes)
    first = operand.bits.bit_length() - operand.bits.bit_count()
    wide = ir.VectorType(ir.IntType(width), lanes)
    total: Any = constant(0, width, lanes)
    for part in range(width // 32):
        row = emitter.row(emitter.layout.row(first + part))
        value: Any = builder.load(row, align=4, typ=ir.VectorType(I32, lanes))
        if width > 32:
            shift = splat(builder, ir.IntType(width)(32 * part), lanes)
            value = builder.shl(builder.zext(value, wide), shift)
        total = builder.or_(total, value)
    return total


__all__ = [
    "COUNT",
    "LARGEST",
    "RESULT_WORDS",
    "SMALLEST",
    "Arrival",
    "ArrivalChecks",
    "arrivals",
    "compares_equal",
    "comparison_of",
    "results",
]
