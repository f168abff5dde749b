"""Where paths of a program meet: what all of them know."""

from __future__ import annotations

from wavecast.emulate.check.dataflow.lane_sets import NONE, unknown
from wavecast.emulate.check.dataflow.register_facts import Known
from wavecast.isa.program import Program


class Joins:
    """What predecessors of blocks agree on.

    Where they do not, lanes written on both paths are written. Around a loop this does not hold, as
    a mask of the iteration before is not the mask of this one: what differs there is unknown, and
    stays so.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.rank = {block: index for index, block in enumerate(program.reverse_postorder)}
        self.demoted: dict[int, set[object]] = {}
        """By block, what differs between its predecessors for good."""

    def at(
        self,
        block: int,
        first: Known,
        leaving: dict[tuple[int, int], Known],
        *,
        careful: bool,
    ) -> Known | None:
        """The state a block starts in, None while no predecessor has been followed. With `careful`
        loops start knowing nothing."""
        edges = [leaving.get((p, block)) for p in self.program.blocks[block].predecessors]
        states = [state for state in edges if state is not None]
        if block == 0:
            states.append(first)
        if not states:
            return None
        rank = self.rank
        loop = any(rank.get(p, -1) >= rank[block] for p in self.program.blocks[block].predecessors)
        join = states[0].copy()
        for state in states[1:]:
            self._merge(block, join, state, loop)
        if careful and loop:
            join.lanes, join.base = {}, NONE
            join.masks, join.execute = {}, unknown("loop", block)
        demoted = self.demoted.get(block, ())
        for name in demoted:
            self._demote(block, join, name)
        return join

    def _demote(self, block: int, state: Known, name: object) -> None:
        if name == "exec":
            state.execute = unknown("exec", block)
        elif name == "base":
            state.base = NONE
        elif isinstance(name, tuple):
            state.masks[name[0]] = unknown("mask", block, name[0])
        elif isinstance(name, int):
            state.lanes[name] = NONE

    def _merge(self, block: int, into: Known, other: Known, loop: bool) -> None:
        demoted = self.demoted.setdefault(block, set())
        into.scalars &= other.scalars
        constants = other.constants
        into.constants = {c: v for c, v in into.constants.items() if constants.get(c) == v}
        if into.execute != other.execute:
            demoted.add("exec")
        for position in into.masks.keys() | other.masks.keys():
            if into.masks.get(position) != other.masks.get(position):
                demoted.add((position,))
        for cell in into.lanes.keys() | other.lanes.keys():
            mine, yours = into.at(cell), other.at(cell)
            if mine == yours:
                into.lanes[cell] = mine
            elif loop:
                demoted.add(cell)
            else:
                into.lanes[cell] = mine & yours
        if into.base != other.base:
            if loop:
                demoted.add("base")
            into.base &= other.base


__all__ = ["Joins"]
