"""Comparisons of two versions of kernels as JSON, schema `wavecast.diff/1`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wavecast import json_objects
from wavecast.analyze.result import LoopAnalysis
from wavecast.benchmarking.diff.bisect import Found
from wavecast.benchmarking.diff.result import Delta, Diff, DiffLine, DiffRegion, DiffRow, KernelDiff
from wavecast.documents.diff import (
    BisectDocument,
    ChangedFindingJson,
    DeltaJson,
    DiffDocument,
    KernelDiffJson,
    LineDeltaJson,
    LoopFiguresJson,
    ProbeJson,
    RegionJson,
)
from wavecast.report.explain.json import failure_entry
from wavecast.report.explain.summary import line_of
from wavecast.rules.finding import Finding


def document(diff: Diff) -> dict[str, Any]:
    """A comparison as JSON-ready values. Unknown numbers are null."""
    return json_objects.values(_diff(diff))


def bisect_document(search: Found, diff: Diff | None) -> dict[str, Any]:
    """A search over releases as JSON-ready values, with the comparison of the two releases around
    the change."""
    return json_objects.values(
        BisectDocument.of(
            search,
            kpi=search.kpi.name,
            probes=[ProbeJson.of(probe) for probe in search.probes],
            diff=None if diff is None else _diff(diff),
        )
    )


def _diff(diff: Diff) -> DiffDocument:
    return DiffDocument.of(
        diff,
        kernels=[_kernel(kernel) for kernel in diff.kernels],
        failed_before=[failure_entry(failure) for failure in diff.failed_before],
        failed_after=[failure_entry(failure) for failure in diff.failed_after],
    )


def _kernel(kernel: KernelDiff) -> KernelDiffJson:
    present = {"before": kernel.before is not None, "after": kernel.after is not None}
    return KernelDiffJson.of(
        kernel,
        kernel=kernel.name,
        device=kernel.device.id,
        arch=kernel.device.target,
        sides=[side for side, is_present in present.items() if is_present],
        figures=_deltas(kernel.figures),
        resources=_deltas(kernel.resources),
        mix=_deltas(kernel.mix),
        responsible=next(
            (i for i, part in enumerate(kernel.regions) if part is kernel.responsible), None
        ),
        regions=[_region(region) for region in kernel.regions],
        lines=[_line(line) for line in kernel.lines if line.spent.changed],
        findings_gone=[_finding(finding) for finding in kernel.findings_gone],
        findings_new=[_finding(finding) for finding in kernel.findings_new],
    )


def _deltas(deltas: Iterable[Delta]) -> dict[str, DeltaJson]:
    return {delta.name: DeltaJson.of(delta) for delta in deltas}


def _region(region: DiffRegion) -> RegionJson:
    return RegionJson.of(
        region,
        line_before=region.lines[0] or None,
        line_after=region.lines[1] or None,
        spent=DeltaJson.of(region.spent),
        before=_loop(region.before),
        after=_loop(region.after),
        rows=[_row(row) for row in region.rows] if region.changes else [],
    )


def _loop(loop: LoopAnalysis | None) -> LoopFiguresJson | None:
    return None if loop is None else LoopFiguresJson.of(loop)


def _row(row: DiffRow) -> list[Any]:
    return [row.kind, row.before, row.after, row.before_text, row.after_text]


def _line(line: DiffLine) -> LineDeltaJson:
    return LineDeltaJson.of(
        line,
        line_before=line.before or None,
        line_after=line.after or None,
        spent=DeltaJson.of(line.spent),
    )


def _finding(finding: Finding) -> ChangedFindingJson:
    return ChangedFindingJson.of(finding, line=line_of(finding.location))


__all__ = ["bisect_document", "document"]
