"""PyTorch's profiler for a GPU that is not there: executed kernels are events of the device, whose
durations are predicted."""

from __future__ import annotations

import functools
import math
import time
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from wavecast.runtimes.patching import Patches


@dataclass(frozen=True, slots=True)
class KernelEvent:
    """A kernel that ran: when it was launched, in ns of `time.perf_counter_ns`."""

    name: str
    launched: int
    seconds: float


class ProfiledKernels:
    """The kernels that run while profilers of PyTorch watch the device."""

    def __init__(self) -> None:
        self._watching: list[list[KernelEvent]] = []
        self._events: WeakKeyDictionary[Any, list[KernelEvent]] = WeakKeyDictionary()

    @property
    def watched(self) -> bool:
        """Whether a profiler is at work."""
        return bool(self._watching)

    def add(self, name: str, seconds: float) -> None:
        """A kernel ran that would take so long; one of unknown time is left out."""
        if math.isfinite(seconds):
            event = KernelEvent(name, time.perf_counter_ns(), seconds)
            for events in self._watching:
                events.append(event)

    def install(self, patches: Patches) -> None:
        """Add the kernels to what profilers of this process return."""
        from torch.autograd.profiler import profile

        patches.attribute(profile, "__init__", _without_driver(profile.__init__))
        patches.attribute(profile, "_start_trace", self._starting(profile._start_trace))
        patches.attribute(profile, "__exit__", self._ending(profile.__exit__))
        parse = self._parsing(profile._parse_kineto_results)
        patches.attribute(profile, "_parse_kineto_results", parse)

    def _starting(self, original: Any) -> Any:
        @functools.wraps(original)
        def start(profiler: Any) -> None:
            original(profiler)
            if profiler.use_device == "cuda":
                self._events[profiler] = []
                self._watching.append(self._events[profiler])

        return start

    def _ending(self, original: Any) -> Any:
        @functools.wraps(original)
        def end(profiler: Any, *error: Any) -> Any:
            events = self._events.get(profiler)
            self._watching = [other for other in self._watching if other is not events]
            result = original(profiler, *error)
            if events and not profiler.experimental_config.trace_only:
                profiler._ensure_function_events()  # PyTorch may be itself again when it is asked
            return result

        return end

    def _parsing(self, original: Any) -> Any:
        @functools.wraps(original)
        def parse(profiler: Any, *args: Any, **kwargs: Any) -> list[Any]:
            events = original(profiler, *args, **kwargs)
            first = profiler.profiling_start_time_ns
            added = self._events.get(profiler, ())
            events += [_function_event(-number, event, first) for number, event in enumerate(added)]
            events.sort(key=lambda event: (event.time_range.start, -event.time_range.end))
            return events

        return parse


def _without_driver(original: Any) -> Any:
    @functools.wraps(original)
    def initialise(profiler: Any, *args: Any, **kwargs: Any) -> None:
        from torch._C._profiler import ProfilerState

        original(profiler, *args, **kwargs)
        if getattr(profiler, "use_device", None) == "cuda":  # PyTorch would ask CUDA for times
            profiler.profiler_kind = ProfilerState.KINETO

    return initialise


def _function_event(number: int, event: KernelEvent, first: int) -> Any:
    """The event of PyTorch, in us since the profiler has started at `first`."""
    from torch._C._autograd import DeviceType
    from torch.autograd.profiler_util import FunctionEvent

    start = (event.launched - first) / 1e3
    return FunctionEvent(
        id=number, name=event.name, trace_name=event.name, thread=0,
        start_us=start, end_us=start + 1e6 * event.seconds,
        use_device="cuda", device_type=DeviceType.CUDA, device_index=0, stack=[],
    )  # fmt: skip


__all__ = ["KernelEvent", "ProfiledKernels"]
