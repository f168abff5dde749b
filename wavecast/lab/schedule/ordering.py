"""Orders of a block by list scheduling: at every step, of the instructions whose predecessors have
issued, one that would not wait, by priority."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from wavecast.lab.schedule.dependences import BlockGraph


@dataclass(frozen=True, slots=True)
class InstructionCosts:
    """Clocks of the nodes of a graph: `latency` until the result is there, `issue` on `pipe`."""

    latency: Sequence[float]
    issue: Sequence[float]
    pipe: Sequence[int]


@dataclass(frozen=True, slots=True)
class Priority:
    """How list scheduling chooses: by the longest path of latencies to the end of the block, with
    latencies times `latency`, minus `order` clocks per position in the compiler's order, plus
    random clocks of up to `noise` times the longest path."""

    latency: float
    order: float
    noise: float = 0.0


PRIORITIES: Final = tuple(
    Priority(latency, order)
    for latency in (0.0, 0.25, 0.5, 1.0, 2.0)
    for order in (0.0, 1.0, 4.0, 16.0)
    if latency or order
)


def list_order(
    graph: BlockGraph, costs: InstructionCosts, priority: Priority, chance: random.Random
) -> list[int]:
    """An order of node numbers."""
    count = len(graph.nodes)
    latency = [clocks * priority.latency for clocks in costs.latency]
    height = heights(graph, costs, latency)
    width = priority.noise * max(height, default=0.0)
    rank = [
        height[node] - priority.order * node + (chance.random() * width if width else 0.0)
        for node in range(count)
    ]
    waiting = [len(earlier) for earlier in graph.before]
    ready = [0.0] * count
    free: dict[int, float] = {}
    available = [node for node in range(count) if not waiting[node]]
    order: list[int] = []
    clock = 0.0
    while available:
        best, candidate = (float("inf"), 0.0), -1
        for node in available:
            start = max(clock, ready[node], free.get(costs.pipe[node], 0.0))
            key = (start, -rank[node])
            if key < best:
                best, candidate = key, node
        available.remove(candidate)
        order.append(candidate)
        start = best[0]
        free[costs.pipe[candidate]] = start + costs.issue[candidate]
        clock = start + min(costs.issue[candidate], _SLOT)
        for node in graph.after[candidate]:
            finish = start + latency[candidate] if candidate in graph.reads[node] else clock
            ready[node] = max(ready[node], finish)
            waiting[node] -= 1
            if not waiting[node]:
                available.append(node)
    return order


_SLOT: Final = 4.0
"""Clocks until a wave of CDNA issues again; shorter issues count as they are."""


def heights(graph: BlockGraph, costs: InstructionCosts, latency: Sequence[float]) -> list[float]:
    """Clocks of the longest path from the issue of each node to the end of the block."""
    distances = [0.0] * len(graph.nodes)
    for node in range(len(graph.nodes) - 1, -1, -1):
        node_latency = max(latency[node], costs.issue[node])
        distances[node] = max(
            (
                distances[later]
                + (node_latency if node in graph.reads[later] else costs.issue[node])
                for later in graph.after[node]
            ),
            default=node_latency,
        )
    return distances


def random_order(graph: BlockGraph, chance: random.Random) -> list[int]:
    """A random order that keeps what must be kept."""
    waiting = [len(earlier) for earlier in graph.before]
    available = [node for node, number in enumerate(waiting) if not number]
    order: list[int] = []
    while available:
        node = available.pop(chance.randrange(len(available)))
        order.append(node)
        for later in graph.after[node]:
            waiting[later] -= 1
            if not waiting[later]:
                available.append(later)
    return order


__all__ = ["PRIORITIES", "InstructionCosts", "Priority", "heights", "list_order", "random_order"]
