"""Findings over the graph of a model as text and JSON: what to change first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from wavecast.documents.system_changes import (
    ModelFindingJson,
    ModelFindingsJson,
    ModuleFindingJson,
)
from wavecast.report.kit import units
from wavecast.report.kit.kernel_tables import columns
from wavecast.report.kit.terminal import safe
from wavecast.report.systems.changes import change_entry, times

if TYPE_CHECKING:
    from wavecast.systems.findings import ModelFindings


def render(findings: ModelFindings, console: Console) -> None:
    """Print what to change, the best first, and the modules to make faster."""
    if findings.changes:
        table = _table("  what to change", "tok/s/GPU", "TPOT", "TTFT")
        for finding in findings.changes:
            (serving,) = finding.changed.servings
            speedups = (serving.rate_per_gpu, serving.tpot, serving.ttft)
            table.add_row(f"  {safe(finding.advice)}", *map(times, speedups))
        console.print(table)
    if findings.modules:
        table = _table("  what to optimise: a module that takes 20 % less", "share", "TPOT", "TTFT")
        for finding in findings.modules:
            (serving,) = finding.changed.servings
            share = units.percent(finding.share, 1.0)
            table.add_row(f"  {finding.module}", share, times(serving.tpot), times(serving.ttft))
        console.print(table)
    console.print()


def entry(findings: ModelFindings) -> ModelFindingsJson:
    """The part of the document."""
    return ModelFindingsJson(
        changes=[
            ModelFindingJson(advice=finding.advice, changed=change_entry(finding.changed))
            for finding in findings.changes
        ],
        modules=[
            ModuleFindingJson.of(finding, changed=change_entry(finding.changed))
            for finding in findings.modules
        ],
    )


def _table(first: str, *others: str) -> Table:
    return columns((first, "wrap"), *((title, "right") for title in others))


__all__ = ["entry", "render"]
