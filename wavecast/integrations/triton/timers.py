"""`triton.testing`'s timers on an emulated device: wall time of the emulator in milliseconds.

These times order configurations by how long they take here, not on a GPU.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from wavecast.integrations.patching import Patches

_TIMERS = ("do_bench", "do_bench_cudagraph", "do_bench_proton", "do_bench_cudagraph_proton")
_MOST_CALLS = 5
_ENOUGH_SECONDS = 0.1


def install(patches: Patches) -> None:
    """Replace the timers."""
    import triton.testing as testing

    for name in _TIMERS:
        if hasattr(testing, name):
            patches.attribute(testing, name, measure)


def measure(fn: Callable[[], Any], *args: Any, **named: Any) -> Any:
    """Milliseconds of `fn` as `do_bench` returns them: after one call that does not count, up to
    five calls, fewer once they took a tenth of a second. Times `do_bench` would spend are ignored.
    """
    del args
    fn()
    times: list[float] = []
    started = time.perf_counter()
    while len(times) < _MOST_CALLS and time.perf_counter() - started < _ENOUGH_SECONDS:
        before = time.perf_counter()
        fn()
        times.append(1e3 * (time.perf_counter() - before))
    return _summary(times, named.get("quantiles"), named.get("return_mode", "mean"))


def _summary(times: list[float], quantiles: Any, return_mode: str) -> Any:
    if quantiles is not None:
        found = [_quantile(sorted(times), at) for at in quantiles]
        return found[0] if len(found) == 1 else found
    if return_mode == "all":
        return times
    return {"min": min, "max": max, "mean": statistics.mean, "median": statistics.median}[
        return_mode
    ](times)


def _quantile(ordered: list[float], at: float) -> float:
    place = at * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])
