"""When the kernels of a graph run: the host launches them one by one, one stream runs them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wavecast.systems.slices import HOST, TimelineSlice
from wavecast.systems.sources.calls import ModuleGraph
from wavecast.systems.sources.framework import Framework
from wavecast.systems.sources.kernels import launches_nothing
from wavecast.systems.sources.price import CallTime

STREAM = "stream"
TRACKS = (HOST, STREAM)


@dataclass(frozen=True, slots=True)
class GraphTime:
    """Seconds of a run of a graph: `seconds` from the first call to the end of the last kernel,
    `device` for its kernels, `host` until the last launch, and `idle` when the GPU waits for
    it."""

    seconds: float
    device: float
    host: float

    @property
    def idle(self) -> float:
        """Seconds in which no kernel runs."""
        return max(0.0, self.seconds - self.device)

    @property
    def host_bound(self) -> bool:
        """Whether the GPU waits for the host for more than a tenth of the time."""
        return self.idle > 0.1 * self.seconds


def run(graph: ModuleGraph, times: Sequence[CallTime], framework: Framework) -> GraphTime:
    """The time of a run: `timeline` added up."""
    host = end = 0.0
    for event in timeline(graph, times, framework):
        if event.track == HOST:
            host = event.end
        else:
            end = event.end
    return GraphTime(max(end, host), sum(time.seconds for time in times), host)


def timeline(
    graph: ModuleGraph, times: Sequence[CallTime], framework: Framework
) -> Iterator[TimelineSlice]:
    """The host goes through the calls; a kernel starts when it is launched and the one before has
    ended. Groups are the kinds of operations."""
    by_call: dict[int, list[CallTime]] = {}
    for time in times:
        by_call.setdefault(time.kernel.call, []).append(time)
    host = end = 0.0
    for number, call in enumerate(graph.calls):
        kernels = by_call.get(number, [])
        if not kernels:
            if launches_nothing(call) and framework.view:
                yield TimelineSlice(HOST, call.name, host, framework.view, HOST, call.module)
                host += framework.view
            continue
        step = framework.backward_call if call.phase == "backward" else framework.call
        for kernel in kernels:
            name, path = kernel.kernel.operator, kernel.kernel.module
            yield TimelineSlice(HOST, name, host, step, HOST, path)
            host += step
            start = max(end, host)
            yield TimelineSlice(
                STREAM, name, start, kernel.seconds, kernel.priced.node.op.kind, path, kernel.priced
            )
            end = start + kernel.seconds
            step = framework.launch


__all__ = ["STREAM", "TRACKS", "GraphTime", "run", "timeline"]
