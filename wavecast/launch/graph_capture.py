"""Launches of a graph that is being captured (`torch.cuda.graph`): kept until it is replayed."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

NOT_PERMITTED: Final = "operation not permitted when stream is capturing"
_thread: Final = threading.local()


def current() -> list[Callable[[], object]] | None:
    """The calls of the graph that this thread captures, None outside of a capture."""
    return getattr(_thread, "calls", None)


def check_may_wait(*_: Any, **__: Any) -> None:
    """Raises RuntimeError inside a capture, as PyTorch does for what waits for the GPU."""
    if current() is not None:
        raise RuntimeError(f"CUDA error: {NOT_PERMITTED}")


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


__all__ = ["NOT_PERMITTED", "begin", "check_may_wait", "current", "end", "suspend"]
