"""How values move between the lanes of the first wave: which lanes execute a block, and which lanes
a value is made of.

Sets of lanes are masks of 64 bits. Where something is unknown, lanes execute.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from wavecast.analyze.lanes.control import control_dependences
from wavecast.analyze.lanes.per_lane import LANES, LaneValues
from wavecast.analyze.lanes.unrolling import EXCHANGE
from wavecast.compile.ir_blocks import ENTRY, IrBlock, IrInstruction

ALL: Final = (1 << LANES) - 1
FIRST: Final = "llvm.amdgcn.readfirstlane"
LANE: Final = "llvm.amdgcn.readlane"
LANE_WISE = (
    *("llvm.fma", "llvm.fmuladd", "llvm.minnum", "llvm.maxnum", "llvm.smin", "llvm.smax"),
    *("llvm.umin", "llvm.umax", "llvm.ctpop", "llvm.ctlz", "llvm.cttz", "llvm.abs", "llvm.fabs"),
    *("llvm.sqrt", "llvm.exp", "llvm.log", "llvm.fshl", "llvm.fshr", "llvm.minimum"),
    *("llvm.maximum", "llvm.copysign", "llvm.canonicalize", "llvm.bswap", "llvm.bitreverse"),
    *("llvm.sadd", "llvm.uadd", "llvm.usub", "llvm.ssub", "llvm.floor", "llvm.ceil"),
    *("llvm.trunc", "llvm.rint", "llvm.amdgcn.rcp", "llvm.amdgcn.rsq", "llvm.amdgcn.mbcnt"),
    *("llvm.amdgcn.fmed3", "llvm.amdgcn.ubfe", "llvm.amdgcn.sbfe", "llvm.amdgcn.exp2"),
    *("llvm.amdgcn.log", "llvm.amdgcn.cvt"),
)
"""Beginnings of the names of functions whose result in a lane depends on that lane alone."""


class LaneFlow:
    """A function whose loops of exchanges are unrolled."""

    def __init__(self, blocks: Mapping[str, IrBlock], values: LaneValues) -> None:
        self.blocks, self.values = blocks, values
        self.block_of: dict[str, str] = {}
        self.definitions: dict[str, IrInstruction] = {}
        self.users: dict[str, list[tuple[IrInstruction, IrBlock]]] = {}
        for block in blocks.values():
            for instruction in block.instructions:
                if instruction.result:
                    self.definitions[instruction.result] = instruction
                    self.block_of[instruction.result] = block.label
                for operand in instruction.operands:
                    self.users.setdefault(operand, []).append((instruction, block))
        self.executing, self._edges = self._executing_lanes()
        self.sources = {
            i.result: lanes
            for i in self.exchanges()
            if (lanes := self._source_lanes(i)) is not None
        }
        self.made_of = self._origins()
        self.deciding = control_dependences(blocks)
        self._choosing: dict[str, frozenset[str]] = {}

    def choosing(self, label: str) -> frozenset[str]:
        """The conditions that choose the block from which control comes to another, and so the
        operand of its phis."""
        conditions = self._choosing.get(label)
        if conditions is None:
            sources = [b.label for b in self.blocks.values() if label in b.targets]
            before = self._all_deciding([label]) - self._reachable(label)
            branches = self._all_deciding(sources) - before
            conditions = frozenset(self.blocks[branch].condition for branch in branches)
            self._choosing[label] = conditions
        return conditions

    def _all_deciding(self, labels: Sequence[str]) -> set[str]:
        """The blocks whose branches decide, directly or through others, whether some blocks run."""
        branches, work = set[str](), list(labels)
        while work:
            more = set(self.deciding[work.pop()]) - branches
            branches |= more
            work += more
        return branches

    def _reachable(self, label: str) -> set[str]:
        """The blocks that control may come to from one."""
        labels, work = set[str](), [label]
        while work:
            more = set(self.blocks[work.pop()].targets) - labels
            labels |= more
            work += more
        return labels

    def exchanges(self) -> Iterator[IrInstruction]:
        """The shuffles in order."""
        return (i for i in self.definitions.values() if i.detail == EXCHANGE)

    def executing_lanes(self, instruction: IrInstruction) -> int:
        """The lanes that execute an instruction with a result."""
        return self.executing.get(self.block_of.get(instruction.result, ENTRY), 0)

    def _executing_lanes(self) -> tuple[dict[str, int], dict[tuple[str, str], int]]:
        """The lanes of every block, and of every edge."""
        lanes: dict[str, int] = dict.fromkeys(self.blocks, 0)
        edges: dict[tuple[str, str], int] = {}
        first = next(iter(self.blocks))
        lanes[first] = self.values.start.active
        work = [first]
        while work:
            block = self.blocks[work.pop()]
            for target, mask in self._target_lanes(block):
                passing = lanes[block.label] & mask
                edges[block.label, target] = edges.get((block.label, target), 0) | passing
                if target in lanes and passing & ~lanes[target]:
                    lanes[target] |= passing
                    work.append(target)
        return lanes, edges

    def _target_lanes(self, block: IrBlock) -> Iterator[tuple[str, int]]:
        """The targets of a block, each with the lanes in which it may be taken."""
        if len(block.targets) == 2 and not block.cases:
            for target, outcome in zip(block.targets, (1, 0), strict=True):
                yield target, self.values.may_be(block.condition, outcome)
            return
        for number, target in enumerate(block.targets):
            case = block.cases[number - 1] if number and block.cases else None
            yield target, ALL if case is None else self.values.may_be(block.condition, case)

    def edge(self, source: str, target: str) -> int:
        """The lanes that go from one block to another."""
        return self._edges.get((source, target), 0)

    def _source_lanes(self, exchange: IrInstruction) -> list[int] | None:
        address = self.values.of(exchange.operands[0])
        numbers = None if address is None else address.complete()
        return None if numbers is None else [number >> 2 & LANES - 1 for number in numbers]

    def _origins(self) -> dict[str, list[int]]:
        """By value that depends on an exchange, the lanes each of its lanes is made of."""
        origins: dict[str, list[int]] = {}
        changed = True
        while changed:
            changed = False
            for label, block in self.blocks.items():
                for instruction in block.instructions:
                    after = self._origin(instruction, label, origins)
                    if after is not None and origins.get(instruction.result) != after:
                        origins[instruction.result] = after
                        changed = True
        return origins

    def _origin(
        self, instruction: IrInstruction, label: str, origins: Mapping[str, list[int]]
    ) -> list[int] | None:
        """The lanes a result is made of; None if it depends on no exchange."""
        opcode, operands = instruction.opcode, instruction.operands
        if not instruction.result or opcode in ("load", "atomicrmw", "cmpxchg", "icmp", "fcmp"):
            return None
        if instruction.detail == EXCHANGE:
            sources = self.sources.get(instruction.result)
            if sources is None:
                return [ALL] * LANES
            operand_origins = self._lanes_of(operands[1], origins)
            return [operand_origins[source] for source in sources]
        if not any(operand in origins for operand in operands):
            return None
        if opcode == "call" and not instruction.detail.startswith(LANE_WISE):
            return [ALL] * LANES
        total = [0] * LANES
        for operand, arm_lanes in self._parts(instruction, label):
            operand_origins = self._lanes_of(operand, origins)
            for lane in range(LANES):
                if arm_lanes >> lane & 1:
                    total[lane] |= operand_origins[lane]
        return total

    def _parts(self, instruction: IrInstruction, label: str) -> Iterator[tuple[str, int]]:
        """The operands a result is made of, each with the lanes in which it may be."""
        operands = instruction.operands
        if instruction.opcode == "phi":
            for operand, source in zip(operands, instruction.sources, strict=True):
                yield operand, self.edge(source, label)
        elif instruction.opcode == "select":
            yield operands[1], self.values.may_be(operands[0], 1)
            yield operands[2], self.values.may_be(operands[0], 0)
        else:
            yield from ((operand, ALL) for operand in operands)

    def _lanes_of(self, operand: str, origins: Mapping[str, list[int]]) -> list[int]:
        """The lanes a value is made of: its own, none for a constant."""
        lanes = origins.get(operand)
        if lanes is not None:
            return lanes
        if not operand.startswith("%") or self.values.of(operand) is not None:
            return [0] * LANES
        return [1 << lane for lane in range(LANES)]


__all__ = ["ALL", "FIRST", "LANE", "LANE_WISE", "LaneFlow"]
