"""Which accesses of global memory are atomic, among whom, and which observe other workgroups.

Source: LLVM, "User Guide for AMDGPU Backend", memory model: atomic loads and stores are plain
instructions with the modifiers of their scope (`isa.scopes`), on some targets stores without any.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from wavecast.isa.defuse import ENTRY, DefUse, bits_of
from wavecast.isa.instruction import Instruction
from wavecast.isa.opcode import Control, MemoryKind, OpcodeFlag, OperandKind, Space
from wavecast.isa.program import Program
from wavecast.isa.registers import AGPRS, EXEC, SGPRS, VGPRS
from wavecast.isa.scopes import Scope, scope_of, states_store_scope
from wavecast.isa.waits import awaits, is_of_cluster

_MEMORY = frozenset({Space.GLOBAL, Space.BUFFER, Space.FLAT, Space.SCALAR})
_REPLACING = frozenset({"swap", "cmpswap"})
_LARGEST_ATOMIC = 8
"""Bytes."""
_DATA = VGPRS | AGPRS | SGPRS


class Atomicity(IntEnum):
    """Two accesses race only if one of them is not atomic. The value is a field of records."""

    PLAIN = 0
    WORKGROUP = 1
    """Atomic among the waves of a workgroup."""
    AGENT = 2
    """An atomic load that decides a branch, an exchange or a compare-and-swap, of agent or system
    scope."""
    UPDATE = 3
    """An atomic operation of agent or system scope that computes with what is in memory."""
    UNMARKED = 4
    """A store on a target whose atomic stores look like plain ones."""
    RELEASING = 5
    """Such a store where everything before it has been waited for: it may be a release."""
    DATA = 6
    """A load of agent scope (also a volatile one) that decides no branch: what it loads is data,
    which a workgroup must order behind stores."""
    STORED = 7
    """A store of agent scope (also a volatile one)."""


ATOMIC = frozenset(
    {Atomicity.AGENT, Atomicity.UPDATE, Atomicity.RELEASING, Atomicity.DATA, Atomicity.STORED}
)
"""Atomic between workgroups."""


@dataclass(frozen=True, slots=True)
class ProgramAtomicity:
    """The accesses of global memory of one program, by instruction index.

    `observing`: those that may read what another workgroup released. `ordered`: whether anything in
    the program can order workgroups. `polls`: loads of LDS that do nothing but wait for a value.
    `deciding`: atomic operations on whose result a branch depends.
    """

    atomicity: dict[int, Atomicity]
    observing: frozenset[int]
    ordered: bool
    polls: frozenset[int]
    deciding: frozenset[int]

    @property
    def atomic(self) -> frozenset[int]:
        """Those that are atomic, among the waves of a workgroup at least."""
        every = {*ATOMIC, Atomicity.WORKGROUP}
        return frozenset(index for index, atomicity in self.atomicity.items() if atomicity in every)


def accesses(program: Program) -> ProgramAtomicity:
    """Classify the accesses of a program."""
    target = program.target
    atomicities = {
        instruction.index: _atomicity(instruction, target)
        for instruction in program.instructions
        if instruction.memory is not None and instruction.memory.space in _MEMORY
    }
    loads = [
        index
        for index, atomicity in atomicities.items()
        if atomicity is Atomicity.AGENT and _kind(program.instructions[index]) is MemoryKind.LOAD
    ]
    returning = [
        instruction.index
        for instruction in program.instructions
        if instruction.memory is not None
        and instruction.memory.kind is MemoryKind.ATOMIC
        and _returns(instruction)
    ]
    deciding = frozenset[int]()
    if loads or returning:
        chains = DefUse(program)
        deciding = frozenset(index for index in returning if _decides(chains, index))
        atomicities |= {index: Atomicity.DATA for index in loads if not _decides(chains, index)}
    for index in _compared_loads(program):
        atomicities[index] = Atomicity.AGENT
    observing = frozenset(
        index
        for index, atomicity in atomicities.items()
        if atomicity >= Atomicity.AGENT and _returns(program.instructions[index])
    )
    coherent = any(_kind(program.instructions[index]) is MemoryKind.LOAD for index in observing)
    invalidates = any(
        OpcodeFlag.INVALIDATES in instruction.opcode.flags
        and scope_of(instruction.decoded, target) >= Scope.AGENT
        for instruction in program.instructions
    )
    able = coherent or invalidates or not states_store_scope(target)
    polls = frozenset(_polls(program))
    meets = any(awaits(i.opcode) and is_of_cluster(i) for i in program.instructions)
    ordered = meets or (bool(observing) and able)
    return ProgramAtomicity(atomicities, observing, ordered, polls, deciding)


def _kind(instruction: Instruction) -> MemoryKind:
    assert instruction.memory is not None
    return instruction.memory.kind


def _returns(instruction: Instruction) -> bool:
    """Whether an access brings a value from memory to vector registers."""
    memory = instruction.memory
    assert memory is not None
    if memory.kind is MemoryKind.ATOMIC:
        return bool(instruction.writes)
    return memory.kind is MemoryKind.LOAD and memory.space is not Space.SCALAR


def _atomicity(instruction: Instruction, target: str) -> Atomicity:
    memory = instruction.memory
    assert memory is not None
    if memory.space is Space.SCALAR:
        return Atomicity.PLAIN
    scope = scope_of(instruction.decoded, target)
    if memory.kind is MemoryKind.ATOMIC:
        if scope < Scope.AGENT:
            return Atomicity.WORKGROUP
        replaces = instruction.opcode.memory_form.operation in _REPLACING
        return Atomicity.AGENT if replaces else Atomicity.UPDATE
    if memory.kind not in (MemoryKind.LOAD, MemoryKind.STORE):
        return Atomicity.PLAIN
    if scope >= Scope.AGENT:
        return Atomicity.AGENT if memory.kind is MemoryKind.LOAD else Atomicity.STORED
    if scope is Scope.WORKGROUP:
        return Atomicity.WORKGROUP
    unmarked = memory.kind is MemoryKind.STORE and not states_store_scope(target)
    small = memory.bytes <= _LARGEST_ATOMIC
    return Atomicity.UNMARKED if unmarked and small else Atomicity.PLAIN


def _decides(chains: DefUse, load: int) -> bool:
    """Whether a branch or EXEC depends on what an instruction loads."""
    dependents, work = {load}, [load]
    while work:
        for use in chains.uses(work.pop()):
            instruction = chains.program.instructions[use]
            branches = instruction.opcode.control is Control.CONDITIONAL
            if branches or instruction.writes & EXEC:
                return True
            if instruction.memory is None and use not in dependents:
                dependents.add(use)
                work.append(use)
    return False


def _polls(program: Program) -> Iterator[int]:
    """Loads of LDS that are the only access in a loop and decide a branch."""
    chains: DefUse | None = None
    for loop in program.loops:
        inner = [
            instruction
            for block in loop.blocks
            for instruction in program.block_instructions(block)
            if instruction.memory is not None
        ]
        if len(inner) != 1 or inner[0].memory is None:
            continue
        memory = inner[0].memory
        if memory.space is Space.LDS and memory.kind is MemoryKind.LOAD:
            chains = chains or DefUse(program)
            if _decides(chains, inner[0].index):
                yield inner[0].index


def _compared_loads(program: Program) -> Iterator[int]:
    """Loads whose value a compare-and-swap compares with: it starts over if they were stale."""
    swaps = [
        instruction
        for instruction in program.instructions
        if instruction.memory is not None
        and instruction.memory.space in _MEMORY
        and instruction.opcode.memory_form.operation == "cmpswap"
    ]
    if not swaps:
        return
    chains = DefUse(program)
    operand_bits: set[tuple[int, int]] = set()
    work = [(swap.index, bit) for swap in swaps for bit in _comparand(swap)]
    while work:
        item = work.pop()
        if item in operand_bits:
            continue
        operand_bits.add(item)
        for definition in chains.definitions(*item):
            if definition == ENTRY:
                continue
            writer = program.instructions[definition]
            if writer.memory is None:
                work += [
                    (definition, bit) for bit in bits_of(writer.reads & _DATA & ~_masks(writer))
                ]
            elif writer.memory.kind is MemoryKind.LOAD and writer.memory.space in _MEMORY:
                yield definition


def _masks(instruction: Instruction) -> int:
    """The registers an instruction reads as masks of lanes."""
    pairs = zip(instruction.operands, instruction.decoded.roles, strict=True)
    registers = 0
    for operand, role in pairs:
        if role.kind is OperandKind.LANE_MASK:
            registers |= operand.bits
    return registers


def _comparand(swap: Instruction) -> list[int]:
    """The registers of the value a compare-and-swap expects: the second half of its data."""
    assert swap.memory is not None
    data = [
        operand
        for operand, role in zip(swap.operands, swap.decoded.roles, strict=True)
        if role.kind is OperandKind.VECTOR and operand.bits & swap.reads
    ]
    registers = bits_of(data[-1].bits)
    return registers[len(registers) // 2 :]


__all__ = ["ATOMIC", "Atomicity", "ProgramAtomicity", "accesses"]
