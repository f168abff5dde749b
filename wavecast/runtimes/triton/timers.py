"""Timers of programs on an emulated device: predicted milliseconds.

Launches inside a function that `triton.testing` times, or an autotuner, are predicted, not
executed. Launches between events are both. Everything else runs on the host and takes no time of
the device.
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from wavecast.emulate.launch import AddressRange
from wavecast.runtimes.patching import Patches
from wavecast.runtimes.triton.autotuning import describe, own_choices
from wavecast.runtimes.triton.launches import identity

if TYPE_CHECKING:
    from wavecast.arch import Device
    from wavecast.compile.codeobject import Launch

_TIMERS = ("do_bench", "do_bench_cudagraph", "do_bench_proton", "do_bench_cudagraph_proton")

_LAST = [math.inf, 0.0, 0.0]
"""A configuration without a prediction: after all others, before Triton's three `inf` of one that
does not compile."""


class _Measured(threading.local):
    """What a host thread measures: launches by timer, and the configurations it tries."""

    def __init__(self) -> None:
        self.times: list[list[float]] = []
        self.configurations: list[str] = []


class PredictedTimers:
    """Predicts launches on `device` while a timer is at work. `note` is told why one could not be,
    once each."""

    def __init__(self, device: Device, note: Callable[[str], None]) -> None:
        self._device = device
        self._note = note
        self._measured = _Measured()
        self._known: dict[tuple, float] = {}
        self._passed = 0.0
        self.has_events = False
        """Whether a program has recorded an event: launches are predicted from then on."""

    @property
    def timing(self) -> bool:
        """Whether a launch now is one that is timed."""
        return bool(self._measured.times)

    @property
    def describes(self) -> bool:
        """Whether a launch now is predicted: its arguments must be described."""
        return self.timing or self.has_events

    def install(self, patches: Patches) -> None:
        """Replace the timers."""
        import triton.testing as testing
        from triton.runtime.autotuner import Autotuner

        for name in _TIMERS:
            if hasattr(testing, name):
                patches.attribute(testing, name, self.measure)
        own_choices(patches)
        patches.attribute(Autotuner, "_bench", self._watched_bench(Autotuner._bench))

    def measure(self, fn: Callable[[], Any], *args: Any, **kwargs: Any) -> Any:
        """Milliseconds of `fn` as `do_bench` returns them, all quantiles alike: the sum of the
        launches of one call, `inf` where one cannot be predicted, NaN without any."""
        del args
        self._measured.times.append([])
        try:
            fn()
        finally:
            times = self._measured.times.pop()
        if not times:
            self._note("a timed function launched no kernel: its time is NaN")
        total = 1e3 * sum(times) if times else math.nan
        quantiles = kwargs.get("quantiles")
        if quantiles is not None:
            return [total] * len(quantiles) if len(quantiles) > 1 else total
        return [total] if kwargs.get("return_mode") == "all" else total

    def measure_second(self, fn: Callable[[], Any], *args: Any, **kwargs: Any) -> Any:
        """As `measure`, of the second call: in the first a language compiles, and may launch more
        than once."""
        self.measure(fn)
        return self.measure(fn, *args, **kwargs)

    def on_launch(self, launch: Launch, ranges: Sequence[AddressRange]) -> None:
        """Predict a launch that a timer waits for."""
        self.add(self.seconds(launch, ranges))

    def add(self, seconds: float) -> None:
        """A launch that a timer waits for takes so long."""
        self._measured.times[-1].append(seconds)

    def on_event(self) -> float:
        """The time of the device at an event: seconds of the launches since the first event."""
        self.has_events = True
        return self._passed

    def on_executed(self, seconds: float) -> None:
        """A launch that is executed takes so long."""
        self._passed += seconds

    def seconds(self, launch: Launch, ranges: Sequence[AddressRange]) -> float:
        """The predicted time of a launch, once for all that are alike; `inf` for none."""
        key = identity(launch)
        if key not in self._known:
            self._known[key] = self._predict(launch, ranges)
        return self._known[key]

    def _predict(self, launch: Launch, ranges: Sequence[AddressRange]) -> float:
        from wavecast.sampling.estimate import estimate

        result = estimate(launch, ranges, self._device)
        if result.prediction is not None:
            return result.prediction.seconds
        configuration = self._measured.configurations[-1] if self._measured.configurations else ""
        which = f" ({configuration})" if configuration else ""
        name = launch.code.kernel
        self._note(f"no time for {name}{which} on {self._device.id}: {result.why_not}")
        return math.inf

    def _watched_bench(self, original: Callable) -> Callable:
        @functools.wraps(original)
        def _bench(tuner: Any, *args: Any, config: Any, **meta: Any) -> list[float]:
            self._measured.configurations.append(describe(config))
            compiled = False

            def measure_call(call: Callable[[], Any], **kwargs: Any) -> Any:
                nonlocal compiled
                times = self.measure(call, **kwargs)
                compiled = True
                return times

            tuner.__dict__["do_bench"] = measure_call
            try:
                times = original(tuner, *args, config=config, **meta)
            finally:
                self._measured.configurations.pop()
                tuner.__dict__.pop("do_bench", None)
            return _LAST if compiled and not math.isfinite(times[0]) else times

        return _bench
