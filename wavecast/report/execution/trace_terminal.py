"""What trace mode saw, for a terminal: per launch the totals and the busiest source lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from wavecast.arch import resolve
from wavecast.compile.names import readable
from wavecast.emulate.trace.result import Trace
from wavecast.report.execution import traces
from wavecast.report.explain import source
from wavecast.report.kit import units
from wavecast.report.kit.terminal import heading, safe

if TYPE_CHECKING:
    from rich.console import Console

_MOST_LAUNCHES = 6
_MOST_LINES = 10


def render(launch_traces: Sequence[Trace], console: Console) -> None:
    """The launches with most instructions, the heaviest first.

    Columns: share of all wave-instructions, active lanes of those that run per lane, cache lines
    per request, LDS passes over passes without conflicts.
    """
    heaviest = sorted(launch_traces, key=lambda trace: -trace.instructions)
    for trace in heaviest[:_MOST_LAUNCHES]:
        console.print(heading(safe(readable(trace.program.name)), _totals(trace)), soft_wrap=True)
        console.print(Padding(_table(trace), (0, 0, 0, 2)))
    if len(launch_traces) > _MOST_LAUNCHES:
        rest = units.plural(len(launch_traces) - _MOST_LAUNCHES, "launch").replace(
            "launchs", "launches"
        )
        console.print(Text(f"and {rest} with fewer instructions", style="dim"))


def _totals(trace: Trace) -> str:
    parts = [
        trace.target,
        *([f"{trace.launches:,} launches"] if trace.launches > 1 else []),
        units.plural(trace.workgroups, "workgroup"),
        units.plural(trace.waves, "wave"),
        f"{units.si(trace.instructions)} wave-instructions",
        units.plural(traces.barriers(trace), "barrier wait"),
    ]
    if not trace.complete:
        parts.append("aborted")
    return ", ".join(parts)


def line_bytes(target: str) -> int:
    """Bytes of a vector cache line, the unit of transactions."""
    return resolve(target).device.facts.integer("l1v_line", "B")


def _table(trace: Trace) -> Table:
    size = line_bytes(trace.target)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("instr.", "lanes", f"{size} B lines", "LDS ways"):
        table.add_column(title, justify="right", no_wrap=True, min_width=len(title))
    table.add_column("source line")  # the only one that may shrink: its cells are cut, not wrapped
    for line in traces.by_line(trace)[:_MOST_LINES]:
        table.add_row(*_cells(trace, line, size))
    return table


def _cells(trace: Trace, line: traces.TracedLine, size: int) -> Iterable[Text | str]:
    lanes = f"{line.lanes / line.vector:.1f}" if line.vector else units.UNKNOWN
    divergent = line.vector and line.lanes < line.vector * trace.lanes
    per_request, conflicts = line.lines_per_request(size), line.conflict_ways()
    yield units.percent(line.executions, trace.instructions)
    yield Text(lanes, style="yellow" if divergent else "")
    yield units.count(per_request)
    yield Text(
        units.count(conflicts), style="yellow" if conflicts is not None and conflicts > 1 else ""
    )
    yield Text(source.numbered(line.file, line.line), no_wrap=True, overflow="ellipsis")


__all__ = ["line_bytes", "render"]
