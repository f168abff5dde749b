"""Launches of a graph that is being captured (`torch.cuda.graph`): kept until it is replayed."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Final

_thread: Final = threading.local()


def current() -> list[Callable[[], object]] | None:
    """The calls of the graph that this thread captures, None outside of a capture."""
    return getattr(_thread, "calls", None)


def begin(calls: list[Callable[[], object]]) -> None:
    """Add launches of this thread to `calls` until `end`."""
    _thread.calls = calls


def end() -> None:
    """Execute launches at once again."""
    _thread.calls = None


@contextlib.contextmanager
def suspend() -> Iterator[None]:
    """Execute the launches of the block at once."""
    calls = current()
    _thread.calls = None
    try:
        yield
    finally:
        _thread.calls = calls


__all__ = ["begin", "current", "end", "suspend"]
