"""Models on systems in words, for text and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wavecast.report.kit import units
from wavecast.report.kit.kernel_tables import KernelRow, merge_rows

if TYPE_CHECKING:
    from wavecast.systems.answer import ModelAnswer
    from wavecast.systems.intervals import Interval
    from wavecast.systems.serving import Load
    from wavecast.systems.step import LayerKernel

ROLES = ("attention", "dense", "experts", "head")
"""Parts of the weights that have a format each."""


def size(answer: ModelAnswer) -> str:
    """`671.0 B parameters, 37.6 B active`."""
    model = answer.architecture
    text = f"{model.parameters / 1e9:,.1f} B parameters"
    if model.active_parameters < 0.9 * model.parameters:
        text += f", {model.active_parameters / 1e9:,.1f} B active"
    return text


def deployment_text(answer: ModelAnswer) -> str:
    """Parameters, parallelism, engine and formats in one line."""
    formats = dict.fromkeys(getattr(answer.precision, role).weights for role in ROLES)
    return (
        f"{size(answer)} · {answer.parallel} · {answer.engine.name} {answer.engine.version} · "
        f"weights {', '.join(formats)} · cache {answer.precision.cache}"
    )


def engine_profile(answer: ModelAnswer) -> str:
    """The version that the profile of the engine describes, and why that one."""
    engine = answer.engine
    return f"profile of {engine.name} {engine.version}: {engine.release}"


def short(answer: ModelAnswer) -> str:
    """`8x mi300x`."""
    return f"{answer.parallel.gpus}x {answer.system.device.id}"


def load(serving_load: Load) -> str:
    """`16 at once`, `4/s` for an open loop, or the requests of a trace."""
    if serving_load.trace:
        return f"trace of {serving_load.count:,}"
    return (
        f"{serving_load.concurrency} at once"
        if serving_load.concurrency
        else f"{serving_load.rate:g}/s"
    )


def range_(low: str, high: str) -> str:
    """Two figures with a unit; an equal unit is written once."""
    number, _, unit = low.partition(" ")
    return f"{number}–{high}" if high.endswith(f" {unit}") else f"{low}–{high}"


def times(interval: Interval) -> str:
    """The ends of an interval of a time: `8.63–15.9 ms`."""
    return range_(units.seconds(interval.low), units.seconds(interval.high))


def rate(value: float) -> str:
    """Tokens per second: whole from 100 up."""
    return f"{value:,.0f}" if value >= 100 else units.significant(value)


def rates(interval: Interval) -> str:
    """The ends of an interval of a rate: `523–1,527`."""
    return f"{rate(interval.low)}–{rate(interval.high)}"


def rows(kernels: Sequence[LayerKernel]) -> list[KernelRow]:
    """The kernels of a step; those of several forms of layers, or twice in a layer, as one."""
    return merge_rows(
        KernelRow(
            kernel.priced.node.name,
            kernel.count,
            kernel.priced,
            kernel.seconds,
            kernel.priced.node.module,
        )
        for kernel in kernels
    )


def layers(answer: ModelAnswer, form: int) -> str:
    """The layers of a form: `58 x latent attention, experts`; `head` for what no layer has."""
    if form < 0:
        return "head"
    layer, count = answer.architecture.layers[form]
    return f"{count} x {layer.attention.name}, {layer.mlp.name}"


def bases(answer: ModelAnswer) -> str:
    """The measured runs behind the intervals of an answer."""
    return "; ".join(dict.fromkeys(serving.tpot.basis for serving in answer.servings))


__all__ = [
    "ROLES",
    "bases",
    "deployment_text",
    "engine_profile",
    "layers",
    "load",
    "range_",
    "rate",
    "rates",
    "rows",
    "short",
    "size",
    "times",
]
