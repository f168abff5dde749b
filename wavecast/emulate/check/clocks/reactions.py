"""When a launch lets other GPUs react to what it has released.

A mistake such as a buffer that is stored to again before a peer has read it shows only where the
peer comes in between. A GPU whose kernels are short would have executed all of them by then. So a
host thread that has released something at system scope waits, before it releases again or ends,
until all others have done what they can. What is released is stored behind the event that says so:
it is there at the next one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

_OF_KERNEL: Final = 64
"""How often launches of a kernel wait. What races does so in its first steps, or with others."""
_OF_LAUNCH: Final = 8
"""How often one launch does."""
_SECONDS: Final = 1.0
"""The longest wait: another GPU computes, or the host does."""
_LONG: Final = 3
"""Waits of that length after which a kernel waits no more."""


class Reactions:
    """How often launches of each kernel of a session have waited."""

    def __init__(self) -> None:
        self.waits: dict[str, int] = {}
        self.long_waits: dict[str, int] = {}

    def of_launch(self, kernel: str, wait: Callable[[float], bool]) -> LaunchReactions:
        """Those of a launch of a kernel; `wait(seconds)` waits for others, and is False where they
        took longer."""
        return LaunchReactions(self, kernel, wait)


class LaunchReactions:
    """Those of one launch."""

    def __init__(self, session: Reactions, kernel: str, wait: Callable[[float], bool]) -> None:
        self._session, self._kernel, self._wait = session, kernel, wait
        self._waits = 0
        self._released: set[int] = set()
        """Host threads that have released something since they waited."""

    def on_release(self) -> None:
        """The calling host thread is about to release something."""
        self._released.add(threading.get_ident())

    def on_step(self) -> None:
        """Wait, where the calling host thread has released something: it releases again, or its
        workgroup has ended. Not where it loads what others release: a kernel that waits for too
        little would not be seen to run ahead."""
        thread = threading.get_ident()
        if thread not in self._released:
            return
        self._released.discard(thread)
        session, kernel = self._session, self._kernel
        count, long = session.waits.get(kernel, 0), session.long_waits.get(kernel, 0)
        if self._waits >= _OF_LAUNCH or count >= _OF_KERNEL or long >= _LONG:
            return
        self._waits += 1
        session.waits[kernel] = count + 1
        if not self._wait(_SECONDS):
            session.long_waits[kernel] = long + 1


__all__ = ["LaunchReactions", "Reactions"]
