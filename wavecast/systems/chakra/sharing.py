"""Collectives and messages that share links at the same time.

A link carries what its users send, up to its rate: each gets an equal part, or less where it needs
less, and what is left over goes to the others (max-min fairness). A user that gets less on one of
its links is slower as a whole. Alone, a user takes the time that it is predicted with, evenly
loading its links; all GPUs of a collective load their links alike.

Links are what `GpuGroup` has: of a mesh that of each pair in each direction, else the two
directions of the port of every GPU, and of its part of the NICs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from wavecast.arch.systems import System

Link = tuple[str, int, int]
"""A kind of link, and the GPUs at its ends, -1 for a switch."""


@dataclass(slots=True)
class _Transfer:
    """A user of links. `left` is the part of its time alone that it still needs, at `since`;
    `pace` the part of a second's progress that it makes in a second."""

    ranks: Sequence[int]
    is_message: bool
    links: float
    network: float
    seconds: float
    since: float
    left: float = 1.0
    pace: float = 1.0
    loads: Mapping[Link, float] | None = None


@dataclass(slots=True)
class SharedLinks:
    """The links of a system, and what uses them."""

    system: System
    slowed: set[int] = field(default_factory=set)
    """Users that had to share."""
    _active: dict[int, _Transfer] = field(default_factory=dict)
    _of_rank: dict[int, set[int]] = field(default_factory=dict)

    def start(
        self,
        now: float,
        number: int,
        ranks: Sequence[int],
        seconds: float,
        loads: tuple[float, float],
        *,
        is_message: bool,
    ) -> dict[int, float]:
        """A user begins, which takes `seconds` alone and keeps links and network busy for `loads`
        of them; a message goes from the first of its ranks to the second. When it ends, and others
        whose end changes, if nothing else happens."""
        if seconds <= 0 or not any(loads):
            return {number: now + seconds}
        links, network = (min(1.0, load / seconds) for load in loads)
        self._active[number] = _Transfer(ranks, is_message, links, network, seconds, now)
        others = self._connected([number])
        for rank in ranks:
            self._of_rank.setdefault(rank, set()).add(number)
        return {number: now + seconds, **self._share(now, {number, *others})}

    def end(self, now: float, number: int) -> dict[int, float]:
        """A user has ended: when others end whose end changes."""
        transfer = self._active.pop(number, None)
        if transfer is None:
            return {}
        for rank in transfer.ranks:
            self._of_rank[rank].discard(number)
        others = {other for rank in transfer.ranks for other in self._of_rank[rank]}
        return self._share(now, self._connected(others)) if others else {}

    def _connected(self, numbers: Iterable[int]) -> set[int]:
        """Users that have a rank in common with these, or with one that has."""
        waiting, seen = [*numbers], {*numbers}
        while waiting:
            for rank in self._active[waiting.pop()].ranks:
                more = self._of_rank.get(rank, set()) - seen
                seen |= more
                waiting += more
        return seen

    def _share(self, now: float, numbers: set[int]) -> dict[int, float]:
        """Set the paces of users from now on; the ends of those whose pace changes."""
        if len(numbers) == 1 and all(self._active[number].pace == 1.0 for number in numbers):
            return {}
        loads = {number: self._loads(self._active[number]) for number in sorted(numbers)}
        ends = {}
        for number, pace in paces(loads).items():
            transfer = self._active[number]
            if pace == transfer.pace:
                continue
            elapsed = (now - transfer.since) * transfer.pace / transfer.seconds
            transfer.left = max(0.0, transfer.left - elapsed)
            transfer.since, transfer.pace = now, pace
            if pace < 1:
                self.slowed.add(number)
            ends[number] = now + transfer.left * transfer.seconds / pace
        return ends

    def _loads(self, transfer: _Transfer) -> Mapping[Link, float]:
        """The part of the rate of each link that a user takes alone."""
        if transfer.loads is None:
            transfer.loads = {link: load for link, load in self._all_loads(transfer) if load > 0}
        return transfer.loads

    def _all_loads(self, transfer: _Transfer) -> Iterable[tuple[Link, float]]:
        ranks = transfer.ranks
        per_node, fabric = self.system.node_gpus, self.system.fabric
        if transfer.is_message:
            source, target = ranks
            if source // per_node != target // per_node:
                yield ("nic out", source, -1), transfer.network
                yield ("nic in", -1, target), transfer.network
                return
        else:
            source = target = -1
        mesh = fabric is not None and fabric.topology == "mesh"
        nodes: dict[int, list[int]] = {}
        for rank in ranks:
            nodes.setdefault(rank // per_node, []).append(rank)
        for rank in ranks:
            sends, receives = source in (-1, rank), target in (-1, rank)
            if mesh and sends:
                for other in nodes[rank // per_node]:
                    if other != rank:
                        yield ("pair", rank, other), transfer.links
            if not mesh and sends:
                yield ("port out", rank, -1), transfer.links
            if not mesh and receives:
                yield ("port in", -1, rank), transfer.links
            if not transfer.is_message:
                yield ("nic out", rank, -1), transfer.network
                yield ("nic in", -1, rank), transfer.network


def paces(loads: Mapping[int, Mapping[Link, float]]) -> dict[int, float]:
    """The pace of every user, by the part of the rate of each link that it takes alone, 1 at most.

    All users get more at once, equal parts of links where they load these most, until a link is
    full: its users stay as they are.
    """
    most = {number: max(on.values(), default=0.0) for number, on in loads.items()}
    result = {number: 1.0 for number, load in most.items() if load <= 0}
    users: dict[Link, list[int]] = {}
    for number, on in loads.items():
        for link in on:
            users.setdefault(link, []).append(number)
    shared = {link: numbers for link, numbers in users.items() if len(numbers) > 1}
    while len(result) < len(loads):
        growing = [number for number in loads if number not in result]
        level = min(most[number] for number in growing)
        full: list[Link] = []
        for link, numbers in shared.items():
            free = 1 - sum(result[n] * loads[n][link] for n in numbers if n in result)
            growth = sum(loads[n][link] / most[n] for n in numbers if n not in result)
            if growth <= 0:
                continue
            at = max(0.0, free) / growth
            if at < level - _EQUAL:
                level, full = at, [link]
            elif at <= level + _EQUAL:
                full.append(link)
        for number in growing:
            if most[number] <= level + _EQUAL:
                result[number] = 1.0
            elif any(number in shared[link] for link in full):
                result[number] = level / most[number]
    return result


_EQUAL = 1e-12


__all__ = ["Link", "SharedLinks", "paces"]
