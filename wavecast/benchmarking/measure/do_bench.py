"""`triton.testing.do_bench` with samples taken as `wavecast bench` takes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import mean, median
from typing import Any, Final

from wavecast.benchmarking.measure.gpu import cache_bytes
from wavecast.benchmarking.measure.sampling import SamplingBudget, sample
from wavecast.errors import NothingAnalysed, UsageError
from wavecast.runtimes.gpu import timing
from wavecast.runtimes.gpu.emulated import emulated_do_bench

_MODES: Final[dict[str, Callable[[list[float]], Any]]] = {
    "mean": mean,
    "median": median,
    "min": min,
    "max": max,
    "all": list,
}


def do_bench(
    fn: Callable[[], Any],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Sequence[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """Device time of `fn` in milliseconds, as `triton.testing.do_bench` takes and returns it.

    Times come from events; before each call caches are flushed by a write of twice L2 and
    memory-side cache, and gradients of `grad_to_none` are dropped, neither of which counts. `fn`
    is called until its times have settled, for `warmup` milliseconds at most, then for `rep`
    milliseconds of wall time or until the median is known to ± 0.1 %. `return_mode` is `mean`,
    `median`, `min`, `max` or `all`; with `quantiles` those are returned instead, a single one as a
    number. Ctrl-C is raised as it is.

    Inside `wavecast.device` and captures times are predictions (all samples alike). Raises
    UsageError for another mode or quantile, MissingTool without torch, NothingAnalysed without a
    GPU.
    """
    if return_mode not in _MODES:
        raise UsageError(f"no return mode {return_mode!r}", hint=", ".join(_MODES))
    if quantiles is not None and not all(0 <= quantile <= 1 for quantile in quantiles):
        raise UsageError("quantiles are from 0 to 1")
    predicted = emulated_do_bench(fn, quantiles=quantiles, return_mode=return_mode)
    if predicted is not None:
        return predicted
    from wavecast.benchmarking.measure.gpu_environment import here

    flush = timing.Flush(2 * cache_bytes(here()))
    stopwatch = timing.Stopwatch()

    def before() -> None:
        for tensor in grad_to_none or ():
            tensor.grad = None
        flush()

    total = max(warmup + rep, 1e-3)
    budget = SamplingBudget(
        total * 1e-3, samples=10_000, relative=1e-3, warm_up=warmup / (total + 1e-3)
    )
    fn()
    timing.synchronise()
    (times,) = sample([lambda: 1e3 * stopwatch.seconds(fn, before)], budget)
    if times.stopped == "interrupted":
        raise KeyboardInterrupt
    if not times.samples:
        raise NothingAnalysed("nothing was measured")
    if quantiles is not None:
        at = [_quantile(times.samples, quantile) for quantile in quantiles]
        return at[0] if len(at) == 1 else at
    return _MODES[return_mode](times.samples)


def _quantile(samples: Sequence[float], share: float) -> float:
    """Between the two samples it falls among, in proportion."""
    ordered = sorted(samples)
    rank = share * (len(ordered) - 1)
    low, high = math.floor(rank), math.ceil(rank)
    return ordered[low] + (rank - low) * (ordered[high] - ordered[low])


__all__ = ["do_bench"]
