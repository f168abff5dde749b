"""The records of one guard on its devices, with where their kernels are written."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from wavecast import arch
from wavecast.arch import Device
from wavecast.benchmarking.gate.codes import code_of
from wavecast.benchmarking.gate.failures import below, failure_location
from wavecast.benchmarking.gate.guards import NOWHERE, Guard, KernelLocation
from wavecast.benchmarking.gate.profiled import profile_records
from wavecast.benchmarking.gate.scripts import EnvironmentOf, script_records
from wavecast.benchmarking.measure import offline
from wavecast.benchmarking.measure.workload import Workload, workload
from wavecast.benchmarking.records import BenchRecord, Environment, Figure
from wavecast.compile.codeobject import Launch
from wavecast.emulate.errors import ExecutionError, Unsupported
from wavecast.errors import CaptureError, NothingAnalysed, WavecastError
from wavecast.kernels.operator import Tolerance


@dataclass(frozen=True, slots=True)
class Taken:
    """What measuring a guard on a device gave: its records, or why there are none and where that
    is written. By the key of a record's subject, `locations` where its kernel is written and
    `codes` names its machine code."""

    guard: Guard
    device: str
    records: tuple[BenchRecord, ...] = ()
    failed: str = ""
    locations: Mapping[str, KernelLocation] = field(default_factory=dict)
    codes: Mapping[str, str] = field(default_factory=dict)
    failed_at: KernelLocation = NOWHERE


def failure_of(guard: Guard, device: str, error: BaseException, root: Path) -> Taken:
    """A guard that an error kept from being measured."""
    return Taken(guard, device, failed=str(error), failed_at=failure_location(error, guard, root))


def measure(guard: Guard, root: Path, environment_of: EnvironmentOf) -> list[Taken]:
    """A guard on all of its devices. What fails is told in the result. What kernels and scripts
    print goes to stderr."""
    devices = [arch.load(name) for name in guard.devices]
    if guard.profile:
        return [_of_profile(guard, device, root, environment_of) for device in devices]
    with contextlib.redirect_stdout(sys.stderr):
        if guard.kind == "kernel":
            return _of_script(guard, devices, root, environment_of)
        return [_of_call(guard, device, root, environment_of) for device in devices]


def _of_profile(guard: Guard, device: Device, root: Path, environment_of: EnvironmentOf) -> Taken:
    try:
        records = profile_records(guard, device, root, environment_of)
    except WavecastError as error:
        return failure_of(guard, device.id, error, root)
    return Taken(guard, device.id, records)


def _of_script(
    guard: Guard, devices: Sequence[Device], root: Path, environment_of: EnvironmentOf
) -> list[Taken]:
    try:
        by_device = script_records(guard, devices, root, environment_of)
    except WavecastError as error:
        return [failure_of(guard, device.id, error, root) for device in devices]
    measurements = []
    for device in devices:
        mine = by_device[device.id]
        keys = [record.subject.key for record in mine.records]
        locations = {
            key: location_of(launch, root) for key, launch in zip(keys, mine.launches, strict=True)
        }
        codes = {key: code_of([launch]) for key, launch in zip(keys, mine.launches, strict=True)}
        where = failure_location(mine.failed, guard, root) if mine.failed else NOWHERE
        records = tuple(mine.records)
        measurements.append(Taken(guard, device.id, records, mine.failed, locations, codes, where))
    return measurements


def _of_call(guard: Guard, device: Device, root: Path, environment_of: EnvironmentOf) -> Taken:
    try:
        with translate_errors(guard.line):
            bench_workload = workload(guard.name, guard.axes)
            launches = _capture(bench_workload, device)
            records = _records(guard, bench_workload, launches, device, environment_of(device))
    except WavecastError as error:
        return failure_of(guard, device.id, error, root)
    # One record of the whole, then one per launch where there are several.
    of_records = [launches, *([launch] for launch in launches)][: len(records)]
    keys = [record.subject.key for record in records]
    locations = {
        key: location_of(mine[0], root) for key, mine in zip(keys, of_records, strict=True)
    }
    codes = {key: code_of(mine) for key, mine in zip(keys, of_records, strict=True)}
    return Taken(guard, device.id, tuple(records), locations=locations, codes=codes)


def _capture(bench_workload: Workload, device: Device) -> list[Launch]:
    from wavecast.runtimes.triton import capture

    with capture(device) as launches:
        bench_workload.prepare(0, values=False)()
    if not launches:
        raise NothingAnalysed(f"{bench_workload.subject.key} launches no Triton kernel")
    return launches


def _records(
    guard: Guard,
    bench_workload: Workload,
    launches: Sequence[Launch],
    device: Device,
    environment: Environment,
) -> list[BenchRecord]:
    work = bench_workload.work()
    if not (guard.execute or guard.checks):
        return offline.of_launches(bench_workload.subject, launches, device, environment, work=work)
    if device.vendor != "amd":
        records = offline.of_launches(
            bench_workload.subject, launches, device, environment, work=work
        )
        note = f"not executed: {device.name} runs no AMD machine code"
        return [replace(records[0], notes=(*records[0].notes, note)), *records[1:]]
    executed = _execute(guard, bench_workload, device)
    records = offline.of_launches(
        bench_workload.subject, launches, device, environment, executed.traces, work
    )
    figures = {**records[0].figures, **executed.figures}
    whole = replace(
        records[0],
        figures=figures,
        refused=f"wrong result: {executed.wrong}" if executed.wrong else "",
        notes=(*records[0].notes, *executed.notes),
    )
    return [whole, *records[1:]]


@dataclass(frozen=True, slots=True)
class _Executed:
    """What running a call gave; `wrong` says why its result is, "" where it is right."""

    traces: Sequence[Any] = ()
    figures: Mapping[str, Figure] = field(default_factory=dict)
    wrong: str = ""
    notes: tuple[str, ...] = ()


def _execute(guard: Guard, bench_workload: Workload, device: Device) -> _Executed:
    from wavecast.emulate.check.collected import Reports
    from wavecast.runtimes.triton import device as emulated

    reports = Reports()
    checks = reports if guard.checks else False
    try:
        with emulated(device, trace=guard.execute, check=checks) as hooks:
            got = bench_workload.prepare(1)()
        if guard.kind == "operator":
            error, problems = bench_workload.problems(device.target, check=False)
            wrong = problems[0] if problems else ""
        else:
            error, wrong = _against_reference(guard, got, device)
    except Unsupported as unsupported:
        return _Executed(notes=(f"not executed: {unsupported}",))
    except (ExecutionError, AssertionError) as broken:
        return _Executed(wrong=f"{type(broken).__name__}: {one_line(broken)}")
    figures = {}
    if error is not None:
        figures["numerical_error"] = Figure(min(error, 1e300), "executed")
    notes = []
    if guard.checks:
        figures["check_reports"] = Figure(float(len(reports.errors)), "executed")
        notes = [f"check: {report.kind.rule}: {report.message}" for report in reports.errors]
    return _Executed(hooks.traces, figures, wrong, tuple(notes))


def _against_reference(guard: Guard, got: Any, device: Device) -> tuple[float | None, str]:
    """(largest error as a multiple of the tolerance, what is wrong) of a function's result; (None,
    "") without a reference. Both make their inputs from the same seed."""
    if not guard.reference:
        return None, ""
    from wavecast.frameworks.torch import verify
    from wavecast.runtimes.triton import device as emulated

    with emulated(device):
        right = workload(guard.reference, guard.axes).prepare(1)()
    actual, expected = tensors(got), tensors(right)
    if not expected:
        raise CaptureError(f"{guard.reference} gives no tensor to compare with")
    if len(actual) != len(expected):
        return None, f"{len(actual)} results, expected {len(expected)}"
    tolerance = Tolerance(guard.ulps, guard.accumulated)
    pairs = list(zip(actual, expected, strict=True))
    errors = [verify.excess(output, reference, tolerance) for output, reference in pairs]
    wrong = [verify.difference(output, reference, tolerance) for output, reference in pairs]
    return max(errors), next(
        (f"result {location}: {text}" for location, text in enumerate(wrong) if text), ""
    )


def tensors(value: Any) -> list[Any]:
    """The tensors of a result, in order."""
    if hasattr(value, "data_ptr"):
        return [value]
    if isinstance(value, Mapping):
        return [tensor for key in value for tensor in tensors(value[key])]
    if isinstance(value, (list, tuple)):
        return [tensor for part in value for tensor in tensors(part)]
    return []


@contextlib.contextmanager
def translate_errors(what: str) -> Iterator[None]:
    """Raises CaptureError in place of an error of the user's code in the block."""
    try:
        yield
    except WavecastError:
        raise
    except Exception as error:
        raise CaptureError(f"{what}: {type(error).__name__}: {one_line(error)}") from error


def one_line(error: BaseException) -> str:
    """What an error says, in at most 200 characters."""
    text = " ".join(str(error).split())
    return text if len(text) <= 200 else text[:200] + " …"


def location_of(launch: Launch, root: Path) -> KernelLocation:
    """Where a kernel is written, below the project's folder where it lies there."""
    code = launch.code
    if not code.source:
        return NOWHERE
    return KernelLocation(below(code.source, root), code.source_line)


__all__ = [
    "Taken",
    "failure_of",
    "location_of",
    "measure",
    "one_line",
    "tensors",
    "translate_errors",
]
