"""One figure over runs as inline SVG: medians, their spread, levels, and where they change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from markupsafe import Markup

from wavecast.benchmarking.history.series import LevelChange, Point, Series
from wavecast.report.bench import history as words
from wavecast.report.kit.svg import PlotFrame, figure, n, path

_LABELS: Final = 5
_TICKS: Final = 4


def plot(series: Series) -> Markup:
    """Runs from left to right, the figure upwards from not zero; a dot has its run as a title."""
    frame = PlotFrame(560, 190, 66, 14, 16, 30)
    low, high = _range(series.points)
    body = [_grid(frame, series, low, high), _runs(frame, series.points)]
    body += [_level(frame, series, first, last, low, high) for first, last in _levels(series)]
    for change in series.changes:
        body.append(_change(frame, series, change))
    for index, point in enumerate(series.points):
        body.append(_dot(frame, series, index, point, low, high))
    label = f"{series.kpi.name} of {series.subject.key} over {len(series.points)} runs"
    return figure("history", label, frame, body)


def _range(points: Sequence[Point]) -> tuple[float, float]:
    """What the axis shows: all medians, and spreads that do not flatten these."""
    values = [point.value for point in points]
    low, high = min(values), max(values)
    reach = max(high - low, 0.02 * abs(high), 1e-12 if high else 1.0)
    low = max(min(point.low for point in points), low - reach)
    high = min(max(point.high for point in points), high + reach)
    margin = 0.08 * max(high - low, reach)
    return (low - margin if low - margin > 0 or low < 0 else min(low, 0.0)), high + margin


def _x(frame: PlotFrame, index: float, count: int) -> float:
    return frame.x((index + 0.5) / count)


def _y(frame: PlotFrame, value: float, low: float, high: float) -> float:
    return frame.y(min(1.0, max(0.0, (value - low) / (high - low))))


def _grid(frame: PlotFrame, series: Series, low: float, high: float) -> Markup:
    parts = []
    step = 10 ** math.floor(math.log10((high - low) / _TICKS))
    step = next(step * by for by in (1, 2, 5, 10) if (high - low) / (step * by) <= _TICKS + 1)
    if all(float(point.value).is_integer() for point in series.points):
        step = max(1.0, step)
    for number in range(math.ceil(low / step), math.floor(high / step) + 1):
        y = n(_y(frame, number * step, low, high))
        parts.append(
            Markup(
                '<path class="grid" d="M{} {}H{}"/>'
                '<text x="{}" y="{}" text-anchor="end">{}</text>'
            ).format(n(frame.left), y, n(frame.x(1)), n(frame.left - 6), n(float(y) + 4),
                    words.tick(series, number * step, step))
        )  # fmt: skip
    return Markup("").join(parts)


def _runs(frame: PlotFrame, points: Sequence[Point]) -> Markup:
    """Names below a few runs."""
    count = len(points)
    ticks = sorted({round(i * (count - 1) / (_LABELS - 1)) for i in range(_LABELS)})
    parts = []
    for index in ticks:
        anchor = "start" if index == 0 and count > 1 else "end" if index == count - 1 else "middle"
        anchor = "middle" if count == 1 else anchor
        x = frame.x(0) if anchor == "start" else frame.x(1) if anchor == "end" else None
        name = points[index].run.commit[:8] or points[index].run.label or points[index].run.id
        parts.append(
            Markup('<text x="{}" y="{}" text-anchor="{}">{}</text>').format(
                n(_x(frame, index, count) if x is None else x),
                n(frame.height - 10),
                anchor,
                name if len(name) <= 14 else name[:13] + "…",
            )
        )
    return Markup("").join(parts)


def _levels(series: Series) -> list[tuple[int, int]]:
    edges = [0, *(change.at for change in series.changes), len(series.points)]
    return list(pairwise(edges))


def _level(
    frame: PlotFrame, series: Series, first: int, last: int, low: float, high: float
) -> Markup:
    middle = words.level([point.value for point in series.points[first:last]])
    count, y = len(series.points), _y(frame, middle, low, high)
    ends = [(frame.x(first / count), y), (frame.x(last / count), y)]
    return Markup('<path class="level" d="{}"/>').format(path(ends))


def _change(frame: PlotFrame, series: Series, change: LevelChange) -> Markup:
    x = frame.x(change.at / len(series.points))
    near_end = x > frame.x(0.8)
    return Markup(
        '<g class="change {}"><title>{}</title><path d="M{} {}V{}"/>'
        '<text x="{}" y="{}" text-anchor="{}">{}</text></g>'
    ).format(
        "worse" if change.worse else "better",
        words.line(series, change),
        n(x),
        n(frame.y(1)),
        n(frame.y(0)),
        n(x - 4 if near_end else x + 4),
        n(frame.top - 5),
        "end" if near_end else "start",
        words.percent(change) or words.word(series, change),
    )


def _dot(
    frame: PlotFrame, series: Series, index: int, point: Point, low: float, high: float
) -> Markup:
    x = _x(frame, index, len(series.points))
    return Markup(
        '<g class="run{}"><title>{}</title><path d="M{} {}V{}"/>'
        '<circle cx="{}" cy="{}" r="{}"/></g>'
    ).format(
        "" if point.samples else " predicted",
        words.point_title(series, point),
        n(x),
        n(_y(frame, point.low, low, high)),
        n(_y(frame, point.high, low, high)),
        n(x),
        n(_y(frame, point.value, low, high)),
        "3" if len(series.points) <= 80 else "1.8",
    )


__all__ = ["plot"]
