"""Plots of served models: the frontier of throughput and speed, the parts of a step and of the
memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from wavecast.report.kit import parts_plot, timeline_plot, units
from wavecast.report.kit.log_axes import LogAxes
from wavecast.report.kit.parts_plot import BarPart
from wavecast.report.kit.svg import COLOURS, PlotFrame, Point, figure, n, path
from wavecast.report.kit.timeline_plot import DrawnTimeline
from wavecast.report.systems import serving_words
from wavecast.systems.graph import MODULES
from wavecast.systems.slices import HOST
from wavecast.systems.timeline import TRACKS, timeline

if TYPE_CHECKING:
    from wavecast.systems.answer import ModelAnswer, ServingAnswer
    from wavecast.systems.step import LayerKernel


def frontier(answers: Sequence[ModelAnswer]) -> Markup | None:
    """Throughput of a GPU over tokens per second of a user; None without two loads.

    A line per system, a point per load with the 80% intervals of both figures.
    """
    lines = [
        (index, answer, [_speeds(answer, serving) for serving in answer.servings])
        for index, answer in enumerate(answers)
        if answer.servings
    ]
    if sum(len(points) for _, _, points in lines) < 2:
        return None
    every = [corner for _, _, points in lines for point in points for corner in point]
    axes = LogAxes.around(every, PlotFrame(960, 370, 104, 28, 12, 58))
    body = [axes.grid("tokens per second of a user", "tokens per second of a GPU")]
    for index, answer, points in lines:
        colour = index % COLOURS
        centres = [axes.at(*middle) for middle, _, _ in points]
        body.append(Markup('<path class="line t{}" d="{}"/>').format(colour, path(centres)))
        for serving, (middle, low, high) in zip(answer.servings, points, strict=True):
            x, y = axes.at(*middle)
            (left, bottom), (right, top) = axes.at(*low), axes.at(*high)
            title = (
                f"{serving_words.short(answer)}, {serving_words.load(serving.load)}: "
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
    return figure("frontier", "Throughput of a GPU over speed of a user", axes.frame, body)


def _speeds(answer: ModelAnswer, serving: ServingAnswer) -> tuple[Point, Point, Point]:
    """(value, low, high), each (tokens per second of a user, of a GPU)."""
    user, rate, gpus = serving.tpot, serving.output_rate, answer.parallel.gpus
    return (
        (1 / user.value, rate.value / gpus),
        (1 / user.high, rate.low / gpus),
        (1 / user.low, rate.high / gpus),
    )


def step_parts(modules: Mapping[str, float]) -> list[BarPart]:
    """The modules of a step by their time, the longest first. A module has the same colour in every
    bar."""
    return parts_plot.parts(modules, units.seconds, MODULES)


def memory_parts(answer: ModelAnswer) -> list[BarPart]:
    """What the memory of a GPU holds, and what is left for the cache, largest first."""
    sizes = {"cache": max(0.0, answer.memory.pool), **answer.memory.parts}
    return parts_plot.parts(sizes, units.size)


def layer_parts(answer: ModelAnswer, kernels: Sequence[LayerKernel]) -> list[BarPart]:
    """The kernels of a step by the form of their layers, and those outside of layers."""
    seconds_by_layer: dict[str, float] = {}
    for kernel in kernels:
        name = serving_words.layers(answer, kernel.form)
        seconds_by_layer[name] = seconds_by_layer.get(name, 0.0) + kernel.seconds
    return parts_plot.parts(seconds_by_layer, units.seconds)


def layer_timeline(answer: ModelAnswer, serving: ServingAnswer) -> DrawnTimeline | None:
    """A layer of the decode step in time, of the form that takes longest."""
    first = _first_layer(serving.kernels)
    slices = timeline(serving.decode, serving.kernels, answer.engine)
    layer_slices = [
        timeline_slice for timeline_slice in slices if timeline_slice.where == f"layer {first}"
    ]
    return timeline_plot.timeline(layer_slices, TRACKS, (*MODULES, HOST), "A layer in time")


def layer_name(answer: ModelAnswer, kernels: Sequence[LayerKernel]) -> str:
    """What that layer is, such as `layer 2 of 61: latent attention, experts`."""
    first = _first_layer(kernels)
    form = _longest_form(kernels)
    name = serving_words.layers(answer, form).partition(" x ")[2]
    return f"layer {first} of {answer.architecture.depth}: {name}"


def _longest_form(kernels: Sequence[LayerKernel]) -> int:
    seconds: dict[int, float] = {}
    for kernel in kernels:
        if kernel.form >= 0:
            seconds[kernel.form] = seconds.get(kernel.form, 0.0) + kernel.seconds
    return max(seconds, key=lambda form: seconds[form])


def _first_layer(kernels: Sequence[LayerKernel]) -> int:
    """The number of the first layer of the longest form, in the order of `timeline`."""
    form = _longest_form(kernels)
    counts = {kernel.form: kernel.count for kernel in kernels if 0 <= kernel.form < form}
    return sum(counts.values())


__all__ = [
    "frontier",
    "layer_name",
    "layer_parts",
    "layer_timeline",
    "memory_parts",
    "step_parts",
]
