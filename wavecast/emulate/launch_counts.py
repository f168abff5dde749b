"""Which kernels an emulator has launched, and how often."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from wavecast.compile.codeobject import Launch


@dataclass(frozen=True, slots=True)
class KernelSize:
    """A kernel with the grid (workgroups) and the block of a launch."""

    symbol: str
    target: str
    grid: tuple[int, ...]
    block: tuple[int, ...]


class LaunchCounts:
    """How often each kernel was launched with each grid and block, in the order of the first
    launch. One that breaks off counts. Ranks that are threads count at once."""

    def __init__(self) -> None:
        self._counts: dict[KernelSize, int] = {}
        self._lock = threading.Lock()

    def add(self, launch: Launch) -> None:
        """Count a launch."""
        code = launch.code
        self.update({KernelSize(code.kernel, code.target, launch.grid, launch.block): 1})

    def update(self, counts: dict[KernelSize, int]) -> None:
        """Add counts of another process."""
        with self._lock:
            for size, count in counts.items():
                self._counts[size] = self._counts.get(size, 0) + count

    def by_size(self) -> dict[KernelSize, int]:
        """A copy of the counts."""
        with self._lock:
            return dict(self._counts)


__all__ = ["KernelSize", "LaunchCounts"]
