"""Logarithmic axes of plots, between round numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from wavecast.report.kit import units
from wavecast.report.kit.svg import PlotFrame, Point, n


@dataclass(frozen=True, slots=True)
class LogAxes:
    """Both axes logarithmic, between round numbers: 1, 2 and 5 times powers of ten."""

    frame: PlotFrame
    x: tuple[float, float]
    y: tuple[float, float]

    @classmethod
    def around(cls, points: Sequence[Point], frame: PlotFrame) -> LogAxes:
        """Axes that hold all points."""
        across, up = zip(*points, strict=True)
        return cls(frame, round_range(across), round_range(up))

    def at(self, x: float, y: float) -> Point:
        """Pixels of a point."""
        return self.frame.x(_share(x, self.x)), self.frame.y(_share(y, self.y))

    def grid(self, across: str, up: str) -> Markup:
        """Lines with their numbers, and the names of the axes."""
        frame, parts = self.frame, []
        for value in _round_numbers(self.x):
            x, _ = self.at(value, self.y[0])
            parts.append(
                f'<path class="grid" d="M{n(x)} {n(frame.y(1))}V{n(frame.y(0))}"/>'
                f'<text x="{n(x)}" y="{n(frame.y(0) + 22)}" text-anchor="middle">'
                f"{units.si(value)}</text>"
            )
        for value in _round_numbers(self.y):
            _, y = self.at(self.x[0], value)
            parts.append(
                f'<path class="grid" d="M{n(frame.left)} {n(y)}H{n(frame.x(1))}"/>'
                f'<text x="{n(frame.left - 7)}" y="{n(y + 4)}" text-anchor="end">'
                f"{units.si(value)}</text>"
            )
        parts.append(
            f'<text class="axis" x="{n(frame.x(0.5))}" y="{n(frame.height - 4)}" '
            f'text-anchor="middle">{across}</text>'
            f'<text class="axis" transform="translate(12 {n(frame.y(0.5))}) rotate(-90)" '
            f'text-anchor="middle">{up}</text>'
        )
        return Markup("".join(parts))  # numbers and fixed words only


def _share(value: float, ends: tuple[float, float]) -> float:
    low, high = ends
    return math.log(value / low) / math.log(high / low)


_STEPS: Final = (1, 2, 5)


def _round_numbers(ends: tuple[float, float]) -> list[float]:
    """1, 2 and 5 times powers of ten in a range, powers of ten alone in a long one."""
    low, high = (math.floor(math.log10(end) + 1e-9) for end in ends)
    steps = _STEPS if high - low < 3 else (1,)
    candidates = [step * 10.0**power for power in range(low, high + 2) for step in steps]
    return [value for value in candidates if ends[0] * 0.999 <= value <= ends[1] * 1.001]


def round_range(values: Sequence[float]) -> tuple[float, float]:
    """The round numbers next to the least and the greatest of positive values."""
    low, high = min(values) / 1.1, max(values) * 1.1
    below, above = math.floor(math.log10(low)), math.floor(math.log10(high))
    return (
        max(step * 10.0**below for step in _STEPS if step * 10.0**below <= low),
        min(step * 10.0**above for step in (*_STEPS, 10) if step * 10.0**above >= high),
    )


__all__ = ["LogAxes", "round_range"]
