"""What the host threads that execute launches know of each other: who is stuck, and whether
anything moves.

The host threads of one launch are a team; so are those of all launches of a node, because kernels
of several GPUs wait for each other (docs/decisions/0021-gpus-share-a-team.md).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

_LOOK: Final = 0.0002
"""Seconds between looks of a worker that lets others react."""
Waits = Callable[[], list[str]]
"""Where the waves of a worker's workgroups wait, one line each."""


@dataclass(frozen=True, slots=True)
class TeamMember:
    """What a launch is in messages about several: the `name` of its GPU, whose memory an address is
    (`memory of GPU 1`, "" where nothing is known), and `origin`, what has launched it (`launched at
    train.py:12`). `is_stopped` says whether it is to end with an error at its next step."""

    name: str
    memory: Callable[[int], str]
    origin: str = ""
    is_stopped: Callable[[], bool] = lambda: False


class Team:
    """Workers of one or several launches. `more` tells whether something outside of them may still
    start work: the host, for a node. Without it nothing can. `conclude` makes the message of a
    deadlock of where the launches wait, with those that run nothing, and `revoke` is told that it
    is none. `soon` tells the same as `more`, without hosts that wait
    for what launches do next. `changed` is told the epoch when something changes."""

    def __init__(
        self,
        more: Callable[[], bool] | None = None,
        conclude: Callable[[list[str]], list[str]] | None = None,
        soon: Callable[[], bool] | None = None,
        changed: Callable[[int], None] | None = None,
        revoke: Callable[[], None] | None = None,
    ) -> None:
        self.working = 0
        self.epoch = 0
        """How often something has changed."""
        self.since = time.monotonic()
        """When something has changed last."""
        self.stopped = False
        """Set when every worker is to end with an error at its next step."""
        self._more, self._changed = more, changed
        self._conclude, self._revoke = conclude, revoke
        self._soon = more if soon is None else soon
        self._running: set[int] = set()
        self._idle: dict[int, int] = {}
        """By worker that only waits: `publications` when it began the look after which it still
        waits."""
        self.publications = 0
        """How often workers have let others react to what they had stored."""
        self._reacting: list[int] = []
        """Host threads that let others react, the first one first."""
        self._stuck: dict[int, Waits] = {}
        self._dead: list[str] = []
        self._lock = threading.Lock()
        self._published = threading.Condition(self._lock)

    def enter(self, workers: int) -> None:
        """The calling host thread runs a launch with some workers from now on."""
        with self._lock:
            self.working += workers
            self._running.add(threading.get_ident())
        self.on_change()

    def on_end(self) -> None:
        """The launch of the calling host thread has ended."""
        with self._lock:
            self._running.discard(threading.get_ident())

    def runs(self, thread: int | None) -> bool:
        """Whether a host thread runs a launch."""
        return thread in self._running

    def on_change(self) -> None:
        """Something has changed: whoever was stuck may continue."""
        with self._lock:
            self.epoch += 1
            self.since = time.monotonic()
            if not self._dead:
                self._stuck.clear()
            if self._changed is not None:
                self._changed(self.epoch)

    def clear_deadlock(self) -> None:
        """What was found to be a deadlock is none: more can start now."""
        with self._lock:
            self._dead = []
            if self._revoke is not None:
                self._revoke()
        self.on_change()

    def idle(self, worker: int, publications: int) -> None:
        """A worker's workgroups only wait, since a look that began after some `publications`."""
        with self._lock:
            self._idle[worker] = publications

    def on_move(self, worker: int) -> None:
        """A worker's workgroups do not only wait."""
        with self._lock:
            self._idle.pop(worker, None)

    def rest(self, publications: int, seconds: float) -> None:
        """Sleep, at most until another worker lets those that wait react."""
        with self._lock:
            self._published.wait_for(lambda: self.publications != publications, seconds)

    def let_others_react(self, seconds: float) -> bool:
        """Wait until no other worker does anything but wait, and has looked at memory since, and
        nothing can start. False if that took longer than some `seconds`.

        Of several workers that let others react the last one continues first.
        """
        me, end = threading.get_ident(), time.monotonic() + seconds
        self.on_change()
        with self._lock:
            self.publications += 1
            publication = self.publications
            self._reacting.append(me)
            self._published.notify_all()
        try:
            while not self._have_reacted(me, publication):
                if self.stopped or time.monotonic() > end:
                    return False
                time.sleep(_LOOK)
            return True
        finally:
            with self._lock:
                self._reacting.remove(me)

    def _have_reacted(self, me: int, publication: int) -> bool:
        with self._lock:
            earlier = self._reacting.index(me)
            idle = sum(looked >= publication for looked in self._idle.values())
            more = self._soon is not None and self._soon()
            return idle + earlier >= self.working - 1 and not more

    def others_idle(self, worker: int) -> bool:
        """Whether nothing but a worker may change memory."""
        with self._lock:
            others = len(self._idle.keys() - {worker})
            return others >= self.working - 1 and not self._expects_more()

    def only_waits(self) -> bool:
        """Whether no worker does anything but wait."""
        with self._lock:
            return len(self._idle) >= self.working

    def left(self, worker: int) -> None:
        """A worker has ended."""
        with self._lock:
            self.working -= 1
            self._idle.pop(worker, None)
            if not self.working:
                self._dead = []
        self.on_change()

    def deadlock(self, worker: int, epoch: int, waits: Waits) -> list[str]:
        """Note that a worker is stuck since an epoch. When all are, and nothing can start, where
        all of them wait; else nothing."""
        with self._lock:
            if epoch == self.epoch:
                self._stuck[worker] = waits
            if not self._dead and len(self._stuck) >= self.working and not self._expects_more():
                lines = self._stuck_lines()
                self._dead = lines if self._conclude is None else self._conclude(lines)
            return self._dead

    def waits(self) -> list[str] | None:
        """Where all workers wait, None where not all of them are stuck. For `more`."""
        return self._stuck_lines() if self._stuck and len(self._stuck) >= self.working else None

    def _stuck_lines(self) -> list[str]:
        return [line for lines in self._stuck.values() for line in lines()]

    def _expects_more(self) -> bool:
        return self._more is not None and self._more()


__all__ = ["Team", "TeamMember", "Waits"]
