"""Measuring the kernels a script launches: predicted for GPUs that are not there, or timed by
torch's profiler on the local one.

A launch is told from others of its kernel by its grid and its scalar arguments; constants are not
among them, for they are what is tuned.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from wavecast.arch import Device
from wavecast.benchmarking.environment import emulated_environment
from wavecast.benchmarking.measure import offline, physics
from wavecast.benchmarking.measure.gpu_environment import LocalGpuState
from wavecast.benchmarking.measure.session import Failed, Progress, SessionResult, keeping
from wavecast.benchmarking.records import (
    BenchRecord,
    BenchRun,
    BenchSubject,
    Conditions,
    Figure,
    Scalar,
)
from wavecast.benchmarking.store.base import Store
from wavecast.compile.codeobject import Launch
from wavecast.errors import NothingAnalysed, StoreError, WavecastError
from wavecast.runtimes.gpu import KernelRun, profile_script
from wavecast.runtimes.triton import Capture, capture_script

PROFILED = Conditions(timing="profiler", inputs="given")
"""Caches are as the script leaves them; data is its own."""


@dataclass(frozen=True, slots=True)
class MeasuredScript:
    """A script, its arguments, and a regular expression of the kernels to measure ("": all)."""

    path: Path
    arguments: tuple[str, ...] = ()
    kernels: str = ""
    quiet: bool = True


def script_session(
    run: BenchRun,
    scripts: Sequence[MeasuredScript],
    devices: Sequence[Device],
    store: Store | None = None,
    progress: Progress = lambda _: None,
    here: LocalGpuState | None = None,
) -> SessionResult:
    """Measure the kernels of scripts on `devices`, or with `here` on the local GPU. A script or
    kernel that fails is in the outcome, and the others continue."""
    outcome = SessionResult(run)
    with keeping(outcome, store) as keep:
        for script in scripts:
            try:
                if here is not None:
                    progress(f"{script.path.name} on {here.environment.board}")
                    for record in measure_kernels(script, here, outcome):
                        keep(record)
                else:
                    for record in predict_launches(script, devices, outcome, progress):
                        keep(record)
            except StoreError:
                raise
            except WavecastError as error:
                names = ", ".join(device.id for device in devices) or "local GPU"
                outcome.failed.append(Failed(str(script.path), names, str(error)))
    return outcome


def predict_launches(
    script: MeasuredScript, devices: Sequence[Device], outcome: SessionResult, progress: Progress
) -> Iterator[BenchRecord]:
    """Records of a script's launches, device by device."""
    progress(f"{script.path.name}: launches")
    capture = _capture(script, devices, outcome)
    for device in devices:
        launches = capture.launches.get(device.target, ())
        for subject, launch in subjects(launches):
            progress(f"{subject.key} on {device.id}")
            yield from _of_launch(subject, launch, device, outcome)


def measure_kernels(
    script: MeasuredScript, here: LocalGpuState, outcome: SessionResult
) -> Iterator[BenchRecord]:
    """Records of the Triton kernels a script launches on the local GPU: times by torch's profiler,
    the rest from the launches as they are captured for the GPU. Raises NothingAnalysed when the
    profiler saw none of them."""
    device = here.device
    runs = profile_script(script.path, arguments=script.arguments)
    launched: Sequence[tuple[BenchSubject, Launch]] = ()
    if device is not None and runs:
        capture = _capture(script, [device], outcome)
        launched = subjects(capture.launches.get(device.target, ()))
    has_runs = False
    for run in runs:
        mine = [pair for pair in launched if _same(pair[1], run)]
        if device is not None and not mine:
            continue  # not the script's own: a kernel of torch, or one that -k leaves out
        has_runs = True
        yield _kernel_record(run, mine, here, outcome)
    if not has_runs:
        raise NothingAnalysed(f"{script.path.name} launched no Triton kernel the profiler saw")


def subjects(launches: Sequence[Launch]) -> list[tuple[BenchSubject, Launch]]:
    """Launches with what they are called in records; those that grid and scalars do not tell apart
    are numbered in order of their first appearance."""
    identities = [(launch.code.kernel, _axes(launch)) for launch in launches]
    counts = Counter((name, str(axes)) for name, axes in identities)
    appearances: Counter[tuple[str, str]] = Counter()
    bench_subjects = []
    for launch, (name, axes) in zip(launches, identities, strict=True):
        key = name, str(axes)
        appearances[key] += 1
        numbered = {**axes, "launch": appearances[key]} if counts[key] > 1 else axes
        bench_subjects.append((BenchSubject("kernel", name, numbered), launch))
    return bench_subjects


def _axes(launch: Launch) -> Mapping[str, Scalar]:
    axes: dict[str, Scalar] = {"grid": "x".join(map(str, launch.grid))}
    for argument in launch.arguments:
        if argument.kind == "scalar" and isinstance(argument.value, (bool, int, float)):
            value = argument.value
            axes[argument.name] = value if math.isfinite(value) else str(value)
    tensors = (tensor for tensor in launch.arguments if tensor.kind not in ("scalar", "constant"))
    dtypes = dict.fromkeys(tensor.dtype for tensor in tensors if tensor.dtype)
    if dtypes:
        axes["dtypes"] = ",".join(dtypes)
    return axes


def _capture(script: MeasuredScript, devices: Sequence[Device], outcome: SessionResult) -> Capture:
    capture = capture_script(
        script.path, script.arguments, devices, kernels=script.kernels, quiet=script.quiet
    )
    for failure in capture.failures:
        name = failure.kernel or str(script.path)
        outcome.failed.append(Failed(f"kernel {name}", failure.target, failure.message))
    return capture


def _of_launch(
    subject: BenchSubject, launch: Launch, device: Device, outcome: SessionResult
) -> Iterator[BenchRecord]:
    environment = emulated_environment(device)
    try:
        yield from offline.of_launches(subject, [launch], device, environment)
    except WavecastError as error:
        outcome.failed.append(Failed(subject.key, device.id, str(error)))


def _same(launch: Launch, run: KernelRun) -> bool:
    return launch.code.kernel == run.kernel and launch.grid == run.grid


def _kernel_record(
    run: KernelRun,
    mine: Sequence[tuple[BenchSubject, Launch]],
    here: LocalGpuState,
    outcome: SessionResult,
) -> BenchRecord:
    """The record of a profiled kernel; what is known of its launch only where it is one."""
    samples = run.samples or (run.seconds,)
    figures = {"measured_seconds": Figure(median(samples), "measured", samples=samples)}
    environment, notes = here.environment, [f"{run.launches} launches in the script"]
    base: BenchRecord | None = None
    subject = BenchSubject("kernel", run.kernel, {"grid": "x".join(map(str, run.grid))})
    if len(mine) == 1 and here.device is not None:
        subject = mine[0][0]
        base = next(_of_launch(*mine[0], here.device, outcome), None)
    elif len(mine) > 1:
        notes.append(f"{len(mine)} different launches have this grid: their times are together")
    notes.append(here.sensors.absent or "clocks were not watched: the script has its own process")
    refusal = physics.implausible(samples, cold=False, resolution=0.0)
    return BenchRecord(
        subject=subject,
        environment=environment,
        conditions=PROFILED,
        figures={**(base.figures if base is not None else {}), **figures},
        digest=base.digest if base is not None else "",
        floor_seconds=base.floor_seconds if base is not None else None,
        refused=refusal,
        notes=(*(base.notes if base is not None else ()), *notes),
    )


__all__ = [
    "PROFILED",
    "MeasuredScript",
    "measure_kernels",
    "predict_launches",
    "script_session",
    "subjects",
]
