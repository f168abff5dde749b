"""In which lanes of the first wave a value is used.

Stores, atomic operations and calls use their operands in the lanes that execute them, and so do the
branches that decide whether they run. A branch that only chooses a value is used where that is.
Sets of lanes are masks of 64 bits. Where something is unknown, values are used.
"""

from __future__ import annotations

from collections.abc import Iterator

from wavecast.analyze.lanes.flow import ALL, FIRST, LANE, LANE_WISE, LaneFlow
from wavecast.analyze.lanes.per_lane import LANES, constant_word
from wavecast.analyze.lanes.unrolling import EXCHANGE
from wavecast.compile.ir_blocks import IrBlock, IrInstruction

_ENDS = frozenset({"ret", "unreachable"})
_NO_EFFECT = ("llvm.assume", "llvm.lifetime.", "llvm.dbg.", "llvm.experimental.noalias.")
_MEMORY = frozenset({"atomicrmw", "cmpxchg"})


class LaneDemand:
    """The demand for the values of a function.

    `used` has the lanes in which a value is used, `exchanged` those from which an exchange that is
    used takes it, directly or through others."""

    def __init__(self, flow: LaneFlow) -> None:
        self.flow = flow
        self.used: dict[str, int] = {}
        self.exchanged: dict[str, int] = {}
        self._needed = dict.fromkeys(flow.blocks, 0)
        """The lanes in which it matters that a block runs."""
        self._changed = True
        while self._changed:
            self._changed = False
            for label, block in reversed(list(flow.blocks.items())):
                self._add_block(label, block)

    def _add_block(self, label: str, block: IrBlock) -> None:
        for instruction in reversed(block.instructions):
            self._need(label, self._running(instruction, label))
            for operand, lanes, exchange_lanes in self._demands(instruction, label):
                self._use(operand, lanes, exchange_lanes)
            if instruction.opcode == "phi":
                for source in instruction.sources:
                    lanes = self.used.get(instruction.result, 0)
                    self._need(source, lanes & self.flow.edge(source, label))
        for branch in self.flow.deciding[label]:
            self._need(branch, self._needed[label])
            condition = self.flow.blocks[branch].condition
            self._use(condition, self._needed[label] & self.flow.executing[branch], 0)

    def _need(self, label: str, lanes: int) -> None:
        before = self._needed.get(label, 0)
        if lanes & ~before:
            self._needed[label] = before | lanes
            self._changed = True

    def _use(self, operand: str, lanes: int, exchange_lanes: int) -> None:
        if not operand.startswith("%"):
            return
        for table, more in ((self.used, lanes), (self.exchanged, exchange_lanes)):
            before = table.get(operand, 0)
            if more & ~before:
                table[operand] = before | more
                self._changed = True

    def _running(self, instruction: IrInstruction, label: str) -> int:
        """The lanes in which an instruction must run: for what it does to memory, for its result,
        or for lanes that read theirs."""
        running = self.flow.executing[label]
        if instruction.opcode in _ENDS or instruction.detail.startswith(_NO_EFFECT):
            return 0
        if not instruction.result or instruction.opcode in _MEMORY:
            return running
        lanes = self.used.get(instruction.result, 0) & running
        if instruction.opcode != "call" or instruction.detail.startswith(LANE_WISE):
            return lanes
        return lanes | self.operand_lanes(instruction, lanes, running)

    def _demands(self, instruction: IrInstruction, label: str) -> Iterator[tuple[str, int, int]]:
        """(operand, lanes in which this instruction uses it, those an exchange takes)."""
        result, operands = instruction.result, instruction.operands
        lanes, exchange_lanes = self.used.get(result, 0), self.exchanged.get(result, 0)
        running = self.flow.executing[label]
        if not result or instruction.opcode in _MEMORY:
            yield from ((operand, running, 0) for operand in operands)
        elif instruction.opcode == "phi":
            for operand, source in zip(operands, instruction.sources, strict=True):
                edge = self.flow.edge(source, label)
                yield operand, lanes & edge, exchange_lanes & edge
        elif instruction.opcode == "select":
            condition, if_true, other = operands
            yield condition, lanes, 0
            for operand, outcome in ((if_true, 1), (other, 0)):
                arm_lanes = self.flow.values.may_be(condition, outcome)
                yield operand, lanes & arm_lanes, exchange_lanes & arm_lanes
        elif instruction.detail == EXCHANGE:
            source_lanes = self.operand_lanes(instruction, lanes & running, running)
            yield operands[0], lanes, 0
            yield operands[1], source_lanes, source_lanes
        elif instruction.opcode == "load":
            yield operands[0], lanes, 0
        elif instruction.opcode != "call" or instruction.detail.startswith(LANE_WISE):
            yield from ((operand, lanes, exchange_lanes) for operand in operands)
        else:
            source_lanes = self.operand_lanes(instruction, lanes, running)
            yield from ((operand, source_lanes, source_lanes) for operand in operands)

    def operand_lanes(self, call: IrInstruction, lanes: int, running: int) -> int:
        """The lanes whose operands a function takes that may read others, for its result in some
        `lanes` of those that are running."""
        if call.detail == EXCHANGE:
            sources = self.flow.sources.get(call.result)
            if sources is None:
                return ALL if lanes else 0
            source_lanes = 0
            for lane in range(LANES):
                if lanes >> lane & 1:
                    source_lanes |= 1 << sources[lane]
            return source_lanes
        if call.detail.startswith(FIRST) and running == self.flow.values.start.active:
            return running & -running
        if call.detail.startswith(LANE) and len(call.operands) > 1:
            lane = constant_word(call.operands[1])
            return ALL if lane is None else 1 << (lane & LANES - 1)
        return ALL if running else 0


__all__ = ["LaneDemand"]
