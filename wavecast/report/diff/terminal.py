"""Comparisons of two versions of kernels in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from wavecast.benchmarking.diff.bisect import Found, Probe
from wavecast.benchmarking.diff.result import Diff, DiffRegion, KernelDiff
from wavecast.report.diff import words
from wavecast.report.kit.units import plural

CONTEXT = 2
"""Lines around a change of the assembly."""
_STYLES = {"operands": "yellow", "changed": "yellow", "gone": "red", "new": "green"}
_DIRECTIONS = {"good": "green", "bad": "red", "": "dim"}


def render(diff: Diff, console: Console, *, rows: int = 40) -> None:
    """Every kernel and device: what changed and where; at most `rows` lines of assembly each."""
    console.print(f"before: [bold]{escape(diff.before)}[/]", highlight=False)
    console.print(f"after:  [bold]{escape(diff.after)}[/]", highlight=False)
    for kernel in diff.kernels:
        console.print()
        _kernel(kernel, diff, console, rows)
    if diff.failed_before or diff.failed_after or diff.notes:
        console.print()
    for label, failures in (
        (diff.before, diff.failed_before),
        (diff.after, diff.failed_after),
    ):
        for failure in failures:
            console.print(
                f"[red]failed[/] in {escape(label)}: {escape(words.failure_text(failure))}"
            )
    for note in diff.notes:
        console.print(f"note: {escape(note)}", highlight=False)


def _kernel(kernel: KernelDiff, diff: Diff, console: Console, rows: int) -> None:
    console.print(f"[bold]{escape(words.title(kernel))}[/]", highlight=False)
    if not kernel.paired:
        side = diff.after if kernel.after else diff.before
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
            text = escape(words.finding_text(finding))
            console.print(f"  finding [{style}]{sign}[/]: {text}", highlight=False)
    if kernel.same_code:
        return
    _where(kernel, console)
    region = kernel.responsible
    if region is not None and region.changes and rows:
        _assembly(region, console, rows)


def _numbers(kernel: KernelDiff, console: Console) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("")
    for name in ("before", "after", "change"):
        table.add_column(name, justify="right")
    for row in words.number_rows(kernel):
        changed = Text(row.change, _DIRECTIONS[row.direction])
        table.add_row(f"  {row.name}", row.before, row.after, changed)
    if table.row_count:
        console.print(table, highlight=False)
    same = words.same_words(kernel)
    if same:
        console.print(f"  the same: {', '.join(same)}", highlight=False)


def _where(kernel: KernelDiff, console: Console) -> None:
    region, basis = kernel.responsible, kernel.basis
    if not kernel.listed:
        console.print("  where it changed is told by loops only: NVIDIA's assembly is not compared")
    if region is None:
        if kernel.listed:
            console.print("  no part of the code changed, up to register renaming")
        return
    where = f"{words.position(region)}  " if region.text else words.position(region)
    console.print(
        f"  {words.outcome(region)} [bold]{where}[/]{escape(region.text)}", highlight=False
    )
    delta = region.spent
    if delta.changed:
        console.print(f"    {words.part_text(kernel, region)}", highlight=False)
    pipes = words.pipe_words(region)
    if pipes:
        console.print(f"    {pipes}", highlight=False)
    lines = words.moved_lines(kernel)
    if lines:
        what = "predicted time" if basis == "seconds" else "cycles, each instruction once"
        console.print(f"  source lines by change of {what}:")
    for line in lines:
        amount = words.signed_weight(line.spent.difference, basis)
        console.print(
            f"    {amount:<9} {escape(words.line_position(line))}  {escape(line.text)}",
            highlight=False,
            overflow="ellipsis",
            no_wrap=True,
        )


def _assembly(region: DiffRegion, console: Console, most: int) -> None:
    console.print(f"  its assembly: {words.row_words(region)}", highlight=False)
    width = max(20, (console.width - 19) // 2)
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 1, 0, 0))
    table.add_column(width=6, justify="right")
    table.add_column(width=width, no_wrap=True, overflow="ellipsis")
    table.add_column(width=1)
    table.add_column(width=5, justify="right")
    table.add_column(width=width, no_wrap=True, overflow="ellipsis")
    count = changes = 0
    for item in words.hunks(region.rows, CONTEXT):
        if isinstance(item, int):
            table.add_row("", Text(f"… {plural(item, 'line')} the same", "dim"))
            continue
        if count == most:
            remainder = plural(region.changes - changes, "change")
            table.add_row("", Text(f"… {remainder} more, see --rows", "dim"))
            break
        count += 1
        changes += item.kind != "same"
        style = _STYLES.get(item.kind, "dim")
        table.add_row(
            "" if item.before is None else str(item.before),
            Text(item.before_text, style),
            Text(words.SIGNS[item.kind], style),
            "" if item.after is None else str(item.after),
            Text(item.after_text, style),
        )
    console.print(table, highlight=False)


def render_bisect(search: Found, console: Console) -> None:
    """Every probe of a search and what it came to."""
    names = list(dict.fromkeys(name for probe in search.probes for name in probe.values))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("triton")
    for name in names:
        table.add_column(name, justify="right", overflow="fold")
    table.add_column("verdict")
    order = {release: number for number, release in enumerate(search.releases)}
    for probe in sorted(search.probes, key=lambda probe: order[probe.release]):
        cells = [words.figure_text(search.kpi.name, probe.values.get(name)) for name in names]
        table.add_row(probe.release, *cells, _verdict(probe, len(names)))
    console.print(table, highlight=False)
    summary = f"{len(search.probes)} of {len(search.releases)} releases asked"
    console.print(
        f"{summary}; a figure that is worse is taken to stay worse in later releases",
        highlight=False,
    )
    console.print(f"[bold]{escape(words.conclusion(search))}[/]", highlight=False)


def _verdict(probe: Probe, kernels: int) -> Text:
    if probe.failed:
        return Text(f"skipped: {probe.failed}", "yellow")
    if probe.worse and kernels > 1:
        return Text(f"worse: {', '.join(probe.worse)}", "red")
    return Text(probe.verdict, "red" if probe.worse else "green")


__all__ = ["render", "render_bisect"]
