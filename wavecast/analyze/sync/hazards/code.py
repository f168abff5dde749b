"""A program as the hazard rules look at it, and the way back from an instruction."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import accumulate
from typing import Final, TypeVar

from wavecast.analyze.sync.hazards.traits import (
    ACCUMULATOR,
    DOT,
    DPP,
    LANE_READ,
    MATRIX,
    OTHERS,
    PART_WRITE,
    PERMLANE,
    SALU,
    TRANS,
    VALU,
    Traits,
)
from wavecast.analyze.sync.violation import Violation, list_registers
from wavecast.arch import capabilities
from wavecast.isa.instruction import Decoded
from wavecast.isa.program import Program
from wavecast.isa.registers import M0, register_names
from wavecast.isa.targets import isa_target

S = TypeVar("S")

NEEDS_VECTOR_WRITES: Final = DPP | LANE_READ | PERMLANE | MATRIX
"""Instructions to which every write of a vector register matters."""
_SLOW_RESULTS: Final = TRANS | PART_WRITE | DOT | MATRIX | ACCUMULATOR


class Exposure:
    """Per instruction the registers by which it can delay a later one, as a chain.

    `previous[i]` is the last instruction before `i` that exposes any, -1 where there is none.
    """

    def __init__(self, registers: list[int]) -> None:
        self.registers = registers
        self.previous: list[int] = []
        last = -1
        for index, exposed in enumerate(registers):
            self.previous.append(last)
            if exposed:
                last = index
        self.previous.append(last)


class HazardCode:
    """Traits per instruction, and dense copies of what a walk looks at."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.target = isa_target(program.target)
        self.hazards = frozenset(capabilities(self.target).hazards)
        cache: dict[Decoded, Traits] = {}
        self.traits: list[Traits] = []
        for instruction in program.instructions:
            traits = cache.get(instruction.decoded)
            if traits is None:
                traits = cache[instruction.decoded] = Traits(instruction.decoded)
            self.traits.append(traits)
        self.flags = [item.flags for item in self.traits]
        self.has = 0
        for item in cache.values():
            self.has |= item.flags
        self.starts = [block.start for block in program.blocks]

    @cached_property
    def wait_states(self) -> list[int]:
        """Wait states of all instructions before each one."""
        return [0, *accumulate(item.states for item in self.traits)]

    @property
    def notable(self) -> Exposure:
        """What most later instructions must wait for."""
        return self._exposures[0]

    @property
    def written(self) -> Exposure:
        """That, and the results of plain vector instructions, which only a few wait for."""
        return self._exposures[1]

    @cached_property
    def _exposures(self) -> tuple[Exposure, Exposure]:
        exposures = {item: _exposed_registers(item) for item in set(self.traits)}
        pairs = [exposures[item] for item in self.traits]
        return Exposure([pair[0] for pair in pairs]), Exposure([pair[1] for pair in pairs])

    def block_of(self, index: int) -> int:
        """The block of an instruction."""
        return bisect_right(self.starts, index) - 1

    def decoded_at(self, index: int) -> Decoded:
        """The instruction at `index`."""
        return self.program.instructions[index].decoded

    def before(
        self, index: int, limit: int, registers: int, exposed: Exposure
    ) -> list[tuple[int, int]]:
        """Instructions less than `limit` wait states before `index` that expose `registers`.

        Pairs (instruction, wait states between the two), the nearest first; the shortest way where
        several paths lead from one to the other.
        """
        start = self.starts[self.block_of(index)]
        wait_states, previous, exposes = self.wait_states, exposed.previous, exposed.registers
        here = wait_states[index]
        near: list[tuple[int, int]] = []
        position = previous[index]
        while position >= start:
            between = here - wait_states[position + 1]
            if between >= limit:
                return near
            if exposes[position] & registers:
                near.append((position, between))
            position = previous[position]
        between = here - wait_states[start]
        if between >= limit:
            return near
        return self._further(start, between, limit, registers, exposed, dict(near))

    def _further(
        self,
        start: int,
        between: int,
        limit: int,
        registers: int,
        exposed: Exposure,
        hits: dict[int, int],
    ) -> list[tuple[int, int]]:
        """Continue from the start of a block, `between` wait states away, to its predecessors."""
        blocks = self.program.blocks
        shortest: dict[int, int] = {}
        pending = [(p, between) for p in blocks[self.block_of(start)].predecessors]
        while pending:
            block, states = pending.pop()
            if shortest.get(block, limit) <= states:
                continue
            shortest[block] = states
            basic_block = blocks[block]
            start_states = self._block(
                basic_block.stop, basic_block.start, states, limit, registers, exposed, hits
            )
            if start_states is not None:
                pending += [(p, start_states) for p in basic_block.predecessors]
        return sorted(hits.items(), key=_states_between) if hits else []

    def _block(
        self,
        stop: int,
        start: int,
        states: int,
        limit: int,
        registers: int,
        exposed: Exposure,
        hits: dict[int, int],
    ) -> int | None:
        """Walk back through one block; the wait states at its start, None when out of reach."""
        wait_states, previous, exposes = self.wait_states, exposed.previous, exposed.registers
        here = states + wait_states[stop]
        position = previous[stop]
        while position >= start:
            between = here - wait_states[position + 1]
            if between >= limit:
                return None
            if exposes[position] & registers and between < hits.get(position, limit):
                hits[position] = between
            position = previous[position]
        between = here - wait_states[start]
        return between if between < limit else None

    def paths_back(self, index: int, state: S, step: Callable[[S, int], S | None]) -> None:
        """Walk back from `index` along every path. `step` takes the state of a path and the next
        instruction; it returns the state behind that, or None where the path is of no more
        interest. A block is entered once per state."""
        entries: set[tuple[int, S]] = set()
        pending: list[tuple[int, int, S]] = [(self.block_of(index), index, state)]
        while pending:
            block, stop, current = pending.pop()
            state_here: S | None = current
            for position in range(stop - 1, self.starts[block] - 1, -1):
                assert state_here is not None
                state_here = step(state_here, position)
                if state_here is None:
                    break
            if state_here is None:
                continue
            for predecessor in self.program.blocks[block].predecessors:
                if (predecessor, state_here) not in entries:
                    entries.add((predecessor, state_here))
                    pending.append((predecessor, self.program.blocks[predecessor].stop, state_here))

    def with_flags(self, flags: int) -> Iterator[int]:
        """Instructions that have one of `flags`."""
        return (index for index, bits in enumerate(self.flags) if bits & flags)

    def too_close(
        self, index: int, cause: int, registers: int, least: int, states: int, why: str
    ) -> Violation:
        """`index` comes `states` wait states after `cause` where `least` are due."""
        names = tuple(register_names(registers))
        on = f" on {list_registers(names)}" if names else ""
        missing = least - states
        return Violation(
            instruction=index,
            registers=names,
            cause=cause,
            counter="wait states",
            value=missing,
            remedy=f"s_nop {missing - 1}",
            statement=f"`{self.decoded_at(index).text}` follows "
            f"`{self.decoded_at(cause).text}`{on} "
            f"after {states} of {least} wait states ({why})",
        )

    def is_unordered(
        self, index: int, cause: int, registers: int, counter: str, remedy: str, why: str
    ) -> Violation:
        """`index` depends on `cause` and there is no `remedy` in between."""
        names = tuple(register_names(registers))
        on = f" on {list_registers(names)}" if names else ""
        return Violation(
            instruction=index,
            registers=names,
            cause=cause,
            counter=counter,
            value=0,
            remedy=remedy,
            statement=f"`{self.decoded_at(index).text}` follows "
            f"`{self.decoded_at(cause).text}`{on} "
            f"too closely ({why})",
        )


def _states_between(item: tuple[int, int]) -> int:
    return item[1]


def _exposed_registers(item: Traits) -> tuple[int, int]:
    """Registers most later instructions must wait for, and all that some must."""
    flags = item.flags
    if flags & VALU:
        writes = item.writes
        notable = writes if flags & _SLOW_RESULTS else writes & OTHERS
        if flags & MATRIX:
            notable |= item.sources
        return notable, notable | writes
    notable = item.data | (item.writes & M0 if flags & SALU else 0)
    return notable, notable
