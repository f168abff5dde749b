"""Executed instructions whose result documentation leaves open, and what their values decide.

A value is followed through the registers of its function, as the code may use it: to an address, to
a branch or to the lanes that execute, and to the barriers that such a branch decides. Values that
go through memory are not followed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from wavecast.analyze.lanes.control import control_dependences
from wavecast.emulate.trace.result import Trace
from wavecast.isa.defuse import DefUse
from wavecast.isa.instruction import Decoded, Instruction, SourceLocation
from wavecast.isa.opcode import Control, MemoryKind, OperandKind, Role
from wavecast.isa.program import Block, Program
from wavecast.isa.registers import EXEC, SCC
from wavecast.isa.semantics.open_behaviour import OpenBehaviour, open_behaviour

KINDS: Final = ("address", "branch", "lanes", "barrier")
"""What a value can decide."""
_EXCHANGE: Final = MemoryKind.PERMUTE
_ADDRESSES: Final = frozenset(
    {OperandKind.ADDRESS, OperandKind.SCALAR_ADDRESS, OperandKind.RESOURCE, OperandKind.OFFSET}
)


@dataclass(frozen=True, slots=True)
class FidelityDecision:
    """An instruction whose address, direction or lanes a value decides, or a barrier: `kind` is one
    of `KINDS`."""

    kind: str
    instruction: Instruction

    @property
    def location(self) -> SourceLocation | None:
        """Its line, at the call site in the kernel."""
        where = self.instruction.location
        return where.outermost if where else None


@dataclass(frozen=True, slots=True)
class OpenInstruction:
    """An instruction that waves executed `executions` times, what is open about its result, and
    the instructions that may be decided by it."""

    instruction: Instruction
    behaviour: OpenBehaviour
    executions: int
    decisions: tuple[FidelityDecision, ...]

    @property
    def location(self) -> SourceLocation | None:
        """Its line, at the call site in the kernel."""
        where = self.instruction.location
        return where.outermost if where else None


def open_instructions(trace: Trace) -> tuple[OpenInstruction, ...]:
    """Those that were executed, in the order of the code."""
    counts = trace.instruction_counts.tolist()
    flow = _Flow(trace.program, counts)
    return tuple(
        OpenInstruction(instruction, behaviour, count, flow.decisions(instruction.index))
        for instruction, count in zip(trace.program.instructions, counts, strict=True)
        if count and (behaviour := open_behaviour(instruction)) is not None
    )


@dataclass(frozen=True, slots=True)
class _Labelled:
    """A block as `control_dependences` reads it."""

    label: str
    targets: tuple[str, ...]


class _Flow:
    """How values go through the registers of a program; only executed instructions count."""

    def __init__(self, program: Program, counts: list[int]) -> None:
        self._program, self._counts = program, counts
        self._chains = DefUse(program)

    def decisions(self, origin: int) -> tuple[FidelityDecision, ...]:
        """What the value that instruction `origin` writes may decide."""
        decisions: dict[tuple[str, int], FidelityDecision] = {}
        pending = [(origin, _own_writes(self._program.instructions[origin]))]
        carried: dict[int, int] = {}  # by instruction, the registers that it wrote with the value
        while pending:
            index, written = pending.pop()
            for user in sorted(self._chains.uses(index)):
                instruction = self._program.instructions[user]
                bits = self._bits(index, user) & written
                if not self._counts[user] or not bits:
                    continue
                for kind in self._kinds(instruction, bits):
                    decisions[kind, user] = FidelityDecision(kind, instruction)
                before = carried.get(user, 0)
                after = before | _carried(instruction.decoded, bits)
                if after != before:
                    carried[user] = after
                    pending.append((user, after))
        branches = {self._chains.block_of(i) for kind, i in decisions if kind == "branch"}
        for instruction in self._barriers(branches):
            decisions["barrier", instruction.index] = FidelityDecision("barrier", instruction)
        order = sorted(decisions, key=lambda key: (KINDS.index(key[0]), key[1]))
        return tuple(decisions[key] for key in order)

    def _bits(self, index: int, user: int) -> int:
        """The registers in which `user` may read what `index` wrote."""
        return sum(
            1 << bit
            for bit, definitions in self._chains.sources(user).items()
            if index in definitions
        )

    @staticmethod
    def _kinds(instruction: Instruction, bits: int) -> Iterator[str]:
        decoded = instruction.decoded
        if instruction.opcode.control in (Control.CONDITIONAL, Control.INDIRECT):
            yield "branch"
            return
        operands = zip(instruction.operands, decoded.roles, strict=False)
        addresses = [operand.bits for operand, role in operands if role.kind in _ADDRESSES]
        if instruction.memory is not None and any(bits & address for address in addresses):
            yield "address"
        if bits & ~EXEC and decoded.writes & EXEC:
            yield "lanes"

    def _barriers(self, branches: set[int]) -> Iterator[Instruction]:
        """Executed barriers in blocks that one of the branches decides, at any depth."""
        if not branches:
            return
        for block in self._program.blocks:
            if branches & self._deciding[block.index]:
                yield from self._executed_barriers(block)

    def _executed_barriers(self, block: Block) -> Iterator[Instruction]:
        for index in range(block.start, block.stop):
            instruction = self._program.instructions[index]
            if instruction.opcode.role is Role.BARRIER and self._counts[index]:
                yield instruction

    @cached_property
    def _deciding(self) -> dict[int, set[int]]:
        """By block those whose branch decides whether it runs, and those that decide these."""
        labelled = {
            str(block.index): _Labelled(str(block.index), tuple(map(str, block.successors)))
            for block in self._program.blocks
        }
        direct = control_dependences(labelled)
        deciding: dict[int, set[int]] = {}
        for label in labelled:
            pending, seen = [label], set[str]()
            while pending:
                for branch in direct[pending.pop()]:
                    if branch not in seen:
                        seen.add(branch)
                        pending.append(branch)
            deciding[int(label)] = set(map(int, seen))
        return deciding


def _own_writes(instruction: Instruction) -> int:
    """The registers of an instruction's own result, without those of the second of a pair."""
    second = instruction.second
    if second is None or open_behaviour(instruction) is None:
        return instruction.writes
    return instruction.writes & ~second.writes


def _carried(decoded: Decoded, bits: int) -> int:
    """The registers that an instruction writes with a value it reads in `bits`: not what it loads,
    not what it computes in lanes that the value chose, and not the lanes that it saves."""
    if not bits & ~EXEC or not (decoded.memory is None or decoded.memory.kind is _EXCHANGE):
        return 0
    if "saveexec" in decoded.opcode.name:
        return decoded.writes & (EXEC | SCC)
    second = decoded.second
    if second is None:
        return decoded.writes
    first_reads = decoded.reads & ~second.reads
    for operand in decoded.operands:
        first_reads |= operand.bits
    written = decoded.writes & ~second.writes if bits & first_reads else 0
    return written | (second.writes if bits & second.reads else 0)


__all__ = ["KINDS", "FidelityDecision", "OpenInstruction", "open_instructions"]
