"""FlyDSL's autotuner in a tuning: each of its configurations is compiled and predicted.

FlyDSL chooses among the configurations that a kernel's author has listed; their times are those of
executed samples on every device of the target. Source: `flydsl/autotune.py`, FlyDSL 0.5.0.
"""

from __future__ import annotations

import inspect
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from wavecast.arch import Device
from wavecast.compile.codeobject import Launch
from wavecast.compile.configuration import Configuration
from wavecast.compile.digest import digest
from wavecast.emulate.launch import AddressRange
from wavecast.errors import UsageError, WavecastError
from wavecast.runtimes.imported import call_when_imported
from wavecast.runtimes.patching import Patches
from wavecast.sampling.estimate import estimate, simulate
from wavecast.tuning.evaluation import of_code, with_simulation
from wavecast.tuning.records import Journal, Result, TuningProblem
from wavecast.tuning.settings import TuneSettings

if TYPE_CHECKING:
    from wavecast.runtimes.triton.hooks import Hooks

_MODULE: Final = "flydsl.autotune"
_PLAIN = (str, int, float, bool, type(None))


@dataclass
class FlydslTuning:
    """The tuning of the calls of one script. `finished` has the results of an interrupted one, by
    the identity of a problem."""

    settings: TuneSettings
    devices: Sequence[Device]
    journal: Journal
    finished: dict[str, dict[Configuration, Result]]
    hooks: Hooks
    _launched: list[tuple[Result, ...]] = field(default_factory=list)
    """Results per device of the launches of the configuration that is tried."""

    def install(self, patches: Patches) -> None:
        """Tune what the program's autotuner would measure, until `patches` are undone. FlyDSL
        compares configurations, instead of taking a default or an earlier winner."""
        os.environ["FLYDSL_AUTOTUNE"] = "1"
        call_when_imported(patches, _MODULE, lambda: self._replace_bench(patches))

    def _replace_bench(self, patches: Patches) -> None:
        autotuner = sys.modules[_MODULE].Autotuner
        original = autotuner._bench_one

        def bench(tuner: Any, config: Any, args: tuple, kwargs: dict[str, Any]) -> float:
            return self._bench(original, tuner, config, args, kwargs)

        patches.attribute(autotuner, "_bench_one", bench)
        for name in ("_load_disk_cache", "_save_disk_cache"):
            patches.attribute(autotuner, name, lambda _: None)

    def _bench(
        self,
        original: Callable[..., float],
        tuner: Any,
        config: Any,
        args: tuple,
        kwargs: dict[str, Any],
    ) -> float:
        """Milliseconds of a configuration on the first device, infinite where there are none.
        Raises UsageError for a wide space, and what the compiler raises."""
        if self.settings.space != "own":
            error = UsageError(
                "FlyDSL's autotuner knows the configurations of a kernel, not their neighbours",
                hint="without --space wide",
            )
            name = self._problems(tuner, args, kwargs)[0].kernel  # FlyDSL catches what is raised
            self.hooks.recorder.fail(name, "tune", error.message, error.hint)
            raise error
        configuration = Configuration.of(_plain({**config.all_kwargs(), **config.compiler_opts()}))
        problems = self._problems(tuner, args, kwargs)
        tables = [self.finished.setdefault(problem.identity, {}) for problem in problems]
        if not all(configuration in table for table in tables):
            most = self.settings.budget.configurations
            if most is not None and len(tables[0]) >= most:
                return math.inf
            for problem, table, result in zip(
                problems, tables,
                self._try(original, tuner, config, configuration, args, kwargs), strict=True,
            ):  # fmt: skip
                self.journal.add(problem, result)
                table[configuration] = result
        result = tables[0][configuration]
        return math.inf if result.seconds is None else 1e3 * result.seconds

    def _try(
        self,
        original: Callable[..., float],
        tuner: Any,
        config: Any,
        configuration: Configuration,
        args: tuple,
        kwargs: dict[str, Any],
    ) -> tuple[Result, ...]:
        """The result of a configuration per device."""
        self._launched = []
        before, self.hooks.on_hip_launch = self.hooks.on_hip_launch, self._on_launch
        measure, tuner._do_bench = tuner._do_bench, _once
        reason = "it launches no kernel, or HIP refuses the launch"
        try:
            original(tuner, config, args, kwargs)
        except WavecastError as error:
            reason = error.message
        except Exception as error:  # of the script or of its compiler
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        finally:
            tuner._do_bench, self.hooks.on_hip_launch = measure, before
        if not self._launched:
            return tuple(Result(configuration, reason=reason) for _ in self.devices)
        by_device = zip(*self._launched, strict=True)
        return tuple(replace(_together(r), configuration=configuration) for r in by_device)

    def _on_launch(self, launch: Launch, ranges: Sequence[AddressRange]) -> None:
        results = []
        for device in self.devices:
            estimated = estimate(launch, ranges, device)
            result = of_code(Configuration(()), estimated)
            if self.settings.simulate and not estimated.why_not:
                result = with_simulation(result, simulate(launch, ranges, device))
            results.append(result)
        self._launched.append(tuple(results))

    def _problems(
        self, tuner: Any, args: tuple, kwargs: Mapping[str, Any]
    ) -> tuple[TuningProblem, ...]:
        """What is tuned, per device. Arguments are described by dtype and shape."""
        values = {**dict(zip(tuner.arg_names, args, strict=False)), **kwargs}
        function = inspect.unwrap(getattr(tuner.fn, "func", tuner.fn))
        try:
            source = inspect.getsource(function)
        except (OSError, TypeError):
            source = repr(function)
        common = TuningProblem(
            kernel=getattr(tuner.fn, "__name__", getattr(function, "__name__", "kernel")),
            key=_plain({name: values.get(name) for name in tuner.key}),
            arguments={
                name: f"{value.dtype} {'x'.join(map(str, value.shape))}".removeprefix("torch.")
                for name, value in values.items()
                if hasattr(value, "dtype") and hasattr(value, "shape")
            },
            source=digest(source)[:16],
            target=self.devices[0].target,
            device="",
            compiler=f"flydsl {sys.modules['flydsl'].__version__}",
        )
        return tuple(replace(common, device=device.id) for device in self.devices)


def _once(call: Callable[[], Any], *args: Any, **kwargs: Any) -> float:
    """A timer that calls a function: what it launches is predicted."""
    del args, kwargs
    call()
    return 0.0


def _together(results: Sequence[Result]) -> Result:
    """The result of launches that follow each other; of the longest, what cannot be added."""
    failed = next((result for result in results if result.seconds is None), None)
    if failed is not None:
        return failed
    longest = max(results, key=lambda result: result.seconds or 0.0)
    return replace(
        longest,
        seconds=sum(result.seconds or 0.0 for result in results),
        low=sum(result.low or 0.0 for result in results),
        high=sum(result.high or 0.0 for result in results),
    )


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as JSON has them; others by their text."""
    return {k: v if isinstance(v, _PLAIN) else str(v) for k, v in settings.items()}


__all__ = ["FlydslTuning"]
