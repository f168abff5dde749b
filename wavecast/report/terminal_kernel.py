"""The sections of one kernel on one device, as rich renderables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rich import box
from rich.bar import Bar
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from wavecast.report import source, summary, units
from wavecast.report.pressure import downsample

if TYPE_CHECKING:
    from wavecast.analyze.result import LoopAnalysis, Pressure
    from wavecast.pipeline.result import Explanation
    from wavecast.rules.finding import Finding

SEVERITY_STYLE = {"error": "bold red", "warning": "yellow", "note": "cyan"}
_MARKS = {"error": "✖", "warning": "▲", "note": "●"}
_SPARKS = "▁▂▃▄▅▆▇█"
_MOST_LOOPS = 4
_MOST_ACCESSES = 12
_LABEL_WIDTH = 10


def safe(text: str) -> str:
    """`text` without control characters, which could drive the terminal it is shown on."""
    return "".join(ch if ch.isprintable() else "�" for ch in text.expandtabs(4))


def sections(explanation: Explanation, width: int, *, full: bool) -> Iterator[RenderableType]:
    """Everything below the headline, in reading order."""
    yield _facts(explanation, width, full=full)
    analysis = explanation.analysis
    if analysis.loops:
        yield from _loops(explanation, width, full=full)
    if analysis.memory:
        yield from _memory(explanation, full=full)
    if full and analysis.lines:
        yield from _lines(explanation)
    yield from findings(explanation, brief=False)
    if analysis.not_modelled:
        yield Text("")
        left_out = "; ".join(safe(item) for item in analysis.not_modelled)
        yield Text(f"not modelled: {left_out}", style="dim")


def _heading(text: str, note: str = "") -> Text:
    line = Text.assemble("\n", (text, "bold"))
    return line.append(f"  {note}", style="dim") if note else line


# --- resources ---------------------------------------------------------------------------------


def _facts(explanation: Explanation, width: int, *, full: bool) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", width=_LABEL_WIDTH, no_wrap=True)
    table.add_column(overflow="fold")
    for label, value in _fact_rows(explanation, full=full):
        table.add_row(label, value)
    pressure = explanation.analysis.pressure
    if pressure is not None and pressure.vgpr:
        table.add_row("pressure", _sparkline(pressure, width - _LABEL_WIDTH - 4))
    return table


def _fact_rows(explanation: Explanation, *, full: bool) -> Iterator[tuple[str, Text]]:
    analysis = explanation.analysis
    if explanation.launch is not None:
        yield "launch", _launch(explanation)
    yield "registers", _registers(explanation)
    yield "LDS", Text(f"{units.size(analysis.lds_bytes)} per workgroup")
    yield "occupancy", _occupancy(explanation)
    yield "mix", _mix(analysis.instructions)
    if analysis.matrix_kinds:
        kinds = (f"{count}× {safe(name)}" for name, count in analysis.matrix_kinds.items())
        yield "matrix", Text(", ".join(kinds))
    yield "roofline", _roofline(explanation)
    if full:
        options = (f"{safe(k)}={safe(str(v))}" for k, v in explanation.code.options.items())
        yield "compiler", Text(" ".join((safe(explanation.code.compiler), *options)))
        extra = ", ".join(f"{safe(k)} {safe(str(v))}" for k, v in analysis.extra.items())
        if extra:
            yield "also", Text(extra)


def _launch(explanation: Explanation) -> Text:
    launch = explanation.launch
    assert launch is not None
    parts = [
        "grid " + "×".join(str(n) for n in launch.grid),
        "block " + "×".join(str(n) for n in launch.block),
    ]
    if launch.dynamic_lds:
        parts.append(f"{units.size(launch.dynamic_lds)} dynamic LDS")
    if launch.count > 1:
        parts.append(f"seen {launch.count} times")
    arguments = ", ".join(safe(summary.argument_text(a)) for a in launch.arguments)
    text = Text(" · ".join(parts))
    return text.append(f"\n{arguments}", style="dim") if arguments else text


def _registers(explanation: Explanation) -> Text:
    registers = explanation.analysis.registers
    if explanation.device.vendor == "nvidia":
        parts = [f"{registers.vgpr} per thread"]
    else:
        parts = [f"{registers.vgpr} VGPR"]
        if registers.agpr:
            parts.append(f"{registers.agpr} AGPR")
        parts.append(f"{registers.sgpr} SGPR")
    text = Text(" + ".join(parts[:2]) if registers.agpr else parts[0])
    for part in parts[2 if registers.agpr else 1 :]:
        text.append(f" · {part}")
    if registers.spilled:
        spilled = f"{registers.spilled_vgpr} VGPR and {registers.spilled_sgpr} SGPR spilled"
        text.append(" · ").append(spilled, style="bold red")
    else:
        text.append(" · no spills")
    if registers.scratch_bytes:
        text.append(" · ").append(f"{units.size(registers.scratch_bytes)} scratch per lane", "red")
    return text


def _occupancy(explanation: Explanation) -> Text:
    occupancy = explanation.analysis.occupancy
    if not occupancy.fits:
        text = Text("one workgroup does not fit a compute unit", style="bold red")
    else:
        text = Text(f"{occupancy.waves_per_simd} of {occupancy.max_waves_per_simd} waves/SIMD")
        text.append(f" · {units.plural(occupancy.workgroups, 'workgroup')} per compute unit")
    allowed = sorted(occupancy.limits.items(), key=lambda item: item[1])
    limits = ", ".join(f"{summary.resource_label(name)} {waves}" for name, waves in allowed)
    if limits:
        text.append(f"\neach alone allows: {limits}", style="dim")
    step = summary.next_step(occupancy)
    return text.append(f"\nnext: {step}", style="green") if step else text


def _mix(instructions: Mapping[str, int]) -> Text:
    total = sum(instructions.values())
    text = Text(f"{units.count(total)} instructions: ")
    ordered = sorted(instructions.items(), key=lambda item: -item[1])
    for position, (name, count) in enumerate(ordered):
        text.append(", " if position else "").append(f"{name} {units.count(count)}")
        text.append(f" ({units.percent(count, total)})", style="dim")
    return text


def _roofline(explanation: Explanation) -> Text:
    roofline = explanation.roofline
    work = roofline.work
    flops = "unknown FLOPs" if work.flops is None else units.si(sum(work.flops.values()), "FLOP")
    parts = [flops, "unknown bytes" if work.bytes is None else units.si(work.bytes, "B")]
    text = Text(" over ".join(parts))
    if roofline.intensity is not None:
        text.append(f" = {units.count(round(roofline.intensity, 2))} FLOP/B")
    if roofline.ridge is not None:
        text.append(f" (ridge {units.count(round(roofline.ridge, 1))})", style="dim")
    if roofline.floor_seconds is not None:
        text.append(f" · {roofline.bound}-bound · floor {units.seconds(roofline.floor_seconds)}")
    if roofline.sustained_seconds is not None:
        text.append(f", {units.seconds(roofline.sustained_seconds)} at sustained rates")
    if roofline.note:
        text.append(f"\n{safe(roofline.note)}", style="dim")
    return text


def _sparkline(pressure: Pressure, width: int) -> Text:
    points = downsample(pressure, max(16, min(width, 120)))
    values = [vgpr + agpr for _, vgpr, agpr, _ in points]
    top = max(max(values), 1)
    text = Text()
    for (index, *_), value in zip(points, values, strict=True):
        spark = _SPARKS[min(7, value * 8 // (top + 1))]
        text.append(spark, style="bold red" if index == pressure.peak_index else "")
    at = f" at {summary.where(pressure.peak_location)}" if pressure.peak_location else ""
    text.append(f"\npeak {pressure.peak_vgpr} VGPRs live{at}, instruction {pressure.peak_index}")
    return text


# --- loops -------------------------------------------------------------------------------------


def _loops(explanation: Explanation, width: int, *, full: bool) -> Iterator[RenderableType]:
    loops = summary.loops_by_weight(explanation.analysis)
    shown = loops if full else loops[:_MOST_LOOPS]
    yield _heading("Loops", "cycles per iteration of one SIMD with all its waves")
    table = Table.grid(padding=(0, 3, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    most = max((max(loop.cycles.values(), default=0.0) for loop in shown), default=1.0)
    bar_width = max(12, min(48, width - 56))
    for position, loop in enumerate(shown):
        if position:
            table.add_row("", "")
        table.add_row(_loop_facts(loop), _pipe_bars(loop, max(most, 1.0), bar_width))
    yield Padding(table, (0, 0, 0, 2))
    if len(loops) > len(shown):
        yield Text(f"  and {len(loops) - len(shown)} smaller loops", style="dim")


def _loop_facts(loop: LoopAnalysis) -> Text:
    line = summary.line_of(loop.location)
    text = Text(f"line {line}" if line is not None else "unknown line", style="bold")
    text.append("" if loop.depth == 1 else f", depth {loop.depth}", style="not bold")
    trips = f"×{units.count(loop.trip_count)}" if loop.trip_count is not None else "trips unknown"
    rows = [
        f"{trips}, {units.plural(sum(loop.instructions.values()), 'instruction')}",
        f"dependency chain {units.cycles(loop.critical_path)}",
    ]
    if loop.matrix_density:
        rows.append(f"{loop.matrix_density:.0%} matrix instructions")
    rows.append(f"{units.size(loop.bytes_global)} global, {units.size(loop.bytes_lds)} LDS")
    if loop.barriers or loop.waits_full:
        waits = units.plural(loop.waits_full, "full wait")
        rows.append(f"{waits}, {units.plural(loop.barriers, 'barrier')}")
    if loop.includes_inner:
        rows.append("with its inner loops")
    for row in rows:
        text.append(f"\n{row}", style="not bold dim")
    return text


def _pipe_bars(loop: LoopAnalysis, most: float, width: int) -> Table:
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
            Text(summary.PIPE_LABELS.get(pipe, pipe), style=style),
            Bar(most, 0, cycles, width=width, color="yellow" if binds else "default"),
            Text(units.cycles(cycles), style=style),
            Text("binds", style="yellow") if binds else Text(""),
        )
    if not pipes:
        grid.add_row(Text("none", style="dim"), "", "", "")
    return grid


# --- memory and lines --------------------------------------------------------------------------


def _table(*columns: tuple[str, bool]) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD,
        header_style="dim",
        pad_edge=False,
        show_edge=False,
        collapse_padding=True,
    )
    for title, right in columns:
        table.add_column(title, justify="right" if right else "left", overflow="fold")
    return table


def _memory(explanation: Explanation, *, full: bool) -> Iterator[RenderableType]:
    groups = summary.memory_groups(explanation.analysis)
    shown = groups if full else groups[:_MOST_ACCESSES]
    table = _table(
        ("line", True), ("argument", False), ("access", False), ("B/lane", True),
        ("lanes", False), ("a wave pays", False), ("count", False),
    )  # fmt: skip
    for group in shown:
        stride = f" by {group.stride} B" if group.pattern == "strided" and group.stride else ""
        table.add_row(
            str(group.line) if group.line is not None else units.UNKNOWN,
            safe(group.argument) or units.UNKNOWN,
            f"{group.space} {group.kind}",
            str(group.bytes_per_lane),
            f"{group.pattern}{stride}",
            Text(summary.access_quality(group), style="yellow" if summary.wasteful(group) else ""),
            f"{group.count} in loop" if group.in_loop else str(group.count),
        )
    yield _heading("Memory")
    yield Padding(table, (0, 0, 0, 2))
    if len(groups) > len(shown):
        yield Text(f"  and {len(groups) - len(shown)} more kinds of access", style="dim")


def _lines(explanation: Explanation) -> Iterator[RenderableType]:
    table = _table(("line", True), ("instr.", True), ("cycles by pipe", False), ("source", False))
    ordered = sorted(explanation.analysis.lines, key=lambda c: -sum(c.cycles.values()))
    for cost in ordered:
        pipes = sorted(cost.cycles.items(), key=lambda item: -item[1])
        table.add_row(
            str(cost.line),
            units.count(sum(cost.instructions.values())),
            ", ".join(f"{summary.PIPE_LABELS.get(p, p)} {units.cycles(c)}" for p, c in pipes if c),
            Text(safe(source.line_text(explanation.code, cost.file, cost.line).strip()), "dim"),
        )
    yield _heading("Source lines", "static, the costliest first")
    yield Padding(table, (0, 0, 0, 2))


# --- findings ----------------------------------------------------------------------------------


def findings(explanation: Explanation, *, brief: bool) -> Iterator[RenderableType]:
    """The findings, gravest first; `brief` leaves evidence and source text out."""
    ordered = summary.sorted_findings(explanation.findings)
    if not ordered:
        yield Text("\nno findings", style="dim") if not brief else Text("no findings", style="dim")
        return
    if not brief:
        yield _heading("Findings")
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(width=1)
    table.add_column(overflow="fold")
    for finding in ordered:
        style = SEVERITY_STYLE[finding.severity]
        mark = Text(_MARKS[finding.severity], style=style)
        table.add_row(mark, _finding(explanation, finding, brief=brief))
    yield Padding(table, (0, 0, 0, 2))


def _finding(explanation: Explanation, finding: Finding, *, brief: bool) -> Text:
    text = Text.assemble(
        (finding.severity, SEVERITY_STYLE[finding.severity]), " ", (safe(finding.rule), "bold")
    )
    location = finding.location
    if location is not None:
        text.append(f" {summary.where(location)}")
    text.append(f": {safe(finding.message)}")
    if not brief:
        if location is not None:
            outer = location.outermost
            line = source.line_text(explanation.code, outer.file, outer.line).strip()
            if line:
                text.append(f"\n{outer.line} │ {safe(line)}", style="dim")
        if finding.evidence:
            text.append(f"\n{safe(finding.evidence)}", style="dim")
    if finding.advice:
        text.append("\n→ ", style="green").append(safe(finding.advice))
    return text
