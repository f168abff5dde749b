"""What of each block a walk executes, worked out once for all walks of a kernel."""

from __future__ import annotations

from collections.abc import Callable

from wavecast.analyze.values.execute import Step
from wavecast.analyze.values.slices import Slices
from wavecast.isa.defuse import bits_of
from wavecast.isa.program import Program
from wavecast.isa.registers import EXEC, SCC, VCC

Planned = tuple[Step, int, bool]
"""An instruction's effect, its index, and whether its comparisons are decisions."""

_FLAGS = SCC | VCC
_COMPARING_FORMS = frozenset({"VOPC"})


class Plans:
    """The instructions of every block that decisions, or decisions and addresses, depend on.

    `step_of(index)` gives the effect of an instruction.
    """

    def __init__(self, program: Program, slices: Slices, step_of: Callable[[int], Step]) -> None:
        self.slices = slices
        self._program = program
        self._step_of = step_of
        self._decisions: dict[int, list[Planned]] = {}
        self._everything: dict[int, list[Planned]] = {}
        self._written: dict[frozenset[int], list[int]] = {}
        self._live: dict[int, list[int]] = {}

    def of(self, block: int, addresses: bool) -> list[Planned]:
        """The steps of a block; with `addresses` those that addresses depend on as well."""
        cache = self._everything if addresses else self._decisions
        plan = cache.get(block)
        if plan is None:
            plan = cache[block] = self._plan(block, addresses)
        return plan

    def written_registers(self, blocks: frozenset[int]) -> list[int]:
        """The registers that decisions depend on and some of these blocks write, EXEC aside."""
        registers = self._written.get(blocks)
        if registers is None:
            written = 0
            results = self.slices.decisions.results
            for index in blocks:
                block = self._program.blocks[index]
                for position in range(block.start, block.stop):
                    written |= results.get(position, 0)
            registers = self._written[blocks] = bits_of(written & ~EXEC)
        return registers

    def live(self, block: int) -> list[int]:
        """The registers that decisions depend on when a block is entered."""
        registers = self._live.get(block)
        if registers is None:
            registers = self._live[block] = bits_of(self.slices.decisions.needed[block])
        return registers

    def _plan(self, block: int, addresses: bool) -> list[Planned]:
        decides, traced = self.slices.decisions.member, self.slices.traced
        everything = self._everything.get(block)
        if everything is not None:
            return [planned for planned in everything if decides[planned[1]]]
        span = self._program.blocks[block]
        return [
            (self._step_of(position), position, self._decides(position))
            for position in range(span.start, span.stop)
            if decides[position] or (addresses and traced[position])
        ]

    def _decides(self, position: int) -> bool:
        """The outcome of a comparison this instruction makes may decide where control goes."""
        results = self.slices.decisions.results.get(position)
        if not results:
            return False
        form = self._program.instructions[position].decoded.opcode.form
        return bool(results & _FLAGS) or form in _COMPARING_FORMS
