"""What the ranks of a group call, and where: calls that do not fit together are an error that names
all of them."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from wavecast.errors import ArgumentError

_RECENT: Final = 16
_TEXT: Final = 488
"""Bytes of the text of a call."""
_ROW: Final = np.dtype(
    [
        ("number", np.int64),
        ("agreement", np.uint64),
        ("size", np.int64),
        ("text", np.uint8, (_TEXT,)),
    ]
)


class CallsDiffer(ArgumentError):
    """The ranks of a group make calls that do not fit together. The message names all, so it is
    the same whichever rank sees it."""


class _Current(threading.local):
    def __init__(self) -> None:
        self.call = ""


_current: Final = _Current()


@contextlib.contextmanager
def calling(call: str) -> Iterator[None]:
    """A block whose launches the program asks for by `call`, `all_reduce of 1000 float32`."""
    before, _current.call = _current.call, call
    try:
        yield
    finally:
        _current.call = before


def current_call() -> str:
    """The call that the calling thread's launches are of, "" for none."""
    return _current.call


class CallBoard:
    """The recent calls of every rank of a group, in memory that all ranks share: zeros at first,
    `size(world)` bytes. `ranks` are the numbers of its ranks in messages, which call them calls of
    a `kind`."""

    def __init__(self, memory: np.ndarray, ranks: Sequence[int], kind: str = "collective") -> None:
        self._rows = memory.view(_ROW).reshape(len(ranks), _RECENT)
        self._ranks, self._kind = ranks, kind

    @staticmethod
    def size(world: int) -> int:
        """The bytes of memory for `world` ranks."""
        return world * _RECENT * _ROW.itemsize

    def post(self, rank: int, number: int, agreement: str, text: str) -> None:
        """Note call `number` (from 1) of the group's rank `rank`; `agreement` is what all ranks
        must have the same. Raises CallsDiffer if a peer's call of that number differs there."""
        slot = number % _RECENT
        row, content = self._rows[rank, slot], text.encode()[:_TEXT]
        row["agreement"], row["size"] = _digest(agreement), len(content)
        row["text"][: len(content)] = np.frombuffer(content, np.uint8)
        row["number"] = number
        calls = self._rows[:, slot]
        if len(np.unique(calls["agreement"][calls["number"] == number])) > 1:
            raise CallsDiffer(self.describe(number))

    def describe(self, number: int) -> str:
        """Who calls what: `collective 2: rank 0 calls …, rank 1 calls …`."""
        slot, ranks_by_text = number % _RECENT, dict[str, list[int]]()
        for rank, row in zip(self._ranks, self._rows[:, slot], strict=True):
            if row["number"] == number:
                text = row["text"][: row["size"]].tobytes().decode(errors="replace")
                ranks_by_text.setdefault(text, []).append(rank)
        calls = [f"{_subject(ranks)} {text}" for text, ranks in ranks_by_text.items()]
        return f"{self._kind} {number}: {', '.join(calls)}"


def _subject(ranks: Sequence[int]) -> str:
    """`rank 0 calls`, `ranks 0, 2 call`."""
    numbers = ", ".join(map(str, ranks))
    return f"rank {numbers} calls" if len(ranks) == 1 else f"ranks {numbers} call"


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


__all__ = ["CallBoard", "CallsDiffer", "calling", "current_call"]
