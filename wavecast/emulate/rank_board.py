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
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from typing import Final

import numpy as np

from wavecast.errors import UsageError
from wavecast.wording import count

_PID, _RANK, _STATE, _EPOCH, _LOOKS, _SINCE, _LAUNCHES = range(7)
_FIELDS: Final = 7
_ROWS: Final = 256
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
        self._memory = mmap.mmap(-1, _ROWS * _FIELDS * 8)
        self._rows = np.frombuffer(self._memory, np.int64).reshape(_ROWS, _FIELDS)
        self._ranks, self._patience = ranks, patience
        self.launching = ProcessLock()
        self._joining = ProcessLock()
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
            row = self._rows[self._own]
            row[_PID], row[_RANK], row[_STATE] = os.getpid(), rank, ProcessState.RUNS
            row[_EPOCH], row[_LOOKS], row[_SINCE] = 0, 0, time.monotonic_ns()

    def leave(self) -> None:
        """This process launches nothing more."""
        self._rows[self._own, _STATE] = ProcessState.ENDED

    def publish(self, epoch: int) -> None:
        """Something has changed here, for the `epoch`-th time."""
        row = self._rows[self._own]
        row[_EPOCH], row[_SINCE], row[_STATE] = epoch, time.monotonic_ns(), ProcessState.RUNS

    def on_launch_end(self) -> None:
        """A launch has ended here."""
        self._rows[self._own, _LAUNCHES] += 1

    def may_change(self) -> bool:
        """Whether another process may still change what all launches of this one wait for; a call
        says that they have looked at memory again."""
        own = self._rows[self._own]
        own[_LOOKS] += 1
        own[_STATE] = ProcessState.WAITS
        rows = self._rows[self._rows[:, _PID] != 0]
        others = rows[rows[:, _PID] != own[_PID]]
        if self._expects_ranks(rows) or any(map(self._moves, others)):
            self._looks = None
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
        return time.monotonic() - self._still_since < _STILL

    def absent(self) -> list[str]:
        """The other ranks, and what their processes do."""
        lines = []
        rows = self._rows[self._rows[:, _PID] != 0]
        for row in rows[rows[:, _RANK].argsort()]:
            if row[_PID] == os.getpid():
                continue
            launches = count(int(row[_LAUNCHES]), "launch", "launches")
            what = "launches nothing"
            if row[_STATE] == ProcessState.ENDED or not is_alive(int(row[_PID])):
                what = "has ended"
            elif row[_STATE] == ProcessState.WAITS:
                what = "waits in a launch"
            lines.append(f"rank {row[_RANK]} (process {row[_PID]}) {what} ({launches} ended)")
        missing = sorted({*range(self._ranks)} - {*rows[:, _RANK].tolist()})
        return lines + [f"rank {rank} has launched nothing" for rank in missing]

    def _expects_ranks(self, rows: np.ndarray) -> bool:
        """Whether processes of ranks may still join."""
        missing = {*range(self._ranks)} - {*rows[:, _RANK].tolist()}
        return bool(missing) and time.monotonic_ns() - self._started < self._patience * 1e9

    def _moves(self, row: np.ndarray) -> bool:
        """Whether the process of a row may change memory by itself."""
        if row[_STATE] != ProcessState.RUNS or not is_alive(int(row[_PID])):
            return False
        return time.monotonic_ns() - row[_SINCE] < self._patience * 1e9


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
