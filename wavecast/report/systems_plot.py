"""Plots of models on systems: frontier, parts of a step or of the memory, roofline of a step."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from wavecast.model.roofline import roofline
from wavecast.report import systems_words, units
from wavecast.report.svg import PlotFrame, n, path
from wavecast.systems.graph import MODULES

if TYPE_CHECKING:
    from wavecast.systems.answer import ModelAnswer, ServingAnswer
    from wavecast.systems.step import LayerKernel

COLOURS: Final = 8
"""Colours of the style sheet, `t0` to `t7`."""
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class _LogAxes:
    """Both axes logarithmic, between round numbers: 1, 2 and 5 times powers of ten."""

    frame: PlotFrame
    x: tuple[float, float]
    y: tuple[float, float]

    @classmethod
    def around(cls, points: Sequence[Point], frame: PlotFrame) -> _LogAxes:
        """Axes that hold all points."""
        across, up = zip(*points, strict=True)
        return cls(frame, _round_range(across), _round_range(up))

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
                f'<text x="{n(x)}" y="{n(frame.y(0) + 15)}" text-anchor="middle">'
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
    found = [step * 10.0**power for power in range(low, high + 2) for step in steps]
    return [value for value in found if ends[0] * 0.999 <= value <= ends[1] * 1.001]


def _round_range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values) / 1.1, max(values) * 1.1
    below, above = math.floor(math.log10(low)), math.floor(math.log10(high))
    return (
        max(step * 10.0**below for step in _STEPS if step * 10.0**below <= low),
        min(step * 10.0**above for step in (*_STEPS, 10) if step * 10.0**above >= high),
    )


def _svg(kind: str, label: str, frame: PlotFrame, body: Sequence[Markup]) -> Markup:
    return Markup(
        '<svg class="plot {kind}" viewBox="0 0 {w} {h}" role="img" aria-label="{label}">'
        "{body}</svg>"
    ).format(
        kind=kind, w=n(frame.width), h=n(frame.height), label=label, body=Markup("").join(body)
    )


# --- frontier ------------------------------------------------------------------------------------


def frontier(answers: Sequence[ModelAnswer]) -> Markup | None:
    """Throughput of a GPU over tokens per second of a user; None without two loads.

    A line per system, a point per load with the 80 % intervals of both figures.
    """
    lines = [
        (index, answer, [_speeds(answer, serving) for serving in answer.servings])
        for index, answer in enumerate(answers)
        if answer.servings
    ]
    if sum(len(points) for _, _, points in lines) < 2:
        return None
    every = [corner for _, _, points in lines for point in points for corner in point]
    axes = _LogAxes.around(every, PlotFrame(960, 350, 62, 14, 12, 38))
    body = [axes.grid("tokens per second of a user", "tokens per second of a GPU")]
    for index, answer, points in lines:
        colour = index % COLOURS
        centres = [axes.at(*middle) for middle, _, _ in points]
        body.append(Markup('<path class="line t{}" d="{}"/>').format(colour, path(centres)))
        for serving, (middle, low, high) in zip(answer.servings, points, strict=True):
            x, y = axes.at(*middle)
            (left, bottom), (right, top) = axes.at(*low), axes.at(*high)
            title = (
                f"{systems_words.short(answer)}, {systems_words.load(serving.load)}: "
                f"{units.significant(middle[0])} tok/s of a user, "
                f"{units.significant(middle[1])} tok/s of a GPU"
            )
            body.append(
                Markup(
                    '<g class="point t{colour}"><path d="M{left} {y}H{right}M{x} {bottom}V{top}"/>'
                    '<circle cx="{x}" cy="{y}" r="4.5"/><title>{title}</title></g>'
                ).format(
                    colour=colour, x=n(x), y=n(y), left=n(left), right=n(right),
                    bottom=n(bottom), top=n(top), title=title,
                )
            )  # fmt: skip
    return _svg("frontier", "Throughput of a GPU over speed of a user", axes.frame, body)


def _speeds(answer: ModelAnswer, serving: ServingAnswer) -> tuple[Point, Point, Point]:
    """(value, low, high), each (tokens per second of a user, of a GPU)."""
    user, rate, gpus = serving.tpot, serving.output_rate, answer.parallel.gpus
    return (
        (1 / user.value, rate.value / gpus),
        (1 / user.high, rate.low / gpus),
        (1 / user.low, rate.high / gpus),
    )


# --- parts ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BarPart:
    """A part of a bar: its name, figure in words, share of the whole and colour."""

    name: str
    figure: str
    share: float
    colour: int


def step_parts(modules: Mapping[str, float]) -> list[BarPart]:
    """The modules of a step by their time, longest first. A module has the same colour in every
    bar."""
    total = sum(modules.values())
    return _longest_first(
        BarPart(name, units.seconds(time), time / total, MODULES.index(name) % COLOURS)
        for name, time in modules.items()
    )


def memory_parts(answer: ModelAnswer) -> list[BarPart]:
    """What the memory of a GPU holds, and what is left for the cache, largest first."""
    parts = {"cache": max(0.0, answer.memory.pool), **answer.memory.parts}
    total = sum(parts.values())
    return _longest_first(
        BarPart(name, units.size(size), size / total, number % COLOURS)
        for number, (name, size) in enumerate(parts.items())
    )


def _longest_first(parts: Iterable[BarPart]) -> list[BarPart]:
    return sorted((part for part in parts if part.share > 0), key=lambda part: -part.share)


def bar(parts: Sequence[BarPart], label: str) -> Markup:
    """A bar of its parts; names are written where they have room."""
    frame = PlotFrame(960, 34, 0, 0, 2, 2)
    body, start = [], 0.0
    for part in parts:
        left, width = frame.x(start), part.share * frame.inner_width
        title = f"{part.name}: {part.figure}, {part.share:.0%}"
        text = Markup("")
        if width > 8 * len(part.name) + 12:
            text = Markup('<text x="{}" y="{}" text-anchor="middle">{}</text>').format(
                n(left + width / 2), n(frame.height / 2 + 4), part.name
            )
        body.append(
            Markup(
                '<g class="part t{}"><rect x="{}" y="2" width="{}" height="30"/>{}'
                "<title>{}</title></g>"
            ).format(part.colour, n(left), n(max(0.5, width - 1)), text, title)
        )
        start += part.share
    return _svg("stack", label, frame, body)


# --- roofline ------------------------------------------------------------------------------------


def step_roofline(answer: ModelAnswer, kernels: Sequence[LayerKernel]) -> Markup | None:
    """The kernels of a step under the roofs of the GPU; None where no rate is known.

    A point is a kernel at its predicted FLOP/s, its area its share of the step. Roofs are those of
    the dtypes that occur, at sustained rates where they are known.
    """
    shown = []
    for kernel in kernels:
        found = roofline(kernel.priced.node.op.work(), answer.system.device)
        flops = sum((found.work.flops or {}).values())
        if flops and found.intensity and found.compute and found.memory:
            shown.append((kernel, found, found.intensity, flops / kernel.priced.seconds))
    if not shown:
        return None
    roofs = {}
    for _, found, _, _ in shown:
        compute = found.compute_sustained or found.compute
        memory = found.memory_sustained or found.memory
        assert compute is not None
        assert memory is not None
        roofs[compute.name] = (compute, memory)
    corners = [(intensity, rate) for _, _, intensity, rate in shown]
    corners += [(c.rate / m.rate, c.rate) for c, m in roofs.values()]
    axes = _LogAxes.around(corners, PlotFrame(960, 350, 62, 14, 12, 38))
    body = [axes.grid("FLOP per byte", "FLOP/s")]
    for number, (name, (compute, memory)) in enumerate(roofs.items()):
        ridge = compute.rate / memory.rate
        start = max(axes.x[0], axes.y[0] / memory.rate)
        points = [axes.at(start, start * memory.rate), axes.at(ridge, compute.rate)]
        points.append(axes.at(max(axes.x[1], ridge), compute.rate))
        title = f"{name} {units.si(compute.rate, 'FLOP/s')}, {units.si(memory.rate, 'B/s')}"
        right, up = points[-1]
        body.append(
            Markup(
                '<path class="roof t{}" d="{}"><title>{}</title></path>'
                '<text x="{}" y="{}" text-anchor="end">{}</text>'
            ).format(number % COLOURS, path(points), title, n(right - 4), n(up - 5), name)
        )
    total = sum(kernel.seconds for kernel in kernels)
    for kernel, _, intensity, rate in sorted(shown, key=lambda one: -one[0].seconds):
        x, y = axes.at(intensity, rate)
        share = kernel.seconds / total
        title = (
            f"{kernel.priced.node.name} x {kernel.count}: {units.seconds(kernel.seconds)}, "
            f"{share:.0%} of the step; {units.significant(intensity)} FLOP/B, "
            f"{units.si(rate, 'FLOP/s')}, limited by {kernel.priced.limiter}"
        )
        body.append(
            Markup(
                '<circle class="kernel" cx="{}" cy="{}" r="{}"><title>{}</title></circle>'
            ).format(n(x), n(y), n(3 + 28 * math.sqrt(share)), title)
        )
    return _svg("roofline", "Kernels of a step under the roofs of the GPU", axes.frame, body)


__all__ = ["BarPart", "bar", "frontier", "memory_parts", "step_parts", "step_roofline"]
