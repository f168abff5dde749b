"""The release sequences of memory, by the address of the dword: of one launch, or of all launches
of a node."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wavecast.emulate.check.clocks import ReleaseSequence


class ReleaseMemory:
    """`tracked` are the ranges that are observed: first and end address, and a word per dword
    (uint32) that is not 0 where it has releases."""

    def __init__(self, tracked: Iterable[tuple[int, int, np.ndarray]]) -> None:
        self.sequences: dict[int, ReleaseSequence] = {}
        self._tracked = {first: (end, versions) for first, end, versions in tracked}
        self._version = 0

    def track(self, first: int, end: int, versions: np.ndarray) -> None:
        """Keep the releases of a further range."""
        self._tracked[first] = end, versions

    def forget(self, first: int, end: int) -> None:
        """A range has been freed."""
        if self._tracked.pop(first, None) is not None:
            for address in [at for at in self.sequences if first <= at < end]:
                del self.sequences[address]

    def clear(self) -> None:
        """Forget all releases."""
        self.sequences.clear()
        for _, versions in self._tracked.values():
            versions[:] = 0

    def sequence(self, address: int) -> ReleaseSequence:
        """The release sequence of a dword, empty where nothing has been released."""
        return self.sequences.setdefault(address, ReleaseSequence())

    def slot(self, address: int) -> tuple[np.ndarray, int] | None:
        """Where native code sees that a dword has releases."""
        for first, (end, versions) in self._tracked.items():
            if first <= address < end:
                return versions, (address - first) // 4
        return None

    def renew(self, versions: np.ndarray, index: int) -> None:
        """Let native code see that a dword has new releases."""
        self._version = self._version % 0xFFFFFFFF + 1
        versions[index] = self._version


__all__ = ["ReleaseMemory"]
