"""A limit on the time of one case."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TooLong(BaseException):
    """The limit was reached. Not an `Exception`, so that nothing under test takes it for one."""


@contextmanager
def seconds(limit: float) -> Iterator[None]:
    """Raise `TooLong` in the main thread when the block takes more than `limit` seconds."""

    def stop(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
