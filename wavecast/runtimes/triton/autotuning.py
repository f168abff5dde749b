"""Autotuned kernels while launches are captured: the first configuration that compiles, all of
them, or what a chooser says."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

from wavecast.runtimes.patching import Patches
from wavecast.runtimes.triton.complaints import Refused
from wavecast.runtimes.triton.recorder import Recorder

Choose = Callable[[Any, tuple, dict[str, Any]], Any]
"""(autotuner, arguments, keyword arguments) -> `triton.Config` or None."""


class AutotunerWatch:
    """Replaces the benchmarking of `triton.runtime.autotuner.Autotuner`.

    Pruning, heuristics and hooks stay Triton's own. With `first`, configurations after the first
    that compiles and fits are not compiled; with `all`, each is launched once. `choose`, where one
    is set, is asked first: the configuration it gives is launched.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.choose: Choose | None = None
        self._running: list[Any] = []
        self._trials: list[Any] = []
        self._chosen: list[bool] = []

    @property
    def trying(self) -> bool:
        """Whether an autotuner is trying a configuration right now."""
        return bool(self._trials)

    def configuration(self) -> tuple[str, bool]:
        """(the configuration of the launch in progress, whether it is a trial)."""
        if self._trials:
            return describe(self._trials[-1]), True
        configs = [getattr(tuner, "best_config", None) for tuner in self._running]
        return "; ".join(describe(config) for config in configs if config is not None), False

    @contextlib.contextmanager
    def on_trial(self, config: Any) -> Iterator[None]:
        """A configuration is tried by others than the autotuner, and `Autotuner._bench` is
        Triton's own."""
        self._trials.append(config)
        try:
            yield
        finally:
            self._trials.pop()

    def install(self, patches: Patches) -> None:
        """Watch every autotuner of the process."""
        from triton.runtime.autotuner import Autotuner

        own_choices(patches)
        patches.attribute(Autotuner, "run", self._watched_run(Autotuner.run))
        patches.attribute(Autotuner, "_bench", self._watched_bench(Autotuner._bench))

    def _watched_run(self, original: Callable) -> Callable:
        @functools.wraps(original)
        def run(tuner: Any, *args: Any, **kwargs: Any) -> Any:
            is_recorded = self._recorder.wants(tuner.base_fn.__name__)
            config = self.choose(tuner, args, kwargs) if self.choose and is_recorded else None
            self._running.append(tuner)
            self._chosen.append(False)
            configurations = tuner.configs
            try:
                if config is not None:
                    tuner.configs = [config]
                return original(tuner, *args, **kwargs)
            finally:
                tuner.configs = configurations
                self._running.pop()
                self._chosen.pop()

        return run

    def _watched_bench(self, original: Callable) -> Callable:
        @functools.wraps(original)
        def _bench(tuner: Any, *args: Any, config: Any, **meta: Any) -> list[float]:
            if self._trials:  # of others
                return original(tuner, *args, config=config, **meta)
            if self._recorder.configurations == "first" and self._chosen[-1]:
                return [math.inf] * 3
            self._trials.append(config)
            tuner.__dict__["do_bench"] = _call_once
            try:
                times = original(tuner, *args, config=config, **meta)
            except Refused as error:
                times = [math.inf] * 3
                self._drop(tuner, config, str(error))
            else:
                if math.isinf(times[0]):
                    self._drop(tuner, config, "does not fit the device")
            finally:
                self._trials.pop()
                tuner.__dict__.pop("do_bench", None)
            if math.isinf(times[0]):
                return times
            # All equal times: Triton's minimum is then the first configuration that works.
            self._chosen[-1] = True
            return [1.0] * 3

        return _bench

    def _drop(self, tuner: Any, config: Any, reason: str) -> None:
        name = tuner.base_fn.__name__
        text = f"configuration {describe(config)}: {reason}"
        if self._recorder.configurations == "all":
            self._recorder.fail(name, "compile", text)
        else:
            self._recorder.note(f"{name} for {self._recorder.target}: passed over {text}")


def own_choices(patches: Patches) -> None:
    """Until `patches` are undone, autotuners choose again: choices are per target, timings of real
    runs are not used, and ours are not stored."""
    from triton.runtime.autotuner import Autotuner

    tuners: dict[int, Any] = {}
    original = Autotuner.run

    @functools.wraps(original)
    def run(tuner: Any, *args: Any, **kwargs: Any) -> Any:
        if id(tuner) not in tuners:
            tuners[id(tuner)] = tuner
            patches.attribute(tuner, "cache", {})
        return original(tuner, *args, **kwargs)

    patches.attribute(Autotuner, "run", run)
    if hasattr(Autotuner, "check_disk_cache"):
        patches.attribute(Autotuner, "check_disk_cache", _benchmark_again)


def describe(config: Any) -> str:
    """A configuration as `BLOCK_M=128, BLOCK_N=64, num_warps=4, num_stages=2`."""
    settings = dict(config.kwargs)
    settings["num_warps"] = config.num_warps
    settings["num_stages"] = config.num_stages
    for name, usual in (("num_ctas", 1), ("maxnreg", None)):
        if getattr(config, name, usual) != usual:
            settings[name] = getattr(config, name)
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def _call_once(kernel_call: Callable[[], None], quantiles: Any = None, **_: Any) -> list[float]:
    del quantiles
    kernel_call()
    return [1.0] * 3


def _benchmark_again(
    tuner: Any, tuning_key: Any, configs: Any, bench_fn: Callable[[], None]
) -> bool:
    del tuner, tuning_key, configs
    bench_fn()
    return False
