"""Executed instructions whose result documentation leaves open, and what their values decide.

A value is followed through the registers of its function, as the code may use it, and through
memory from the stores to the loads that have brought it: to an address, to a branch or to the lanes
that execute, and to the barriers that such a branch decides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from wavecast.analyze.lanes.control import control_dependences
from wavecast.emulate.trace.result import Trace
from wavecast.emulate.trace.value_flow import AccessDword, ValueFlow
from wavecast.isa.instruction import Instruction, SourceLocation
from wavecast.isa.opcode import Control, OperandKind, Role
from wavecast.isa.program import Block
from wavecast.isa.registers import EXEC
from wavecast.isa.semantics.open_behaviour import OpenBehaviour, open_behaviour

KINDS: Final = ("address", "branch", "lanes", "barrier")
"""What a value can decide."""
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
    decisions = _Decisions(trace)
    return tuple(
        OpenInstruction(instruction, behaviour, count, decisions.of(instruction.index))
        for instruction, count in zip(trace.program.instructions, counts, strict=True)
        if count and (behaviour := open_behaviour(instruction)) is not None
    )


@dataclass(frozen=True, slots=True)
class _Labelled:
    """A block as `control_dependences` reads it."""

    label: str
    targets: tuple[str, ...]


class _Links:
    """The loads that have brought what a store wrote."""

    def __init__(self, trace: Trace) -> None:
        self._loads: dict[AccessDword, list[AccessDword]] = defaultdict(list)
        for stored, loaded in sorted(trace.links):
            self._loads[stored].append(loaded)

    def loads(self, stored: AccessDword) -> Iterable[AccessDword]:
        return self._loads.get(stored, ())


class _Decisions:
    """What values decide in one traced program; only executed instructions count."""

    def __init__(self, trace: Trace) -> None:
        self._program, self._counts = trace.program, trace.instruction_counts.tolist()
        is_executed = [bool(count) for count in self._counts].__getitem__
        self._flow = ValueFlow(trace.program, is_executed, _Links(trace))

    def of(self, origin: int) -> tuple[FidelityDecision, ...]:
        """What the value that instruction `origin` writes may decide."""
        decisions: dict[tuple[str, int], FidelityDecision] = {}
        for instruction, bits in self._flow.uses([origin]):
            for kind in self._kinds(instruction, bits):
                decisions[kind, instruction.index] = FidelityDecision(kind, instruction)
        branches = {self._flow.chains.block_of(i) for kind, i in decisions if kind == "branch"}
        for instruction in self._barriers(branches):
            decisions["barrier", instruction.index] = FidelityDecision("barrier", instruction)
        order = sorted(decisions, key=lambda key: (KINDS.index(key[0]), key[1]))
        return tuple(decisions[key] for key in order)

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


__all__ = ["KINDS", "FidelityDecision", "OpenInstruction", "open_instructions"]
