"""Schedules of all-to-alls and of exchanges of tokens with the GPUs of their experts, on nodes.

Ranks are numbered as in `schedule`. A token goes to the ranks that have one of its experts
(dispatch), and what these made of it comes back and is added up (combine): the same messages the
other way round, last round first. `COPIES` says which copies a dispatch sends:

    expert   one for each expert, to its rank: one round
    gpu      one for each rank that has some: one round
    node     one for each other node that has some, to the GPU of the sender's number there; from
             there, and in the own node, one for each rank: two rounds
    rail     to the GPU of the node that has the number of the target; from there to the target's
             node: two rounds, fewer and longer messages between nodes

An all-to-all is a dispatch of what every rank has for each rank, itself too: per GPU all at once,
per node and by rail in two rounds with fewer messages between nodes (the hierarchical forms).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from wavecast.perfmodel.ops.collectives.algorithms import EXCHANGES
from wavecast.systems.collectives.schedule import Phase

ALL_TO_ALL: Final = "all_to_all"
COPIES: Final = ("expert", "gpu", "node", "rail")

TokenCopy = tuple[int, int, int]
"""The rank and the number of a token, and the choice that a copy is for (-1: all of the target)."""


@dataclass(frozen=True, slots=True)
class ExchangeSchedule:
    """`function` (of `EXCHANGES`, or `ALL_TO_ALL`) by `copies`, on `nodes` of `local` GPUs."""

    function: str
    copies: str
    local: int
    nodes: int

    @property
    def ranks(self) -> int:
        """GPUs."""
        return self.local * self.nodes

    @property
    def phases(self) -> tuple[Phase, ...]:
        """One phase among all GPUs, or one along each axis."""
        if self.copies in ("expert", "gpu"):
            return (Phase(self.function, "all", "direct", self.ranks),)
        sizes = {"rail": self.nodes, "node": self.local}
        order = ("rail", "node") if self.copies == "node" else ("node", "rail")
        phases = tuple(Phase(self.function, axis, "direct", sizes[axis]) for axis in order)
        return phases[::-1] if self.function == "combine" else phases

    @property
    def rounds(self) -> int:
        """Rounds, each of which needs the one before."""
        return len(self.phases)

    @property
    def name(self) -> str:
        """Its copies and the axes of its phases."""
        return f"per {self.copies} ({', '.join(phase.axis for phase in self.phases)})"

    def shares(self, topk: int) -> dict[str, float]:
        """What a rank sends to each other along an axis (`all`, `rail`, `node`), as a share of the
        bytes of its tokens, each of which has `topk` experts that are equally likely on every
        rank; the same in both directions. Of an all-to-all as a share of the rank's buffer."""
        ranks = self.ranks
        if self.function == ALL_TO_ALL:
            if self.copies == "gpu":
                return {"all": 1 / ranks}
            return {"rail": 1 / self.nodes, "node": 1 / self.local}
        if self.copies == "expert":
            return {"all": topk / ranks}
        each = _chance(ranks, topk)
        if self.copies == "gpu":
            return {"all": each}
        if self.copies == "node":
            return {"rail": _chance(self.nodes, topk), "node": self.nodes * each}
        return {"node": _chance(self.local, topk), "rail": self.local * each}


@dataclass(frozen=True, slots=True)
class TokenMessage:
    """Copies of tokens from a rank to another, or in a combine what the ranks behind it made of
    them, added up, in round `round`."""

    round: int
    source: int
    target: int
    copies: tuple[TokenCopy, ...]


def exchange_schedules(function: str, local: int, nodes: int) -> Iterator[ExchangeSchedule]:
    """Schedules that fit the numbers of GPUs and nodes."""
    for copies in COPIES[1:] if function == ALL_TO_ALL else COPIES:
        if copies in ("expert", "gpu") or (local > 1 and nodes > 1):
            yield ExchangeSchedule(function, copies, local, nodes)


def token_messages(
    schedule: ExchangeSchedule, homes: Sequence[Sequence[Sequence[int]]]
) -> Iterator[TokenMessage]:
    """Every message, in order of rounds; `homes[rank][token]` are the ranks of its experts, one for
    each choice."""
    local = schedule.local
    sent: dict[tuple[int, int, int], dict[TokenCopy, None]] = defaultdict(dict)

    def send(number: int, source: int, target: int, copy: TokenCopy) -> None:
        if source != target:
            sent[number, source, target][copy] = None

    for rank, tokens in enumerate(homes):
        for token, choices in enumerate(tokens):
            for choice, target in enumerate(choices):
                if schedule.copies == "expert":
                    send(0, rank, target, (rank, token, choice))
                    continue
                copy = (rank, token, -1)
                across = {
                    "gpu": rank,
                    "node": target // local * local + rank % local,
                    "rail": rank // local * local + target % local,
                }[schedule.copies]
                send(0, rank, across, copy)
                send(schedule.rounds - 1, across, target, copy)
    back = schedule.function == "combine"
    for number, source, target in sorted(sent, key=lambda key: -key[0] if back else key[0]):
        copies = tuple(sent[number, source, target])
        if back:
            yield TokenMessage(schedule.rounds - 1 - number, target, source, copies)
        else:
            yield TokenMessage(number, source, target, copies)


def _chance(parts: int, topk: int) -> float:
    """The chance that one of `parts` equal groups of experts has one of a token's."""
    return 1 - (1 - 1 / parts) ** topk


__all__ = [
    "ALL_TO_ALL",
    "COPIES",
    "EXCHANGES",
    "ExchangeSchedule",
    "TokenMessage",
    "exchange_schedules",
    "token_messages",
]
