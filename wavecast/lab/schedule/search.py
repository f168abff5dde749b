"""The search for an order of a loop's blocks: list schedules, then local moves.

The figure is the simulator's clocks per iteration. The search is seeded and ends after a number of
simulated instructions, so that it finds the same on every machine.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from wavecast.lab.schedule.arranging import BlockArranger
from wavecast.lab.schedule.layout import Item
from wavecast.lab.schedule.ordering import PRIORITIES, InstructionCosts, Priority, list_order
from wavecast.lab.schedule.steady import SteadyLoop

WORK: Final = 12_000_000
"""Instructions that the search of a loop simulates: 4 to 8 s on one core."""
NOISY: Final = 24
"""List schedules with random priorities, of the best kinds."""
HOT: Final = 0.004
"""The worsening, as part of the clocks, that is accepted with probability 1/e at first."""
FARTHEST: Final = 64
"""Positions that a move goes at most."""


@dataclass(frozen=True, slots=True)
class LoopOrder:
    """What the search of a loop found. Clocks per iteration in the steady state: `before` of the
    compiler's order, `remade` of the same order with new waits and no-ops, `after` of the best,
    whose code is in `blocks`. `orders` is how many were simulated."""

    before: float
    remade: float
    after: float
    orders: int
    blocks: dict[int, tuple[Item, ...]]


@dataclass(slots=True)
class LoopSearch:
    """Searches orders of the blocks of one loop. `work` instructions are simulated at most."""

    loop: SteadyLoop
    arrangers: dict[int, BlockArranger]
    seed: int = 0
    work: int = WORK
    _left: int = 0
    _orders: int = 0
    _items: dict[int, tuple[Item, ...]] = field(default_factory=dict)

    def run(self) -> LoopOrder:
        """The best order found."""
        chance = random.Random(self.seed)
        before = self.loop.cycles({}, exact=True)
        best = {block: list(range(len(a.graph.nodes))) for block, a in self.arrangers.items()}
        self._items = {b: tuple(a.items(best[b])) for b, a in self.arrangers.items()}
        remade = self.loop.cycles(self._items, exact=True)
        self._left = self.work
        quick = self._cycles(self._items)
        share = self.work // max(1, len(self.arrangers))
        for number, block in enumerate(self.arrangers, 1):
            if len(best[block]) > 2:
                end = self.work - number * share
                quick = self._try_list_schedules(block, best, quick, end + share // 2, chance)
                quick = self._anneal(block, best, quick, end, chance)
        after = self.loop.cycles(self._items, exact=True)
        return LoopOrder(before, remade, after, self._orders, self._items)

    def _cycles(self, items: dict[int, tuple[Item, ...]]) -> float:
        self._orders += 1
        self._left -= self.loop.work(sum(len(block_items) for block_items in items.values()))
        return self.loop.cycles(items)

    def _try(self, block: int, order: Sequence[int]) -> tuple[float, tuple[Item, ...]]:
        items = tuple(self.arrangers[block].items(order))
        return self._cycles({**self._items, block: items}), items

    def _try_list_schedules(
        self, block: int, best: dict[int, list[int]], quick: float, end: int, chance: random.Random
    ) -> float:
        """Try list schedules until `end` instructions are left."""
        graph = self.arrangers[block].graph
        costs = self._costs(block)
        scores: list[tuple[float, Priority]] = []
        noisy: list[Priority] = []
        for number in range(len(PRIORITIES) + NOISY):
            if self._left <= end:
                break
            if number < len(PRIORITIES):
                priority = PRIORITIES[number]
            else:
                if not noisy:
                    ranked = [p for _, p in sorted(scores, key=lambda score: score[0])[:3]]
                    noisy = [
                        Priority(p.latency, p.order, noise)
                        for noise in (0.02, 0.08)
                        for p in ranked
                    ]
                priority = noisy[number % len(noisy)]
            order = list_order(graph, costs, priority, chance)
            cycles, items = self._try(block, order)
            if number < len(PRIORITIES):
                scores.append((cycles, priority))
            if cycles < quick:
                quick, best[block], self._items[block] = cycles, order, items
        return quick

    def _anneal(
        self, block: int, best: dict[int, list[int]], quick: float, end: int, chance: random.Random
    ) -> float:
        """Simulated annealing by moves of one or some instructions until `end` are left."""
        graph = self.arrangers[block].graph
        order, current = best[block], quick
        start = max(1, self._left - end)
        while self._left > end:
            candidate = _move(order, graph.before, graph.after, chance)
            if candidate is None:
                self._left -= self.loop.work(1)
                continue
            cycles, items = self._try(block, candidate)
            heat = HOT * current * max(0.0, (self._left - end) / start)
            worse = cycles - current
            if worse <= 0 or (heat > 0 and chance.random() < math.exp(-worse / heat)):
                order, current = candidate, cycles
            if cycles < quick:
                quick, best[block], self._items[block] = cycles, candidate, items
        return quick

    def _costs(self, block: int) -> InstructionCosts:
        nodes = self.arrangers[block].graph.nodes
        loop = self.loop
        latency, issue, pipe = loop.latency, loop.issue, loop.pipe
        return InstructionCosts(
            [float(latency[i]) for i in nodes],
            [float(issue[i]) for i in nodes],
            [int(pipe[i]) for i in nodes],
        )


def _move(
    order: Sequence[int],
    before: Sequence[Sequence[int]],
    after: Sequence[Sequence[int]],
    chance: random.Random,
) -> list[int] | None:
    """The order with one random instruction, or a run of some, at a random position that its
    dependences allow; None where it cannot move."""
    count = len(order)
    position = [0] * count
    for at, node in enumerate(order):
        position[node] = at
    first = chance.randrange(count)
    length = 1 if chance.random() < 0.7 else chance.randrange(2, 9)
    run = list(order[first : first + length])
    moving = set(run)
    low = max((position[n] + 1 for r in run for n in before[r] if n not in moving), default=0)
    high = min((position[n] for r in run for n in after[r] if n not in moving), default=count)
    low, high = max(low, first - FARTHEST), min(high, first + len(run) + FARTHEST)
    choices = high - low - len(run) + 1
    if choices <= 1:
        return None
    start = low + chance.randrange(choices)
    if start == first:
        return None
    rest = [*order[:first], *order[first + len(run) :]]
    return [*rest[:start], *run, *rest[start:]]


__all__ = ["LoopOrder", "LoopSearch"]
