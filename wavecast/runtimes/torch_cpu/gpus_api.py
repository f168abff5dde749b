"""`torch.cuda` with several emulated GPUs: devices, streams and events of queues that run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from wavecast.emulate.node import Marker
from wavecast.errors import CaptureError
from wavecast.runtimes.torch_cpu.gpus import HOST, Gpus, owner
from wavecast.runtimes.torch_cpu.gpus_compiling import current_function


def replacements(gpus: Gpus) -> dict[str, Any]:
    """Names of `torch.cuda` and what they are while several GPUs are emulated."""
    kinds = _kinds(gpus)
    stream = kinds["Stream"]
    return {
        **kinds,
        "CUDAGraph": NoGraph,
        "device_count": lambda: gpus.count,
        "current_device": current_function(gpus),
        "set_device": lambda device: _done(gpus.select(gpus.index(device))),
        "synchronize": lambda device=None: gpus.node.synchronize(gpus.index(device)),
        "can_device_access_peer": lambda device, other: gpus.index(device) != gpus.index(other),
        "current_stream": lambda device=None: stream._of(gpus.index(device)),
        "default_stream": lambda device=None: stream._of(gpus.index(device), 0),
        "set_stream": lambda target: gpus.select_stream(target.device_index, target.cuda_stream),
        "_exchange_device": gpus.select,
        "_maybe_exchange_device": lambda device: gpus.select(device),  # other than the one above
    }


def bindings(gpus: Gpus) -> dict[str, Callable[..., Any]]:
    """Functions of PyTorch's C++ side, likewise."""
    return {
        "_cuda_getDevice": lambda: gpus.current,
        "_cuda_getDeviceCount": lambda: gpus.count,
        "_cuda_setDevice": lambda gpu: _done(gpus.select(gpu)),
        "_cuda_exchangeDevice": gpus.select,
        "_cuda_maybeExchangeDevice": gpus.select,
        "_cuda_getCurrentRawStream": gpus.stream,
        "_cuda_synchronize": lambda: gpus.node.synchronize(gpus.current),
    }


def accelerator(gpus: Gpus) -> dict[str, Callable[..., Any]]:
    """Names of `torch.accelerator`, likewise."""
    functions: dict[str, Callable[..., Any]] = {
        "device_count": lambda: gpus.count,
        "synchronize": lambda device=None: gpus.node.synchronize(gpus.index(device)),
    }
    for name in ("current_device_index", "current_device_idx"):
        functions[name] = lambda: gpus.current
    for name in ("set_device_index", "set_device_idx"):
        functions[name] = lambda device: _done(gpus.select(gpus.index(device)))
    return functions


class NoGraph:
    """A graph, which several emulated GPUs do not capture. Raises CaptureError."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise CaptureError(
            "CUDA graphs are captured on one emulated GPU, not on several",
            hint="run the script without graphs, or on one GPU",
        )


def _done(_: Any) -> None:
    """Nothing: for functions that return nothing."""


def _kinds(gpus: Gpus) -> dict[str, type]:
    """The classes of streams, events and contexts."""

    class QueueStream:
        """A launch queue of a GPU; also its own context manager."""

        def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
            self.device_index = gpus.index(device)
            self.priority = priority
            self.cuda_stream = self.native_handle = self.stream_id = gpus.new_stream()
            self._before: list[tuple[int, int]] = []

        @classmethod
        def _of(cls, gpu: int, number: int | None = None) -> QueueStream:
            stream = cls.__new__(cls)
            stream.device_index, stream.priority, stream._before = gpu, 0, []
            number = gpus.stream(gpu) if number is None else number
            stream.cuda_stream = stream.native_handle = stream.stream_id = number
            return stream

        @property
        def device(self) -> Any:
            import torch

            return torch.device("cuda", self.device_index)

        @property
        def queue(self) -> Any:
            return gpus.node.queue(self.device_index, self.cuda_stream)

        def wait_stream(self, stream: Any) -> None:
            self.queue.wait_for(stream.queue.marker())

        def wait_event(self, event: Any) -> None:
            event.wait(self)

        def record_event(self, event: Any = None) -> Any:
            event = QueueEvent() if event is None else event
            event.record(self)
            return event

        def query(self) -> bool:
            return gpus.has_reached(self.queue.marker())

        def is_capturing(self) -> bool:
            return False

        def synchronize(self) -> None:
            gpus.node.wait(self.queue.marker())

        def __eq__(self, other: object) -> bool:
            return isinstance(other, QueueStream) and self._identity() == other._identity()

        def __hash__(self) -> int:
            return hash(self._identity())

        def _identity(self) -> tuple[int, int]:
            return self.device_index, self.cuda_stream

        def __enter__(self) -> QueueStream:
            gpu = self.device_index
            self._before.append((gpus.select(gpu), gpus.stream(gpu)))
            gpus.select_stream(gpu, self.cuda_stream)
            return self

        def __exit__(self, *_: Any) -> None:
            device, stream = self._before.pop()
            gpus.select_stream(self.device_index, stream)
            gpus.select(device)

    class QueueEvent:
        """A position in a stream, with the time at which it was reached."""

        def __init__(self, enable_timing: bool = False, *_: Any, **__: Any) -> None:
            self._timing = enable_timing
            self._marker: Marker | None = None
            self._time: float | None = None

        def record(self, stream: Any = None) -> None:
            queue = gpus.queue() if stream is None else stream.queue
            if self._timing:
                queue.submit(self._reach)
            self._marker = queue.marker()

        def _reach(self) -> None:
            self._time = time.perf_counter()

        def wait(self, stream: Any = None) -> None:
            queue = gpus.queue() if stream is None else stream.queue
            if self._marker is not None:
                queue.wait_for(self._marker)

        def query(self) -> bool:
            return self._marker is None or gpus.has_reached(self._marker)

        def synchronize(self) -> None:
            if self._marker is not None:
                gpus.node.wait(self._marker)

        def elapsed_time(self, end: Any) -> float:
            """Milliseconds to `end`, of this machine's clock. Raises ValueError as PyTorch does."""
            if not (self._timing and end._timing):
                raise ValueError("Both events must be created with argument 'enable_timing=True'.")
            if self._time is None or end._time is None:
                raise ValueError("Both events must be recorded before calculating elapsed time.")
            return 1e3 * (end._time - self._time)

    class DeviceContext:
        """A device entered."""

        def __init__(self, device: Any = None) -> None:
            self.idx = -1 if device is None else gpus.index(device)
            self._before: list[int] = []

        def __enter__(self) -> None:
            self._before.append(gpus.select(self.idx))

        def __exit__(self, *_: Any) -> None:
            gpus.select(self._before.pop())

    class DeviceOf(DeviceContext):
        """The device of a tensor entered."""

        def __init__(self, tensor: Any) -> None:
            gpu = owner(tensor)
            super().__init__(None if gpu in (None, HOST) else gpu)

    class StreamContext:
        """A stream entered; None changes nothing."""

        def __init__(self, stream: Any = None) -> None:
            self.stream = stream

        def __enter__(self) -> None:
            if self.stream is not None:
                self.stream.__enter__()

        def __exit__(self, *args: Any) -> None:
            if self.stream is not None:
                self.stream.__exit__(*args)

    return {
        "Stream": QueueStream,
        "ExternalStream": QueueStream,
        "Event": QueueEvent,
        "device": DeviceContext,
        "device_of": DeviceOf,
        "stream": StreamContext,
        "StreamContext": StreamContext,
    }


__all__ = ["accelerator", "bindings", "replacements"]
