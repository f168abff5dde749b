"""Comparisons of two versions of kernels as JSON, schema `wavecast.diff/1`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wavecast.analyze.result import LoopAnalysis
from wavecast.bench.diff.bisect import Found, Probe
from wavecast.bench.diff.result import Delta, Diff, DiffLine, DiffRegion, DiffRow, KernelDiff
from wavecast.pipeline.result import Failure
from wavecast.report.entry_values import number
from wavecast.rules.finding import Finding

SCHEMA = "wavecast.diff/1"
BISECT_SCHEMA = "wavecast.bisect/1"


def document(found: Diff) -> dict[str, Any]:
    """A comparison as JSON-ready values. Unknown numbers are null."""
    return {
        "schema": SCHEMA,
        "before": found.before,
        "after": found.after,
        "kernels": [_kernel(kernel) for kernel in found.kernels],
        "failed_before": [_failure(failure) for failure in found.failed_before],
        "failed_after": [_failure(failure) for failure in found.failed_after],
        "notes": list(found.notes),
    }


def bisect_document(found: Found, diff: Diff | None) -> dict[str, Any]:
    """A search over releases as JSON-ready values, with the comparison of the two releases around
    the change."""
    return {
        "schema": BISECT_SCHEMA,
        "kpi": found.kpi.name,
        "releases": list(found.releases),
        "first_worse": found.first_worse,
        "last_good": found.last_good,
        "undecided": list(found.undecided),
        "probes": [_probe(probe) for probe in found.probes],
        "diff": None if diff is None else document(diff),
    }


def _probe(probe: Probe) -> dict[str, Any]:
    return {
        "release": probe.release,
        "values": {name: number(value) for name, value in probe.values.items()},
        "failed": probe.failed,
        "worse": list(probe.worse),
        "verdict": probe.verdict,
    }


def _kernel(kernel: KernelDiff) -> dict[str, Any]:
    return {
        "kernel": kernel.name,
        "number": kernel.number,
        "device": kernel.device.id,
        "arch": kernel.device.target,
        "in": ["before", "after"] if kernel.paired else ["after" if kernel.after else "before"],
        "same_code": kernel.same_code,
        "figures": _deltas(kernel.figures),
        "resources": _deltas(kernel.resources),
        "mix": _deltas(kernel.mix),
        "basis": kernel.basis,
        "responsible": next(
            (i for i, one in enumerate(kernel.regions) if one is kernel.responsible), None
        ),
        "regions": [_region(region) for region in kernel.regions],
        "lines": [_line(line) for line in kernel.lines if line.spent.changed],
        "findings_gone": [_finding(finding) for finding in kernel.findings_gone],
        "findings_new": [_finding(finding) for finding in kernel.findings_new],
    }


def _deltas(deltas: Iterable[Delta]) -> dict[str, Any]:
    return {delta.name: _delta(delta) for delta in deltas}


def _delta(delta: Delta) -> dict[str, Any]:
    return {"before": number(delta.before), "after": number(delta.after)}


def _region(region: DiffRegion) -> dict[str, Any]:
    return {
        "loop": region.loop,
        "line_before": region.lines[0] or None,
        "line_after": region.lines[1] or None,
        "text": region.text,
        "spent": _delta(region.spent),
        "before": _loop(region.before),
        "after": _loop(region.after),
        "changes": region.changes,
        "rows": [_row(row) for row in region.rows] if region.changes else [],
    }


def _loop(loop: LoopAnalysis | None) -> dict[str, Any] | None:
    if loop is None:
        return None
    return {
        "index": loop.index,
        "depth": loop.depth,
        "trip_count": number(loop.trip_count),
        "cycles": {pipe: number(cycles) for pipe, cycles in loop.cycles.items()},
        "limiter": loop.limiter,
        "critical_path": number(loop.critical_path),
        "instructions": dict(loop.instructions),
    }


def _row(row: DiffRow) -> list[Any]:
    return [row.kind, row.before, row.after, row.before_text, row.after_text]


def _line(line: DiffLine) -> dict[str, Any]:
    return {
        "file": line.file,
        "line_before": line.before or None,
        "line_after": line.after or None,
        "text": line.text,
        "spent": _delta(line.spent),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    place = finding.location
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "message": finding.message,
        "line": place.outermost.line if place else None,
    }


def _failure(failure: Failure) -> dict[str, Any]:
    return {
        "kernel": failure.kernel,
        "arch": failure.target,
        "stage": failure.stage,
        "message": failure.message,
        "hint": failure.hint,
    }


__all__ = ["BISECT_SCHEMA", "SCHEMA", "bisect_document", "document"]
