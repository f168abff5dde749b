"""Launches of a call that is being recorded, so that a call with an equal signature need not be
prepared again (`wavecast.frameworks.torch.replay`).

A replayed call skips `choice.run`. What must see every launch there, or changes what it decides,
blocks recordings and replays meanwhile.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

blocked: int = 0
"""How many blocks of code forbid recordings and replays now."""

_current: Final = threading.local()
_forgetters: Final[list[Callable[[], None]]] = []


@dataclass(frozen=True, slots=True)
class RecordedLaunch:
    """One launch: the compiled kernel, the grid, and the value of every parameter in order."""

    kernel: Any
    grid: tuple[int, int, int]
    values: tuple[Any, ...]


@dataclass(slots=True)
class LaunchRecording:
    """What `choice.run` tells about the launches of a call. `paused` while it compiles and
    launches: what happens then is not part of the call."""

    add: Callable[[RecordedLaunch], None]
    paused: bool = field(default=False)
    refused: str = ""

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """Record nothing in the block."""
        self.paused = True
        try:
            yield
        finally:
            self.paused = False

    def on_launch(
        self, function: Any, kernel: Any, grid: tuple[int, ...], arguments: Mapping[str, Any]
    ) -> None:
        """Record a launch of a `triton.jit` function with arguments by parameter name."""
        if kernel is None or function.pre_run_hooks:
            self.refused = "a launch that hooks see"
            return
        defaults = {parameter.name: parameter.default for parameter in function.params}
        values = tuple(
            arguments[name] if name in arguments else defaults[name] for name in function.arg_names
        )
        x, y, z = (*grid, 1, 1)[:3]
        self.add(RecordedLaunch(kernel, (x, y, z), values))


def current() -> LaunchRecording | None:
    """The recording of this thread."""
    return getattr(_current, "recording", None)


@contextlib.contextmanager
def recording(add: Callable[[RecordedLaunch], None]) -> Iterator[LaunchRecording]:
    """Give `add` the launches of the block, in this thread."""
    recorder = _current.recording = LaunchRecording(add)
    try:
        yield recorder
    finally:
        _current.recording = None


@contextlib.contextmanager
def block() -> Iterator[None]:
    """Record and replay nothing in the block, in any thread."""
    start_blocking()
    try:
        yield
    finally:
        stop_blocking()


def start_blocking() -> None:
    """Record and replay nothing until `stop_blocking`."""
    global blocked
    blocked += 1


def stop_blocking() -> None:
    """Take one `start_blocking` back."""
    global blocked
    blocked -= 1


def on_forget(forgetter: Callable[[], None]) -> None:
    """Call `forgetter` whenever recorded calls may not be replayed any more."""
    _forgetters.append(forgetter)


def forget() -> None:
    """Forget all recorded calls."""
    for forgetter in _forgetters:
        forgetter()
