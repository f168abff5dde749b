"""Memory that the processes of ranks share."""

from __future__ import annotations

import hashlib
import mmap
from contextlib import AbstractContextManager
from typing import Final

import numpy as np

from wavecast.emulate.rank_board import ProcessLock


class SharedRegion:
    """Memory of forks of this process, at the same address in all of them; what has been named
    once is the same array everywhere. Only what is touched takes memory.

    The system frees it with the last process.
    """

    SIZE: Final = 1 << 36
    """Bytes of addresses."""
    _TABLE: Final = 1 << 20
    _ENTRY: Final = 4
    _ALIGNED: Final = 1 << 12
    _NORESERVE: Final = 0x4000
    """MAP_NORESERVE of Linux: pages are not promised before they are touched."""

    def __init__(self) -> None:
        flags = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | self._NORESERVE
        self._memory = mmap.mmap(-1, self.SIZE, flags)
        self._bytes = np.frombuffer(self._memory, np.uint8)
        words = self._bytes[: self._TABLE].view(np.uint64)
        self._head = words[: self._ENTRY]  # entries, and the end of what they have
        self._entries = words[self._ENTRY :].reshape(-1, self._ENTRY)
        self._head[1] = self._TABLE
        self._lock = ProcessLock()

    def array(self, name: str, size: int) -> np.ndarray:
        """The array uint8[size] of a name, zero at first. Raises MemoryError where no room is
        left."""
        key = np.frombuffer(_digest(f"{name} {size}"), np.uint64)
        with self._lock.exclusive():
            entries = self._entries[: int(self._head[0])]
            rows = np.flatnonzero((entries[:, :2] == key).all(1))
            if len(rows):
                start = int(entries[rows[0], 2])
                return self._bytes[start : start + size]
            start = int(self._head[1])
            end = -(-(start + size) // self._ALIGNED) * self._ALIGNED
            if end > self.SIZE or self._head[0] >= len(self._entries):
                raise MemoryError(f"{size:,} bytes of memory that ranks share: no room is left")
            self._entries[int(self._head[0])] = (*key, start, size)
            self._head[:2] = self._head[0] + 1, end
            return self._bytes[start : start + size]

    def exclusive(self) -> AbstractContextManager[None]:
        """A block that one thread of all processes is in; it asks for no array."""
        return self._lock.exclusive()


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


__all__ = ["SharedRegion"]
