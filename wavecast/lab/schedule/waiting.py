"""The waits that an order of a block's instructions needs.

The walk of `analyze.sync`, with two more rules. What is outstanding when the block begins is what
the compiler's order leaves outstanding there, and of a block that follows itself what the new order
leaves at its end. And where an instruction orders memory, an operation that is complete before it
in the compiler's order must be complete in the new one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from wavecast.analyze.sync.outstanding import Distances, OutstandingFlow, OutstandingState
from wavecast.analyze.sync.waits import issue_sources, shared_registers, wait_text
from wavecast.isa.counters import CounterEvent, counter_set
from wavecast.isa.instruction import Decoded
from wavecast.lab.schedule.dependences import BlockGraph
from wavecast.lab.schedule.memory_order import Completion, completion, concerns, outstanding_before

ROUNDS: Final = 8
"""Walks through a block that follows itself until its entry has settled."""
_ONE_INSTRUCTION: Final = {"combined": ("vmcnt", "expcnt", "lgkmcnt")}
_ONE_INSTRUCTION["stores_apart"] = _ONE_INSTRUCTION["combined"]
_PAIRS: Final = {"separate": (("loadcnt", "dscnt"), ("storecnt", "dscnt"))}
"""Counters that one instruction waits for, by the target's set of counters; of a pair, the first
has the upper byte."""

Waits = Mapping[str, int]
"""Counter -> number of operations that may be outstanding."""


@dataclass(frozen=True, slots=True)
class _Node:
    """What matters of one instruction. `allowed` are the operations that may be outstanding before
    it, None where any may; `queues` are those that it enters."""

    index: int
    decoded: Decoded
    reads: int
    issue_reads: int
    writes: int
    events: tuple[tuple[int, CounterEvent], ...]
    queues: frozenset[int]
    allowed: frozenset[int] | None
    wanted: Completion


class BlockWaits:
    """Computes the waits of orders of one block. `flow` is that of the compiler's order."""

    def __init__(self, graph: BlockGraph, flow: OutstandingFlow) -> None:
        self.flow = flow
        program = flow.program
        outstanding_ops = outstanding_before(flow)
        issues = {step.index: step.issues for step in flow.steps[graph.block.index]}
        self._nodes = []
        for index in graph.nodes:
            decoded = program.instructions[index].decoded
            events = issues.get(index, ())
            self._nodes.append(
                _Node(
                    index,
                    decoded,
                    decoded.reads,
                    issue_sources(decoded) if events else decoded.reads,
                    decoded.writes,
                    events,
                    frozenset(queue for queue, _ in events),
                    outstanding_ops.get(index),
                    completion(decoded),
                )
            )
        block = graph.block
        self._own = range(block.start, block.stop)
        self._repeats = block.index in block.successors
        entry = flow.entries[block.index] or [{} for _ in flow.queues]
        self._entry: Distances = [
            {op: d for op, d in queue.items() if not (self._repeats and op in self._own)}
            for queue in entry
        ]

    def of(self, order: Sequence[int]) -> list[Waits]:
        """The waits right before each node of an order."""
        entry = self._entry
        node_waits, leaving = self._walk(order, entry)
        for _ in range(ROUNDS if self._repeats else 0):
            joined = _join(entry, leaving)
            if joined == entry:
                break
            entry = joined
            node_waits, leaving = self._walk(order, entry)
        return node_waits

    def _walk(self, order: Sequence[int], entry: Distances) -> tuple[list[Waits], Distances]:
        flow = self.flow
        state = OutstandingState(entry)
        busy = self._busy(state)
        node_waits: list[Waits] = []
        for number in order:
            node = self._nodes[number]
            waits: dict[str, int] = {}
            if (node.reads | node.writes) & busy:
                self._registers(node, state, waits)
            if node.allowed is not None:
                self._memory(node, state, waits)
            node_waits.append(waits)
            if waits:
                for queue, description in enumerate(flow.queues):
                    if description.counter in waits:
                        state.wait(
                            queue, waits[description.counter], unordered=description.unordered
                        )
                busy = self._busy(state)
            for queue, event in node.events:
                state.issue(queue, node.index)
                busy |= event.writes | event.holds
        return node_waits, state.distances()

    def _busy(self, state: OutstandingState) -> int:
        """Registers that operations under way write or still read."""
        busy = 0
        for scores, effects in zip(state.scores, self.flow.effects, strict=True):
            for operation in scores:
                event = effects[operation]
                busy |= event.writes | event.holds
        return busy

    def _registers(self, node: _Node, state: OutstandingState, waits: dict[str, int]) -> None:
        flow = self.flow
        for number, scores in enumerate(state.scores):
            queue = flow.queues[number]
            is_in_queue = number in node.queues
            reads = node.issue_reads
            writes = 0 if queue.writes_in_order and is_in_queue else node.writes
            for operation, score in scores.items():
                event = flow.effects[number][operation]
                overlap = (reads | writes) & event.writes
                if overlap:
                    writer = flow.program.instructions[operation].decoded
                    overlap = shared_registers(node.decoded, writer, overlap)
                if overlap or node.writes & event.holds:
                    self._need(number, state.issued[number] - score, waits)

    def _memory(self, node: _Node, state: OutstandingState, waits: dict[str, int]) -> None:
        assert node.allowed is not None
        instructions = self.flow.program.instructions
        for number, scores in enumerate(state.scores):
            for operation, score in scores.items():
                if operation in node.allowed:
                    continue
                if concerns(node.wanted, instructions[operation].decoded):
                    self._need(number, state.issued[number] - score, waits)

    def _need(self, number: int, distance: int, waits: dict[str, int]) -> None:
        queue = self.flow.queues[number]
        limit = self.flow.limits[queue.counter]
        if not queue.unordered and distance >= limit:
            return  # issue waits while a counter is full, so the operation has completed
        value = 0 if queue.unordered else distance
        waits[queue.counter] = min(waits.get(queue.counter, value), value)


def wait_texts(target: str, waits: Waits) -> list[str]:
    """The instructions that wait for counters, as few as the target has."""
    counts = dict(waits)
    counters = counter_set(target)
    texts = []
    for high, low in _PAIRS.get(counters, ()):
        if high in counts and low in counts:
            value = counts.pop(high) << 8 | counts.pop(low)
            texts.append(f"s_wait_{high}_{low} {value:#x}")
    together = [name for name in _ONE_INSTRUCTION.get(counters, ()) if name in counts]
    if together:
        fields = " ".join(f"{name}({counts.pop(name)})" for name in together)
        texts.append(f"s_waitcnt {fields}")
    return texts + [wait_text(target, name, value) for name, value in counts.items()]


def _join(first: Distances, other: Distances) -> Distances:
    result = [dict(queue) for queue in first]
    for distances, queue in zip(result, other, strict=True):
        for operation, distance in queue.items():
            distances[operation] = min(distances.get(operation, distance), distance)
    return result


__all__ = ["BlockWaits", "Waits", "wait_texts"]
