"""Comparisons of two versions of kernels in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from wavecast.bench.diff.bisect import Found, Probe
from wavecast.bench.diff.result import Basis, Delta, Diff, KernelDiff, Region, Row
from wavecast.bench.kpis import KPIS
from wavecast.pipeline.result import Failure
from wavecast.report.units import count, cycles, plural, seconds, size
from wavecast.rules.finding import Finding

FIGURES = ("predicted_seconds", "findings", "code_instructions")
"""KPIs shown; the others are what `resources` say in more detail."""
CONTEXT = 2
"""Lines around a change of the assembly."""
LINES = 6
"""Source lines shown, as long as they changed by `LEAST` of the one that changed most."""
LEAST = 0.02
_STYLES = {"operands": "yellow", "changed": "yellow", "gone": "red", "new": "green"}
_SIGNS = {"same": " ", "operands": "~", "changed": "|", "gone": "<", "new": ">"}


def render(found: Diff, console: Console, *, rows: int) -> None:
    """Every kernel and device: what changed and where; at most `rows` lines of assembly each."""
    console.print(f"before: [bold]{escape(found.before)}[/]")
    console.print(f"after:  [bold]{escape(found.after)}[/]")
    for kernel in found.kernels:
        console.print()
        _kernel(kernel, found, console, rows)
    for label, failures in (
        (found.before, found.failed_before),
        (found.after, found.failed_after),
    ):
        for failure in failures:
            console.print(f"[red]failed[/] in {escape(label)}: {escape(failed(failure))}")
    for note in found.notes:
        console.print(f"note: {escape(note)}", highlight=False)


def failed(failure: Failure) -> str:
    """What could not be explained, and why."""
    hint = f" ({failure.hint})" if failure.hint else ""
    return f"{failure.kernel} for {failure.target}: {failure.message}{hint}"


def title(kernel: KernelDiff) -> str:
    """`softmax on AMD Instinct MI300X (gfx942)`."""
    number = f" #{kernel.number}" if kernel.number > 1 else ""
    return f"{kernel.name}{number} on {kernel.device.name} ({kernel.device.target})"


def change(delta: Delta) -> str:
    """The change in percent, `+3`-like from zero, "" where a side is unknown."""
    if delta.before is None or delta.after is None or not delta.changed:
        return ""
    if not delta.before:
        return f"{delta.difference:+.3g}"
    return f"{delta.difference / delta.before:+.1%}"


def figure_text(name: str, value: float | None) -> str:
    """A KPI with its unit."""
    match KPIS[name].unit:
        case "s":
            return seconds(value)
        case "B":
            return size(value)
    return count(value)


def weight(value: float | None, basis: Basis) -> str:
    """What a part of the code takes."""
    return seconds(value) if basis == "seconds" else f"{cycles(value)} cycles"


def place(region: Region) -> str:
    """`loop at line 58`, `loop at line 58 → 61`, `code outside of loops`."""
    if not region.loop:
        return "code outside of loops"
    before, after = region.lines
    if region.before is None:
        return f"loop at line {after or '?'}, new"
    if region.after is None:
        return f"loop at line {before or '?'}, gone"
    moved = f"{before or '?'} → {after or '?'}" if before != after else f"{before or '?'}"
    return f"loop at line {moved}"


def _kernel(kernel: KernelDiff, found: Diff, console: Console, rows: int) -> None:
    console.print(f"[bold]{escape(title(kernel))}[/]", highlight=False)
    if not kernel.paired:
        side = found.after if kernel.after else found.before
        console.print(f"  only in {escape(side)}")
        return
    if kernel.same_code:
        console.print("  the machine code is the same, byte for byte")
    _numbers(kernel, console)
    for sign, style, findings in (
        ("gone", "green", kernel.findings_gone),
        ("new", "red", kernel.findings_new),
    ):
        for finding in findings:
            console.print(f"  finding [{style}]{sign}[/]: {escape(finding_text(finding))}")
    if kernel.same_code:
        return
    _where(kernel, console)
    region = kernel.responsible
    if region is not None and region.changes and rows:
        _assembly(region, console, rows)


def _numbers(kernel: KernelDiff, console: Console) -> None:
    """One table: predicted time, resources and classes of instructions that changed."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("")
    for name in ("before", "after", "change"):
        table.add_column(name, justify="right")
    same = []
    for name in FIGURES:
        delta = kernel.figure(name)
        if delta is not None and delta.changed:
            before, after = figure_text(name, delta.before), figure_text(name, delta.after)
            _add(table, name.replace("_", " "), delta, before, after)
    for delta in kernel.resources:
        if delta.changed:
            _add(table, delta.name, delta, count(delta.before), count(delta.after))
        elif delta.before:
            same.append(f"{delta.name} {count(delta.before)}")
    for delta in kernel.mix:
        if delta.changed:
            name = f"{delta.name} instructions"
            table.add_row(
                f"  {name}", count(delta.before), count(delta.after), Text(change(delta), "dim")
            )
    time = kernel.figure("predicted_seconds")
    if time is not None and not time.changed and time.before is not None:
        same.insert(0, f"predicted {seconds(time.before)}")
    if table.row_count:
        console.print(table, highlight=False)
    if same:
        console.print(f"  the same: {', '.join(same)}", highlight=False)


def _add(table: Table, name: str, delta: Delta, before: str, after: str) -> None:
    better = "higher" if name.startswith("waves") else "lower"
    style = ""
    if delta.before is not None and delta.after is not None:
        style = "green" if (delta.difference > 0) == (better == "higher") else "red"
    table.add_row(f"  {name}", before, after, Text(change(delta), style))


def _where(kernel: KernelDiff, console: Console) -> None:
    region = kernel.responsible
    if not kernel.listed:
        console.print("  where it changed is told by loops only: NVIDIA's assembly is not compared")
        if region is None:
            return
    if region is None:
        console.print("  no part of the code changed, but for numbers of registers")
        return
    total = sum(one.spent.difference for one in kernel.regions)
    part = region.spent
    console.print(f"  responsible: [bold]{place(region)}[/]  {escape(region.text)}")
    if part.changed:
        told = f"{weight(part.before, kernel.basis)} → {weight(part.after, kernel.basis)}"
        whole = weight(abs(total), kernel.basis)
        sign = "+" if part.difference > 0 else "−"
        its = weight(abs(part.difference), kernel.basis)
        console.print(
            f"    {told}: {sign}{its} of {'+' if total > 0 else '−'}{whole}", highlight=False
        )
    _pipes(region, console)
    most = max((abs(line.spent.difference) for line in kernel.lines), default=0.0)
    moved = [line for line in kernel.lines[:LINES] if abs(line.spent.difference) > LEAST * most]
    if moved:
        console.print(f"  source lines by change of {_what(kernel.basis)}:")
    for line in moved:
        both = f"{line.before or '–'}→{line.after or '–'}"
        number = f"{line.after}" if line.before == line.after else both
        delta = line.spent
        sign = "+" if delta.difference > 0 else "−"
        amount = weight(abs(delta.difference), kernel.basis)
        where = f"{line.file}:{number}" if line.file else "no source line"
        console.print(
            f"    {sign}{amount:<9} {escape(where)}  {escape(line.text)}",
            highlight=False,
            overflow="ellipsis",
            no_wrap=True,
        )


def _what(basis: Basis) -> str:
    return "predicted time" if basis == "seconds" else "cycles, each instruction once"


def _pipes(region: Region, console: Console) -> None:
    """Cycles per iteration on every pipe, before and after."""
    one, other = region.before, region.after
    loops = [loop for loop in (one, other) if loop is not None]
    if not loops:
        return
    names = dict.fromkeys(pipe for loop in loops for pipe, n in loop.cycles.items() if n)
    parts = []
    for name in names:
        values = [loop.cycles.get(name, 0.0) for loop in loops]
        shown = [cycles(value) for value in dict.fromkeys(values)]
        parts.append(f"{name} {' → '.join(shown)}")
    chains = [cycles(c) for c in dict.fromkeys(loop.critical_path for loop in loops)]
    parts.append(f"chain {' → '.join(chains)}")
    trips = [count(trips) for trips in dict.fromkeys(loop.trip_count for loop in loops)]
    limits = " → ".join(dict.fromkeys(loop.limiter or "–" for loop in loops))
    waves = " → ".join(dict.fromkeys(str(loop.waves_per_simd) for loop in loops))
    text = f"    cycles of an iteration of {waves} waves: {', '.join(parts)}; limited by {limits}"
    console.print(f"{text}; iterations: {' → '.join(trips)}", highlight=False)


def finding_text(finding: Finding) -> str:
    """`spills (warning) at line 60: …`."""
    where = f" at line {finding.location.outermost.line}" if finding.location else ""
    return f"{finding.rule} ({finding.severity}){where}: {finding.message}"


def _assembly(region: Region, console: Console, most: int) -> None:
    kinds = {kind: sum(row.kind == kind for row in region.rows) for kind in _SIGNS}
    told = (
        f"{kinds['same']} the same but for numbers of registers, {kinds['operands']} fed by others "
        f"(~), {kinds['changed']} changed (|), {kinds['gone']} gone (<), {kinds['new']} new (>)"
    )
    console.print(f"  its assembly: {told}", highlight=False)
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 1, 0, 0))
    width = max(20, (console.width - 19) // 2)
    table.add_column(width=6, justify="right")
    table.add_column(width=width, no_wrap=True, overflow="ellipsis")
    table.add_column(width=1)
    table.add_column(width=5, justify="right")
    table.add_column(width=width, no_wrap=True, overflow="ellipsis")
    shown = 0
    for item in hunks(region.rows, CONTEXT):
        if isinstance(item, int):
            table.add_row("", Text(f"… {plural(item, 'line')} the same", "dim"), "", "")
            continue
        if shown >= most:
            left = region.changes - sum(1 for row in _first(region.rows, most) if row != "same")
            table.add_row("", Text(f"… {plural(max(left, 1), 'change')} more; --rows", "dim"))
            break
        shown += 1
        style = _STYLES.get(item.kind, "dim")
        table.add_row(
            "" if item.before is None else str(item.before),
            Text(item.before_text, style),
            Text(_SIGNS[item.kind], style),
            "" if item.after is None else str(item.after),
            Text(item.after_text, style),
        )
    console.print(table, highlight=False)


def _first(rows: Sequence[Row], most: int) -> list[str]:
    """The kinds of the rows shown first."""
    shown = [item for item in hunks(rows, CONTEXT) if not isinstance(item, int)]
    return [row.kind for row in shown[:most]]


def hunks(rows: Sequence[Row], context: int) -> list[Row | int]:
    """Changes with `context` rows around them; a number stands for that many rows left out."""
    near = [False] * len(rows)
    for index, row in enumerate(rows):
        if row.kind != "same":
            for other in range(max(0, index - context), min(len(rows), index + context + 1)):
                near[other] = True
    found: list[Row | int] = []
    for row, kept in zip(rows, near, strict=True):
        if kept:
            found.append(row)
        elif found and isinstance(found[-1], int):
            found[-1] += 1
        else:
            found.append(1)
    return found


def render_bisect(found: Found, console: Console) -> None:
    """Every probe of a search and what it came to."""
    names = list(dict.fromkeys(name for probe in found.probes for name in probe.values))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("triton")
    for name in names:
        table.add_column(name, justify="right", overflow="fold")
    table.add_column("verdict")
    order = {release: number for number, release in enumerate(found.releases)}
    for probe in sorted(found.probes, key=lambda probe: order[probe.release]):
        cells = [figure_text(found.kpi.name, probe.values.get(name)) for name in names]
        table.add_row(probe.release, *cells, _verdict(probe))
    console.print(table, highlight=False)
    asked = f"{len(found.probes)} of {len(found.releases)} releases asked"
    console.print(f"{asked}; a figure that is worse is taken to stay worse in later releases")
    console.print(f"[bold]{escape(conclusion(found))}[/]", highlight=False)


def conclusion(found: Found) -> str:
    """The answer of a search in a sentence."""
    if not found.first_worse:
        return f"{found.kpi.name} is no worse with Triton {found.last_good}"
    if found.undecided:
        maybe = ", ".join(found.undecided)
        return (
            f"{found.kpi.name} became worse after Triton {found.last_good}, by "
            f"{found.first_worse} at the latest; {maybe} could not be asked"
        )
    return f"{found.kpi.name} became worse with Triton {found.first_worse}"


def _verdict(probe: Probe) -> Text:
    if probe.failed:
        return Text(f"skipped: {probe.failed}", "yellow")
    return Text(probe.verdict, "red" if probe.worse else "green")


__all__ = [
    "change",
    "conclusion",
    "failed",
    "figure_text",
    "finding_text",
    "hunks",
    "place",
    "render",
    "render_bisect",
    "title",
    "weight",
]
