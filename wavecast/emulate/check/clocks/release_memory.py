"""The release sequences of memory, by the address of the dword: of one launch, or of all launches
of a node."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from wavecast.emulate.check.clocks.vector_clock import (
    NOT_OBSERVED,
    Observed,
    ReleaseSequence,
    joined_observed,
    observed_of,
)

_KEPT: Final = 1 << 12
"""Sets of dwords of which the last observation is kept."""


@dataclass(slots=True)
class _ObservedDwords:
    """What was last observed of some dwords of one range: their `versions` then, and how often
    their sequences had ended (`ends`). It has been added to `additions` times."""

    words: np.ndarray
    indices: np.ndarray
    versions: np.ndarray
    ends: list[int]
    observed: Observed = NOT_OBSERVED
    additions: int = 0


class ReleaseMemory:
    """`tracked` are the ranges that are observed: first and end address, and a word per dword
    (uint32) that is not 0 where it has releases."""

    def __init__(self, tracked: Iterable[tuple[int, int, np.ndarray]]) -> None:
        self.sequences: dict[int, ReleaseSequence] = {}
        self._tracked = {first: (end, versions) for first, end, versions in tracked}
        self._firsts = sorted(self._tracked)
        self._version = 0
        self._observed: dict[tuple[tuple[int, ...], int, bool], _ObservedDwords] = {}

    def track(self, first: int, end: int, versions: np.ndarray) -> None:
        """Keep the releases of a further range."""
        self._tracked[first] = end, versions
        self._firsts = sorted(self._tracked)

    def forget(self, first: int, end: int) -> None:
        """A range has been freed."""
        if self._tracked.pop(first, None) is not None:
            self._firsts = sorted(self._tracked)
            self._observed.clear()
            for address in [at for at in list(self.sequences) if first <= at < end]:
                del self.sequences[address]

    def sequence(self, address: int) -> ReleaseSequence:
        """The release sequence of a dword, empty where nothing has been released."""
        sequence = self.sequences.get(address)
        if sequence is None:
            sequence = self.sequences[address] = ReleaseSequence()
        return sequence

    def observe(self, dwords: tuple[int, ...], gpu: int, *, system: bool) -> Observed:
        """What a load of agent or `system` scope by a GPU observes of some dwords: the releases
        that no plain store has ended."""
        entry = self._observed.get((dwords, gpu, system))
        if entry is None:
            slots = [self.slot(address) for address in dwords]
            words = [None if slot is None else slot[0] for slot in slots]
            if words[0] is None or any(array is not words[0] for array in words):
                alone = dwords if len(dwords) > 1 else ()
                return joined_observed(self.observe((at,), gpu, system=system) for at in alone)
            if len(self._observed) >= _KEPT:
                self._observed.clear()
            indices = np.array([slot[1] for slot in slots if slot is not None])
            entry = self._observed[dwords, gpu, system] = _ObservedDwords(
                words[0], indices, np.zeros(len(indices), words[0].dtype), [0] * len(indices)
            )
        versions = entry.words[entry.indices]
        changed = np.flatnonzero(versions != entry.versions).tolist()
        if changed:
            self._renew(entry, dwords, versions, changed, gpu, system=system)
        return entry.observed

    def _renew(
        self,
        entry: _ObservedDwords,
        dwords: tuple[int, ...],
        versions: np.ndarray,
        changed: list[int],
        gpu: int,
        *,
        system: bool,
    ) -> None:
        """Observe dwords of which some have `changed`. What is new is added, except where a store
        has ended a sequence; all are observed again from time to time, because sequences drop
        what later releases say too."""
        sequences = [self.sequences.get(dwords[index]) for index in changed]
        ends = [0 if sequence is None else sequence.ends for sequence in sequences]
        adds = all(
            versions[index] and (not entry.versions[index] or entry.ends[index] == end)
            for index, end in zip(changed, ends, strict=True)
        )
        if not adds or entry.additions >= len(dwords):
            entry.observed, entry.additions = NOT_OBSERVED, 0
            sequences = [
                self.sequences[at]
                for at, version in zip(dwords, versions.tolist(), strict=True)
                if version
            ]
        observed = observed_of(
            [sequence for sequence in sequences if sequence is not None], gpu, system=system
        )
        entry.observed = joined_observed((entry.observed, observed))
        entry.versions, entry.additions = versions, entry.additions + 1
        for index, end in zip(changed, ends, strict=True):
            entry.ends[index] = end

    def slot(self, address: int) -> tuple[np.ndarray, int] | None:
        """Where native code sees that a dword has releases."""
        at = bisect_right(self._firsts, address) - 1
        if at < 0:
            return None
        first = self._firsts[at]
        end, versions = self._tracked[first]
        return (versions, (address - first) // 4) if address < end else None

    def renew(self, versions: np.ndarray, index: int) -> None:
        """Let native code see that a dword has new releases."""
        self._version = self._version % 0xFFFFFFFF + 1
        versions[index] = self._version


__all__ = ["ReleaseMemory"]
