"""Which memory operations may be outstanding where: a forward data flow over the blocks.

The state is LLVM's score brackets (SIInsertWaitcnts.cpp), kept per operation instead of per
register: every operation that may be outstanding has a distance, the least number of later
operations of its queue over all paths. An operation that is not done keeps all later ones of an
ordered queue from completing, so the counter is above its distance, and a wait for that distance
or less covers it. At joins the least distance counts: what a later wait completes there, it
completes at any greater one.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

from wavecast.analyze.sync.guards import excluded_blocks
from wavecast.isa.counters import LIMITS, CounterEvent, Queue, counter_set, events
from wavecast.isa.instruction import Decoded
from wavecast.isa.opcode import Control, Role
from wavecast.isa.program import Program
from wavecast.isa.waits import wait_counters

# bound once: looking an enum member up costs ten times what comparing it does
_WAIT = Role.WAIT
_CALL = Control.CALL

Distances = list[dict[int, int]]
"""Per queue: operation (instruction index) -> least number of later operations of the queue."""


@dataclass(frozen=True, slots=True)
class OutstandingStep:
    """What one instruction does to the state: operations it issues, waits it performs.

    `issues` are (queue, event) and `waits` (queue, value) pairs, queues by their number.
    """

    index: int
    issues: tuple[tuple[int, CounterEvent], ...] = ()
    waits: tuple[tuple[int, int], ...] = ()


class OutstandingState:
    """Outstanding operations at one point of one walk through a block.

    `issued[q]` counts the operations of queue `q` seen so far, `scores[q]` maps an outstanding one
    to the count just after its own issue, in ascending order; its distance is the difference.
    """

    __slots__ = ("issued", "scores")

    def __init__(self, distances: Distances) -> None:
        self.issued = [0] * len(distances)
        self.scores: list[dict[int, int]] = [
            {op: -distance for op, distance in sorted(queue.items(), key=_distance, reverse=True)}
            if queue
            else {}
            for queue in distances
        ]

    def issue(self, queue: int, operation: int) -> None:
        """Operation `operation` enters `queue`."""
        scores = self.scores[queue]
        scores.pop(operation, None)
        count = self.issued[queue] = self.issued[queue] + 1
        scores[operation] = count

    def wait(self, queue: int, value: int, *, unordered: bool) -> None:
        """At most `value` operations of the queue's counter are outstanding afterwards."""
        if unordered and value:
            return
        scores = self.scores[queue]
        upto = self.issued[queue] - value
        operations = []
        for operation, score in scores.items():
            if score > upto:
                break
            operations.append(operation)
        for operation in operations:
            del scores[operation]

    def distances(self) -> Distances:
        """The state as joins need it."""
        return [
            {op: count - score for op, score in scores.items()} if scores else {}
            for count, scores in zip(self.issued, self.scores, strict=True)
        ]


_distance = itemgetter(1)


class OutstandingFlow:
    """The solved data flow of one program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.limits: Final = LIMITS[counter_set(program.target)]
        self.queues: list[Queue] = []
        self.steps: list[list[OutstandingStep]] = []
        self.entries: list[Distances | None] = [None] * len(program.blocks)
        """Per block the state at its start; None where no path leads."""
        self.effects: list[dict[int, CounterEvent]] = []
        """Per queue: operation -> what it does there."""
        self._numbers: dict[Queue, int] = {}
        self._events: dict[Decoded, tuple[tuple[int, CounterEvent], ...]] = {}
        self._read_steps()
        self._solve()

    def apply(self, state: OutstandingState, step: OutstandingStep) -> None:
        """Carry `state` over one instruction."""
        for queue, value in step.waits:
            state.wait(queue, value, unordered=self.queues[queue].unordered)
        for queue, _ in step.issues:
            state.issue(queue, step.index)

    def queues_of(self, decoded: Decoded) -> frozenset[int]:
        """The numbers of the queues an instruction enters."""
        return frozenset(queue for queue, _ in self._events.get(decoded, ()))

    def _read_steps(self) -> None:
        program = self.program
        waits: list[tuple[int, dict[str, int] | None]] = []
        issues: dict[int, tuple[tuple[int, CounterEvent], ...]] = {}
        cache: dict[Decoded, dict[str, int]] = {}
        silent: set[int] = set()
        for instruction in program.instructions:
            decoded = instruction.decoded
            row = decoded.opcode
            if id(row) in silent:
                continue
            if row.role is _WAIT:
                if decoded not in cache:
                    cache[decoded] = wait_counters(instruction, program.target)
                waits.append((instruction.index, cache[decoded]))
            elif row.control is _CALL:
                waits.append((instruction.index, None))
            else:
                queue_events = self._events.get(decoded)
                if queue_events is None:
                    queue_events = self._events[decoded] = tuple(
                        (self._number(event.queue), event)
                        for event in events(decoded, program.target)
                    )
                if queue_events:
                    issues[instruction.index] = queue_events
                    for number, event in queue_events:
                        self.effects[number][instruction.index] = event
                elif row.memory is None:
                    silent.add(id(row))
        steps = [
            OutstandingStep(index, issues=queue_events) for index, queue_events in issues.items()
        ]
        steps += [
            OutstandingStep(index, waits=self._queue_waits(counters)) for index, counters in waits
        ]
        steps.sort(key=lambda step: step.index)
        self.steps = [[] for _ in program.blocks]
        starts = [block.start for block in program.blocks]
        for step in steps:
            self.steps[bisect_right(starts, step.index) - 1].append(step)

    def _number(self, queue: Queue) -> int:
        number = self._numbers.get(queue)
        if number is None:
            number = self._numbers[queue] = len(self.queues)
            self.queues.append(queue)
            self.effects.append({})
        return number

    def _queue_waits(self, counters: dict[str, int] | None) -> tuple[tuple[int, int], ...]:
        """Waits per queue. A call (None) returns with everything but stores done, as compiled
        functions do (LLVM SIInsertWaitcnts.cpp, callWaitsOnFunctionReturn)."""
        if counters is None:
            store_counters = ("vscnt", "storecnt")
            return tuple(
                (n, 0) for n, q in enumerate(self.queues) if q.counter not in store_counters
            )
        return tuple(
            (number, counters[queue.counter])
            for number, queue in enumerate(self.queues)
            if queue.counter in counters
        )

    def _solve(self) -> None:
        program = self.program
        if not self.queues:
            empty: Distances = []
            for block in program.reverse_postorder:
                self.entries[block] = empty
            return
        order = program.reverse_postorder
        position = {block: number for number, block in enumerate(order)}
        self.entries[order[0]] = [{} for _ in self.queues]
        dirty = {order[0]}
        impossible = excluded_blocks(program)
        while dirty:
            block = min(dirty, key=position.__getitem__)
            dirty.discard(block)
            entry = self.entries[block]
            assert entry is not None
            state = OutstandingState(entry)
            for step in self.steps[block]:
                self.apply(state, step)
            leaving = state.distances()
            for successor in program.blocks[block].successors:
                sources = impossible.get((block, successor))
                arriving = self._without(leaving, sources) if sources else leaving
                if self._join(successor, arriving):
                    dirty.add(successor)

    def _without(self, leaving: Distances, sources: frozenset[int]) -> Distances:
        """The state without the operations of the blocks `sources`."""
        blocks = [self.program.blocks[index] for index in sources]
        return [
            {
                op: distance
                for op, distance in queue.items()
                if not any(block.start <= op < block.stop for block in blocks)
            }
            for queue in leaving
        ]

    def _join(self, block: int, arriving: Distances) -> bool:
        """Merge a state into the entry of a block; True when that changed it."""
        entry = self.entries[block]
        if entry is None:
            self.entries[block] = [dict(queue) for queue in arriving]
            return True
        changed = False
        for entry_queue, queue in zip(entry, arriving, strict=True):
            for operation, distance in queue.items():
                before = entry_queue.get(operation)
                if before is None or distance < before:
                    entry_queue[operation] = distance
                    changed = True
        return changed


__all__ = ["Distances", "OutstandingFlow", "OutstandingState", "OutstandingStep"]
