"""The arrays of records next to the memory of a launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from wavecast import limits
from wavecast.emulate import hostmemory
from wavecast.emulate.check.clocks import records
from wavecast.emulate.check.gpus.order import GpuOrder
from wavecast.isa.program import Kernel

_GUARDED_SLICE: Final = 1 << 8
"""Instructions that a wave executes at once where records may not fit into memory, at most: host
threads look at what is left between slices."""
_TOUCHED: Final = 64 * 8 * hostmemory.PAGE
"""Bytes that one instruction may take: each lane touches a page of up to four arrays, and each page
may be the first of a page table."""
_RECORD_BYTES: Final = 8 * records.RELEASES
"""Bytes of the records of a dword, those next to atomic operations apart."""


def lasting_records(
    gpus: GpuOrder,
    ranges: Sequence[tuple[int, int]],
    recorded: set[int],
    gpu: int,
    observed: set[int],
    keepalive: list,
) -> list[tuple[np.ndarray, ...]]:
    """The arrays of records that launches of several GPUs share, for one of a GPU; none for the
    argument segment and for ranges whose number is not in `recorded`. What native code has
    pointers to goes to `keepalive`."""
    nothing = (np.zeros(0, np.uint64),) * (records.PARTS + 1)
    with gpus.lock:  # launches of several GPUs begin at once
        memory_records = {
            number: gpus.memory.of(memory, tracked=number in observed)
            for number, memory in enumerate(ranges)
            if number and number in recorded
        }
    keepalive += memory_records.values()
    return [
        memory_records[number].row(gpu) if number in memory_records else nothing
        for number in range(len(ranges))
    ]


def launch_records(
    ranges: Sequence[tuple[int, int]],
    written: set[int],
    observed: set[int],
    atomics: set[int],
    parted: set[int],
) -> list[tuple[np.ndarray, ...]]:
    """The arrays of records of each range, once per range; none for the first, which holds the
    arguments, and for those whose number is not in `written`. Releases are kept of those in
    `observed`, records next to atomic ones of those in `atomics`, and those of bytes of dwords of
    those in `parted`. Pages nobody touches take no memory."""
    by_interval: dict[tuple[int, int], tuple[np.ndarray, ...]] = {}
    none = np.zeros(0, np.uint64)
    nothing = (none,) * (records.PARTS + 1)
    shadows = [nothing]
    stored = {span for number, span in enumerate(ranges) if number in written}
    together = sum(_RECORD_BYTES * (end - first) // 4 for first, end in stored)
    for number, (first, end) in enumerate(ranges[1:], 1):
        if number not in written:
            shadows.append(nothing)
            continue
        if (first, end) not in by_interval:
            dwords = (end - first + 3) // 4
            release_dwords = dwords if number in observed else 0
            huge = hostmemory.fits_large_pages(8 * dwords, together)
            aside = 2 * records.ASIDE_RECORDS * dwords if number in atomics else 0
            parts = records.PART_WORDS * dwords if number in parted else 0
            by_interval[first, end] = (
                *(
                    hostmemory.sparse_zeros(dwords, np.uint64, huge=huge)
                    for _ in range(records.RELEASES)
                ),
                hostmemory.sparse_zeros(release_dwords, np.uint32),
                none,
                hostmemory.sparse_zeros(aside, np.uint64),
                hostmemory.sparse_zeros(parts, np.uint64),
            )
        shadows.append(by_interval[first, end])
    return shadows


def memory_reserve(
    kernel: Kernel, shadows: Sequence[tuple[np.ndarray, ...]]
) -> limits.MemoryReserve | None:
    """What records must leave of the memory; None where they fit if every page is touched."""
    sizes = {array.ctypes.data: array.nbytes for arrays in shadows for array in arrays}
    if sum(sizes.values()) <= limits.available_memory():
        return None
    return limits.MemoryReserve.now(f"a check of all that {kernel.name} accesses")


def guarded_slice(reserve: int) -> int:
    """The instructions after which the slices of all host threads together have taken half of a
    reserve of memory at most."""
    together = _TOUCHED * limits.available_processors()
    return max(1, min(_GUARDED_SLICE, reserve // 2 // together))


__all__ = ["guarded_slice", "lasting_records", "launch_records", "memory_reserve"]
