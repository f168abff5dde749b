"""A limit on the processor time of one case: a busy machine does not exceed it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TooLong(BaseException):
    """The limit was reached. Not an `Exception`, so that nothing under test takes it for one."""


@contextmanager
def seconds(limit: float) -> Iterator[None]:
    """Raise `TooLong` in the main thread when the block takes more than `limit` seconds of
    the processor."""

    def stop(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise TooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
