"""Schedules of collectives: which rank sends which chunks to whom, in rounds.

Ranks are numbered node by node: rank = node · L + local, on M nodes of L GPUs. The data are L · M
chunks; chunk (a, b) ends, where a collective scatters, on the GPU a of node b. A schedule is a
sequence of phases. A phase works along one axis: between the GPUs of a node (`node`), or between
the GPUs of one number on all nodes (`rail`). Ranks are alike but for their numbers, so one rank's
messages tell the time of all, except in trees.

    ring       P - 1 rounds; a part to the next rank
    direct     one round; a part to every other rank
    halving    log2 P rounds; half, a quarter … of the data to a partner (P a power of two)
    doubling   log2 P rounds; all data to a partner, which adds (all-reduce; P a power of two)
    tree       halves of the data up two binary trees and down (`tree`; all-reduce between nodes)

A reduce-scatter leaves a rank with the chunks of that number on the axis; an all-gather is the
reverse.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from wavecast.systems.collectives.tree import binary_tree, tree_sends

AXES: Final = ("node", "rail")
ALGORITHMS: Final = ("ring", "direct", "halving", "doubling", "tree")
_WHOLE: Final = ("doubling", "tree")
"""Algorithms that reduce without a scatter and a gather."""
FUNCTIONS: Final = ("all_reduce", "reduce_scatter", "all_gather")


@dataclass(frozen=True, slots=True)
class RankSends:
    """What a rank sends in a round along its axis: to the position `partner` the chunks whose
    number on the axis is in `parts`. `reduce`: the partner adds them to its own."""

    partner: int
    parts: Sequence[int]
    reduce: bool


@dataclass(frozen=True, slots=True)
class Phase:
    """`function` along an axis of `size` ranks by an algorithm."""

    function: str
    axis: str
    algorithm: str
    size: int

    @property
    def rounds(self) -> int:
        """Rounds, each of which needs the one before."""
        if self.algorithm == "direct":
            return 1
        if self.algorithm == "tree":
            return 2 * binary_tree(self.size).rounds
        return self.size - 1 if self.algorithm == "ring" else (self.size - 1).bit_length()

    def steps(self, position: int, number: int) -> Iterator[RankSends]:
        """What the rank at a position of the axis sends in a round."""
        size, scatter = self.size, self.function == "reduce_scatter"
        if self.algorithm == "ring":
            part = (position - number - scatter) % size
            yield RankSends((position + 1) % size, (part,), scatter)
        elif self.algorithm == "direct":
            for offset in range(1, size):
                partner = (position + offset) % size
                yield RankSends(partner, (partner if scatter else position,), scatter)
        elif self.algorithm == "halving":
            bit = self.rounds - 1 - number if scatter else number
            partner = position ^ (1 << bit)
            first = (partner if scatter else position) >> bit << bit
            yield RankSends(partner, range(first, first + (1 << bit)), scatter)
        elif self.algorithm == "tree":
            halves = range((size + 1) // 2), range((size + 1) // 2, size)
            for partner, tree, adds in tree_sends(size, position, number):
                yield RankSends(partner, halves[tree], adds)
        else:
            yield RankSends(position ^ (1 << number), range(size), True)

    def __str__(self) -> str:
        return f"{self.algorithm} {self.function.replace('_', '-')} ({self.axis})"


@dataclass(frozen=True, slots=True)
class MessageSchedule:
    """`function` by `phases`, on `nodes` nodes of `local` GPUs."""

    function: str
    local: int
    nodes: int
    phases: tuple[Phase, ...]

    @property
    def ranks(self) -> int:
        """GPUs."""
        return self.local * self.nodes

    @property
    def rounds(self) -> int:
        """Rounds of all phases."""
        return sum(phase.rounds for phase in self.phases)

    def shares(self) -> Iterator[tuple[Phase, float]]:
        """Phases, and the share of all data that a part of theirs is."""
        fractions: dict[str, float] = dict.fromkeys(AXES, 1.0)
        extent = {"node": self.local, "rail": self.nodes}
        if self.function == "all_gather":
            fractions = {axis: 1 / extent[axis] for axis in AXES}
        for phase in self.phases:
            other = AXES[1 - AXES.index(phase.axis)]
            yield phase, fractions[other] / phase.size
            if phase.function == "reduce_scatter":
                fractions[phase.axis] = 1 / phase.size
            elif phase.function == "all_gather":
                fractions[phase.axis] = 1.0

    @property
    def name(self) -> str:
        """The algorithms of its phases."""
        return ", ".join(map(str, self.phases))


@dataclass(frozen=True, slots=True)
class Message:
    """Chunks (by number a + b · L) from a rank to another, in round `round` of the schedule."""

    round: int
    source: int
    target: int
    chunks: tuple[int, ...]
    reduce: bool


def messages(schedule: MessageSchedule) -> Iterator[Message]:
    """Every message of every rank, in order of rounds."""
    local, nodes = schedule.local, schedule.nodes
    extent = {"node": local, "rail": nodes}
    everything = schedule.function != "all_gather"
    is_complete: dict[str, bool] = dict.fromkeys(AXES, everything)
    start = 0
    for phase in schedule.phases:
        other = AXES[1 - AXES.index(phase.axis)]
        for number in range(phase.rounds):
            for rank in range(schedule.ranks):
                at = {"node": rank % local, "rail": rank // local}
                across = range(extent[other]) if is_complete[other] else (at[other],)
                for step in phase.steps(at[phase.axis], number):
                    ends = {**at, phase.axis: step.partner}
                    chunks = tuple(
                        (part + position * local)
                        if phase.axis == "node"
                        else (position + part * local)
                        for part in step.parts
                        for position in across
                    )
                    target = ends["node"] + ends["rail"] * local
                    yield Message(start + number, rank, target, chunks, step.reduce)
        start += phase.rounds
        if phase.function != "all_reduce":
            is_complete[phase.axis] = phase.function == "all_gather"


def schedules(function: str, local: int, nodes: int) -> Iterator[MessageSchedule]:
    """Schedules of a function that fit the numbers of GPUs and nodes."""
    within = [name for name in ALGORITHMS if name != "tree"]
    near = [name for name in within if _fits(name, local)] if local > 1 else [""]
    far = [name for name in ALGORITHMS if _fits(name, nodes)] if nodes > 1 else [""]
    for inner in near:
        for outer in far:
            phases = _phases(function, local, nodes, inner, outer)
            if phases is not None:
                yield MessageSchedule(function, local, nodes, phases)


def _fits(algorithm: str, size: int) -> bool:
    return algorithm in ("ring", "direct", "tree") or size & (size - 1) == 0


def _phases(
    function: str, local: int, nodes: int, inner: str, outer: str
) -> tuple[Phase, ...] | None:
    """Scatter in the node and then over nodes, gather in the reverse order."""

    def along(name: str) -> list[Phase]:
        both = [("node", local, inner), ("rail", nodes, outer)]
        levels = [entry for entry in both if entry[2]]
        order = levels if name == "reduce_scatter" else levels[::-1]
        return [Phase(name, axis, algorithm, size) for axis, size, algorithm in order]

    if function != "all_reduce":
        return None if inner in _WHOLE or outer in _WHOLE else tuple(along(function))
    if inner == "doubling":  # all data of a node first, and then over nodes
        if outer and outer not in _WHOLE:
            return None
        phases = [Phase(function, "node", inner, local)]
        return tuple(phases + ([Phase(function, "rail", outer, nodes)] if outer else []))
    if outer in _WHOLE:
        whole = Phase(function, "rail", outer, nodes)
        if not inner:
            return (whole,)
        return (
            Phase("reduce_scatter", "node", inner, local),
            whole,
            Phase("all_gather", "node", inner, local),
        )
    return (*along("reduce_scatter"), *along("all_gather"))


__all__ = [
    "ALGORITHMS",
    "FUNCTIONS",
    "Message",
    "MessageSchedule",
    "Phase",
    "messages",
    "schedules",
]
