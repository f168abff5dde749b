"""Measuring with no GPU: what is predicted, what the code takes, and what it executes.

Predictions and resources come from the kernels as they are compiled for the device; instructions,
bytes and conflicts are counted while the machine code runs on the emulator, every wave of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256

from wavecast.arch import Device
from wavecast.benchmarking.code import code_figures
from wavecast.benchmarking.measure.workload import Workload
from wavecast.benchmarking.records import BenchRecord, BenchSubject, Conditions, Environment, Figure
from wavecast.compile.codeobject import Launch
from wavecast.emulate.trace.result import Trace
from wavecast.errors import NothingAnalysed
from wavecast.isa.opcode import Space
from wavecast.perfmodel.bounds import Work
from wavecast.perfmodel.roofline import roofline
from wavecast.pipeline.explain.result import Explanation
from wavecast.pipeline.explain.steps import Given, explain_launch

CONDITIONS = Conditions(timing="predicted")

_SUMMED = frozenset(
    {"predicted_seconds", "findings", "instructions", "matrix_instructions", "barriers"}
    | {"memory_instructions", "global_bytes", "bank_conflicts", "code_instructions"}
)
"""KPIs of a whole call that are the sum over its kernels; of `waves` it is the least, of others the
most."""
_GLOBAL = (Space.GLOBAL, Space.BUFFER, Space.FLAT)


def measure(
    workload: Workload,
    device: Device,
    environment: Environment,
    *,
    execute: bool = False,
    check: bool = False,
) -> list[BenchRecord]:
    """The records of a workload on a device: one for all of it, and one per kernel where it has
    several.

    With `execute` its machine code runs on the emulator, with values, and is compared with its
    reference where it has one; `check` watches it. Raises NothingAnalysed when it launches nothing,
    WavecastError when it does not compile.
    """
    from wavecast.runtimes.triton import capture

    with capture(device) as launches:
        workload.prepare(0, values=False)()
    if not launches:
        raise NothingAnalysed(f"{workload.subject.key} launches no Triton kernel")
    traces = _traces(workload, device) if execute else []
    work = workload.work()
    records = of_launches(workload.subject, launches, device, environment, traces, work)
    if not execute and not check:
        return records
    error, problems = workload.problems(device.target, check=check)
    figures = dict(records[0].figures)
    if error is not None:
        figures["numerical_error"] = Figure(min(error, 1e300), "executed")
    if check:
        reported = sum(problem.startswith("check:") for problem in problems)
        figures["check_reports"] = Figure(float(reported), "executed")
    notes = (*records[0].notes, *problems)
    wrong = [problem for problem in problems if not problem.startswith("check:")]
    whole = BenchRecord(
        subject=records[0].subject,
        environment=environment,
        conditions=CONDITIONS,
        figures=figures,
        digest=records[0].digest,
        floor_seconds=records[0].floor_seconds,
        refused=f"wrong result: {wrong[0]}" if wrong else "",
        notes=notes,
    )
    return [whole, *records[1:]]


def of_launches(
    subject: BenchSubject,
    launches: Sequence[Launch],
    device: Device,
    environment: Environment,
    traces: Sequence[Trace] = (),
    work: Work | None = None,
) -> list[BenchRecord]:
    """The records of launches that belong to one subject, as `measure` gives them."""
    hints = Given(flops_hint=dict(work.flops or {})) if work else Given()
    explained = [explain_launch(launch, device, hints) for launch in launches]
    names = [explanation.code.kernel for explanation in explained]
    parts = []
    for number, explanation in enumerate(explained):
        figures = {**_static(explanation), **_execution_figures(traces, explanation)}
        name = names[number]
        if names.count(name) > 1:
            name = f"{name} {names[:number].count(name) + 1}"
        parts.append(
            BenchRecord(
                subject=BenchSubject(subject.kind, subject.name, subject.axes, name),
                environment=environment,
                conditions=CONDITIONS,
                figures=figures,
                digest=explanation.code.digest,
                floor_seconds=explanation.roofline.floor_seconds,
                notes=(explanation.predicted.why_not,) if explanation.predicted.why_not else (),
            )
        )
    floor = roofline(work, device).floor_seconds if work else None
    if floor is None:
        floors = [explanation.roofline.floor_seconds for explanation in explained]
        floor = sum(f for f in floors if f) if all(floors) else None
    digest = sha256(" ".join(part.digest for part in parts).encode()).hexdigest()[:32]
    whole = BenchRecord(
        subject=subject,
        environment=environment,
        conditions=CONDITIONS,
        figures=_together([part.figures for part in parts]),
        digest=parts[0].digest if len(parts) == 1 else digest,
        floor_seconds=floor,
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
    )
    return [whole] if len(parts) == 1 else [whole, *parts]


def _static(explanation: Explanation) -> dict[str, Figure]:
    """What the code takes, and its predicted time."""
    figures = {name: Figure(value, "static") for name, value in code_figures(explanation).items()}
    prediction = explanation.predicted.prediction
    if prediction is not None:
        time = Figure(prediction.seconds, "predicted", low=prediction.low, high=prediction.high)
        figures["predicted_seconds"] = time
    return figures


def _execution_figures(traces: Iterable[Trace], explanation: Explanation) -> dict[str, Figure]:
    """Counts of the launches of one kernel; {} where it was not executed whole."""
    mine = [
        trace
        for trace in traces
        if trace.digest == explanation.code.digest
        and trace.complete
        and (explanation.launch is None or trace.grid == explanation.launch.grid)
    ]
    if not mine:
        return {}
    trace = mine[0]
    classes = trace.class_counts()
    globals_ = [counts for counts in trace.memory.values() if counts.space in _GLOBAL]
    shared = [counts for counts in trace.memory.values() if counts.space is Space.LDS]
    values = {
        "instructions": trace.instructions,
        "matrix_instructions": classes.get("matrix", 0),
        "barriers": classes.get("barrier", 0),
        "memory_instructions": sum(counts.executions for counts in globals_),
        "global_bytes": sum(counts.bytes for counts in globals_),
        "bank_conflicts": sum(counts.passes - counts.groups for counts in shared),
    }
    return {name: Figure(float(value), "executed") for name, value in values.items()}


def _together(every: Sequence[Mapping[str, Figure]]) -> dict[str, Figure]:
    """The figures of a whole call; one that a kernel lacks is lacking."""
    names = [name for name in every[0] if all(name in part for part in every)]
    totals = {}
    for name in names:
        figures = [part[name] for part in every]
        values = [figure.value for figure in figures]
        if name in _SUMMED:
            low = _sum(figure.low for figure in figures)
            high = _sum(figure.high for figure in figures)
            totals[name] = Figure(sum(values), figures[0].origin, low=low, high=high)
        else:
            value = min(values) if name == "waves" else max(values)
            totals[name] = Figure(value, figures[0].origin)
    return totals


def _sum(values: Iterable[float | None]) -> float | None:
    terms = list(values)
    return None if None in terms else sum(value for value in terms if value is not None)


def _traces(workload: Workload, device: Device) -> list[Trace]:
    from wavecast.runtimes.triton import device as emulated

    with emulated(device, trace=True) as hooks:
        workload.prepare(0)()
    return hooks.traces


__all__ = ["CONDITIONS", "measure", "of_launches"]
