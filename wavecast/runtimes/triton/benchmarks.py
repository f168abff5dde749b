"""`triton.testing`'s timers where nothing runs: one call of the function, times not a number."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from wavecast.runtimes.languages.timers import replace_timers
from wavecast.runtimes.patching import Patches
from wavecast.runtimes.triton.recorder import Recorder

NOT_MEASURED = "times the program asked for are NaN: launches are captured, not run"
_TIMERS = ("do_bench", "do_bench_cudagraph", "do_bench_proton", "do_bench_cudagraph_proton")


def install(patches: Patches, recorder: Recorder) -> None:
    """Replace the timers, and `perf_report`'s sweep by its first and last size."""
    import triton.testing as testing

    from wavecast.runtimes.torch_cpu.skipping import SkipHeavy

    def timer(fn: Callable[[], Any], *args: Any, **kwargs: Any) -> Any:
        del args
        recorder.note(NOT_MEASURED)
        with SkipHeavy():
            fn()
        return _no_time(kwargs.get("quantiles"), kwargs.get("return_mode", "mean"))

    for name in _TIMERS:
        if hasattr(testing, name):
            patches.attribute(testing, name, timer)
    replace_timers(patches, timer)

    def run(mark: Any, *args: Any, **kwargs: Any) -> Any:
        del args
        for setting in ("show_plots", "print_data", "save_path", "return_df", "diff_col"):
            kwargs.pop(setting, None)
        several = isinstance(mark.benchmarks, (list, tuple))
        for benchmark in mark.benchmarks if several else [mark.benchmarks]:
            _sweep(mark.fn, benchmark, kwargs, recorder)

    patches.attribute(testing.Mark, "run", run)


def _no_time(quantiles: Any, return_mode: str) -> Any:
    if quantiles is not None:
        return [math.nan] * len(quantiles) if len(quantiles) > 1 else math.nan
    return [math.nan] if return_mode == "all" else math.nan


def _sweep(function: Callable, benchmark: Any, kwargs: dict, recorder: Recorder) -> None:
    sizes = list(benchmark.x_vals)
    ends = [sizes[0], sizes[-1]] if len(sizes) > 1 else sizes
    if len(sizes) > 2:
        recorder.note(
            f"benchmark {benchmark.plot_name}: the first and last of {len(sizes)} sizes were run"
        )
    for size in ends:
        values = size if isinstance(size, (list, tuple)) else [size] * len(benchmark.x_names)
        point = dict(zip(benchmark.x_names, values, strict=True))
        for line in benchmark.line_vals:
            function(**point, **{benchmark.line_arg: line}, **benchmark.args, **kwargs)
