"""What the ranks of a group call, and where: calls that do not fit together are an error that names
all of them."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import Any, Final

import numpy as np

from wavecast.errors import ArgumentError

_RECENT: Final = 16
_TEXT: Final = 456
"""Bytes of the text of a call."""
_LAUNCHED, _REFUSED = 1, 2
"""States of a call that a rank has posted: all its launches are queued; it has raised an error."""
_ROW: Final = np.dtype(
    [
        ("number", np.int64),
        ("agreement", np.uint64),
        ("state", np.int64),
        ("choice", np.int64),
        ("wish", np.int64),
        ("path", np.int64),
        ("size", np.int64),
        ("text", np.uint8, (_TEXT,)),
    ]
)


class CallsDiffer(ArgumentError):
    """The ranks of a group make calls that do not fit together. The message names all, so it is
    the same whichever rank sees it."""


class Parts(IntEnum):
    """What a rank says of the parts that it exchanges: nothing, so they are equal; sizes that are
    equal; others."""

    EQUAL = 1
    EQUAL_SIZES = 2
    SIZES = 3


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
    a `kind`. One rank at a time is in a block of `exclusive`."""

    def __init__(
        self,
        memory: np.ndarray,
        ranks: Sequence[int],
        kind: str = "collective",
        exclusive: Callable[[], contextlib.AbstractContextManager[Any]] | None = None,
    ) -> None:
        self._rows = memory.view(_ROW).reshape(len(ranks), _RECENT)
        self._ranks, self._kind = ranks, kind
        lock = threading.Lock()
        self._exclusive = exclusive or (lambda: lock)

    @staticmethod
    def size(world: int) -> int:
        """The bytes of memory for `world` ranks."""
        return world * _RECENT * _ROW.itemsize

    def post(self, rank: int, number: int, agreement: str, text: str) -> None:
        """Note call `number` (from 1) of the group's rank `rank`; `agreement` is what all ranks
        must have the same. Raises CallsDiffer if a peer's call of that number differs there."""
        slot = number % _RECENT
        row, content = self._rows[rank, slot], text.encode()[:_TEXT]
        row["agreement"], row["size"], row["state"] = _digest(agreement), len(content), 0
        row["text"][: len(content)] = np.frombuffer(content, np.uint8)
        row["number"] = number
        calls = self._rows[:, slot]
        if len(np.unique(calls["agreement"][calls["number"] == number])) > 1:
            raise CallsDiffer(self.describe(number))

    def choose(self, rank: int, number: int, wish: int, path: int) -> tuple[int, list[int]]:
        """How the ranks make call `number`: by the path of the first that chooses, of which this
        rank would choose `path`. Also the wishes of all that have chosen."""
        with self._exclusive():
            calls = self._rows[:, number % _RECENT]
            others = np.flatnonzero(calls["choice"] == number)
            if len(others):
                path = int(calls["path"][others[0]])
            for name, value in (("choice", number), ("wish", wish), ("path", path)):
                calls[name][rank : rank + 1] = value
            return path, calls["wish"][calls["choice"] == number].tolist()

    def refuse(self, rank: int, number: int) -> list[int]:
        """Note that the group's rank `rank` has raised an error in call `number`. Returns those
        that have launched theirs, which will not end."""
        return self._enter(rank, number, _REFUSED, _LAUNCHED)

    def is_refused(self, rank: int, number: int) -> bool:
        """Note that the group's rank `rank` has launched all of call `number`. Whether a peer has
        raised an error in it."""
        return bool(self._enter(rank, number, _LAUNCHED, _REFUSED))

    def _enter(self, rank: int, number: int, state: int, others: int) -> list[int]:
        """Enter a state first, then look who is in another: of two ranks that do so at once, one
        at least sees the other."""
        calls = self._rows[:, number % _RECENT]
        calls["state"][rank : rank + 1] = state
        there = (calls["number"] == number) & (calls["state"] == others)
        return [self._ranks[index] for index in np.flatnonzero(there).tolist()]

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


__all__ = ["CallBoard", "CallsDiffer", "Parts", "calling", "current_call"]
