"""What of each block a walk executes, worked out once for all walks of a kernel."""

from __future__ import annotations

from collections.abc import Callable

from wavecast.analyze.values.execute import Step
from wavecast.analyze.values.slices import Slices
from wavecast.isa.instruction import Decoded
from wavecast.isa.opcode import MemoryKind
from wavecast.isa.program import Program
from wavecast.isa.registers import SCC, VCC

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

    def of(self, block: int, addresses: bool) -> list[Planned]:
        """The steps of a block; with `addresses` those that addresses depend on as well."""
        cache = self._everything if addresses else self._decisions
        found = cache.get(block)
        if found is None:
            found = cache[block] = self._plan(block, addresses)
        return found

    def _plan(self, block: int, addresses: bool) -> list[Planned]:
        place = self._program.blocks[block]
        decides, addressing = self.slices.decisions.member, self.slices.addresses.member
        instructions = self._program.instructions
        return [
            (self._step_of(position), position, self._decides(position))
            for position in range(place.start, place.stop)
            if decides[position]
            or (addresses and (addressing[position] or _accesses(instructions[position].decoded)))
        ]

    def _decides(self, position: int) -> bool:
        """The outcome of a comparison this instruction makes may decide where control goes."""
        wanted = self.slices.decisions.results.get(position, 0)
        return bool(wanted & _FLAGS) or (
            bool(wanted)
            and self._program.instructions[position].decoded.opcode.form in _COMPARING_FORMS
        )


def _accesses(decoded: Decoded) -> bool:
    memory = decoded.memory
    return memory is not None and memory.kind is not MemoryKind.PERMUTE
