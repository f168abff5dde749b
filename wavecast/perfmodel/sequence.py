"""The memory-side cache between the kernels of one call.

Of a tensor that an earlier kernel touched, a share is still resident: `memory.residency` of all
bytes touched by that kernel and since. A kernel touches as many bytes of a tensor as its code asks
for, at most all. The L2 keeps nothing: that of a die holds no line another die wrote.
"""

from __future__ import annotations

from collections.abc import Mapping

from wavecast.compile.codeobject import Launch
from wavecast.perfmodel.cache.traffic import mall_resident
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.footprint import element_bytes


class CallSequence:
    """The kernels of one call that ran so far; the cache is empty before the first."""

    def __init__(self, chip: Chip) -> None:
        self._chip = chip
        self._ran: list[dict[int, float]] = []  # bytes by storage, in the last kernel touching it

    def mall_resident(self, launch: Launch) -> dict[str, float]:
        """The share, by argument, of the bytes the next launch finds in the memory-side cache."""
        resident_bytes: dict[int, float] = {}
        since = 0.0
        for footprint in reversed(self._ran):
            since += sum(footprint.values())
            resident_bytes |= {
                storage: size * mall_resident(self._chip, since)
                for storage, size in footprint.items()
            }
        return {
            argument.name: min(1.0, resident_bytes[argument.storage] / element_bytes(argument))
            for argument in launch.tensors
            if argument.storage in resident_bytes
        }

    def ran(self, launch: Launch, requested: Mapping[str, tuple[float, float]]) -> None:
        """Add a launch whose code asks for the `requested` bytes (loaded, stored) of its arguments.
        A missing argument counts as not touched (`CodeAnalysis.requested_bytes`)."""
        now: dict[int, float] = {}
        for argument in launch.tensors:
            if argument.name not in requested:
                continue
            size = min(element_bytes(argument), sum(requested[argument.name]))
            if argument.storage:
                now[argument.storage] = max(now.get(argument.storage, 0.0), size)
        for footprint in self._ran:
            for storage in footprint.keys() & now.keys():
                del footprint[storage]
        self._ran.append(now)


__all__ = ["CallSequence"]
