"""Plots of a validation: predicted over measured, errors by time, coverage of intervals."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from wavecast.perfmodel.intervals import COVERAGE, SIZES, size_class
from wavecast.report.kit import units
from wavecast.report.kit.svg import PlotFrame, figure, n, path
from wavecast.report.validation.words import share

if TYPE_CHECKING:
    from wavecast.benchmarking.accuracy.outcome import ScoredProblem

_MOST_POINTS = 800
_LEAST = 8  # problems a quantile of a bin, or a bar, is drawn for
_REACH = 3.0  # largest factor of the error plot
_BINS_PER_DECADE = 3


def colours(outcomes: Sequence[ScoredProblem]) -> dict[str, int]:
    """Colour class of each device, the most frequent first."""
    counts: dict[str, int] = defaultdict(int)
    for outcome in outcomes:
        counts[outcome.case.device] += 1
    ordered = sorted(counts, key=lambda name: (-counts[name], name))
    return {name: index % 8 for index, name in enumerate(ordered)}


def scatter(outcomes: Sequence[ScoredProblem]) -> Markup:
    """Predicted over measured time, both logarithmic, a dot per problem; a sample where many."""
    frame = PlotFrame(360, 300, 62, 20, 10, 36)
    times = [t for o in outcomes for t in (o.measured, o.prediction.seconds)]
    low, high = _decades(times)
    body = [_decade_grid(frame, low, high, both=True)]
    body.append(
        Markup('<path class="even" d="{}"/>').format(
            path([(frame.x(0), frame.y(0)), (frame.x(1), frame.y(1))])
        )
    )
    colour = colours(outcomes)
    for outcome in _sample(outcomes):
        x = frame.x(_position(outcome.measured, low, high))
        y = frame.y(_position(outcome.prediction.seconds, low, high))
        body.append(
            Markup('<circle class="t{}" cx="{}" cy="{}" r="2"><title>{}</title></circle>').format(
                colour[outcome.case.device], n(x), n(y), _title(outcome)
            )
        )
    return _plot(frame, body, "measured", "predicted", "Predicted over measured time")


def errors(outcomes: Sequence[ScoredProblem]) -> Markup:
    """Predicted / measured over measured time: dots, and the 10 %, 50 % and 90 % quantiles."""
    frame = PlotFrame(360, 300, 44, 20, 10, 36)
    low, high = _decades([outcome.measured for outcome in outcomes])
    body = [_decade_grid(frame, low, high, both=False), _ratio_grid(frame)]
    colour = colours(outcomes)
    for outcome in _sample(outcomes):
        x = frame.x(_position(outcome.measured, low, high))
        body.append(
            Markup('<circle class="t{}" cx="{}" cy="{}" r="2"><title>{}</title></circle>').format(
                colour[outcome.case.device],
                n(x),
                n(_ratio_y(frame, outcome.ratio)),
                _title(outcome),
            )
        )
    for quantile, points in _quantile_lines(outcomes, frame, low, high).items():
        name = "median" if quantile == 0.5 else "edge"
        body.append(Markup('<path class="{}" d="{}"/>').format(name, path(points)))
    return _plot(frame, body, "measured", "predicted / measured", "Error by measured time")


def coverage(outcomes: Sequence[ScoredProblem]) -> Markup:
    """Shares of measured times inside the interval, by device and by size."""
    groups: dict[str, list[bool]] = defaultdict(list)
    for outcome in outcomes:
        groups["all"].append(outcome.covered)
        groups[outcome.case.device].append(outcome.covered)
    for _, name in SIZES:
        groups[name] = [o.covered for o in outcomes if size_class(o.measured) == name]
    visible = {name: hits for name, hits in groups.items() if len(hits) >= _LEAST}
    frame = PlotFrame(360, max(110, 26 * len(visible) + 40), 92, 50, 10, 30)
    step = frame.inner_height / max(1, len(visible))
    body = [_share_grid(frame)]
    for index, (name, hits) in enumerate(visible.items()):
        part, y = sum(hits) / len(hits), frame.top + index * step + 3
        good = "near" if abs(part - COVERAGE) <= 0.05 else "far"
        body.append(
            Markup(
                '<text x="{left}" y="{middle}" text-anchor="end">{name}</text>'
                '<rect class="{good}" x="{x}" y="{y}" width="{width}" height="{height}">'
                "<title>{name}: {part} of {count} problems</title></rect>"
                '<text x="{end}" y="{middle}">{part}</text>'
            ).format(
                left=n(frame.left - 6), middle=n(y + step / 2), name=name, good=good,
                x=n(frame.left), y=n(y), width=n(part * frame.inner_width),
                height=n(max(4, step - 6)),
                part=share(part), count=f"{len(hits):,}", end=n(frame.x(part) + 5),
            )
        )  # fmt: skip
    goal = n(frame.x(COVERAGE))
    body.append(
        Markup('<path class="even" d="M{} {}V{}"/>').format(goal, n(frame.y(1)), n(frame.y(0)))
    )
    return _svg(frame, body, "Share of measured times inside the interval")


def _sample(outcomes: Sequence[ScoredProblem]) -> Sequence[ScoredProblem]:
    """At most `_MOST_POINTS`, always the same."""
    if len(outcomes) <= _MOST_POINTS:
        return outcomes
    digest = {
        id(o): hashlib.sha256(f"{o.case.op} {o.case.device}".encode()).digest() for o in outcomes
    }
    return sorted(outcomes, key=lambda outcome: digest[id(outcome)])[:_MOST_POINTS]


def _quantile_lines(
    outcomes: Sequence[ScoredProblem], frame: PlotFrame, low: int, high: int
) -> dict[float, list[tuple[float, float]]]:
    """Points of quantile lines over bins of a third of a decade."""
    bins: dict[int, list[float]] = defaultdict(list)
    for outcome in outcomes:
        bins[math.floor(math.log10(outcome.measured) * _BINS_PER_DECADE)].append(outcome.ratio)
    lines: dict[float, list[tuple[float, float]]] = {0.1: [], 0.5: [], 0.9: []}
    for index in sorted(bins):
        ratios = sorted(bins[index])
        if len(ratios) < _LEAST:
            continue
        middle = 10 ** ((index + 0.5) / _BINS_PER_DECADE)
        for quantile, points in lines.items():
            ratio = ratios[min(len(ratios) - 1, int(quantile * len(ratios)))]
            points.append((frame.x(_position(middle, low, high)), _ratio_y(frame, ratio)))
    return {quantile: points for quantile, points in lines.items() if len(points) > 1}


def _ratio_y(frame: PlotFrame, ratio: float) -> float:
    """Pixel of a ratio; what is out of reach lies on the border."""
    across = math.log(ratio) / math.log(_REACH)
    return frame.y(0.5 + 0.5 * max(-1.0, min(1.0, across)))


def _ratio_grid(frame: PlotFrame) -> Markup:
    parts = []
    for ratio, text in (
        (1 / 3, "⅓"),
        (0.5, "½"),
        (0.8, "0.8"),
        (1.0, "1"),
        (1.25, "1.25"),
        (2.0, "2"),
        (3.0, "3"),
    ):
        y = _ratio_y(frame, ratio)
        kind = "even" if ratio == 1 else "grid"
        parts.append(
            f'<path class="{kind}" d="M{n(frame.left)} {n(y)}H{n(frame.x(1))}"/>'
            f'<text x="{n(frame.left - 6)}" y="{n(y + 4)}" text-anchor="end">{text}</text>'
        )
    return Markup("".join(parts))  # numbers and fixed words only


def _share_grid(frame: PlotFrame) -> Markup:
    parts = []
    for tick in (0, 20, 40, 60, 80, 100):
        x = n(frame.x(tick / 100))
        parts.append(
            f'<path class="grid" d="M{x} {n(frame.y(1))}V{n(frame.y(0))}"/>'
            f'<text x="{x}" y="{n(frame.y(0) + 15)}" text-anchor="middle">{tick}%</text>'
        )
    return Markup("".join(parts))  # numbers only


def _decades(times: Sequence[float]) -> tuple[int, int]:
    low, high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))
    return low, max(high, low + 1)


def _position(seconds: float, low: int, high: int) -> float:
    return (math.log10(seconds) - low) / (high - low)


def _decade_grid(frame: PlotFrame, low: int, high: int, *, both: bool) -> Markup:
    parts = []
    for decade in range(low, high + 1):
        share_, label = (decade - low) / (high - low), units.seconds(10.0**decade)
        x, y = frame.x(share_), frame.y(share_)
        parts.append(
            f'<path class="grid" d="M{n(x)} {n(frame.y(1))}V{n(frame.y(0))}"/>'
            f'<text x="{n(x)}" y="{n(frame.y(0) + 14)}" text-anchor="middle">{label}</text>'
        )
        if both:
            parts.append(
                f'<path class="grid" d="M{n(frame.left)} {n(y)}H{n(frame.x(1))}"/>'
                f'<text x="{n(frame.left - 6)}" y="{n(y + 4)}" text-anchor="end">{label}</text>'
            )
    return Markup("".join(parts))  # numbers and fixed words only


def _title(outcome: ScoredProblem) -> str:
    return (
        f"{outcome.case.op} on {outcome.case.device}: predicted "
        f"{units.seconds(outcome.prediction.seconds)}, measured {units.seconds(outcome.measured)}"
    )


def _plot(frame: PlotFrame, body: list[Markup], across: str, up: str, label: str) -> Markup:
    axis = Markup(
        '<text class="axis" x="{}" y="{}" text-anchor="middle">{}</text>'
        '<text class="axis" transform="translate(10 {}) rotate(-90)" text-anchor="middle">{}</text>'
    ).format(n(frame.x(0.5)), n(frame.height - 4), across, n(frame.y(0.5)), up)
    return _svg(frame, [*body, axis], label)


def _svg(frame: PlotFrame, body: list[Markup], label: str) -> Markup:
    return figure("residuals", label, frame, body)
