"""Memory whose bytes are followed one by one, from its allocation until all have been written.

A single byte or 16-bit value cannot be told from the pattern of memory that nobody has written
(`tensors.CANARY`): any value may be legitimate. Such memory has one byte per byte, 1 where it has
been written. Who writes from the host marks it, and so do stores of kernels (`reach.py`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from wavecast.emulate.tensors import CANARY, AddressInterval, bytes_at

_PATTERN = np.frombuffer(CANARY.to_bytes(8, "little"), np.uint8)
DWORD: Final = 4
"""Bytes that scalar loads and atomics of fewer bits access at once."""
_LARGEST: Final = 1 << 26
"""Bytes of memory of any types that is followed: it is compared at launches that load from it."""


@dataclass(frozen=True, slots=True)
class FollowedBytes:
    """Memory from the host address `first` on. `written` (uint8) has 1 for each byte that has been
    written; `alive` says whether the memory still is what it was."""

    first: int
    written: np.ndarray = field(repr=False)
    alive: Callable[[], bool]
    typed: bool = True
    """Whether its elements are narrow. Other memory may have any: structures with padding, which
    loads of several bytes read too."""

    @property
    def end(self) -> int:
        return self.first + self.written.size

    @property
    def last_dword(self) -> int:
        """The address after the dword that the last byte lies in: `written` may be read that far,
        with 0 for bytes that are not in the memory."""
        return -(-self.end // DWORD) * DWORD

    @property
    def delta(self) -> int:
        """What leads from the address of a byte to that of its byte in `written`."""
        return self.written.ctypes.data - self.first

    def consistent(self) -> bool:
        """Whether the bytes that count as not written have their pattern: others were written by
        what does not mark them."""
        values = bytes_at(self.first, self.end)
        pattern = np.empty(values.size, np.uint8)
        _repeat(pattern, _PATTERN)
        return bool(((values == pattern) | (self.written != 0)).all())


def fill(first: int, size: int) -> None:
    """Put the pattern into memory from a host address on."""
    _repeat(bytes_at(first, first + size), np.roll(_PATTERN, -(first % _PATTERN.size)))


def _repeat(memory: np.ndarray, pattern: np.ndarray) -> None:
    """Fill memory (uint8) with copies of 8 bytes."""
    whole = memory.size - memory.size % pattern.size
    memory[:whole].view(np.uint64)[:] = pattern.view(np.uint64)
    memory[whole:] = pattern[: memory.size - whole]


class WrittenBytes:
    """The memory that is followed, by its address."""

    def __init__(self) -> None:
        self._known: dict[int, FollowedBytes] = {}

    def __bool__(self) -> bool:
        return bool(self._known)

    def add(
        self, first: int, size: int, alive: Callable[[], bool], before: np.ndarray | None = None
    ) -> np.ndarray:
        """Fill memory with the pattern and follow it. The bytes it had `before` it grew keep their
        content. Returns its `written`, 0 for new bytes."""
        padded = np.zeros(-(-size // DWORD) * DWORD, np.uint8)
        written = padded[:size]
        old_size = 0 if before is None else before.size
        if before is not None:
            written[:old_size] = before
        fill(first + old_size, size - old_size)
        self._known[first] = FollowedBytes(first, written, alive)
        return written

    def follow(self, first: int, size: int) -> None:
        """Follow memory of any types that has the pattern, until it is forgotten."""
        if size <= _LARGEST:
            written = np.zeros(-(-size // DWORD) * DWORD, np.uint8)[:size]
            self._known[first] = FollowedBytes(first, written, lambda: True, typed=False)

    def mark(self, parts: Sequence[AddressInterval]) -> None:
        """Parts of one memory have been written."""
        start = parts[0][0] if parts else 0
        memory = next((m for m in self._known.values() if m.first <= start < m.end), None)
        if memory is not None:
            for first, end in parts:
                memory.written[first - memory.first : end - memory.first] = 1

    def at(self, first: int) -> FollowedBytes | None:
        """The memory that starts at an address."""
        memory = self._known.get(first)
        if memory is not None and not memory.alive():
            del self._known[first]
            return None
        return memory

    def forget(self, first: int) -> None:
        """Everything at an address counts as written."""
        self._known.pop(first, None)

    def within(self, ranges: Iterable[AddressInterval]) -> Iterator[FollowedBytes]:
        """The memory of a launch that has bytes which nobody has written. Where that is not `typed`
        it may have none, or have been written by what does not mark it."""
        spans = list(ranges)
        for start in list(self._known):
            memory = self.at(start)
            if memory is None:
                continue
            if not any(first <= start and memory.end <= end for first, end in spans):
                continue
            if memory.typed and (memory.written.all() or not memory.consistent()):
                self.forget(start)
            else:
                yield memory


_sessions: list[WrittenBytes] = []


@contextlib.contextmanager
def session(written: WrittenBytes) -> Iterator[None]:
    """A session in which memory is followed, the innermost one at its time."""
    _sessions.append(written)
    try:
        yield
    finally:
        _sessions.remove(written)


def innermost() -> WrittenBytes | None:
    """The memory that the innermost session follows, None outside of sessions."""
    return _sessions[-1] if _sessions else None


__all__ = ["DWORD", "FollowedBytes", "WrittenBytes", "fill", "innermost", "session"]
