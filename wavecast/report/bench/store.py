"""The runs of a store as a table in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from wavecast.benchmarking.records import BenchRun
from wavecast.report.kit.terminal import safe


def render_runs(runs: Sequence[tuple[BenchRun, int]], console: Console) -> None:
    """One line per run, with the number of its records."""
    table = Table(box=None, pad_edge=False)
    for name in ("run", "label", "commit", "started (UTC)"):
        table.add_column(name, no_wrap=name != "label")
    table.add_column("records", justify="right")
    table.add_column("")
    table.add_column("command", overflow="fold")
    for run, records in runs:
        commit = run.commit[:10] + ("+" if run.dirty else "")
        status = Text("" if run.finished else "interrupted", style="yellow")
        started = run.started[:19].replace("T", " ")
        cells = [Text(safe(text)) for text in (run.id, run.label, commit, started)]
        table.add_row(*cells, f"{records:,}", status, Text(safe(run.command)))
    console.print(table)
    if any(run.dirty for run, _ in runs):
        console.print("+ the checkout had changes")


__all__ = ["render_runs"]
