"""What streams, events and the host order: which launches have ended before a launch starts.

A launch happens before the work behind it in its queue, before what waits for a marker behind it,
and before what a host thread submits that has waited for it. Host threads order each other where
one starts or joins the other, or where both use a condition of Python (events, barriers, queues).
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np

from wavecast.emulate.check.clocks.joined_rows import Rows, joined_rows

_KEPT: Final = 1 << 12
"""Positions of a queue whose order is kept. An older marker orders what the oldest one does."""


class WorkQueue(Protocol):
    """A queue of a GPU (`node.py`)."""

    @property
    def gpu(self) -> int: ...


class QueueMarker(Protocol):
    """The first `count` works of a queue."""

    @property
    def queue(self) -> WorkQueue: ...

    @property
    def count(self) -> int: ...


@dataclass(frozen=True, slots=True)
class LaunchRows:
    """Rows of workgroups of a launch that may run, which is at a `position` of queue number
    `queue`."""

    queue: int
    position: int
    rows: Rows

    def join(self, other: LaunchRows) -> LaunchRows:
        """What any of both knows; itself where the other knows no more."""
        rows = joined_rows(self.rows, other.rows)
        return self if rows is self.rows else LaunchRows(self.queue, self.position, rows)


@dataclass(frozen=True, slots=True)
class Before:
    """What has happened before: by queue how much of its work has ended, and by number what is
    known of launches that have not ended before (`vector_clock.py`)."""

    ended: Mapping[int, int] = field(default_factory=dict)
    partial: Mapping[int, LaunchRows] = field(default_factory=dict)

    def join(self, other: Before) -> Before:
        """What has happened before by either; itself where the other knows no more."""
        if other is self or other is NOTHING:
            return self
        if self is NOTHING:
            return other
        counts = dict(self.ended)
        for queue, count in other.ended.items():
            counts[queue] = max(count, counts.get(queue, 0))
        partial = _not_ended(counts, self.partial)
        for number, entry in _not_ended(counts, other.partial).items():
            mine = partial.get(number)
            partial[number] = entry if mine is None else mine.join(entry)
        joined = Before(counts, partial)
        same = counts == self.ended and len(joined.partial) == len(self.partial)
        if same and all(joined.partial[at] is entry for at, entry in self.partial.items()):
            return self
        return joined

    def without_ended(self) -> Before:
        """Without the rows of launches that have ended before: they are ordered anyway."""
        partial = _not_ended(self.ended, self.partial)
        return Before(self.ended, partial) if len(partial) < len(self.partial) else self


def _not_ended(
    ended: Mapping[int, int], partial: Mapping[int, LaunchRows]
) -> dict[int, LaunchRows]:
    return {
        number: entry
        for number, entry in partial.items()
        if ended.get(entry.queue, 0) < entry.position
    }


NOTHING: Final = Before()


@dataclass(slots=True)
class RunningWork:
    """What the host thread of a queue executes: its `position` in queue number `queue`, what has
    happened `before`, and what its launch has learned of others."""

    gpu: int
    queue: int
    position: int
    before: Before
    after: Before = NOTHING


@dataclass(slots=True)
class _QueueOrder:
    """What the next work of a queue starts behind, and what was ended at its last positions."""

    number: int
    before: Before = NOTHING
    position: int = 0
    ends: dict[int, Before] = field(default_factory=dict)


class StreamOrder:
    """The order of the launch queues and the host threads of a node."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queues: dict[WorkQueue, _QueueOrder] = {}
        self._hosts: dict[int, Before] = {}
        """By identifier of the host thread."""
        self._objects: weakref.WeakKeyDictionary[Any, Before] = weakref.WeakKeyDictionary()
        self._running = threading.local()

    @property
    def running(self) -> RunningWork | None:
        """What the calling host thread of a queue executes, None for other threads."""
        return getattr(self._running, "work", None)

    def host(self) -> Before:
        """What has happened before what the calling host thread does next."""
        with self._lock:
            return self._hosts.get(threading.get_ident(), NOTHING)

    def leave(self, handle: Any) -> None:
        """The calling thread lets others continue behind an object: a condition, or a thread that
        it starts or is."""
        with self._lock:
            before = self._hosts.get(threading.get_ident())
            if before is not None:
                self._objects[handle] = self._objects.get(handle, NOTHING).join(before)

    def take(self, handle: Any) -> None:
        """The calling thread continues behind an object."""
        with self._lock:
            before = self._objects.get(handle)
            if before is not None:
                self._join(before)

    def finish(self, thread: Any) -> None:
        """The calling thread ends: its identifier may be that of another one."""
        self.leave(thread)
        with self._lock:
            self._hosts.pop(threading.get_ident(), None)

    def on_start(self, queue: WorkQueue, before: Before | None) -> None:
        """The calling thread starts the next work of its queue, submitted by a host thread that
        knew `before`."""
        with self._lock:
            order = self._order(queue)
            order.before = order.before.join(NOTHING if before is None else before)
            self._running.work = RunningWork(
                queue.gpu, order.number, order.position + 1, order.before
            )

    def on_end(self, queue: WorkQueue) -> None:
        """The calling thread has ended it."""
        work = self._running.work
        self._running.work = None
        with self._lock:
            order = self._order(queue)
            after = order.before.join(work.after)
            order.position = work.position
            ended = {**after.ended, order.number: work.position}
            order.before = Before(ended, after.partial).without_ended()
            order.ends[work.position] = order.before
            if len(order.ends) > _KEPT:
                del order.ends[next(iter(order.ends))]

    def on_wait(self, queue: WorkQueue, marker: QueueMarker) -> None:
        """The work of a queue continues behind a marker."""
        with self._lock:
            order = self._order(queue)
            order.before = order.before.join(self._end(marker))

    def host_waited(self, marker: QueueMarker) -> None:
        """The calling host thread continues behind a marker."""
        with self._lock:
            self._join(self._end(marker))

    def has_ended(self, marker: QueueMarker, before: Before) -> bool:
        """Whether all before a marker has ended before."""
        with self._lock:
            return before.ended.get(self._order(marker.queue).number, 0) >= marker.count

    def stream(self, queue: WorkQueue) -> Before:
        """What has happened before a call on the host that waits for a queue."""
        with self._lock:
            return self._order(queue).before

    def _join(self, before: Before) -> None:
        me = threading.get_ident()
        self._hosts[me] = self._hosts.get(me, NOTHING).join(before)

    def _end(self, marker: QueueMarker) -> Before:
        order = self._queues.get(marker.queue)
        if order is None or not marker.count or not order.ends:
            return NOTHING
        before = order.ends.get(marker.count)
        return next(iter(order.ends.values())) if before is None else before

    def _order(self, queue: WorkQueue) -> _QueueOrder:
        return self._queues.setdefault(queue, _QueueOrder(len(self._queues)))


@dataclass(slots=True)
class LaunchPositions:
    """Where each launch was in its queue, by its number: int64[launches], -1 for none."""

    queues: np.ndarray
    positions: np.ndarray

    @classmethod
    def empty(cls, launches: int) -> LaunchPositions:
        return cls(np.full(launches, -1, np.int64), np.zeros(launches, np.int64))

    def ended_launches(self, before: Before, count: int) -> np.ndarray:
        """Which of the first `count` launches have ended before: uint8[launches]. Number 0 is what
        no launch has done, which has."""
        most = max([*before.ended, int(self.queues[:count].max(initial=0))])
        last = np.zeros(most + 2, np.int64)
        for queue, end in before.ended.items():
            last[queue] = end
        flags = np.zeros(len(self.queues), np.uint8)
        flags[:count] = self.positions[:count] <= last[self.queues[:count]]
        flags[0] = 1
        return flags


__all__ = ["NOTHING", "Before", "LaunchPositions", "RunningWork", "StreamOrder"]
