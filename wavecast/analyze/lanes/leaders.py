"""Values that one lane of each group of 32 has, of which all lanes of a wave take the first."""

from __future__ import annotations

from collections.abc import Iterator

from wavecast.analyze.lanes.assumption import Assumption, LaneAssumption
from wavecast.analyze.lanes.demand import LaneDemand
from wavecast.analyze.lanes.flow import FIRST, LANE, LaneFlow
from wavecast.analyze.lanes.halves import (
    COPIES,
    LOWER,
    UPPER,
    is_pair,
    is_uniform_call,
    repeats,
)
from wavecast.analyze.lanes.unrolling import EXCHANGE
from wavecast.compile.ir_blocks import IrInstruction


class LeaderSites:
    """The shuffles and reads of one lane of a function, whose value only leaders have."""

    def __init__(self, flow: LaneFlow, demand: LaneDemand) -> None:
        self.flow, self.demand = flow, demand

    def sites(self) -> Iterator[LaneAssumption]:
        """Those that take the value of lane n for that of lane n + 32 too."""
        for label, block in self.flow.blocks.items():
            running = self.flow.executing[label]
            for call in block.instructions:
                reads = call.detail == EXCHANGE or call.detail.startswith((FIRST, LANE))
                if reads and running & UPPER and running & LOWER and self._loses(call, running):
                    yield LaneAssumption(Assumption.LEADER, call.position)

    def _loses(self, call: IrInstruction, running: int) -> bool:
        """Whether lanes of both halves take the value of one leader of two, and nothing uses that
        of the other."""
        value = call.operands[call.detail == EXCHANGE]
        lanes = self.demand.used.get(call.result, 0) & running
        source_lanes = self.demand.operand_lanes(call, lanes, running)
        leaders, parts = self._leaders(value)
        return (
            bool(lanes & UPPER)
            and bool(lanes & LOWER)
            and is_pair(leaders)
            and source_lanes.bit_count() == 1
            and not self.demand.used.get(value, 0) & leaders & ~source_lanes
            and bool(source_lanes & leaders)
            and not all(repeats(self.flow, part) for part in parts)
        )

    def _leaders(self, value: str) -> tuple[int, list[str]]:
        """The lanes in which a value is not a constant that others have, and what it is there."""
        definition = self.flow.definitions.get(value)
        while definition is not None and definition.opcode in COPIES:
            definition = self.flow.definitions.get(definition.operands[0])
        if definition is None:
            return 0, []
        lanes, parts = 0, []
        for operand, arm_lanes in self._arms(definition):
            if not self._is_common(operand):
                lanes |= arm_lanes
                parts.append(operand)
        return lanes, parts

    def _is_common(self, name: str) -> bool:
        """Whether all lanes have one value: a constant, or that of one lane."""
        work, names = [name], set[str]()
        while work:
            name = work.pop()
            definition = self.flow.definitions.get(name)
            if name in names or definition is None:
                continue
            names.add(name)
            if definition.opcode == "phi" or definition.opcode in COPIES:
                work += definition.operands
            elif not is_uniform_call(self.flow, definition):
                return False
        return True

    def _arms(self, definition: IrInstruction) -> Iterator[tuple[str, int]]:
        """What a phi or a selection may be, each with the lanes in which it may be."""
        if definition.opcode == "phi":
            label = self.flow.block_of[definition.result]
            for operand, source in zip(definition.operands, definition.sources, strict=True):
                yield operand, self.flow.edge(source, label)
        elif definition.opcode == "select":
            condition, *arms = definition.operands
            for operand, outcome in zip(arms, (1, 0), strict=True):
                yield operand, self.flow.values.may_be(condition, outcome)


__all__ = ["LeaderSites"]
