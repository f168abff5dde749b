"""Profiles as text: where the time of a run went."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from wavecast.profiles.counters import known_figures
from wavecast.profiles.elsewhere import RatioBasis
from wavecast.profiles.kernel_forms import form
from wavecast.profiles.kernel_names import display_name
from wavecast.report.kit import units
from wavecast.report.kit.terminal import safe
from wavecast.report.profiles import activity, code, trace
from wavecast.report.profiles.tables import ROWS, columns, shorten, with_form
from wavecast.wording import count

if TYPE_CHECKING:
    from wavecast.profiles.answer import ProfileAnswer
    from wavecast.profiles.elsewhere import MovedProfile
    from wavecast.profiles.findings import ProfileFinding
    from wavecast.profiles.predicted import OperatorTime, PredictedProfile
    from wavecast.profiles.ranks import RankSkew
    from wavecast.profiles.summary import DeviceSummary, TimeShare

_NANO: Final = 1e-9
_WIDE: Final = 100
"""Columns of a terminal below which intervals and limiters of operators are left out."""
_WIDEST: Final = 130
"""Columns from which operators have their useful FLOPs and least bytes by time."""
_UNKNOWN: Final = "(not known)"


def render(
    answers: Sequence[ProfileAnswer],
    console: Console,
    skew: RankSkew | None = None,
    *,
    detail: str = "normal",
) -> None:
    """Print every profile, and a table of the ranks where there are several, with what they wait
    for one another."""
    if len(answers) > 1:
        _ranks(answers, skew, console)
        slowest = max(answers, key=lambda answer: max(d.span for d in answer.summary.devices))
        answers = [slowest] if detail != "full" else answers
    for answer in answers:
        _print_answer(answer, console, ROWS[detail])


def _print_answer(answer: ProfileAnswer, console: Console, rows: int) -> None:
    profile, summary = answer.profile, answer.summary
    console.print(Rule(Text(safe(Path(answer.path).name), "bold cyan"), align="left"))
    console.print(
        Text(
            f"{profile.tool} · {units.plural(len(profile.launches), 'launch', 'launches')} of "
            f"{units.plural(len(profile.kernels), 'kernel')} · kernels take "
            f"{units.seconds(summary.kernel_time * _NANO)}",
            style="dim",
        )
    )
    for device in summary.devices:
        _device(answer, device, console)
    for usage in answer.activity.memory:
        console.print(Padding(Text(activity.memory_text(usage)), (0, 0, 0, 4)))
    total = max(1, summary.kernel_time)
    _section(console, "by category", summary.by_category, total, rows)
    _section(console, "by library", summary.by_library, total, rows)
    if any(summary.by_op):
        _section(console, "by operator", summary.by_op, total, rows)
    if any(summary.by_module):
        _section(console, "by module", summary.by_module, total, rows)
    _kernels(answer, console, rows)
    _counters(answer, console, rows)
    for part in activity.sections(answer.activity, rows):
        console.print(part)
    if answer.predicted:
        _operators(answer.predicted, console, rows)
    for kernel in answer.code.kernels[:rows]:
        for part in code.sections(kernel, brief=rows < ROWS["full"]):
            console.print(part)
    for traced in answer.traces:
        for part in trace.sections(traced, rows):
            console.print(part)
    _findings(answer.findings, console, rows)
    for projection in answer.moved:
        _print_moved(projection, console, rows)
    for note in answer.notes:
        console.print(Text.assemble(("note ", "cyan"), safe(note)))
    console.print()


def _device(answer: ProfileAnswer, device: DeviceSummary, console: Console) -> None:
    device_info = answer.profile.devices.get(device.device)
    name = (
        answer.chip(device.device) or (device_info.name if device_info else "") or "chip not known"
    )
    span = max(1, device.span)
    text = Text(f"\n  device {device.device}", "bold").append(f"  {safe(name)}", style="")
    text.append(
        f"\n  {units.seconds(device.span * _NANO)} from the first kernel to the last, "
        f"busy {device.busy / span:.1%}",
        style="",
    )
    for cause, time in sorted(device.idle.items(), key=lambda item: -item[1]):
        text.append(f"\n    idle {time / span:6.1%}  {units.seconds(time * _NANO):>8}  {cause}")
    console.print(text)
    for line in _facts(answer, device):
        console.print(Padding(Text(line), (0, 0, 0, 4)))


def _facts(answer: ProfileAnswer, device: DeviceSummary) -> Iterator[str]:
    if device.collectives:
        yield (
            f"collectives {device.collectives / max(1, device.span):.1%}, of which "
            f"{device.exposed / max(1, device.collectives):.0%} with nothing else running"
        )
    found = answer.activity.devices[device.device]
    costs = found.costs
    if costs:
        yield (
            f"launches take the host {units.seconds(costs.call)}, kernels start "
            f"{units.seconds(costs.delay)} after (medians); {costs.short:,} of "
            f"{count(costs.launches, 'kernel')} no longer than their launch"
        )
    queued = activity.queue_text(found.queues)
    if queued:
        yield queued
    path = found.path
    parts = (f"{name} {time / max(1, path.length):.1%}" for name, time in path.parts.items())
    yield f"critical path: {', '.join(parts)}"


def _findings(findings: Sequence[ProfileFinding], console: Console, rows: int) -> None:
    if not findings:
        return
    table = columns(("  saves", "right"), ("could be faster", "left"), ("what to do", "left"))
    for finding in findings[:rows]:
        what = Text(safe(shorten(finding.what, 60))).append(f": {safe(finding.evidence)}", "dim")
        table.add_row(units.seconds(finding.seconds), what, finding.advice)
    console.print()
    console.print(table)


def _section(
    console: Console, title: str, shares: Mapping[str, TimeShare], total: int, rows: int
) -> None:
    table = columns(("  share", "right"), ("time", "right"), ("launches", "right"), (title, "left"))
    top = list(shares.items())[:rows]
    for name, share in top:
        table.add_row(
            f"{share.nanoseconds / total:.1%}",
            units.seconds(share.nanoseconds * _NANO),
            f"{share.count:,}",
            safe(name) or _UNKNOWN,
        )
    _rest(table, [share for _, share in list(shares.items())[rows:]], total)
    console.print()
    console.print(table)


def _rest(table: Table, others: Sequence[TimeShare], total: int) -> None:
    if others:
        time = sum(share.nanoseconds for share in others)
        table.add_row(
            f"{time / total:.1%}",
            units.seconds(time * _NANO),
            f"{sum(share.count for share in others):,}",
            Text(f"{len(others):,} more", style="dim"),
        )


def _kernels(answer: ProfileAnswer, console: Console, rows: int) -> None:
    profile, summary = answer.profile, answer.summary
    total = max(1, summary.kernel_time)
    wide = console.width >= _WIDE
    varied = answer.activity.variations if wide else {}
    table = columns(
        ("  share", "right"),
        ("mean", "right"),
        *((("shortest", "right"), ("longest", "right")) if varied else ()),
        ("launches", "right"),
        ("workgroups", "right"),
        ("regs", "right"),
        ("kernel", "left"),
    )
    for number, share in list(summary.by_kernel.items())[:rows]:
        kernel = profile.kernels[number]
        blocks = kernel.blocks[0] * kernel.blocks[1] * kernel.blocks[2]
        table.add_row(
            f"{share.nanoseconds / total:.1%}",
            units.seconds(share.nanoseconds / share.count * _NANO),
            *(
                (
                    units.seconds(varied[number].shortest * _NANO),
                    units.seconds(varied[number].longest * _NANO),
                )
                if varied
                else ()
            ),
            f"{share.count:,}",
            f"{blocks:,}" if blocks else units.UNKNOWN,
            str(kernel.registers) if kernel.registers else units.UNKNOWN,
            with_form(display_name(kernel.name), form(kernel.name).text),
        )
    _kernel_rest(table, list(summary.by_kernel.values())[rows:], total, 4 if varied else 2)
    console.print()
    console.print(table)


def _counters(answer: ProfileAnswer, console: Console, rows: int) -> None:
    """Figures of hardware counters over all launches of a kernel, a paragraph per kernel."""
    profile = answer.profile
    figures_by_kernel = {
        number: counts.figures() for number, counts in answer.activity.counters.items()
    }
    figures_by_kernel = {
        number: figures for number, figures in figures_by_kernel.items() if figures
    }
    if not figures_by_kernel:
        return
    console.print(Text("\n  counters of all launches", "bold"))
    for number, figures in list(figures_by_kernel.items())[:rows]:
        console.print(Text(f"  {safe(shorten(display_name(profile.kernels[number].name), 100))}"))
        cells = (
            f"{figure.name} {code.figure_text(figure.unit, figures[figure.name])}"
            for figure in known_figures()
            if figure.name in figures
        )
        console.print(Padding(Text(", ".join(cells), "dim"), (0, 0, 0, 4)))


def _kernel_rest(table: Table, others: Sequence[TimeShare], total: int, times: int) -> None:
    """`times`: columns before the number of launches."""
    if others:
        time = sum(share.nanoseconds for share in others)
        count = sum(share.count for share in others)
        more = Text(f"{len(others):,} more", style="dim")
        empty = ("" for _ in range(times - 1))
        table.add_row(f"{time / total:.1%}", *empty, f"{count:,}", "", "", more)


def _operators(predicted: PredictedProfile, console: Console, rows: int) -> None:
    wide, widest = console.width >= _WIDE, console.width >= _WIDEST
    table = columns(
        ("  measured", "right"),
        ("predicted", "right"),
        ("ratio", "right"),
        *((("80% interval", "right"),) if wide else ()),
        ("calls", "right"),
        *((("FLOP/s", "right"), ("B/s", "right")) if widest else ()),
        *((("limited by", "left"),) if wide else ()),
        ("operator", "left"),
    )
    reasons: dict[str, int] = {}
    for operator in predicted.operators[:rows]:
        has_prediction = not operator.why_not
        name = Text(
            safe(f"{operator.name} {shorten(operator.sizes, 48)}"),
            "" if has_prediction else "dim",
        )
        interval = (
            f"{units.seconds(operator.low)}–{units.seconds(operator.high)}"
            if has_prediction
            else "–"
        )
        if not has_prediction:
            reasons[operator.why_not] = reasons.get(operator.why_not, 0) + 1
        table.add_row(
            units.seconds(operator.measured),
            units.seconds(operator.predicted) if has_prediction else "–",
            Text(
                f"{operator.measured / operator.predicted:.2f}",
                style="" if operator.in_interval else "yellow",
            )
            if has_prediction
            else "–",
            *((interval,) if wide else ()),
            f"{operator.count:,}",
            *((_rate(operator.flops, operator), _rate(operator.bytes, operator)) if widest else ()),
            *((safe(operator.limiter),) if wide else ()),
            name,
        )
    console.print(Text(f"\n  measured and predicted on {predicted.device.id}", "bold"))
    console.print(table)
    for why, number in reasons.items():
        console.print(
            Text(f"  {units.plural(number, 'row')} without a prediction: {safe(why)}", "dim")
        )
    line = f"  {predicted.covered:.0%} of the kernels' time is predicted"
    if math.isfinite(predicted.median_error):
        line += f"; median error of an operator {predicted.median_error:.0%}"
    console.print(Text(line, style="dim"))


def _rate(amount: float, operator: OperatorTime) -> str:
    """Useful FLOPs or least bytes over the measured time."""
    return units.si(amount / operator.measured) if amount and operator.measured else "–"


def _print_moved(target: MovedProfile, console: Console, rows: int) -> None:
    here = target.here
    console.print()
    title = f"  on {target.device.id}" + (f", {target.changes.text}" if target.changes.text else "")
    console.print(
        Text.assemble(
            (f"{safe(title)}  ", "bold"),
            f"kernels take {units.seconds(target.seconds)} "
            f"({units.seconds(target.low)}–{units.seconds(target.high)}), "
            f"{here.measured / target.seconds:.2f} x the speed of {here.device.id}; from the first "
            f"to the last {units.seconds(target.after.span * _NANO)}, measured "
            f"{units.seconds(target.before.span * _NANO)}",
        )
    )
    residuals = ", ".join(
        f"{residual.category} {residual.ratio:.2f} ± {residual.deviation:.0%}"
        for residual in target.residuals
    )
    if residuals:
        text = f"  measured over predicted here, carried over: {residuals}"
        console.print(Text(text, style="dim"))
    table = columns(
        (f"  {here.device.id}", "right"),
        (target.device.id, "right"),
        ("speedup", "right"),
        ("operator", "left"),
    )
    for operator in target.operators[:rows]:
        name = f"{operator.here.name} {shorten(operator.here.sizes, 48)}"
        table.add_row(
            units.seconds(operator.here.measured),
            units.seconds(operator.seconds),
            f"{1 / operator.ratio:.2f}" if operator.ratio else "–",
            safe(name)
            + ("" if operator.basis is RatioBasis.PREDICTED else f" ({operator.basis.value})"),
        )
    console.print(table)


def _ranks(answers: Sequence[ProfileAnswer], skew: RankSkew | None, console: Console) -> None:
    table = columns(
        ("  rank", "right"),
        ("span", "right"),
        ("busy", "right"),
        ("kernels", "right"),
        ("collectives", "right"),
        ("exposed", "right"),
        ("file", "left"),
    )
    for answer in sorted(answers, key=lambda answer: answer.profile.rank):
        for device in answer.summary.devices:
            table.add_row(
                str(answer.profile.rank),
                units.seconds(device.span * _NANO),
                f"{device.busy / max(1, device.span):.1%}",
                f"{device.kernels:,}",
                units.seconds(device.collectives * _NANO),
                units.seconds(device.exposed * _NANO),
                safe(Path(answer.path).name),
            )
    console.print(table)
    if skew:
        rank, waited = skew.slowest, skew.waited
        console.print(
            f"  rank {rank} is the slowest: it came last to {skew.last_in[rank]:,} of "
            f"{units.plural(len(skew.collectives), 'collective')}; the others waited up to "
            f"{units.seconds(max(waited.values()) * _NANO)} longer in them; half of them have a "
            f"skew above {units.seconds(skew.median_skew * _NANO)}"
        )


__all__ = ["render"]
