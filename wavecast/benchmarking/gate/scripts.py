"""The kernels a script launches, each launch a subject."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from wavecast.arch import Device
from wavecast.benchmarking.gate.guards import Guard
from wavecast.benchmarking.measure import offline
from wavecast.benchmarking.records import BenchRecord, BenchSubject, Environment, Figure, Scalar
from wavecast.compile.codeobject import Argument, Launch
from wavecast.emulate.errors import ExecutionError, Unsupported
from wavecast.errors import NothingAnalysed, WavecastError

EnvironmentOf = Callable[[Device], Environment]
"""What is kept about where a device was measured."""


@dataclass(slots=True)
class OnDevice:
    """The records of a script on a device, one per launch; `failed` says what else went wrong."""

    records: list[BenchRecord] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    failed: str = ""


def script_records(
    guard: Guard, devices: Sequence[Device], root: Path, environment_of: EnvironmentOf
) -> dict[str, OnDevice]:
    """What a script launches, by device. Raises WavecastError when it launches nothing at all."""
    from wavecast.runtimes.triton import capture_script

    captured = capture_script(
        root / guard.name,
        guard.arguments,
        devices,
        kernels=guard.kernels,
        timeout=guard.timeout,
        quiet=True,
    )
    by_device: dict[str, OnDevice] = {}
    for device in devices:
        mine = by_device[device.id] = OnDevice()
        problems = [
            f"{failure.kernel}: {failure.message}"
            for failure in captured.failures
            if failure.target == device.target
        ]
        launches = captured.launches.get(device.target, ())
        executed = _execute(guard, device, root)
        environment = environment_of(device)
        for subject, launch in zip(subjects(guard, launches), launches, strict=True):
            try:
                record = _record(subject, launch, device, environment, executed, guard)
            except WavecastError as error:
                problems.append(f"{subject.key}: {error}")
                continue
            mine.records.append(record)
            mine.launches.append(launch)
        if not launches and not problems:
            problems.append(str(NothingAnalysed(f"{guard.name} launches no kernel")))
        mine.failed = "; ".join(problems)
    return by_device


def subjects(guard: Guard, launches: Sequence[Launch]) -> list[BenchSubject]:
    """One subject per launch: `script.py:kernel` at the shapes and dtypes of its tensors. Launches
    that are the same in these are numbered in their order."""
    bench_subjects: list[BenchSubject] = []
    counts: dict[str, int] = {}
    for launch in launches:
        axes: dict[str, Scalar] = {
            argument.name: _argument_text(argument)
            for argument in launch.arguments
            if argument.kind in ("tensor", "descriptor")
        }
        if guard.arguments:
            axes["args"] = " ".join(guard.arguments)
        subject = BenchSubject("kernel", f"{guard.name}:{launch.code.kernel}", axes)
        number = counts[subject.key] = counts.get(subject.key, 0) + 1
        bench_subjects.append(replace(subject, part=f"#{number}") if number > 1 else subject)
    return bench_subjects


def _argument_text(argument: Argument) -> str:
    """`64x128:bfloat16`."""
    return f"{'x'.join(map(str, argument.shape))}:{argument.dtype}"


@dataclass(frozen=True, slots=True)
class _Executed:
    """What running a script gave. `ran` says whether it was run at all."""

    ran: bool = False
    traces: Sequence[Any] = ()
    reports: Sequence[Any] = ()
    wrong: str = ""
    note: str = ""


def _execute(guard: Guard, device: Device, root: Path) -> _Executed:
    """The script with its launches executed; a script that raises or exits with an error found its
    results wrong."""
    if not (guard.execute or guard.checks):
        return _Executed()
    if device.vendor != "amd":
        return _Executed(note=f"not executed: {device.name} runs no AMD machine code")
    from wavecast.emulate.check.collected import Reports
    from wavecast.emulate.trace.mode import TraceMode
    from wavecast.runtimes.triton import run_script

    reports, tracing = Reports(), TraceMode()
    with _restore_process_state():
        try:
            script_run = run_script(
                root / guard.name,
                guard.arguments,
                device.id,
                kernels=guard.kernels,
                check=reports if guard.checks else False,
                trace=tracing if guard.execute else False,
            )
        except Unsupported as error:
            return _Executed(note=f"not executed: {error}")
        except ExecutionError as error:
            return _Executed(ran=True, wrong=str(error))
    wrong = ""
    if script_run.code:
        wrong = _error_summary(script_run.traceback) or f"exit code {script_run.code}"
    return _Executed(True, tracing.traces, reports.errors, wrong)


def _error_summary(traceback: str) -> str:
    """The error at the end of a traceback, its lines as one of at most 300 characters."""
    lines = traceback.rstrip().splitlines()
    frames = [number for number, line in enumerate(lines) if line.startswith("  File ")]
    after = lines[frames[-1] + 1 :] if frames else lines
    text = " ".join(" ".join(line for line in after if not line.startswith("    ")).split())
    return text if len(text) <= 300 else text[:300] + " …"


def _record(
    subject: BenchSubject, launch: Launch, device: Device, environment: Environment,
    executed: _Executed, guard: Guard,
) -> BenchRecord:  # fmt: skip
    digest, grid = launch.code.digest, launch.grid
    traces = [trace for trace in executed.traces if (trace.digest, trace.grid) == (digest, grid)]
    record = offline.of_launches(subject, [launch], device, environment, traces)[0]
    notes = (executed.note,) if executed.note else ()
    figures = dict(record.figures)
    if executed.ran and guard.checks:
        mine = [report for report in executed.reports if report.kernel == launch.code.kernel]
        figures["check_reports"] = Figure(float(len(mine)), "executed")
        notes += tuple(f"check: {report.kind.rule}: {report.message}" for report in mine)
    refusal = f"wrong result: {executed.wrong}" if executed.wrong else ""
    return replace(record, figures=figures, refused=refusal, notes=(*record.notes, *notes))


@contextlib.contextmanager
def _restore_process_state() -> Iterator[None]:
    """Undo what running a script as `__main__` leaves in this process."""
    main, arguments, path = sys.modules["__main__"], sys.argv, list(sys.path)
    try:
        yield
    finally:
        sys.modules["__main__"], sys.argv, sys.path[:] = main, arguments, path


__all__ = ["EnvironmentOf", "OnDevice", "script_records", "subjects"]
