"""The register-pressure plot: live registers along the program."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from wavecast.report.explain import words
from wavecast.report.explain.pressure import Point, downsample
from wavecast.report.kit import units
from wavecast.report.kit.svg import PlotFrame, figure, n, path

if TYPE_CHECKING:
    from wavecast.analyze.result import Pressure
    from wavecast.pipeline.explain.result import Explanation

_MOST_POINTS = 512


def plot(explanation: Explanation) -> Markup | None:
    """Live registers along the program, the peak marked; None where they are not known.

    `data-total` is the number of instructions along the width, for the page's script.
    """
    curve = explanation.analysis.pressure
    if curve is None or not curve.vgpr:
        return None
    frame = PlotFrame(960, 190, 42, 10, 14, 26)
    registers = explanation.analysis.registers
    points = downsample(curve, _MOST_POINTS)
    top = max(registers.vgpr, *(max(v, a, s) for _, v, a, s in points), 8) * 1.06
    total = len(curve.vgpr)
    parts = [_pressure_axes(frame, top, total), _allocation_line(frame, top, registers.vgpr)]
    for name, column in (("sgpr", 3), ("agpr", 2), ("vgpr", 1)):
        if any(point[column] for point in points):
            parts.append(_curve(frame, points, column, total, top, name))
    parts.append(_peak(frame, curve, total, top))
    parts.append(Markup('<path class="cursor" d=""/>'))
    label = f"Live registers along {total} instructions, peak {curve.peak_vgpr} VGPRs"
    left, right = n(frame.left), n(frame.x(1))
    return figure("pressure", label, frame, parts, total=total, left=left, right=right)


def _pressure_axes(frame: PlotFrame, top: float, total: int) -> Markup:
    step = _tick(top, 4)
    parts = []
    value = 0
    while value <= top:
        y = frame.y(value / top)
        parts.append(
            f'<path class="grid" d="M{n(frame.left)} {n(y)}H{n(frame.x(1))}"/>'
            f'<text x="{n(frame.left - 6)}" y="{n(y + 4)}" text-anchor="end">{value}</text>'
        )
        value += step
    across = _tick(total, 8)
    for position in range(0, total, across):
        x = frame.x(position / total)
        parts.append(
            f'<text x="{n(x)}" y="{n(frame.height - 8)}" text-anchor="middle">'
            f"{units.count(position)}</text>"
        )
    return Markup("".join(parts))  # numbers only


def _tick(top: float, about: int) -> int:
    """A round step that gives `about` ticks up to `top`."""
    rough = max(top / about, 1)
    magnitude = 10 ** math.floor(math.log10(rough))
    for factor in (1, 2, 5, 10):
        if rough <= factor * magnitude:
            return int(factor * magnitude)
    raise AssertionError("unreachable: rough is below ten times its magnitude")


def _allocation_line(frame: PlotFrame, top: float, registers: int) -> Markup:
    y = frame.y(registers / top)
    return Markup(
        '<path class="allocated" d="M{x} {y}H{end}">'
        "<title>{registers} VGPRs allocated</title></path>"
        '<text class="allocated" x="{end}" y="{above}" text-anchor="end">'
        "{registers} allocated</text>"
    ).format(x=n(frame.left), y=n(y), end=n(frame.x(1)), above=n(y - 4), registers=registers)


def _curve(
    frame: PlotFrame, points: Sequence[Point], column: int, total: int, top: float, name: str
) -> Markup:
    corners = []
    for position, point in enumerate(points):
        start = position * total // len(points)
        stop = (position + 1) * total // len(points)
        y = frame.y(point[column] / top)
        corners += [(frame.x(start / total), y), (frame.x(stop / total), y)]
    line = path(corners)
    area = ""
    if column == 1:
        area = f'<path class="area" d="{line}V{n(frame.y(0))}H{n(frame.left)}Z"/>'
    return Markup(f'{area}<path class="curve {name}" d="{line}"/>')  # numbers and fixed words only


def _peak(frame: PlotFrame, curve: Pressure, total: int, top: float) -> Markup:
    x = frame.x((curve.peak_index + 0.5) / total)
    y = frame.y(curve.peak_vgpr / top)
    side = "end" if x > frame.x(0.7) else "start"
    at = f" · {words.where(curve.peak_location)}" if curve.peak_location else ""
    return Markup(
        '<g class="peak"><circle cx="{x}" cy="{y}" r="4"/>'
        '<text x="{tx}" y="{ty}" text-anchor="{side}">peak {peak}{at}</text></g>'
    ).format(
        x=n(x),
        y=n(y),
        tx=n(x - 8 if side == "end" else x + 8),
        ty=n(max(y - 5, 11)),
        side=side,
        peak=curve.peak_vgpr,
        at=escape(at),
    )
