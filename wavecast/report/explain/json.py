"""A report as JSON, schema `wavecast.explain/1` (docs/json.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wavecast import json_objects
from wavecast.documents.explain import (
    DeviceFiguresJson,
    ExplainDocument,
    FailureJson,
    LaunchRowJson,
    MainLoopJson,
    ModelLineChangeJson,
    ModelLineTimeJson,
    SeverityCountsJson,
)
from wavecast.json_schema import json_schema
from wavecast.report.explain import summary
from wavecast.report.explain.entry import kernel_entry
from wavecast.version import __version__

if TYPE_CHECKING:
    from wavecast.analyze.result import CodeAnalysis
    from wavecast.pipeline.explain.result import (
        ExplainReport,
        Explanation,
        Failure,
        ModelLineChange,
        ModelLineTime,
    )


def document(report: ExplainReport) -> dict[str, Any]:
    """The report as plain dicts, lists, strings and numbers."""
    groups = summary.groups(report)
    labels = {id(e): group.label for group in groups for e in group.explanations}
    return json_objects.values(
        ExplainDocument(
            wavecast=__version__,
            inputs=list(report.inputs),
            notes=list(report.notes),
            failures=[failure_entry(failure) for failure in report.failures],
            choices=list(report.choices),
            lines=[_line(line) for line in report.lines],
            changes=[_change(change) for change in report.changes],
            comparison=[
                LaunchRowJson.of(group, entries=[_device(e) for e in group.explanations])
                for group in groups
            ],
            kernels=[kernel_entry(e, labels[id(e)]) for e in report.explanations],
        )
    )


def dumps(report: ExplainReport, *, indent: int | None = 2) -> str:
    """The document as JSON text, without NaN or Infinity."""
    return json_objects.dumps(document(report), indent=indent)


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of `document`, a fresh copy."""
    return json_schema(ExplainDocument)


def failure_entry(failure: Failure) -> FailureJson:
    """A failure as an entry of a document."""
    return FailureJson.of(failure, arch=failure.target)


def _line(row: ModelLineTime) -> ModelLineTimeJson:
    return ModelLineTimeJson(
        row.device.target, row.device.name, list(row.lines), list(row.kernels), row.seconds
    )


def _change(change: ModelLineChange) -> ModelLineChangeJson:
    device, old, new = change.before.device, change.before, change.after
    return ModelLineChangeJson(
        device.target, device.name, list(change.lines),
        list(old.kernels), old.seconds, list(new.kernels), new.seconds,
    )  # fmt: skip


def _device(explanation: Explanation) -> DeviceFiguresJson:
    analysis = explanation.analysis
    prediction = explanation.predicted.prediction
    return DeviceFiguresJson.of(
        explanation.roofline,
        arch=explanation.device.target,
        device=explanation.device.name,
        vgpr=analysis.registers.vgpr,
        agpr=analysis.registers.agpr,
        sgpr=analysis.registers.sgpr,
        spilled=analysis.registers.spilled,
        lds_bytes=analysis.lds_bytes,
        waves_per_simd=analysis.occupancy.waves_per_simd,
        occupancy_limiter=analysis.occupancy.limiter,
        main_loop=_main_loop(analysis),
        predicted_seconds=prediction.seconds if prediction else None,
        predicted_low=prediction.low if prediction else None,
        predicted_high=prediction.high if prediction else None,
        limiter=prediction.limiter if prediction else "",
        findings=SeverityCountsJson(**summary.severity_counts(explanation.findings)),
    )


def _main_loop(analysis: CodeAnalysis) -> MainLoopJson | None:
    loop = summary.main_loop(analysis)
    if loop is None:
        return None
    return MainLoopJson(
        line=summary.line_of(loop.location),
        limiter=loop.limiter,
        cycles=max(loop.cycles.values(), default=None),
    )


__all__ = ["document", "dumps", "failure_entry", "schema"]
