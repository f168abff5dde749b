"""A module on a GPU: the time of its kernels, of the host, and what takes it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from wavecast.arch import Device
from wavecast.arch.systems import System
from wavecast.errors import NothingAnalysed, UsageError
from wavecast.systems.intervals import Interval
from wavecast.systems.slices import TimelineSlice
from wavecast.systems.sources.calls import ModuleGraph
from wavecast.systems.sources.described import DescribedModel
from wavecast.systems.sources.framework import Framework, framework
from wavecast.systems.sources.fusion import RULE, fuse_graph
from wavecast.systems.sources.kernels import kernels
from wavecast.systems.sources.memory import ModuleMemory, module_memory
from wavecast.systems.sources.price import CallTime, GraphPrices
from wavecast.systems.sources.timeline import GraphTime, run, timeline

BASIS = "intervals of the kernels; those of one predictor err together, predictors independently"


@dataclass(frozen=True, slots=True)
class ModuleAnswer:
    """A graph on one GPU.

    `total` is the time of a run in seconds, `times` every kernel in order, `by_phase`,
    `by_operator` and `by_module` seconds of kernels. `notes` name assumptions and every operator
    that was not predicted.
    """

    graph: ModuleGraph
    device: Device
    framework: Framework
    total: Interval
    time: GraphTime
    times: tuple[CallTime, ...]
    by_phase: Mapping[str, float]
    by_operator: Mapping[str, float]
    by_module: Mapping[str, float]
    memory: ModuleMemory
    notes: tuple[str, ...]

    @property
    def slices(self) -> tuple[TimelineSlice, ...]:
        """The run in time."""
        return tuple(timeline(self.graph, self.times, self.framework))


def answer(
    source: ModuleGraph | DescribedModel, system: System, engine: str = "eager"
) -> ModuleAnswer:
    """The time of a graph on a GPU of a system. Kernels of a description are taken as they are.

    Raises UsageError for a system of several GPUs and for a graph whose engine compiles kernels,
    UnknownName for an engine, NothingAnalysed for
    a graph that launches nothing, MissingFact where not even a bound of a kernel is known.
    """
    if system.gpus > 1:
        raise UsageError(
            f"{system}: a module runs on one GPU, the system has {system.gpus}",
            hint="divided models are those of a Hugging Face configuration",
        )
    how = framework(engine)
    if how.compiled and isinstance(source, ModuleGraph):
        raise UsageError(
            f"{source.name}: engine {how.name} compiles a module",
            hint="--engine eager, or fusion-rule for what torch.compile fuses",
        )
    prices = GraphPrices(system.device)
    if isinstance(source, DescribedModel):
        graph, launched = source.graph, iter(source.kernels)
    else:
        graph, launched = source, fuse_graph(source) if how.fuse else kernels(source)
    times = prices.of(launched)
    if not times:
        raise NothingAnalysed(f"{graph.name} launches no kernel")
    rule = (f"assumed: {RULE}",) if how.fuse and source is graph else ()
    notes = (*graph.notes, *rule, *price_notes(prices))
    return added_up(graph, system.device, how, times, notes)


def added_up(
    graph: ModuleGraph,
    device: Device,
    how: Framework,
    times: Sequence[CallTime],
    notes: tuple[str, ...],
) -> ModuleAnswer:
    """The answer for kernels with known times."""
    time = run(graph, times, how)
    return ModuleAnswer(
        graph=graph,
        device=device,
        framework=how,
        total=_interval(time, times),
        time=time,
        times=tuple(times),
        by_phase=_totals_by_name((t.kernel.phase, t.seconds) for t in times),
        by_operator=_totals_by_name((t.kernel.operator, t.seconds) for t in times),
        by_module=_totals_by_name((t.kernel.module, t.seconds) for t in times),
        memory=module_memory(graph, device),
        notes=notes,
    )


def _interval(time: GraphTime, times: Sequence[CallTime]) -> Interval:
    below: dict[str, float] = defaultdict(float)
    above: dict[str, float] = defaultdict(float)
    for call_time in times:
        kind = call_time.priced.node.op.op_class
        below[kind] += call_time.seconds - call_time.priced.low
        above[kind] += call_time.priced.high - call_time.seconds
    low, high = time.device - math.hypot(*below.values()), time.device + math.hypot(*above.values())
    return Interval(time.seconds, min(time.seconds, low + time.idle), high + time.idle, BASIS)


def _totals_by_name(items: Iterable[tuple[str, float]]) -> dict[str, float]:
    totals: dict[str, float] = defaultdict(float)
    for name, seconds in items:
        totals[name] += seconds
    return dict(sorted(totals.items(), key=lambda item: -item[1]))


def price_notes(prices: GraphPrices) -> tuple[str, ...]:
    """What was not predicted as what it is, with the operators."""
    notes = []
    for why, operators in prices.substituted.items():
        notes.append(f"{why}: {', '.join(sorted(operators))} on {prices.device.id}")
    if prices.by_bytes:
        names = ", ".join(sorted(prices.by_bytes))
        notes.append(f"priced as element-wise kernels of the same bytes: {names}")
    for name, why in sorted(prices.bounded.items()):
        notes.append(f"{name}: only a bound, because {why}")
    return tuple(notes)


__all__ = ["BASIS", "ModuleAnswer", "added_up", "answer", "price_notes"]
