"""`torch.cuda`'s streams and events where everything happens at once, in program order."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

from wavecast.launch import graph_capture


class CpuEvent:
    """An event nothing is ever in flight before. Where launches are not executed there is no time:
    `elapsed_time` is not a number."""

    cuda_event = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        """Takes what `torch.cuda.Event` takes."""

    def record(self, stream: Any = None) -> None:
        del stream

    def wait(self, stream: Any = None) -> None:
        del stream

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        """Nothing is ever in flight. Raises RuntimeError inside a capture."""
        graph_capture.check_may_wait()

    def elapsed_time(self, end: Any) -> float:
        del end
        return math.nan


class TimedEvent(CpuEvent):
    """An event between launches that are executed; its time is `_clock`'s, in seconds."""

    _clock: Callable[[], float]

    def __init__(self, enable_timing: bool = False, *_: Any, **__: Any) -> None:
        self._timing = enable_timing
        self._recorded: float | None = None

    def record(self, stream: Any = None) -> None:
        del stream
        if self._timing:
            self._recorded = self._clock()

    def elapsed_time(self, end: Any) -> float:
        """Milliseconds to `end`. Raises ValueError as PyTorch does."""
        if not (self._timing and end._timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._recorded is None or end._recorded is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return 1e3 * (end._recorded - self._recorded)


class CpuStream:
    """A stream on which everything has already happened; also its own context manager."""

    cuda_stream = native_handle = 0
    stream_id = 0
    device_index = 0
    priority = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        """Takes what `torch.cuda.Stream` takes."""

    @property
    def device(self) -> Any:
        import torch

        return torch.device("cuda", 0)

    def wait_stream(self, stream: Any) -> None:
        del stream

    def wait_event(self, event: Any) -> None:
        del event

    def record_event(self, event: Any = None) -> Any:
        import torch

        event = torch.cuda.Event() if event is None else event
        event.record(self)
        return event

    def query(self) -> bool:
        return True

    def is_capturing(self) -> bool:
        return graph_capture.current() is not None

    def synchronize(self) -> None:
        """Nothing is ever in flight. Raises RuntimeError inside a capture."""
        graph_capture.check_may_wait()

    def __enter__(self) -> CpuStream:
        return self

    def __exit__(self, *_: Any) -> None:
        """Leaving the default stream changes nothing."""


def replacements(clock: Callable[[], float] | None) -> dict[str, Any]:
    """Names of `torch.cuda` and what they are meanwhile; `clock` has the time of events where
    launches are executed."""
    kinds = {name: type(name, (CpuStream,), {}) for name in ("Stream", "ExternalStream")}
    stream = kinds["Stream"]()
    return {
        "Event": CpuEvent if clock is None else _timed_event(clock),
        "current_stream": lambda *_, **__: stream,
        "default_stream": lambda *_, **__: stream,
        "get_stream_from_external": lambda *_, **__: stream,
        **kinds,
        **{name: _context() for name in ("stream", "device", "device_of")},
    }


def _timed_event(clock: Callable[[], float]) -> type:
    return type("Event", (TimedEvent,), {"_clock": staticmethod(clock)})


def _context() -> type:
    class OnlyDevice(contextlib.nullcontext):
        """A device or stream entered; there is only one."""

        idx = 0

        def __init__(self, *_: Any, **__: Any) -> None:
            super().__init__()

    return OnlyDevice
