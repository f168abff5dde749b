"""Def-use chains, found on demand: who wrote the value an instruction reads.

Nothing is computed up front but a sorted list of writers per register, so asking about the slice
of a program that matters costs in proportion to that slice.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cached_property

from wavecast.isa.program import Program

ENTRY = -1
"""The definition of a register that holds its value when the function starts."""


def bits_of(registers: int) -> list[int]:
    """The positions of the set bits, lowest first."""
    positions = []
    while registers:
        low = registers & -registers
        positions.append(low.bit_length() - 1)
        registers ^= low
    return positions


class DefUse:
    """Reaching definitions of one program. Instruction indices; `ENTRY` for live-in values."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._block_of = [0] * len(program.instructions)
        for block in program.blocks:
            for index in range(block.start, block.stop):
                self._block_of[index] = block.index
        self._writers: dict[int, list[int]] = {}
        for instruction in program.instructions:
            if instruction.decoded.writes:
                for bit in bits_of(instruction.decoded.writes):
                    self._writers.setdefault(bit, []).append(instruction.index)
        self._at_entry: dict[tuple[int, int], frozenset[int]] = {}

    def block_of(self, index: int) -> int:
        """The block of an instruction."""
        return self._block_of[index]

    def definitions(self, index: int, bit: int) -> frozenset[int]:
        """The instructions whose write of register `bit` may reach instruction `index`."""
        block = self.program.blocks[self._block_of[index]]
        writers, is_killed = self._backwards(bit, block.start, index)
        if not is_killed:
            writers |= self._entry(block.index, bit)
        return frozenset(writers)

    def sources(self, index: int, registers: int | None = None) -> dict[int, frozenset[int]]:
        """For every register `index` reads (or of `registers`): the definitions that reach it."""
        mask = self.program.instructions[index].reads if registers is None else registers
        return {bit: self.definitions(index, bit) for bit in bits_of(mask)}

    def uses(self, index: int) -> frozenset[int]:
        """The instructions that read a value instruction `index` wrote."""
        return frozenset(self._uses.get(index, ()))

    @cached_property
    def _uses(self) -> dict[int, set[int]]:
        uses: dict[int, set[int]] = {}
        for instruction in self.program.instructions:
            for definitions in self.sources(instruction.index).values():
                for definition in definitions:
                    uses.setdefault(definition, set()).add(instruction.index)
        return uses

    def _backwards(self, bit: int, start: int, stop: int) -> tuple[set[int], bool]:
        """Writers of `bit` in `[start, stop)`, last first, up to the one that kills the rest."""
        reaching_definitions: set[int] = set()
        writers = self._writers.get(bit)
        if writers is None:
            return reaching_definitions, False
        position = bisect_left(writers, stop) - 1
        instructions = self.program.instructions
        while position >= 0 and writers[position] >= start:
            writer = writers[position]
            reaching_definitions.add(writer)
            if instructions[writer].decoded.kills >> bit & 1:
                return reaching_definitions, True
            position -= 1
        return reaching_definitions, False

    def _entry(self, block: int, bit: int) -> frozenset[int]:
        """The definitions of `bit` that reach the start of `block`."""
        cache_entry = self._at_entry.get((block, bit))
        if cache_entry is not None:
            return cache_entry
        reaching_definitions: set[int] = set()
        visited_blocks = {block}
        stack = [block]
        blocks = self.program.blocks
        while stack:
            current = stack.pop()
            if current == 0:
                reaching_definitions.add(ENTRY)
            for predecessor in blocks[current].predecessors:
                earlier = blocks[predecessor]
                local, is_killed = self._backwards(bit, earlier.start, earlier.stop)
                reaching_definitions |= local
                if not is_killed and predecessor not in visited_blocks:
                    visited_blocks.add(predecessor)
                    stack.append(predecessor)
        result = frozenset(reaching_definitions)
        self._at_entry[block, bit] = result
        return result


def definitions(program: Program) -> DefUse:
    """Def-use chains of a program."""
    return DefUse(program)
