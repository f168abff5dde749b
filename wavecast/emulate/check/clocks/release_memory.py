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
    """What was last observed of some dwords of one range: their `versions` then."""

    words: np.ndarray
    indices: np.ndarray
    versions: bytes = b""
    observed: Observed = NOT_OBSERVED


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
            for address in [at for at in self.sequences if first <= at < end]:
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
            entry = self._observed[dwords, gpu, system] = _ObservedDwords(words[0], indices)
        versions = entry.words[entry.indices]
        snapshot = versions.tobytes()
        if snapshot != entry.versions:
            entry.versions = snapshot
            sequences = [
                self.sequences[at]
                for at, version in zip(dwords, versions.tolist(), strict=True)
                if version
            ]
            entry.observed = observed_of(sequences, gpu, system=system)
        return entry.observed

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
