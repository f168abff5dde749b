"""The roofline plot: roofs of every device and the launch under them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from wavecast.report.explain import words
from wavecast.report.kit import units
from wavecast.report.kit.svg import PlotFrame, figure, n, path

if TYPE_CHECKING:
    from wavecast.perfmodel.bounds import Ceiling
    from wavecast.pipeline.explain.result import Explanation


def plot(explanations: Sequence[Explanation]) -> Markup | None:
    """Roofs of every device and the launch under them; None when no device's rates are known.

    Horizontal: FLOP per byte; vertical: FLOP/s (OP for integers); both logarithmic. Solid roofs are
    datasheet peaks, dashed ones sustained rates. A ring on the roof shows the most the launch can
    reach, the point below it what is predicted.
    """
    roofs = [(i, e) for i, e in enumerate(explanations) if e.roofline.compute and e.roofline.memory]
    if not roofs:
        return None
    frame = PlotFrame(960, 370, 104, 28, 12, 58)
    axes = _Axes.around([e for _, e in roofs], frame)
    parts = [axes.grid()]
    for index, explanation in roofs:
        parts.append(_roof(explanation, index, axes))
    parts += [_launch_points(explanation, index, axes) for index, explanation in roofs]
    label = f"Roofline: attainable {axes.unit}/s over {axes.unit} per byte"
    return figure("roofline", label, frame, parts)


@dataclass(frozen=True, slots=True)
class _Axes:
    frame: PlotFrame
    x_low: float
    x_high: float
    y_low: float
    y_high: float
    unit: str

    @classmethod
    def around(cls, explanations: Sequence[Explanation], frame: PlotFrame) -> _Axes:
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
                rates.append(_predicted_rate(explanation) or rates[-1])
        return cls(
            frame,
            math.floor(math.log10(min(intensities) / 3)),
            math.ceil(math.log10(max(intensities) * 3)),
            math.floor(math.log10(min(rates) / 3)),
            math.ceil(math.log10(max(rates) * 1.2)),
            units.operations(explanation.roofline.dtype for explanation in explanations),
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
                f'<path class="grid" d="M{n(x)} {n(top)}V{n(bottom)}"/>'
                f'<text x="{n(x)}" y="{n(bottom + 22)}" text-anchor="middle">{label}</text>'
            )
        for decade in range(int(self.y_low), int(self.y_high) + 1):
            _, y = self.at(10.0**self.x_low, 10.0**decade)
            label = units.si(10.0**decade)
            parts.append(
                f'<path class="grid" d="M{n(frame.left)} {n(y)}H{n(frame.x(1))}"/>'
                f'<text x="{n(frame.left - 7)}" y="{n(y + 4)}" text-anchor="end">{label}</text>'
            )
        parts.append(
            f'<text class="axis" x="{n(frame.x(0.5))}" y="{n(frame.height - 4)}" '
            f'text-anchor="middle">{self.unit} per byte</text>'
            f'<text class="axis" transform="translate(12 {n(frame.y(0.5))}) rotate(-90)" '
            f'text-anchor="middle">{self.unit}/s</text>'
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
        sustained_rate = roof.compute_sustained or roof.memory_sustained
        if compute is None or memory is None or (kind == "sustained" and not sustained_rate):
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
    unit = units.operations([explanation.roofline.dtype])
    low, high = 10.0**axes.x_low, 10.0**axes.x_high
    start = max(low, 10.0**axes.y_low / memory.rate)
    points = [axes.at(start, start * memory.rate), axes.at(ridge, compute.rate)]
    points.append(axes.at(high, compute.rate))
    title = (
        f"{words.short_name(explanation.device)}, {kind}: {compute.name} "
        f"{units.si(compute.rate, f'{unit}/s')} ({compute.status}), {memory.name} "
        f"{units.si(memory.rate, 'B/s')} ({memory.status}), ridge {units.count(round(ridge, 1))}"
        f" {unit}/B"
    )
    return Markup(
        '<path class="roof {kind} t{index}" d="{d}"><title>{title}</title></path>'
    ).format(kind=kind, index=index, d=path(points), title=title)


def _launch_points(explanation: Explanation, index: int, axes: _Axes) -> Markup:
    roof = explanation.roofline
    compute, memory = roof.compute, roof.memory
    if not roof.intensity or compute is None or memory is None:
        return Markup("")
    most = min(compute.rate, roof.intensity * memory.rate)
    unit = units.operations([roof.dtype])
    x, y = axes.at(roof.intensity, most)
    name = f"{explanation.code.kernel} on {words.short_name(explanation.device)}"
    title = (
        f"{name}: {units.count(round(roof.intensity, 2))} {unit}/B, {roof.bound}-bound, at most "
        f"{units.si(most, f'{unit}/s')}, floor {units.seconds(roof.floor_seconds)}"
    )
    markup = Markup(
        '<g class="launch t{index}"><path d="M{x} {y}V{bottom}"/>'
        '<circle class="most" cx="{x}" cy="{y}" r="5"/><title>{title}</title></g>'
    ).format(index=index, x=n(x), y=n(y), bottom=n(axes.frame.y(0)), title=title)
    rate, predicted = _predicted_rate(explanation), explanation.predicted.prediction
    if rate is None or predicted is None:
        return markup
    title = (
        f"{name}: {units.si(rate, f'{unit}/s')} predicted ({units.seconds(predicted.seconds)}), "
        f"{units.percent(rate, most)} of the roof"
    )
    return markup + Markup(
        '<g class="launch t{index}"><circle cx="{x}" cy="{y}" r="5"/><title>{title}</title></g>'
    ).format(index=index, x=n(x), y=n(axes.at(roof.intensity, rate)[1]), title=title)


def _predicted_rate(explanation: Explanation) -> float | None:
    """FLOP/s at the predicted time, None where either is not known."""
    prediction, flops = explanation.predicted.prediction, explanation.roofline.work.flops
    return sum(flops.values()) / prediction.seconds if prediction is not None and flops else None
