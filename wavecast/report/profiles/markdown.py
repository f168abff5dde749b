"""Profiles as Markdown for a pull request: totals, categories, the longest operators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from wavecast.compile.names import readable
from wavecast.report.kit import units
from wavecast.report.profiles import code

if TYPE_CHECKING:
    from wavecast.profiles.answer import ProfileAnswer
    from wavecast.profiles.code import ExplainedKernel
    from wavecast.profiles.comparison import ProfileComparison

_ROWS: Final = 10
_NANO: Final = 1e-9


def render(answers: Sequence[ProfileAnswer], against: ProfileComparison | None = None) -> str:
    """A section per profile, or the comparison of two."""
    if against:
        names = [answer.path.name for answer in answers[:2]]
        return "\n".join(_comparison(against, names)) + "\n"
    return "\n".join(line for answer in answers for line in _profile(answer)) + "\n"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table. Columns that begin with `>` are right-aligned."""
    heads = [name.removeprefix(">") for name in columns]
    sides = ["---:" if name.startswith(">") else "---" for name in columns]
    lines = [heads, sides, *([_escape(text) for text in row] for row in rows)]
    return [f"| {' | '.join(line)} |" for line in lines] + [""]


def _escape(text: str) -> str:
    """Text that is one cell, and not HTML."""
    for character, instead in (("|", "\\|"), ("\n", " "), ("<", "&lt;")):
        text = text.replace(character, instead)
    return text


def _profile(answer: ProfileAnswer) -> list[str]:
    summary = answer.summary
    total = max(1, summary.kernel_time)
    lines = [f"### {answer.path.name}", ""]
    for device in summary.devices:
        chip = answer.chip(device.device) or "chip not known"
        idle = "; ".join(
            f"{cause} {time / max(1, device.span):.1%}" for cause, time in device.idle.items()
        )
        lines.append(
            f"Device {device.device} ({chip}): {units.seconds(device.span * _NANO)}, busy "
            f"{device.busy / max(1, device.span):.1%}" + (f"; idle: {idle}" if idle else "")
        )
    lines.append("")
    lines += table(
        ("category", ">time", ">share"),
        (
            (name, units.seconds(share.nanoseconds * _NANO), f"{share.nanoseconds / total:.1%}")
            for name, share in summary.by_category.items()
        ),
    )
    if answer.predicted:
        lines += table(
            ("operator", ">calls", ">measured", ">predicted", ">ratio", "limited by"),
            (
                (
                    f"{operator.name} {operator.sizes[:60]}",
                    f"{operator.count:,}",
                    units.seconds(operator.measured),
                    units.seconds(operator.predicted) if not operator.why_not else "–",
                    f"{operator.measured / operator.predicted:.2f}" if operator.predicted else "–",
                    operator.limiter,
                )
                for operator in answer.predicted.operators[:_ROWS]
            ),
        )
    for kernel in answer.code.kernels:
        lines += _explanation_lines(kernel)
    for projection in answer.moved:
        changes = f", {projection.changes.text}" if projection.changes.text else ""
        lines += [
            f"On {projection.device.id}{changes}: kernels take {units.seconds(projection.seconds)} "
            f"({units.seconds(projection.low)} to {units.seconds(projection.high)}), measured here "
            f"{units.seconds(projection.here.measured)}.",
            "",
        ]
    if answer.findings:
        lines += table(
            ("what could be faster", ">saves", "why", "what to do"),
            (
                (
                    finding.what[:80],
                    units.seconds(finding.seconds),
                    finding.evidence,
                    finding.advice,
                )
                for finding in answer.findings[:_ROWS]
            ),
        )
    return lines + [f"> {note}\n" for note in answer.notes]


def _explanation_lines(kernel: ExplainedKernel) -> list[str]:
    """Counters next to their predictions, for a kernel whose code is at hand."""
    name = _escape(readable(kernel.explanation.code.kernel))
    lines = [f"{name} ({kernel.source.name}): {code.headline(kernel)}.", ""]
    lines += [f"> {note}\n" for note in kernel.notes]
    rows = (
        (
            figure.name,
            *(code.figure_text(figure.unit, side) for side in (figure.measured, figure.predicted)),
            figure.why,
        )
        for figure in kernel.figures
    )
    return lines + table(("counter", ">measured", ">predicted", "why they differ"), rows)


def _comparison(comparison: ProfileComparison, names: Sequence[str]) -> list[str]:
    first, second = comparison.totals
    lines = [
        f"### {names[0]} against {names[1]}",
        "",
        f"Kernels take {units.seconds(first * _NANO)} and {units.seconds(second * _NANO)} "
        f"({second / max(1, first):.2f} x).",
        "",
    ]
    rows = [
        (
            f"{row.op or row.category} {row.module}",
            units.seconds(row.first.share.nanoseconds * _NANO),
            units.seconds(row.second.share.nanoseconds * _NANO),
            f"{row.ratio:.2f}" if row.ratio is not None else "–",
        )
        for row in comparison.rows[: 2 * _ROWS]
    ]
    return lines + table(("operator and module", ">first", ">second", ">ratio"), rows)


__all__ = ["render"]
