"""Records of the memory of several GPUs, which stay until the memory is freed."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import permutations
from typing import Annotated

import numpy as np

from wavecast.emulate.check.clocks.records import (
    ASIDE_RECORDS,
    LAUNCH,
    MOST_LAUNCHES,
    PART_WORDS,
    READ_NUMBERS,
    READS,
    RELEASES,
)
from wavecast.emulate.check.clocks.release_memory import ReleaseMemory
from wavecast.emulate.hostmemory import fits_large_pages, sparse_zeros
from wavecast.emulate.tensors import AddressInterval
from wavecast.json_objects import Count, JsonObject, doc


@dataclass(slots=True)
class MemoryRecords:
    """The records of some memory, one word per dword: `writes` (two arrays), `reads` of each GPU
    (two arrays), those of `aside` and of `parts`, and `versions` where releases are kept."""

    writes: tuple[np.ndarray, ...]
    reads: tuple[tuple[np.ndarray, ...], ...]
    aside: np.ndarray
    parts: np.ndarray
    versions: np.ndarray | None = None

    def row(self, gpu: int) -> tuple[np.ndarray, ...]:
        """The arrays of a table's row for launches of a GPU (`records.py`). Keep them."""
        peers = [array for other, pair in enumerate(self.reads) if other != gpu for array in pair]
        pointers = np.array([array.ctypes.data for array in peers], np.uint64)
        versions = np.zeros(0, np.uint32) if self.versions is None else self.versions
        return (*self.writes, *self.reads[gpu], versions, pointers, self.aside, self.parts)


assert (READS, READ_NUMBERS, RELEASES) == (2, 3, 4)
assert LAUNCH.first + LAUNCH.bits == 64


class LinkTraffic(JsonObject):
    """Bytes that kernels have moved from one GPU to another; each dword counts once."""

    source: Annotated[Count, doc("number of the GPU")]
    target: Annotated[Count, doc("number of the GPU")]
    read: Annotated[Count, doc("bytes that the target has loaded")]
    written: Annotated[Count, doc("bytes that the source has stored")]

    @property
    def bytes(self) -> int:
        """What the link has carried."""
        return self.read + self.written


class GpuMemory:
    """Records and releases by address. Pages nobody touches take no memory. One thread at a time
    may use it, except for `free`."""

    def __init__(self, gpus: int) -> None:
        self.releases = ReleaseMemory(())
        self._gpus = gpus
        self._known: dict[AddressInterval, MemoryRecords] = {}
        self._owners: dict[AddressInterval, int] = {}
        self._freed: deque[AddressInterval] = deque()
        self._launched = np.zeros(MOST_LAUNCHES, np.int64)
        self._read = np.zeros((gpus, gpus), np.int64)
        self._written = np.zeros((gpus, gpus), np.int64)

    def on_launch(self, number: int, gpu: int) -> None:
        """A launch by its number is a GPU's."""
        self._launched[number] = gpu

    def traffic(self) -> tuple[LinkTraffic, ...]:
        """What kernels have moved between GPUs, the most on a link first."""
        self._forget_freed()
        read, written = self._read.copy(), self._written.copy()
        for memory, memory_records in self._known.items():
            self._count(memory, memory_records, read, written)
        links = (
            LinkTraffic(source, other, int(read[other, source]), int(written[source, other]))
            for source, other in permutations(range(self._gpus), 2)
        )
        busy_links = [link for link in links if link.bytes]
        return tuple(sorted(busy_links, key=lambda link: -link.bytes))

    def _count(
        self,
        memory: AddressInterval,
        memory_records: MemoryRecords,
        read: np.ndarray,
        written: np.ndarray,
    ) -> None:
        """Add the bytes of all dwords that have a record."""
        owner = self._owner(memory[0])
        if owner is None:
            return
        for gpu, (records, _) in enumerate(memory_records.reads):
            read[gpu, owner] += 4 * np.count_nonzero(records)
        records, numbers = memory_records.writes
        launches = numbers[records != 0] >> np.uint64(LAUNCH.first)
        gpus = self._launched[launches.astype(np.int64)]
        written[:, owner] += 4 * np.bincount(gpus, minlength=self._gpus)

    def _owner(self, address: int) -> int | None:
        for (first, end), gpu in self._owners.items():
            if first <= address < end:
                return gpu
        return None

    def belongs(self, memory: AddressInterval, gpu: int) -> None:
        """Memory is a GPU's, and new."""
        self._forget_freed()
        self._forget(memory)
        self._owners[memory] = gpu

    def memory_label(self, address: int) -> str:
        """` in memory of GPU 1`, "" for memory of no known GPU."""
        self._forget_freed()
        gpu = self._owner(address)
        return "" if gpu is None else f" in memory of GPU {gpu}"

    def of(self, memory: AddressInterval, *, tracked: bool) -> MemoryRecords:
        """The records of memory; its releases are kept once `tracked` was asked for."""
        self._forget_freed()
        first, end = memory
        dwords = (end - first + 3) // 4
        memory_records = self._known.get(memory)
        if memory_records is None:
            huge = fits_large_pages(8 * dwords, 2 * (self._gpus + 1) * 8 * dwords)
            pairs = [
                tuple(sparse_zeros(dwords, np.uint64, huge=huge) for _ in range(2))
                for _ in range(self._gpus + 1)
            ]
            memory_records = self._known[memory] = MemoryRecords(
                pairs[0],
                tuple(pairs[1:]),
                sparse_zeros(2 * ASIDE_RECORDS * dwords, np.uint64),
                sparse_zeros(PART_WORDS * dwords, np.uint64),
            )
        if tracked and memory_records.versions is None:
            memory_records.versions = sparse_zeros(dwords, np.uint32)
            self.releases.track(first, end, memory_records.versions)
        return memory_records

    def at(self, memory: AddressInterval) -> MemoryRecords | None:
        """The records of memory that a launch may have touched."""
        self._forget_freed()
        return self._known.get(memory)

    def free(self, memory: AddressInterval) -> None:
        """Memory has been freed. The garbage collector may call this in any thread, between any
        two instructions: the records are forgotten before the next use."""
        self._freed.append(memory)

    def _forget_freed(self) -> None:
        while self._freed:
            self._forget(self._freed.popleft())

    def _forget(self, memory: AddressInterval) -> None:
        memory_records = self._known.pop(memory, None)
        if memory_records is not None:
            self._count(memory, memory_records, self._read, self._written)
        self._owners.pop(memory, None)
        self.releases.forget(*memory)

    def clear(self) -> None:
        """Forget all accesses: no launch runs that has the records."""
        self._forget_freed()
        for memory, memory_records in self._known.items():
            self._count(memory, memory_records, self._read, self._written)
        self._known.clear()
        self.releases = ReleaseMemory(())


__all__ = ["GpuMemory", "LinkTraffic", "MemoryRecords"]
