"""A report as terminal text: one comparison first, then every kernel on every device.

Colours are the terminal's own sixteen, and no information is in colour alone, so the text reads the
same on dark and light screens, without colours, and in a pipe.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from wavecast.report.explain import summary, terminal_prediction, words
from wavecast.report.explain.terminal_choices import choices
from wavecast.report.explain.terminal_findings import findings
from wavecast.report.explain.terminal_kernel import sections
from wavecast.report.explain.terminal_model import model_changes, model_times
from wavecast.report.kit import units
from wavecast.report.kit.terminal import SEVERITY_STYLE, safe

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from wavecast.pipeline.explain.result import ExplainReport, Explanation
    from wavecast.report.explain.summary import KernelGroup

Detail = Literal["brief", "normal", "full"]

_DROPPED = ("sgpr", "floor", "lds", "loop", "regs", "bound")
"""Columns of the comparison left out on a narrow terminal, in this order, after the device, or
after the target where two devices share one. Spills, time and findings remain."""


def render(report: ExplainReport, console: Console, *, detail: Detail = "normal") -> None:
    """Print the report. `brief` leaves out the sections, `full` shortens nothing."""
    groups = summary.groups(report)
    if len(report.explanations) > 1:
        _comparison(groups, console)
    _failures(report, console)
    for part in (
        *choices(report.choices),
        *model_times(report.lines),
        *model_changes(report.changes),
    ):
        console.print(part)
    for group in groups:
        for explanation in group.explanations:
            _kernel(group.label, explanation, console, detail)
    _notes(report, console)
    _not_checked(report, console)


def _what_if(explanation: Explanation) -> Iterator[RenderableType]:
    prediction = explanation.predicted.prediction
    return iter(()) if prediction is None else terminal_prediction.what_if(prediction, full=False)


def _notes(report: ExplainReport, console: Console) -> None:
    for note in report.notes:
        console.print(Text.assemble(("note ", "cyan"), safe(note)))


def _not_checked(report: ExplainReport, console: Console) -> None:
    """What else there is to know of AMD code: the emulator has the checks."""
    if report.inputs and any(explanation.code.is_amd for explanation in report.explanations):
        line = f"not checked for races: wavecast run {safe(report.inputs[0])} --check"
        console.print(Text(line, style="dim"), soft_wrap=True)


def _failures(report: ExplainReport, console: Console) -> None:
    for failure in report.failures:
        what = " for ".join(part for part in (failure.kernel, failure.target) if part)
        line = Text.assemble(("not explained ", "bold red"), (safe(what), "bold"))
        line.append(safe(f" ({failure.stage}): {failure.message}"))
        if failure.hint:
            line.append(safe(f" → {failure.hint}"))
        console.print(line)
    if report.failures:
        console.print()


def _kernel(label: str, explanation: Explanation, console: Console, detail: Detail) -> None:
    device = explanation.device
    title = Text.assemble((device.target, "bold cyan"), f" {words.short_name(device)}  ")
    title.append(safe(label), style="bold")
    console.print(Rule(title, align="left", style="dim", characters="─"))
    console.print(Text(safe(words.headline(explanation)), style="bold"))
    if detail == "brief":
        console.print()
    parts = (
        (*findings(explanation, brief=True), *_what_if(explanation))
        if detail == "brief"
        else sections(explanation, console.width, full=detail == "full")
    )
    for part in parts:
        console.print(part)
    console.print()


# --- the comparison ----------------------------------------------------------------------------


def _comparison(groups: Sequence[KernelGroup], console: Console) -> None:
    """One line per launch and device; kernels head their lines, columns align across kernels."""
    rows = [[_cells(e, group) for e in group.explanations] for group in groups]
    widths: dict[str, int] = {key: len(title) for key, (title, _) in _COLUMNS.items()}
    for cells in (cells for group_rows in rows for cells in group_rows):
        for key, cell in cells.items():
            widths[key] = max(widths[key], cell.cell_len)
    devices = {e.device.id: e.device.target for group in groups for e in group.explanations}
    shared = len(set(devices.values())) < len(devices)
    _fit(widths, console.width, ("arch" if shared else "device", *_DROPPED))
    console.print(_comparison_table(widths, [], header=True))
    for group, group_rows in zip(groups, rows, strict=True):
        console.print(Text(safe(group.label), style="bold", overflow="ellipsis", no_wrap=True))
        console.print(_comparison_table(widths, group_rows, header=False))
    console.print()


_COLUMNS = {
    "arch": ("target", "left"),
    "device": ("device", "left"),
    "regs": ("VGPR", "right"),
    "sgpr": ("SGPR", "right"),
    "spilled": ("spills", "right"),
    "lds": ("LDS", "right"),
    "waves": ("waves/SIMD", "left"),
    "loop": ("main loop, cycles", "left"),
    "time": ("predicted", "right"),
    "bound": ("bound by", "left"),
    "floor": ("floor", "right"),
    "findings": ("findings", "left"),
}
_GAP = 2
_INDENT = 2


def _fit(widths: dict[str, int], width: int, dropped: Sequence[str]) -> None:
    """Drop the least telling columns until the table fits."""
    for key in dropped:
        if _INDENT + sum(widths.values()) + _GAP * (len(widths) - 1) <= width:
            return
        del widths[key]


def _comparison_table(
    widths: dict[str, int], rows: Sequence[dict[str, Text]], *, header: bool
) -> Table:
    table = Table.grid(padding=(0, _GAP, 0, 0))
    table.add_column(width=_INDENT - _GAP)
    for key, width in widths.items():
        right = _COLUMNS[key][1] == "right"
        table.add_column(
            width=width, justify="right" if right else "left", no_wrap=True, overflow="ellipsis"
        )
    if header:
        table.add_row("", *(Text(_COLUMNS[key][0], style="dim") for key in widths))
    for cells in rows:
        table.add_row("", *(cells[key] for key in widths))
    return table


def _cells(explanation: Explanation, group: KernelGroup) -> dict[str, Text]:
    analysis, roofline, device = explanation.analysis, explanation.roofline, explanation.device
    registers = analysis.registers
    vgprs = f"{registers.vgpr}+{registers.agpr}" if registers.agpr else f"{registers.vgpr}"
    times = [e.predicted.prediction for e in group.explanations]
    seconds = [prediction.seconds for prediction in times if prediction is not None]
    prediction = explanation.predicted.prediction
    best = len(seconds) > 1 and prediction is not None and prediction.seconds == min(seconds)
    bound = prediction.limiter if prediction is not None else roofline.bound
    return {
        "arch": Text(device.target, style="cyan"),
        "device": Text(words.short_name(device)),
        "regs": Text(vgprs),
        "sgpr": Text(str(registers.sgpr) if device.vendor == "amd" else units.UNKNOWN),
        "spilled": Text(str(registers.spilled), style="bold red" if registers.spilled else ""),
        "lds": Text(units.size(analysis.lds_bytes) if analysis.lds_bytes else "0"),
        "waves": _waves_cell(explanation),
        "loop": _loop_cell(explanation),
        "time": Text(
            units.seconds(prediction.seconds if prediction else None), "bold" if best else ""
        ),
        "bound": Text(bound if bound != "unknown" else units.UNKNOWN),
        "floor": Text(units.seconds(roofline.floor_seconds), style="dim"),
        "findings": _findings_cell(explanation),
    }


def _waves_cell(explanation: Explanation) -> Text:
    occupancy, device = explanation.analysis.occupancy, explanation.device
    limiter = occupancy.limiter
    if device.vendor == "nvidia":
        limiter = words.of(device).resource(limiter)
    if not occupancy.fits:
        return Text(f"no fit ({limiter})", style="bold red")
    cell = Text(f"{occupancy.waves_per_simd}/{occupancy.max_waves_per_simd}")
    if occupancy.waves_per_simd < occupancy.max_waves_per_simd:
        cell.append(f" {limiter}", style="dim")
    return cell


def _loop_cell(explanation: Explanation) -> Text:
    loop = summary.main_loop(explanation.analysis)
    if loop is None:
        return Text("no loop", style="dim")
    if summary.latency_bound(loop):
        cell = Text(f"latency {units.cycles(loop.critical_path)}")
    elif pipes := summary.pipes_by_cost(loop):
        cell = Text(f"{words.of(explanation.device).pipe(pipes[0][0])} ")
        cell.append(units.cycles(pipes[0][1]))
    else:
        cell = Text(units.UNKNOWN)
    line = summary.line_of(loop.location)
    return cell.append(f" :{line}", style="dim") if line is not None else cell


def _findings_cell(explanation: Explanation) -> Text:
    counts = summary.severity_counts(explanation.findings)
    cell = Text()
    for severity, number in counts.items():
        if number:
            cell.append(f"{number}{severity[0].upper()} ", style=SEVERITY_STYLE[severity])
    cell.rstrip()
    return cell if cell else Text("none", style="dim")
