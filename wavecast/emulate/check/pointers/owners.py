"""Owners: the tensors of a launch and its other memory, by number, for native code.

An owner is memory that a pointer gives access to. Number 0 is none, `SEVERAL` stands for an
address that may belong to more than one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from wavecast.emulate import initial
from wavecast.emulate.tensors import AddressInterval, LaunchTensor

SEVERAL: Final = 0xFFFF_FFFF
TABLE_WORDS: Final = 7
BOUNDS, STARTS, NUMBERS, COUNT, SEGMENT_FIRST, SEGMENT_END, SEGMENT_OWNERS = range(TABLE_WORDS)
"""64-bit words: a pointer to first and end address by owner, one to the sorted addresses (uint64)
from which on an owner (uint32, the next pointer) holds, their number, the argument segment, and a
pointer to the owner (uint32) of each of its dwords."""


class Owners:
    """The owners of one launch. `tensors` are its arguments, `table` is what native code reads."""

    def __init__(
        self,
        tensors: Sequence[LaunchTensor],
        ranges: Sequence[AddressInterval],
    ) -> None:
        """The first of the `ranges` a launch may touch is a packet and the argument segment."""
        self.tensors = tensors
        self._owners = [*tensors, *_indirect_tensors(tensors, ranges)]
        bounds = [(0, 0), *((owner.first, owner.end) for owner in self._owners)]
        starts, numbers = _segments(bounds)
        first, end = ranges[0]
        first += initial.PACKET_BYTES
        segment = np.zeros((end - first) // 4 + 1, np.uint32)
        for number, tensor in enumerate(tensors, 1):
            segment[tensor.slot // 4] = number
        self._arrays = (
            np.array(bounds, np.uint64), np.array(starts, np.uint64), np.array(numbers, np.uint32),
            segment,
        )  # fmt: skip
        pointers = [array.ctypes.data for array in self._arrays]
        words = (*pointers[:3], len(starts), first, end, pointers[3])
        self.table = np.array(words, np.uint64)

    def of(self, number: int) -> LaunchTensor:
        """The memory of an owner."""
        return self._owners[number - 1]


def _indirect_tensors(
    tensors: Sequence[LaunchTensor], ranges: Sequence[AddressInterval]
) -> list[LaunchTensor]:
    """Memory that no argument points to: what pointers in memory lead to."""
    return [
        LaunchTensor(f"the memory at {first:#x}", first, first, end)
        for first, end in ranges[1:]
        if not any(first <= tensor.pointer < end for tensor in tensors)
    ]


def _segments(bounds: Sequence[AddressInterval]) -> tuple[list[int], list[int]]:
    """Addresses from which on a pointer has an owner, in order, and these owners. A pointer to the
    end of some memory belongs to it."""
    points = sorted({0, *(p for first, end in bounds[1:] for p in (first, end, end + 1))})
    by_interval: dict[AddressInterval, int] = {}
    for number, interval in enumerate(bounds):
        by_interval.setdefault(interval, number)
    numbers = []
    for point in points:
        candidates = [
            number
            for (first, end), number in by_interval.items()
            if number and first <= point <= end
        ]
        numbers.append(candidates[0] if len(candidates) == 1 else SEVERAL if candidates else 0)
    return points, numbers


__all__ = [
    "BOUNDS",
    "COUNT",
    "NUMBERS",
    "SEGMENT_END",
    "SEGMENT_FIRST",
    "SEGMENT_OWNERS",
    "SEVERAL",
    "STARTS",
    "Owners",
]
