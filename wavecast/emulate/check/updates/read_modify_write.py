"""Which stores write what was computed from a load: updates of an element that lanes may share.

A store is followed through the registers to the loads its data comes from, also where lanes
exchange values, by LDS or without memory. An update that means the same when it is made twice (a
maximum, setting a bit) is none: no lane loses anything by it. Nor is a reduction over lanes: where
they exchange a value that is changed afterwards, and where what is added to the element is such a
reduction, which has the share of every lane. Matrix products are not followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from wavecast.isa import semantics
from wavecast.isa.defuse import ENTRY, DefUse, bits_of
from wavecast.isa.instruction import Decoded, Instruction
from wavecast.isa.opcode import (
    MemoryKind,
    Opcode,
    OpcodeFlag,
    OperandAccess,
    OperandKind,
    Space,
)
from wavecast.isa.program import Program
from wavecast.isa.semantics.lanes import LaneOps

_GLOBAL = frozenset({Space.GLOBAL, Space.BUFFER, Space.FLAT, Space.SCALAR})
_SAMPLES = 64
_Definition = tuple[int, bool]
"""An instruction that writes a register, and whether the second half of a VOPD pair does."""
_Read = tuple[_Definition, bool, int]
"""A definition that an instruction reads, whether repeating what is done with it may give another
result, and the number of the operand."""


@dataclass(frozen=True, slots=True)
class _Step:
    """An instruction that makes a value, and what happens to that until it is stored: `changed` by
    arithmetic, `moved` to other lanes, or `reduced`, which is moved and then changed."""

    definition: _Definition
    changed: bool = False
    moved: bool = False
    reduced: bool = False

    def before(
        self, definition: _Definition, *, changes: bool = False, moves: bool = False
    ) -> _Step:
        """An instruction whose result this one changes or moves."""
        reduced = self.reduced or (moves and self.changed)
        return _Step(definition, self.changed or changes, self.moved or moves, reduced)


@dataclass(frozen=True, slots=True)
class Update:
    """The `loads` whose values a store changes and writes. `moved`: lanes may have exchanged the
    values on the way."""

    loads: frozenset[int]
    moved: bool


def updates(program: Program) -> Mapping[int, Update]:
    """Store -> what it updates of the memory that it writes."""
    return _Chains(program).updates()


class _Chains:
    def __init__(self, program: Program) -> None:
        self.program, self.chains = program, DefUse(program)
        self._reads: dict[_Definition, tuple[_Read, ...]] = {}
        self._rows: dict[tuple[str, int], bool] = {}
        self._reductions: dict[_Definition, bool] = {}

    def updates(self) -> dict[int, Update]:
        by_store = {}
        for instruction in self.program.instructions:
            if _is(instruction, MemoryKind.STORE):
                update = self._update(instruction)
                if update.loads:
                    by_store[instruction.index] = update
        return by_store

    def _update(self, store: Instruction) -> Update:
        loads: set[int] = set()
        reduced: set[int] = set()
        is_move = False
        work = [_Step(definition) for definition in self._definitions(store, _data(store))]
        steps = set(work)
        while work:
            step = work.pop()
            index, _ = step.definition
            writer = self.program.instructions[index]
            if _is(writer, MemoryKind.LOAD) and _share_memory(store, writer):
                if step.changed:
                    (reduced if step.reduced else loads).add(index)
                    is_move |= step.moved
                continue
            for following in self._before(step, writer):
                if following not in steps:
                    steps.add(following)
                    work.append(following)
        return Update(frozenset(loads - reduced), is_move)

    def _is_reduction(self, definition: _Definition) -> bool:
        """Whether a register has what lanes have exchanged and combined, without memory."""
        result = self._reductions.get(definition)
        if result is None:
            result, work, walked = False, [definition], {definition}
            while work and not result:
                definition_before = work.pop()
                result = self._combines_lanes(definition_before)
                following = self._without_memory(definition_before) - walked
                walked |= following
                work += following
            self._reductions[definition] = result
        return result

    def _without_memory(self, definition: _Definition) -> set[_Definition]:
        """What a register's value comes from, also from other lanes."""
        writer = self.program.instructions[definition[0]]
        if writer.memory is not None and writer.memory.kind is not MemoryKind.PERMUTE:
            return set()
        return {step.definition for step in self._before(_Step(definition), writer, joins=True)}

    def _combines_lanes(self, definition: _Definition) -> bool:
        """Whether an instruction computes with a register and the same one of other lanes."""
        writer = self.program.instructions[definition[0]]
        if writer.memory is not None or writer.opcode.matrix is not None:
            return False
        reads = self._sources(definition)
        moves = _moves(writer)
        for read, changes, number in reads:
            if not changes:
                continue
            mine, theirs = self._copied(read)
            if moves and number == 0:
                mine, theirs = set(), mine | theirs
            for other_read, _, other in reads:
                if other != number and theirs & self._copied(other_read)[0]:
                    return True
        return False

    def _copied(self, definition: _Definition) -> tuple[set[_Definition], set[_Definition]]:
        """The definitions of which a register is a copy: in the same lane, and in others."""
        mine, theirs = {definition}, set[_Definition]()
        work = [_Step(definition)]
        steps = set(work)
        while work:
            step = work.pop()
            writer = self.program.instructions[step.definition[0]]
            is_exchange = writer.memory is not None and writer.memory.kind is MemoryKind.PERMUTE
            if writer.memory is not None and not is_exchange:
                continue
            for following in self._before(step, writer, joins=True):
                if not following.changed and following not in steps:
                    steps.add(following)
                    work.append(following)
                    (theirs if following.moved else mine).add(following.definition)
        return mine, theirs

    def _joins_reduction(self, reads: tuple[_Read, ...], number: int) -> bool:
        """Whether another operand than that of a number is a reduction over lanes."""
        return any(self._is_reduction(read) for read, _, other in reads if other != number)

    def _before(self, step: _Step, writer: Instruction, *, joins: bool = False) -> Iterator[_Step]:
        """What the value that an instruction makes comes from. With `joins` a value to which a
        reduction is added counts as changed."""
        memory = writer.memory
        if memory is None and writer.opcode.matrix is None:
            moves = _moves(writer)
            reads = self._sources(step.definition)
            for definition, changes, number in reads:
                changes = changes and (joins or not self._joins_reduction(reads, number))
                # an instruction with both reads other lanes first
                yield step.before(definition, changes=changes).before(definition, moves=moves)
        elif memory is not None and memory.kind is MemoryKind.PERMUTE:
            for definition in self._definitions(writer, _data(writer)):
                yield step.before(definition, moves=True)
        elif _is(writer, MemoryKind.LOAD) and memory is not None and memory.space is Space.LDS:
            for definition in self._stored_in_lds:
                yield step.before(definition, moves=True)

    @cached_property
    def _stored_in_lds(self) -> frozenset[_Definition]:
        """What makes the values that the program stores in LDS."""
        definitions: set[_Definition] = set()
        for instruction in self.program.instructions:
            memory = instruction.memory
            if _is(instruction, MemoryKind.STORE) and memory and memory.space is Space.LDS:
                definitions |= self._definitions(instruction, _data(instruction))
        return frozenset(definitions)

    def _sources(self, definition: _Definition) -> tuple[_Read, ...]:
        """What an instruction without memory, or half of a VOPD pair, reads as values, not as masks
        of lanes."""
        reads = self._reads.get(definition)
        if reads is None:
            index, is_second = definition
            instruction = self.program.instructions[index]
            second = instruction.second if is_second else None
            values = set(self._values(instruction, second or instruction.decoded))
            reads = self._reads[definition] = tuple(values)
        return reads

    def _values(self, instruction: Instruction, half: Decoded) -> Iterator[_Read]:
        number = 0
        for operand, role in zip(half.operands, half.roles, strict=True):
            if role.access is OperandAccess.WRITE:
                continue
            position, number = number, number + 1
            if role.kind is OperandKind.LANE_MASK or not operand.bits:
                continue
            changes = not self._repeats(half.opcode, position)
            registers = operand.bits & instruction.reads
            for definition in self._definitions(instruction, registers):
                yield definition, changes, position

    def _repeats(self, opcode: Opcode, position: int) -> bool:
        key = opcode.name, position
        if key not in self._rows:
            self._rows[key] = repeats(opcode, position)
        return self._rows[key]

    def _definitions(self, instruction: Instruction, registers: int) -> set[_Definition]:
        definitions: set[_Definition] = set()
        for bit in bits_of(registers):
            for index in self.chains.definitions(instruction.index, bit) - {ENTRY}:
                second = self.program.instructions[index].second
                definitions.add((index, second is not None and bool(second.writes >> bit & 1)))
        return definitions


def _data(instruction: Instruction) -> int:
    """The registers whose values are stored, or exchanged."""
    registers = 0
    for operand, role in zip(instruction.operands, instruction.decoded.roles, strict=True):
        if role.kind is OperandKind.VECTOR:
            registers |= operand.bits
    return registers & instruction.reads


def _is(instruction: Instruction, kind: MemoryKind) -> bool:
    return instruction.memory is not None and instruction.memory.kind is kind


def _moves(instruction: Instruction) -> bool:
    """Whether an instruction without memory reads registers of other lanes."""
    swaps = OpcodeFlag.PERMLANE in instruction.opcode.flags
    dpp = "dpp" in instruction.decoded.encoding or "dpp8" in instruction.modifiers
    return swaps or dpp


def _share_memory(store: Instruction, load: Instruction) -> bool:
    """Whether an instruction may load from the memory that a store writes."""
    mine, theirs = store.memory, load.memory
    assert mine is not None
    assert theirs is not None
    either = Space.FLAT in (mine.space, theirs.space)
    return either or (mine.space in _GLOBAL) == (theirs.space in _GLOBAL)


def repeats(opcode: Opcode, position: int) -> bool:
    """Whether f(f(x)) is f(x) for the operand at a position among those that a row reads, and any
    values of the others."""
    if opcode.flags & {OpcodeFlag.CHOICE, OpcodeFlag.MOVE, OpcodeFlag.PERMLANE}:
        return True
    roles = [role for role in opcode.operands if role.access is not OperandAccess.WRITE]
    meaning = semantics.of(opcode)
    lanewise = opcode.is_vector and set(opcode.implicit_reads) <= {
        "exec"
    }  # EXEC is not an operand there
    plain = (lanewise or not opcode.implicit_reads) and all(
        role.dwords == 1 and role.kind is not OperandKind.LANE_MASK for role in roles
    )
    if meaning is None or meaning.modifiers or not plain:
        return False
    random = np.random.default_rng(position)
    inputs = [random.integers(0, 1 << 32, _SAMPLES, np.uint32) for _ in roles]
    ops = LaneOps(_SAMPLES)
    once = meaning.evaluate(ops, *inputs)[0]
    if getattr(once, "dtype", None) != np.uint32:
        return False
    inputs[position] = once
    return bool(np.array_equal(once, meaning.evaluate(ops, *inputs)[0]))


__all__ = ["Update", "repeats", "updates"]
