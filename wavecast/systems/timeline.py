"""The kernels of a step in time, on one rank: what the host does, the stream of the GPU, and its
collectives.

Layers of one form follow each other; in a model that mixes forms their true order differs, which
changes no sum. The last slice ends when the step does (`StepTime.seconds`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from wavecast.systems.engine import Engine
from wavecast.systems.slices import HOST, TimelineSlice
from wavecast.systems.step import LayerKernel, StepTime

TRACKS = (HOST, "stream", "collectives")


def timeline(step: StepTime, kernels: Sequence[LayerKernel], engine: Engine) -> list[TimelineSlice]:
    """The slices of a step whose `kernels` are in the order of `StepModel.kernels`. The groups are
    its modules, the layers count from 0.

    Kernels of a step that is not captured are equally far apart where launches take longer.
    """
    order = list(_in_order(kernels))
    busy = sum(kernel.priced.seconds for kernel, _ in order)
    launches = min(engine.launch * len(order), step.host)
    idle = max(0.0, step.seconds - busy)
    eager = step.host > launches > 0 and _is_eager(step, engine, len(order))
    prepared = step.host - launches if eager else step.host
    lead = min(idle, 0.0 if engine.asynchronous else prepared) if eager else idle
    gap = (idle - lead) / len(order) if order else 0.0
    slices = [TimelineSlice(HOST, "prepare the step", 0.0, prepared, HOST)] if prepared else []
    now = lead
    for number, (kernel, layer) in enumerate(order):
        now += gap
        if eager:
            at = prepared + number * engine.launch
            slices.append(TimelineSlice(HOST, "launch", at, engine.launch, HOST, layer))
        node, seconds = kernel.priced.node, kernel.priced.seconds
        track = "collectives" if node.module == "collective" else "stream"
        slices.append(
            TimelineSlice(track, node.name, now, seconds, node.module, layer, kernel.priced)
        )
        now += seconds
    return slices


def _is_eager(step: StepTime, engine: Engine, count: int) -> bool:
    """Whether the time of the host has a launch per kernel."""
    return step.host >= engine.host_step + engine.launch * count


def _in_order(kernels: Sequence[LayerKernel]) -> Iterator[tuple[LayerKernel, str]]:
    """Kernels as often as they run, layer by layer, with the layer."""
    layer = 0
    for form, group in groupby(kernels, key=lambda kernel: kernel.form):
        part = list(group)
        if form < 0:
            yield from ((kernel, "") for kernel in part)
            continue
        for _ in range(part[0].count):
            yield from ((kernel, f"layer {layer}") for kernel in part)
            layer += 1


__all__ = ["TRACKS", "timeline"]
