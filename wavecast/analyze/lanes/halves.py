"""Lanes 0 to 31 and lanes 32 to 63: whether a value tells them apart, whether both take part."""

from __future__ import annotations

from typing import Final

from wavecast.analyze.lanes.flow import ALL, FIRST, LANE, LaneFlow
from wavecast.analyze.lanes.unrolling import EXCHANGE
from wavecast.compile.ir_blocks import IrBlock, IrInstruction

LOWER: Final = (1 << 32) - 1
HALF: Final = 32
UPPER: Final = ALL ^ LOWER
HALVES: Final = (LOWER, UPPER)
ITEMS: Final = "llvm.amdgcn.workitem.id."
COPIES: Final = frozenset({"bitcast", "trunc", "zext", "sext", "freeze", "lshr", "extractelement"})
"""What passes a value, or a part of it, on in the same lane."""
_PASSED = COPIES | {"add", "sub"}


def is_pair(lanes: int) -> bool:
    """Whether a set of lanes is lane n and lane n + 32."""
    lower = lanes & LOWER
    return lower.bit_count() == 1 and lanes == lower | lower << HALF


class LaneGuards:
    """The branches of a function that choose lanes."""

    def __init__(self, flow: LaneFlow) -> None:
        self.flow = flow
        self._reached: dict[tuple[str, str], set[str]] = {}
        conditions = [b.condition for b in flow.blocks.values() if b.condition]
        instructions = flow.definitions.values()
        conditions += [i.operands[0] for i in instructions if i.opcode == "select"]
        self.choose_unknown_lanes = any(self._is_unknown_lane(c) for c in conditions)
        """Whether lanes are chosen whose numbers are not known: more lanes count as used than
        are."""

    def limit(self, instruction: IrInstruction) -> bool:
        """Whether a number of lanes that is not known limits those that execute an instruction."""
        label = self.flow.block_of[instruction.result]
        return any(
            self.is_limit(block.condition)
            for block in self.flow.blocks.values()
            if block.condition and block.label != label and self._guards(block, label)
        )

    def is_limit(self, condition: str) -> bool:
        """Whether a condition compares the number of a lane with something unknown. A comparison
        of the number of a work-item with an argument is none: it keeps accesses in bounds."""
        compare = self.flow.definitions.get(condition)
        if compare is None or compare.opcode != "icmp":
            return False
        numbers, unknown = [], []
        for operand in compare.operands:
            value = self.flow.values.of(operand)
            words = None if value is None else value.complete()
            if words is None:
                unknown.append(operand)
            elif len(set(words)) > 1:
                numbers.append(operand)
        if len(numbers) != 1 or len(unknown) != 1:
            return False
        return not (self._is_item(numbers[0]) and self._is_argument(unknown[0]))

    def _is_item(self, name: str) -> bool:
        origin = self.flow.definitions.get(self._origin(name))
        return origin is not None and origin.detail.startswith(ITEMS)

    def _is_argument(self, name: str) -> bool:
        return self._origin(name) not in self.flow.definitions

    def _origin(self, name: str) -> str:
        """Where a value comes from, through casts and sums with constants."""
        definition = self.flow.definitions.get(name)
        while definition is not None and definition.opcode in _PASSED:
            if not all(not o.startswith("%") for o in definition.operands[1:]):
                return name
            name = definition.operands[0]
            definition = self.flow.definitions.get(name)
        return name

    def _guards(self, block: IrBlock, label: str) -> bool:
        """Whether only one side of a branch leads to a block."""
        if len(block.targets) != 2:
            return False
        first, other = (label in self._reachable(t, block.label) for t in block.targets)
        return first != other

    def _reachable(self, start: str, without: str) -> set[str]:
        memo = self._reached.get((start, without))
        if memo is not None:
            return memo
        labels, work = {start}, [start]
        while work:
            for target in self.flow.blocks[work.pop()].targets:
                if target not in labels and target != without:
                    labels.add(target)
                    work.append(target)
        self._reached[start, without] = labels
        return labels

    def _is_unknown_lane(self, condition: str) -> bool:
        """Whether a condition is that the number of a lane equals another, and the lanes in which
        it is are not known: more lanes count as used than are."""
        flow = self.flow
        compare = flow.definitions.get(condition)
        if compare is None or compare.opcode != "icmp" or compare.detail not in ("eq", "ne"):
            return False
        value = flow.values.of(condition)
        if value is not None and value.complete() is not None:
            return False
        return any(
            not self._is_uniform(operand) and _is_number_of_lane(flow, operand)
            for operand in compare.operands
        )

    def _is_uniform(self, name: str) -> bool:
        """Whether a value surely is the same in all lanes."""
        value = self.flow.values.of(name)
        words = None if value is None else value.complete()
        return words is not None and len(set(words)) == 1


def _is_number_of_lane(flow: LaneFlow, name: str, depth: int = 16) -> bool:
    """Whether a value is computed from the number of a lane or a work-item, not loaded by it."""
    definition = flow.definitions.get(name)
    if definition is None or depth == 0 or definition.opcode in ("load", "atomicrmw", "phi"):
        return False
    if definition.opcode == "call":
        return definition.detail.startswith((ITEMS, "llvm.amdgcn.mbcnt."))
    return any(_is_number_of_lane(flow, operand, depth - 1) for operand in definition.operands)


def never_true(flow: LaneFlow, predicate: str) -> int:
    """The lanes in which a predicate is surely 0."""
    value = ALL & ~flow.values.may_be(predicate, 1)
    return value | constant_lanes(flow, predicate, ALL, "false")


def constant_lanes(flow: LaneFlow, name: str, lanes: int, constant: str = "") -> int:
    """The lanes in which a selection or a phi surely is a constant."""
    definition = flow.definitions.get(name)
    if definition is None or not lanes:
        return 0
    if definition.opcode in COPIES:
        return constant_lanes(flow, definition.operands[0], lanes, constant)
    if definition.opcode == "select":
        condition, *arms = definition.operands
        parts = [
            (arm, ALL & ~flow.values.may_be(condition, outcome))
            for arm, outcome in zip(arms, (0, 1), strict=True)
        ]
    elif definition.opcode == "phi":
        label = flow.block_of[name]
        edges = [flow.edge(source, label) for source in definition.sources]
        parts = []
        for number, operand in enumerate(definition.operands):
            others = 0
            for other, mask in enumerate(edges):
                others |= mask if other != number else 0
            parts.append((operand, edges[number] & ~others))
    else:
        return 0
    total = 0
    for operand, arm_lanes in parts:
        is_constant = operand == constant if constant else not operand.startswith("%")
        if is_constant:
            total |= lanes & arm_lanes
        else:
            total |= constant_lanes(flow, operand, lanes & arm_lanes, constant)
    return total


def repeats(flow: LaneFlow, name: str) -> bool:
    """Whether a value surely is the same in lane n and in lane n + 32."""
    work, names = [name], set[str]()
    while work:
        name = work.pop()
        definition = flow.definitions.get(name)
        if name in names or definition is None:  # constants and arguments are the same in all lanes
            continue
        names.add(name)
        value = flow.values.of(name)
        words = None if value is None else value.complete()
        if words is not None:
            if words[:HALF] != words[HALF:]:
                return False
            continue
        if definition.opcode in ("atomicrmw", "cmpxchg") or definition.detail.startswith(ITEMS):
            return False
        if is_uniform_call(flow, definition):
            continue
        if definition.detail == EXCHANGE:
            return False
        work += definition.operands
        if definition.opcode == "phi":
            work += flow.choosing(flow.block_of[name])
    return True


def is_uniform_call(flow: LaneFlow, call: IrInstruction) -> bool:
    """Whether a function gives all lanes one value: that of one lane, or votes."""
    if call.detail == EXCHANGE:
        sources = flow.sources.get(call.result)
        return sources is not None and len(set(sources)) == 1
    return call.detail.startswith((FIRST, LANE, "llvm.amdgcn.ballot."))


__all__ = [
    "COPIES",
    "HALF",
    "HALVES",
    "ITEMS",
    "LOWER",
    "UPPER",
    "LaneGuards",
    "constant_lanes",
    "is_pair",
    "is_uniform_call",
    "never_true",
    "repeats",
]
