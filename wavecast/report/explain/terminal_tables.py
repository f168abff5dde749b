"""Tables of one kernel: loops with pipe bars, memory accesses, source lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.bar import Bar
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from wavecast.report.explain import accesses, source, summary, words
from wavecast.report.kit import units
from wavecast.report.kit.fitting import FittingTable
from wavecast.report.kit.terminal import heading, safe

if TYPE_CHECKING:
    from wavecast.analyze.result import LoopAnalysis
    from wavecast.pipeline.explain.result import Explanation

_MOST_LOOPS = 4
_MOST_LINES = 3
"""Lines of equal loops that are named."""
_MOST_ACCESSES = 12


def loops(explanation: Explanation, width: int, *, full: bool) -> Iterator[RenderableType]:
    """The loops most time goes to; all with `full`."""
    groups = summary.equal_loops(explanation.analysis)
    visible = groups if full else groups[:_MOST_LOOPS]
    say = words.of(explanation.device)
    yield heading("Loops", f"cycles per iteration of one {say.scheduler} with all its {say.wave}s")
    table = Table.grid(padding=(0, 3, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    most = max((max(group[0].cycles.values(), default=0.0) for group in visible), default=1.0)
    bar_width = max(12, min(48, width - 56))
    for position, group in enumerate(visible):
        if position:
            table.add_row("", "")
        bars = _pipe_bars(group[0], max(most, 1.0), bar_width, say)
        table.add_row(_loop_facts(group, say), bars)
    yield Padding(table, (0, 0, 0, 2))
    if smaller := sum(map(len, groups[len(visible) :])):
        yield Text(f"  and {units.plural(smaller, 'smaller loop')}", style="dim")


def _lines_of(group: Sequence[LoopAnalysis]) -> str:
    """`line 8`, or `3 equal loops, lines 8, 9 …`."""
    lines = [*dict.fromkeys(summary.line_of(loop.location) for loop in group)]
    shown = ", ".join("unknown" if line is None else str(line) for line in lines[:_MOST_LINES])
    more = " …" if len(lines) > _MOST_LINES else ""
    text = "unknown line" if lines == [None] else f"line{'s' * (len(lines) > 1)} {shown}{more}"
    return text if len(group) == 1 else f"{len(group)} equal loops, {text}"


def _loop_facts(group: Sequence[LoopAnalysis], say: words.Words) -> Text:
    loop = group[0]
    text = Text(_lines_of(group), style="bold")
    text.append("" if loop.depth == 1 else f", depth {loop.depth}", style="not bold")
    trips = f"×{units.count(loop.trip_count)}" if loop.trip_count is not None else "trips unknown"
    rows = [
        f"{trips}, {units.plural(sum(loop.instructions.values()), 'instruction')}",
    ]
    if loop.critical_path:
        rows.append(f"dependency chain {units.cycles(loop.critical_path)}")
    if loop.matrix_density:
        rows.append(f"{loop.matrix_density:.0%} matrix instructions")
    rows.append(f"{units.size(loop.bytes_global)} global, {units.size(loop.bytes_lds)} {say.lds}")
    if loop.barriers or loop.waits_full:
        waits = units.plural(loop.waits_full, "full wait")
        rows.append(f"{waits}, {units.plural(loop.barriers, 'barrier')}")
    if loop.includes_inner:
        rows.append("with its inner loops")
    for row in rows:
        text.append(f"\n{row}", style="not bold dim")
    return text


def _pipe_bars(loop: LoopAnalysis, most: float, width: int, say: words.Words) -> Table:
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True, width=7)
    grid.add_column(width=width)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(no_wrap=True)
    pipes = summary.pipes_by_cost(loop)
    for position, (pipe, cycles) in enumerate(pipes):
        binds = position == 0 and not summary.latency_bound(loop)
        style = "bold" if binds else ""
        grid.add_row(
            Text(say.pipe(pipe), style=style),
            Bar(most, 0, cycles, width=width, color="yellow" if binds else "default"),
            Text(units.cycles(cycles), style=style),
            Text("binds", style="yellow") if binds else Text(""),
        )
    if not pipes:
        grid.add_row(Text("none", style="dim"), "", "", "")
    return grid


# --- memory and lines --------------------------------------------------------------------------


def plain_table(*columns: tuple[str, bool]) -> Table:
    """A table with a line under its head that fits narrow terminals; columns by title and whether
    they are right-aligned."""
    table = FittingTable(
        box=box.SIMPLE_HEAD,
        header_style="dim",
        pad_edge=False,
        show_edge=False,
        collapse_padding=True,
    )
    for title, right in columns:
        table.add_column(title, justify="right" if right else "left", overflow="fold")
    return table


def memory(explanation: Explanation, *, full: bool) -> Iterator[RenderableType]:
    """Memory instructions, grouped; all with `full`."""
    groups = accesses.memory_groups(explanation.analysis)
    visible = groups if full else groups[:_MOST_ACCESSES]
    say = words.of(explanation.device)
    table = plain_table(
        ("line", True), ("argument", False), ("access", False), ("B/lane", True),
        ("lanes", False), (f"lines/{say.wave}", False), ("count", False),
    )  # fmt: skip
    for group in visible:
        table.add_row(
            str(group.line) if group.line is not None else units.UNKNOWN,
            safe(group.argument) or units.UNKNOWN,
            say.translate(accesses.operation(group)),
            str(group.bytes_per_lane),
            accesses.lanes(group),
            Text(
                accesses.access_quality(group), style="yellow" if accesses.wasteful(group) else ""
            ),
            f"{group.count} in loop" if group.in_loop else str(group.count),
        )
    yield heading("Memory")
    yield Padding(table, (0, 0, 0, 2))
    if len(groups) > len(visible):
        yield Text(f"  and {len(groups) - len(visible)} more kinds of access", style="dim")


def source_lines(explanation: Explanation) -> Iterator[RenderableType]:
    """Source lines, the most cycles first."""
    table = plain_table(
        ("line", True), ("instr.", True), ("cycles by pipe", False), ("source", False)
    )
    say = words.of(explanation.device)
    ordered = sorted(explanation.analysis.lines, key=lambda c: -sum(c.cycles.values()))
    for cost in ordered:
        pipes = sorted(cost.cycles.items(), key=lambda item: -item[1])
        table.add_row(
            str(cost.line),
            units.count(sum(cost.instructions.values())),
            ", ".join(f"{say.pipe(p)} {units.cycles(c)}" for p, c in pipes if c),
            Text(safe(source.line_text(explanation.code, cost.file, cost.line).strip()), "dim"),
        )
    yield heading("Source lines", "static, the costliest first")
    yield Padding(table, (0, 0, 0, 2))
