"""Device time of calls on the local GPU: by events, or by replaying a captured graph."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from wavecast.errors import WavecastError
from wavecast.isa.collector import no_collections

Call = Callable[[], Any]

_LEAST_LEAD: Final = 50e-6
_MOST_LEAD: Final = 5e-3
"""How long the GPU is kept busy before a timed call, seconds: for as long as the host needs to
queue it, and no more than this."""
_CALIBRATED: Final = 1_000_000


class NotCaptured(WavecastError):
    """A call that cannot be captured as a graph: it synchronises, allocates or uses the host."""


class Stopwatch:
    """Device seconds between two events of the current stream.

    Before the first event the GPU spins for as long as the host took to queue such a call before,
    so that the time holds no waiting for the host.
    """

    def __init__(self) -> None:
        import torch

        self._cuda = torch.cuda
        self._cycles_per_second = self._calibrate()
        self._hosts: dict[int, float] = {}

    def seconds(self, call: Call, before: Call | None = None, identity: object = None) -> float:
        """Device time of one call. `before` runs ahead of the first event, uncounted; calls of one
        `identity` (default: the call) share what is known about their host time."""
        key = id(call if identity is None else identity)
        start, end = (self._cuda.Event(enable_timing=True) for _ in range(2))
        if before is not None:
            before()
        lead = min(max(2 * self._hosts.get(key, _MOST_LEAD), _LEAST_LEAD), _MOST_LEAD)
        if self._cycles_per_second > 0:
            self._cuda._sleep(int(lead * self._cycles_per_second))
        start.record()
        began = time.perf_counter()
        call()
        host = time.perf_counter() - began
        end.record()
        end.synchronize()
        self._hosts[key] = host if key not in self._hosts else 0.8 * self._hosts[key] + 0.2 * host
        return start.elapsed_time(end) * 1e-3

    def _calibrate(self) -> float:
        """Cycles of torch's spinning kernel in a second; CUDA and ROCm count different clocks."""
        elapsed = 0.0
        for _ in range(2):  # the first loads the kernel
            start, end = (self._cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            self._cuda._sleep(_CALIBRATED)
            end.record()
            end.synchronize()
            elapsed = start.elapsed_time(end) * 1e-3
        return _CALIBRATED / elapsed if elapsed > 0 else 0.0


class Graph:
    """Calls captured one after the other; calling it replays them. It keeps their tensors: inputs
    because replays read them, results so that no two calls write the same memory. Raises
    NotCaptured."""

    def __init__(self, calls: Sequence[Call]) -> None:
        import torch

        cuda = torch.cuda
        side = cuda.Stream()
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):  # libraries set themselves up per stream
            for call in calls[:3]:
                call()
        cuda.current_stream().wait_stream(side)
        cuda.synchronize()
        self._graph = cuda.CUDAGraph()
        self._alive: list[Any] = list(calls)
        try:
            # Triton unloads a collected kernel's module, which must not happen within a capture.
            with no_collections(), cuda.graph(self._graph):
                self._alive += [call() for call in calls]
        except Exception as error:  # CUDA's are RuntimeErrors; Triton and operators have others
            why = (str(error).strip().splitlines() or ["no message"])[0]
            raise NotCaptured(f"cannot be captured as a graph: {why}") from None
        cuda.synchronize()

    def __call__(self) -> None:
        self._graph.replay()


class Flush:
    """Writes so many bytes, which leaves nothing else in caches of half that size."""

    def __init__(self, size: int) -> None:
        import torch

        self._buffer = torch.empty(size, dtype=torch.int8, device="cuda")

    def __call__(self) -> None:
        self._buffer.zero_()


def allocated_bytes() -> int:
    """Bytes that torch holds on the GPU."""
    import torch

    return int(torch.cuda.memory_allocated())


def free() -> int:
    """Bytes that are free on the GPU or cached by torch."""
    import torch

    cached = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    return int(torch.cuda.mem_get_info()[0] + cached)


def synchronise() -> None:
    """Wait for the GPU; errors of calls before are raised here."""
    import torch

    torch.cuda.synchronize()


def release() -> None:
    """Give memory that torch caches back."""
    import torch

    gc.collect()
    torch.cuda.empty_cache()


def out_of_memory(error: BaseException) -> bool:
    """Whether an error says that the GPU's memory is full."""
    import torch

    return isinstance(error, torch.cuda.OutOfMemoryError)


__all__ = [
    "Call",
    "Flush",
    "Graph",
    "NotCaptured",
    "Stopwatch",
    "allocated_bytes",
    "free",
    "out_of_memory",
    "release",
    "synchronise",
]
