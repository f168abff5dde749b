"""Plots as inline SVG. Colours and fonts are the page's style classes; hovers are SVG titles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from wavecast.report import summary, units
from wavecast.report.pressure import Point, downsample

if TYPE_CHECKING:
    from wavecast.analyze.result import Pressure
    from wavecast.model.bounds import Ceiling
    from wavecast.pipeline.result import Explanation

PRESSURE_POINTS = 512


@dataclass(frozen=True, slots=True)
class Frame:
    """A plot area: logarithmic or linear ranges mapped to pixels."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float

    @property
    def inner_width(self) -> float:
        return self.width - self.left - self.right

    @property
    def inner_height(self) -> float:
        return self.height - self.top - self.bottom

    def x(self, share: float) -> float:
        """Pixel of a share 0…1 of the horizontal axis."""
        return self.left + share * self.inner_width

    def y(self, share: float) -> float:
        """Pixel of a share 0…1 of the vertical axis, upwards."""
        return self.top + (1 - share) * self.inner_height


def _n(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{_n(x)} {_n(y)}" for x, y in points)


# --- roofline ----------------------------------------------------------------------------------


def roofline(explanations: Sequence[Explanation]) -> Markup | None:
    """Roofs of every device and the launch under them; None when no device's rates are known.

    Horizontal: FLOP per byte; vertical: FLOP/s; both logarithmic. Solid roofs are datasheet peaks,
    dashed ones sustained rates. A point shows the most the launch can reach.
    """
    roofs = [(i, e) for i, e in enumerate(explanations) if e.roofline.compute and e.roofline.memory]
    if not roofs:
        return None
    frame = Frame(720, 330, 58, 14, 12, 36)
    axes = _Axes.around([e for _, e in roofs], frame)
    parts = [axes.grid()]
    for index, explanation in roofs:
        parts.append(_roof(explanation, index, axes))
    parts += [_launch_points(explanation, index, axes) for index, explanation in roofs]
    return Markup(
        '<svg class="plot roofline" viewBox="0 0 {w} {h}" role="img" '
        'aria-label="Roofline: attainable FLOP/s over FLOP per byte">{body}</svg>'
    ).format(w=_n(frame.width), h=_n(frame.height), body=Markup("").join(parts))


@dataclass(frozen=True, slots=True)
class _Axes:
    frame: Frame
    x_low: float
    x_high: float
    y_low: float
    y_high: float

    @classmethod
    def around(cls, explanations: Sequence[Explanation], frame: Frame) -> _Axes:
        """Decades that hold every ridge, every launch, and some room around them."""
        intensities, rates = [], []
        for explanation in explanations:
            roof = explanation.roofline
            compute, memory = roof.compute, roof.memory
            assert compute is not None
            assert memory is not None
            intensities.append(compute.rate / memory.rate)
            rates.append(compute.rate)
            if roof.intensity:
                intensities.append(roof.intensity)
                rates.append(min(compute.rate, roof.intensity * memory.rate))
        return cls(
            frame,
            math.floor(math.log10(min(intensities) / 3)),
            math.ceil(math.log10(max(intensities) * 3)),
            math.floor(math.log10(min(rates) / 3)),
            math.ceil(math.log10(max(rates) * 1.2)),
        )

    def at(self, intensity: float, rate: float) -> tuple[float, float]:
        across = (math.log10(intensity) - self.x_low) / (self.x_high - self.x_low)
        up = (math.log10(rate) - self.y_low) / (self.y_high - self.y_low)
        return self.frame.x(across), self.frame.y(up)

    def grid(self) -> Markup:
        frame, parts = self.frame, []
        bottom, top = frame.y(0), frame.y(1)
        for decade in range(int(self.x_low), int(self.x_high) + 1):
            x, _ = self.at(10.0**decade, 10.0**self.y_low)
            label = units.significant(10.0**decade)
            parts.append(
                f'<path class="grid" d="M{_n(x)} {_n(top)}V{_n(bottom)}"/>'
                f'<text x="{_n(x)}" y="{_n(bottom + 15)}" text-anchor="middle">{label}</text>'
            )
        for decade in range(int(self.y_low), int(self.y_high) + 1):
            _, y = self.at(10.0**self.x_low, 10.0**decade)
            label = units.si(10.0**decade)
            parts.append(
                f'<path class="grid" d="M{_n(frame.left)} {_n(y)}H{_n(frame.x(1))}"/>'
                f'<text x="{_n(frame.left - 7)}" y="{_n(y + 4)}" text-anchor="end">{label}</text>'
            )
        parts.append(
            f'<text class="axis" x="{_n(frame.x(0.5))}" y="{_n(frame.height - 4)}" '
            'text-anchor="middle">FLOP per byte</text>'
            f'<text class="axis" transform="translate(12 {_n(frame.y(0.5))}) rotate(-90)" '
            'text-anchor="middle">FLOP/s</text>'
        )
        return Markup("".join(parts))  # numbers and fixed words only


def _roof(explanation: Explanation, index: int, axes: _Axes) -> Markup:
    roof = explanation.roofline
    parts = []
    for compute, memory, kind in (
        (roof.compute, roof.memory, "datasheet"),
        (
            roof.compute_sustained or roof.compute,
            roof.memory_sustained or roof.memory,
            "sustained",
        ),
    ):
        given = roof.compute_sustained or roof.memory_sustained
        if compute is None or memory is None or (kind == "sustained" and not given):
            continue
        parts.append(_roof_line(explanation, index, axes, compute, memory, kind))
    return Markup("").join(parts)


def _roof_line(
    explanation: Explanation,
    index: int,
    axes: _Axes,
    compute: Ceiling,
    memory: Ceiling,
    kind: str,
) -> Markup:
    ridge = compute.rate / memory.rate
    low, high = 10.0**axes.x_low, 10.0**axes.x_high
    start = max(low, 10.0**axes.y_low / memory.rate)
    points = [axes.at(start, start * memory.rate), axes.at(ridge, compute.rate)]
    points.append(axes.at(high, compute.rate))
    title = (
        f"{summary.short_name(explanation.device)}, {kind}: {compute.name} "
        f"{units.si(compute.rate, 'FLOP/s')} ({compute.status}), {memory.name} "
        f"{units.si(memory.rate, 'B/s')} ({memory.status}), ridge {units.count(round(ridge, 1))}"
        " FLOP/B"
    )
    return Markup(
        '<path class="roof {kind} t{index}" d="{d}"><title>{title}</title></path>'
    ).format(kind=kind, index=index, d=_path(points), title=title)


def _launch_points(explanation: Explanation, index: int, axes: _Axes) -> Markup:
    roof = explanation.roofline
    compute, memory = roof.compute, roof.memory
    if not roof.intensity or compute is None or memory is None:
        return Markup("")
    x, y = axes.at(roof.intensity, min(compute.rate, roof.intensity * memory.rate))
    title = (
        f"{explanation.code.kernel} on {summary.short_name(explanation.device)}: "
        f"{units.count(round(roof.intensity, 2))} FLOP/B, {roof.bound}-bound, at most "
        f"{units.si(min(compute.rate, roof.intensity * memory.rate), 'FLOP/s')}, floor "
        f"{units.seconds(roof.floor_seconds)}"
    )
    return Markup(
        '<g class="launch t{index}"><path d="M{x} {y}V{bottom}"/>'
        '<circle cx="{x}" cy="{y}" r="5"/><title>{title}</title></g>'
    ).format(index=index, x=_n(x), y=_n(y), bottom=_n(axes.frame.y(0)), title=title)


# --- register pressure -------------------------------------------------------------------------


def pressure(explanation: Explanation) -> Markup | None:
    """Live registers along the program, the peak marked; None where they are not known.

    `data-total` is the number of instructions the width stands for, for the page's script.
    """
    curve = explanation.analysis.pressure
    if curve is None or not curve.vgpr:
        return None
    frame = Frame(960, 190, 42, 10, 14, 26)
    registers = explanation.analysis.registers
    points = downsample(curve, PRESSURE_POINTS)
    top = max(registers.vgpr, *(max(v, a, s) for _, v, a, s in points), 8) * 1.06
    total = len(curve.vgpr)
    parts = [_pressure_axes(frame, top, total), _allocated(frame, top, registers.vgpr)]
    for name, column in (("sgpr", 3), ("agpr", 2), ("vgpr", 1)):
        if any(point[column] for point in points):
            parts.append(_curve(frame, points, column, total, top, name))
    parts.append(_peak(frame, curve, total, top))
    return Markup(
        '<svg class="plot pressure" viewBox="0 0 {w} {h}" data-total="{total}" '
        'data-left="{left}" data-right="{right}" role="img" aria-label="{label}">{body}'
        '<path class="cursor" d=""/></svg>'
    ).format(
        w=_n(frame.width),
        h=_n(frame.height),
        total=total,
        left=_n(frame.left),
        right=_n(frame.x(1)),
        label=f"Live registers along {total} instructions, peak {curve.peak_vgpr} VGPRs",
        body=Markup("").join(parts),
    )


def _pressure_axes(frame: Frame, top: float, total: int) -> Markup:
    step = _tick(top, 4)
    parts = []
    value = 0
    while value <= top:
        y = frame.y(value / top)
        parts.append(
            f'<path class="grid" d="M{_n(frame.left)} {_n(y)}H{_n(frame.x(1))}"/>'
            f'<text x="{_n(frame.left - 6)}" y="{_n(y + 4)}" text-anchor="end">{value}</text>'
        )
        value += step
    across = _tick(total, 8)
    for position in range(0, total, across):
        x = frame.x(position / total)
        parts.append(
            f'<text x="{_n(x)}" y="{_n(frame.height - 8)}" text-anchor="middle">'
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


def _allocated(frame: Frame, top: float, registers: int) -> Markup:
    y = frame.y(registers / top)
    return Markup(
        '<path class="allocated" d="M{x} {y}H{end}"><title>{n} VGPRs allocated</title></path>'
        '<text class="allocated" x="{end}" y="{above}" text-anchor="end">{n} allocated</text>'
    ).format(x=_n(frame.left), y=_n(y), end=_n(frame.x(1)), above=_n(y - 4), n=registers)


def _curve(
    frame: Frame, points: Sequence[Point], column: int, total: int, top: float, name: str
) -> Markup:
    corners = []
    for position, point in enumerate(points):
        start = position * total // len(points)
        stop = (position + 1) * total // len(points)
        y = frame.y(point[column] / top)
        corners += [(frame.x(start / total), y), (frame.x(stop / total), y)]
    line = _path(corners)
    area = ""
    if column == 1:
        area = f'<path class="area" d="{line}V{_n(frame.y(0))}H{_n(frame.left)}Z"/>'
    return Markup(f'{area}<path class="curve {name}" d="{line}"/>')  # numbers and fixed words only


def _peak(frame: Frame, curve: Pressure, total: int, top: float) -> Markup:
    x = frame.x((curve.peak_index + 0.5) / total)
    y = frame.y(curve.peak_vgpr / top)
    side = "end" if x > frame.x(0.7) else "start"
    at = f" · {summary.where(curve.peak_location)}" if curve.peak_location else ""
    return Markup(
        '<g class="peak"><circle cx="{x}" cy="{y}" r="4"/>'
        '<text x="{tx}" y="{ty}" text-anchor="{side}">peak {n}{at}</text></g>'
    ).format(
        x=_n(x),
        y=_n(y),
        tx=_n(x - 8 if side == "end" else x + 8),
        ty=_n(max(y - 5, 11)),
        side=side,
        n=curve.peak_vgpr,
        at=escape(at),
    )
