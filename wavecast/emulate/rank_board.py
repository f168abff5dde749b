"""What the processes of a node's ranks know of each other: which of them live, and which are stuck.

Ranks may be processes: forks of one that has made a `RankBoard` before. A row of the board is one
process. Kernels of a process may wait for what those of another store, so a process whose launches
are all stuck may not call that a deadlock: it says here that it waits, and looks at memory again.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import time
from collections.abc import Callable, Iterator
from enum import IntEnum
from pathlib import Path
from typing import Final

import numpy as np

from wavecast.errors import UsageError
from wavecast.wording import count

_PID, _RANK, _STATE, _EPOCH, _LOOKS, _SINCE, _LAUNCHES = range(7)
_DESCRIBED, _SIZE, _STOPPED, _PREPARES = range(7, 11)
"""The columns of a row. `_DESCRIBED` is the epoch of which its text is, of `_SIZE` bytes;
`_STOPPED` are the bytes of why its launches end, 0 for nothing."""
_FIELDS: Final = 11
_ASKED, _CONCLUDED = range(2)
"""The columns of the head: whether processes that wait say where, and the bytes of what has been
concluded, 0 for nothing."""
_ROWS: Final = 256
_TEXT: Final = 1 << 13
"""Bytes that say where a process waits."""
_CONCLUSION: Final = 1 << 17
_STILL: Final = 2.0
"""Seconds without a change in any process after which waiting ones are a deadlock."""
_LOOKS_EACH: Final = 256
"""How often every process must have looked at memory in this time."""


class ProcessLock:
    """Excludes other threads and forks of this process; the system unlocks for one that dies."""

    def __init__(self) -> None:
        self._file = os.memfd_create("wavecast-lock")

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """A block that one thread of all processes is in."""
        file = os.open(f"/proc/self/fd/{self._file}", os.O_RDWR)  # a lock is of an open file
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)


class ProcessState(IntEnum):
    """What the process of a rank does: it may change memory, all of it waits, it ends."""

    RUNS = 1
    WAITS = 2
    ENDED = 3


class RankBoard:
    """A row per process in memory that forks of this process share. There are `ranks` of them, or
    more where several use one GPU; `patience` is how many seconds a process that changes nothing
    counts as running. `launching` is for those that compile what they launch.

    The process of a rank calls `join`, and then `publish` whenever something of its launches has
    changed.
    """

    def __init__(self, ranks: int, patience: float) -> None:
        numbers = 8 * _FIELDS * (_ROWS + 1)
        texts = _ROWS * _TEXT
        self._memory = mmap.mmap(-1, numbers + 2 * texts + _CONCLUSION)
        content = np.frombuffer(self._memory, np.uint8)
        table = content[:numbers].view(np.int64).reshape(_ROWS + 1, _FIELDS)
        self._rows, self._head = table[:_ROWS], table[_ROWS]
        self._texts = content[numbers : numbers + texts].reshape(_ROWS, _TEXT)
        self._reasons = content[numbers + texts : numbers + 2 * texts].reshape(_ROWS, _TEXT)
        self._conclusion = content[numbers + 2 * texts :]
        self._ranks, self._patience = ranks, patience
        self.launching = ProcessLock()
        self._joining, self._concluding = ProcessLock(), ProcessLock()
        self._started = time.monotonic_ns()
        self._own = -1
        self._epochs: tuple[int, ...] = ()
        self._looks: np.ndarray | None = None
        self._still_since = 0.0

    @property
    def is_joined(self) -> bool:
        """Whether this process is that of a rank."""
        return self._own >= 0

    @property
    def launches(self) -> int:
        """How many launches have ended in all processes."""
        return int(self._rows[:, _LAUNCHES].sum())

    def join(self, rank: int, ranks: int) -> None:
        """This process is that of one of `ranks` ranks from now on. Raises UsageError where no row
        is left."""
        self._ranks = ranks
        with self._joining.exclusive():
            candidates = (rank, *range(_ROWS - 1, -1, -1))
            free = (row for row in candidates if not is_alive(int(self._rows[row, _PID])))
            self._own = next(free, -1)
            if self._own < 0:
                raise UsageError(f"more than {_ROWS} processes use emulated GPUs")
            if not any(is_alive(int(pid)) for pid in self._rows[:, _PID]):
                self._head[:] = 0  # of processes that have all ended
            row = self._rows[self._own]
            row[_PID], row[_RANK], row[_STATE] = os.getpid(), rank, ProcessState.RUNS
            row[_EPOCH], row[_LOOKS], row[_SINCE] = 0, 0, time.monotonic_ns()
            row[_DESCRIBED], row[_SIZE], row[_STOPPED], row[_PREPARES] = -1, 0, 0, 0

    def leave(self) -> None:
        """This process launches nothing more."""
        self._rows[self._own, _STATE] = ProcessState.ENDED

    def publish(self, epoch: int) -> None:
        """Something has changed here, for the `epoch`-th time."""
        row = self._rows[self._own]
        row[_EPOCH], row[_SINCE], row[_STATE] = epoch, time.monotonic_ns(), ProcessState.RUNS

    def prepare(self, prepares: bool) -> None:
        """Whether this process compiles what it is about to launch."""
        self._rows[self._own, _PREPARES] = prepares

    def on_launch_end(self) -> None:
        """A launch has ended here."""
        self._rows[self._own, _LAUNCHES] += 1

    def may_change(self, describe: Callable[[], list[str] | None] = list) -> bool:
        """Whether another process may still change what all launches of this one wait for; a call
        says that they have looked at memory again. `describe` says where they wait, None while some
        do not; False comes when every process that waits has said so, so that none of them ends
        before it is named."""
        own = self._rows[self._own]
        own[_LOOKS] += 1
        own[_STATE] = ProcessState.WAITS
        if self._head[_CONCLUDED]:
            return False
        if self._head[_ASKED]:
            self._describe(describe)
        rows = self._rows[self._rows[:, _PID] != 0]
        others = rows[rows[:, _PID] != own[_PID]]
        if self._expects_ranks(rows) or any(map(self._moves, others)):
            self._looks, self._head[_ASKED] = None, 0
            return True
        epochs = tuple(rows[:, _EPOCH].tolist())
        if self._looks is None or epochs != self._epochs:
            self._epochs, self._looks = epochs, rows[:, _LOOKS]
            self._still_since = time.monotonic()
            return True
        looks = rows[:, _LOOKS] - self._looks
        waits = (rows[:, _STATE] == ProcessState.WAITS) & (looks < _LOOKS_EACH)
        if any(is_alive(int(row[_PID])) for row in rows[waits]):
            return True
        if time.monotonic() - self._still_since < _STILL:
            return True
        self._head[_ASKED] = 1
        self._describe(describe)
        return not self._have_described()

    def conclude(self, lines: list[str]) -> list[str]:
        """Nothing can change: where all processes wait, this one at `lines`, and what others do, in
        the order of ranks. All processes get the same."""
        with self._concluding.exclusive():
            if not self._head[_CONCLUDED]:
                self._describe(lambda: lines)
                content = "\n".join(self.lines()).encode()[:_CONCLUSION]
                self._conclusion[: len(content)] = np.frombuffer(content, np.uint8)
                self._head[_CONCLUDED] = len(content)
            return _text(self._conclusion[: self._head[_CONCLUDED]]).split("\n")

    def stop(self, rank: int, reason: str) -> None:
        """Let the launches of the processes of a rank end, for a reason."""
        content = np.frombuffer(reason.encode()[:_TEXT], np.uint8)
        for number in np.flatnonzero((self._rows[:, _PID] != 0) & (self._rows[:, _RANK] == rank)):
            self._reasons[number, : len(content)] = content
            self._rows[number, _STOPPED] = len(content)

    @property
    def reason(self) -> str:
        """Why the launches of this process are to end, "" where they are not."""
        size = self._rows[self._own, _STOPPED]
        return _text(self._reasons[self._own, :size]) if size else ""

    def revoke(self) -> None:
        """What was concluded is wrong: more can start."""
        self._head[:] = 0

    def lines(self) -> list[str]:
        """What the processes of all ranks do."""
        numbers = np.flatnonzero(self._rows[:, _PID])
        ranks = self._rows[numbers, _RANK]
        by_rank = [
            (int(ranks[i]), self._line(int(numbers[i]))) for i in ranks.argsort(kind="stable")
        ]
        missing = {*range(self._ranks)} - {*ranks.tolist()}
        by_rank += [(rank, f"rank {rank} has launched nothing") for rank in missing]
        return [line for _, line in sorted(by_rank)]

    def _line(self, number: int) -> str:
        row = self._rows[number]
        launches = count(int(row[_LAUNCHES]), "launch", "launches")
        what = "launches nothing"
        if row[_STATE] == ProcessState.ENDED or not is_alive(int(row[_PID])):
            what = "has ended"
        elif row[_STATE] == ProcessState.WAITS:
            if row[_SIZE]:
                return _text(self._texts[number, : row[_SIZE]])
            what = "waits in a launch"
        return f"rank {row[_RANK]} {what} ({launches} ended)"

    def _describe(self, describe: Callable[[], list[str] | None]) -> None:
        """Note where the launches of this process wait, once for all that has changed."""
        row = self._rows[self._own]
        if row[_DESCRIBED] == row[_EPOCH] or (lines := describe()) is None:
            return
        content = "; ".join(lines).encode()[:_TEXT]
        self._texts[self._own, : len(content)] = np.frombuffer(content, np.uint8)
        row[_SIZE], row[_DESCRIBED] = len(content), row[_EPOCH]

    def _have_described(self) -> bool:
        """Whether all processes that wait have noted where."""
        rows = self._rows[self._rows[:, _PID] != 0]
        late = (rows[:, _STATE] == ProcessState.WAITS) & (rows[:, _DESCRIBED] != rows[:, _EPOCH])
        return not any(is_alive(int(row[_PID])) for row in rows[late])

    def _expects_ranks(self, rows: np.ndarray) -> bool:
        """Whether processes of ranks may still join."""
        missing = {*range(self._ranks)} - {*rows[:, _RANK].tolist()}
        return bool(missing) and time.monotonic_ns() - self._started < self._patience * 1e9

    def _moves(self, row: np.ndarray) -> bool:
        """Whether the process of a row may change memory by itself."""
        if not is_alive(int(row[_PID])) or row[_STATE] == ProcessState.ENDED:
            return False
        if row[_PREPARES]:
            return True
        if row[_STATE] != ProcessState.RUNS:
            return False
        return time.monotonic_ns() - row[_SINCE] < self._patience * 1e9


def _text(content: np.ndarray) -> str:
    return content.tobytes().decode(errors="replace")


def is_alive(process: int) -> bool:
    """Whether a process exists and has not ended (a zombie has)."""
    if not process:
        return False
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


__all__ = ["ProcessLock", "ProcessState", "RankBoard", "is_alive"]
