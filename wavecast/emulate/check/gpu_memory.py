"""Records of the memory of several GPUs, which stay until the memory is freed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wavecast.emulate.check.records import READ_NUMBERS, READS, RELEASES
from wavecast.emulate.check.release_memory import ReleaseMemory
from wavecast.emulate.check.tensors import AddressInterval


@dataclass(slots=True)
class MemoryRecords:
    """The records of some memory, one word per dword: `writes` (two arrays), `reads` of each GPU
    (two arrays), and `versions` where releases are kept."""

    writes: tuple[np.ndarray, np.ndarray]
    reads: tuple[tuple[np.ndarray, np.ndarray], ...]
    versions: np.ndarray | None = None

    def row(self, gpu: int) -> tuple[np.ndarray, ...]:
        """The arrays of a table's row for launches of a GPU (`records.py`). Keep them."""
        peers = [array for other, pair in enumerate(self.reads) if other != gpu for array in pair]
        pointers = np.array([array.ctypes.data for array in peers], np.uint64)
        versions = np.zeros(0, np.uint32) if self.versions is None else self.versions
        return (*self.writes, *self.reads[gpu], versions, pointers)


assert (READS, READ_NUMBERS, RELEASES) == (2, 3, 4)


class GpuMemory:
    """Records and releases by address. Pages nobody touches take no memory."""

    def __init__(self, gpus: int) -> None:
        self.releases = ReleaseMemory(())
        self._gpus = gpus
        self._known: dict[AddressInterval, MemoryRecords] = {}
        self._owners: dict[AddressInterval, int] = {}

    def belongs(self, memory: AddressInterval, gpu: int) -> None:
        """Memory is a GPU's."""
        self._owners[memory] = gpu

    def named(self, address: int) -> str:
        """` in memory of GPU 1`, "" for memory of no known GPU."""
        for (first, end), gpu in self._owners.items():
            if first <= address < end:
                return f" in memory of GPU {gpu}"
        return ""

    def of(self, memory: AddressInterval, *, tracked: bool) -> MemoryRecords:
        """The records of memory; its releases are kept once `tracked` was asked for."""
        first, end = memory
        dwords = (end - first + 3) // 4
        known = self._known.get(memory)
        if known is None:
            pairs = [
                (np.zeros(dwords, np.uint64), np.zeros(dwords, np.uint64))
                for _ in range(self._gpus + 1)
            ]
            known = self._known[memory] = MemoryRecords(pairs[0], tuple(pairs[1:]))
        if tracked and known.versions is None:
            known.versions = np.zeros(dwords, np.uint32)
            self.releases.track(first, end, known.versions)
        return known

    def at(self, memory: AddressInterval) -> MemoryRecords | None:
        """The records of memory that a launch may have touched."""
        return self._known.get(memory)

    def forget(self, memory: AddressInterval) -> None:
        """Memory has been freed."""
        self._known.pop(memory, None)
        self._owners.pop(memory, None)
        self.releases.forget(*memory)

    def clear(self) -> None:
        """Forget all accesses."""
        for known in self._known.values():
            for array in (*known.writes, *(one for pair in known.reads for one in pair)):
                array[:] = 0
        self.releases.clear()


__all__ = ["GpuMemory", "MemoryRecords"]
