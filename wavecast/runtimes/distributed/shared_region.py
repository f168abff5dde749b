"""Memory that the processes of ranks share."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import mmap
import os
from collections.abc import Iterator
from typing import Final

import numpy as np


class SharedRegion:
    """Memory of forks of this process, at the same address in all of them; what has been named
    once is the same array everywhere. Only what is touched takes memory.

    The system frees it with the last process.
    """

    SIZE: Final = 1 << 36
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
        self._lock = os.memfd_create("wavecast-region")

    def array(self, name: str, size: int) -> np.ndarray:
        """The array uint8[size] of a name, zero at first. Raises MemoryError where no room is
        left."""
        key = np.frombuffer(_digest(f"{name} {size}"), np.uint64)
        with self._locked():
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

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Exclude other threads and processes; the system unlocks for one that dies."""
        handle = os.open(f"/proc/self/fd/{self._lock}", os.O_RDWR)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


__all__ = ["SharedRegion"]
