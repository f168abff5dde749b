"""`wavecast.bench`: operators, functions and scripts, measured on a GPU or predicted."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from wavecast.api.measured import StoreOptions
from wavecast.api.result import ShownResult, few
from wavecast.errors import UnknownName, UsageError, WavecastError
from wavecast.options import Options, Progress, option, silent
from wavecast.options.values import Integers, NameList, Numbers, OneOf, Regex

if TYPE_CHECKING:
    from rich.console import Console

    from wavecast.arch import Device
    from wavecast.benchmarking.measure.gpu import GpuSettings
    from wavecast.benchmarking.measure.gpu_environment import LocalGpuState
    from wavecast.benchmarking.measure.session import SessionResult
    from wavecast.benchmarking.records import BenchRun
    from wavecast.benchmarking.store.base import Store


@dataclass(frozen=True, kw_only=True)
class BenchRunOptions(StoreOptions):
    """A run of measurements, and what keeps it."""

    SUBJECT: ClassVar[str]
    """What the options are for, in messages."""

    arch: tuple[str, ...] = option(
        (),
        "Predict for these GPUs. Default: measure on the local GPU.",
        values=NameList(),
        metavar="GPU[,GPU…]",
    )
    label: str = option("", "Name of the run: main, pr-17.")
    no_store: bool = option(False, "Do not store the records.")


@dataclass(frozen=True, kw_only=True)
class AxesOptions(BenchRunOptions):
    """Where operators and functions are measured."""

    axes: tuple[str, ...] = option(
        (),
        "Values of an axis: 1,16,4096, FIRST:LAST:STEP, 2^4..2^12.",
        "-a",
        "--axis",
        metavar="NAME=VALUES",
    )


@dataclass(frozen=True, kw_only=True)
class BenchOptions(AxesOptions):
    """Measurements of operators and functions on the GPU of this machine."""

    SUBJECT = "measurements on the local GPU"

    cache: str = option(
        "cold", "GPU: whether inputs are in the caches.", values=OneOf(("cold", "warm"))
    )
    timing: str = option(
        "events",
        "GPU: events around a call, or a replayed graph.",
        values=OneOf(("events", "graph")),
    )
    seconds: float = option(3.0, "GPU: time limit per subject.", values=Numbers(0.001, 1e6))
    samples: int = option(500, "GPU: largest number of samples per subject.", values=Integers(1))
    precision: float = option(
        0.5,
        "GPU: stop when the interval of the median is this narrow.",
        values=Numbers(1e-6, 100),
        metavar="PERCENT",
    )
    no_verify: bool = option(False, "GPU: do not check results.")

    def gpu_settings(self) -> GpuSettings:
        """How the GPU is measured."""
        from wavecast.benchmarking.measure.gpu import GpuSettings
        from wavecast.benchmarking.measure.sampling import SamplingBudget

        budget = SamplingBudget(self.seconds, self.samples, self.precision / 100)
        return GpuSettings(self.cache, self.timing, budget, verify=not self.no_verify)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class PredictedBench(AxesOptions):
    """Predictions of operators and functions, for GPUs that are not there."""

    SUBJECT = "predictions (--arch)"

    execute: bool = option(False, "Run the machine code on the emulator: exact counts and errors.")
    check: bool = option(False, "Run it and check for races, missing waits and more.")


@dataclass(frozen=True, kw_only=True)
class ScriptBench(BenchRunOptions):
    """The kernels of scripts, timed by the profiler or predicted."""

    SUBJECT = "scripts"

    kernels: str = option(
        "", "Script: only kernels whose name matches.", "-k", "--kernels", values=Regex()
    )
    show_output: bool = option(False, "Script: print its output to stderr.")


MODES: Final[dict[str, type[BenchRunOptions]]] = {"arch": PredictedBench, "script": ScriptBench}


def measured_options(subjects: Sequence[str], stated: Mapping[str, Any]) -> type[BenchRunOptions]:
    """The options that subjects have: scripts, GPUs that are predicted, or the local one."""
    if any(subject.endswith(".py") for subject in subjects):
        return ScriptBench
    return PredictedBench if stated.get("arch") else BenchOptions


@dataclass(frozen=True, slots=True, repr=False)
class BenchReport(ShownResult):
    """What a run measured; `store` is the file that keeps it. The document is a list of records."""

    WIDTH = 200
    session: SessionResult
    store: Path | None = None

    def to_dict(self) -> list[Any]:
        import json

        return [json.loads(record.to_json()) for record in self.session.records]

    def render(self, console: Console) -> None:
        from wavecast.report.bench import measurements_table as bench

        bench.render(self.session, console)

    def remarks(self) -> list[str]:
        from wavecast.report.bench import measurements_table as bench

        return bench.problems(self.session)

    def messages(self) -> list[str]:
        return [f"run {self.session.run.id} in {self.store}"] if self.store else []

    def why_nothing(self) -> str:
        empty = not self.session.records and not self.session.interrupted
        return "nothing was measured" if empty else ""

    def exit_code(self) -> int:
        if self.session.interrupted:
            from wavecast.pipeline.execute.outcome import INTERRUPTED

            return INTERRUPTED
        refused = any(record.refused for record in self.session.records)
        return int(bool(self.session.failed) or refused)

    def subject(self) -> str:
        return few([record.subject.key for record in self.session.records])


def bench(
    *subjects: str, script_args: Sequence[str] = (), progress: Progress = silent, **options: Any
) -> BenchReport:
    """Measure operators of the library (`rms_norm`), functions (`module:function`) or the kernels
    of scripts, on the GPU of this machine; with `arch` they are predicted, and no GPU is needed.

    `options` are those of the command line, by the names of `BenchOptions`, with `arch` those of
    `PredictedBench`, with scripts those of `ScriptBench`. `script_args` are for scripts. Records
    are stored as they come; Ctrl-C ends the run, and the report has what was measured.

    Raises UnknownName and UsageError for subjects, axes, GPUs and options that do not fit, and
    UsageError where there is no GPU to measure on.
    """
    from wavecast import arch
    from wavecast.benchmarking.store.sqlite import open_store

    stated = _bench_options(subjects, script_args, options)
    devices = [arch.load(name) for name in stated.arch]
    with contextlib.ExitStack() as stack:
        measure = _prepare(subjects, stated, devices, tuple(script_args))
        store = None if stated.no_store else stack.enter_context(open_store(stated.store_path))
        session = measure(store, progress)
    return BenchReport(session, None if stated.no_store else stated.store_path)


def _bench_options(
    subjects: Sequence[str], script_args: Sequence[str], options: Mapping[str, Any]
) -> BenchRunOptions:
    """The options of the subjects. Raises UsageError for one that would have no effect."""
    if not subjects:
        raise UsageError("bench needs a subject", hint="an operator, module:function or script")
    scripts = [subject for subject in subjects if subject.endswith(".py")]
    if scripts and len(scripts) < len(subjects):
        raise UsageError("a script must be the only subject of a run")
    if script_args and not scripts:
        raise UsageError(f"{' '.join(script_args)}: only scripts take arguments after --")
    chosen = measured_options(subjects, options)
    for name in options.keys() - chosen.described():
        every: tuple[type[Options], ...] = (BenchOptions, *MODES.values())
        for other in every:
            if name in other.described():
                flag = other.flag(name)
                raise UsageError(f"{flag} does not apply to {chosen.SUBJECT}")
        raise UnknownName("option", name, chosen.described())
    return chosen(**options)


_Measuring = Callable[["Store | None", Progress], "SessionResult"]


def _prepare(
    subjects: Sequence[str],
    options: BenchRunOptions,
    devices: Sequence[Device],
    script_args: tuple[str, ...],
) -> _Measuring:
    """What measures, with its names and axes looked up. Raises for wrong ones before a store is
    opened."""
    from wavecast.benchmarking.environment import new_run

    here = None if devices else _local()
    run = new_run(options.label)
    if isinstance(options, ScriptBench):
        from wavecast.benchmarking.measure.script import MeasuredScript, script_session

        quiet = not options.show_output
        scripts = [
            MeasuredScript(Path(name), script_args, options.kernels, quiet) for name in subjects
        ]
        return lambda store, progress: script_session(run, scripts, devices, store, progress, here)
    assert isinstance(options, AxesOptions)
    return _of_workloads(run, subjects, options, devices, here)


def _of_workloads(
    run: BenchRun,
    subjects: Sequence[str],
    options: AxesOptions,
    devices: Sequence[Device],
    here: LocalGpuState | None,
) -> _Measuring:
    from wavecast.benchmarking.measure.axes import parse, points
    from wavecast.benchmarking.measure.session import offline_measure, session
    from wavecast.benchmarking.measure.workload import workload

    axes = parse(options.axes)
    workloads = [workload(name, point) for name in subjects for point in points(axes)]
    total = len(workloads) * max(1, len(devices))

    def measure(store: Store | None, progress: Progress) -> SessionResult:
        begun = 0

        def begin(text: str) -> None:
            nonlocal begun
            begun += 1
            progress(f"{begun} of {total}: {text}")

        def report_samples(key: str, samples: int, width: float) -> None:
            precise = f" ±{width:.1%}" if width < 1 else ""
            progress(f"{begun} of {total}: {key}: {samples} samples{precise}")

        if isinstance(options, PredictedBench):
            offline = offline_measure(execute=options.execute or options.check, check=options.check)
            return session(run, workloads, devices, offline, store, begin)
        from wavecast.benchmarking.measure.gpu_session import gpu_session

        assert isinstance(options, BenchOptions)
        assert here is not None
        return gpu_session(
            run, workloads, here, options.gpu_settings(), store, begin, report_samples
        )

    return measure


def _local() -> LocalGpuState:
    """This machine's GPU. Raises UsageError where there is none to measure on."""
    from wavecast.benchmarking.measure.gpu_environment import here

    try:
        return here()
    except WavecastError as error:
        raise UsageError(
            f"{error.message}: choose the GPUs to predict for with --arch",
            hint="--arch gfx942,gfx1100",
        ) from None


__all__ = [
    "MODES",
    "BenchOptions",
    "BenchReport",
    "PredictedBench",
    "ScriptBench",
    "bench",
    "measured_options",
]
