"""Plots of modules: a run in time, and its kernels by phase, operator and module."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from wavecast.report.kit import parts_plot, timeline_plot, units
from wavecast.report.kit.parts_plot import BarPart
from wavecast.report.kit.timeline_plot import DrawnTimeline
from wavecast.systems.slices import HOST
from wavecast.systems.sources.timeline import TRACKS

if TYPE_CHECKING:
    from wavecast.systems.sources.answer import ModuleAnswer

_PARTS = 8
"""Parts of a bar."""


def memory_parts(answer: ModuleAnswer) -> list[BarPart]:
    """What the module needs, and what is left of the GPU, largest first."""
    memory = answer.memory
    free = max(0.0, memory.available - memory.total) if memory.available is not None else 0.0
    return parts_plot.parts(memory.parts, units.size, free=free)


def run(answer: ModuleAnswer) -> DrawnTimeline | None:
    """The host and the GPU in time."""
    seconds: dict[str, float] = defaultdict(float)
    for timeline_slice in answer.slices:
        seconds[timeline_slice.group] += timeline_slice.seconds
    kinds = sorted((name for name in seconds if name != HOST), key=lambda name: -seconds[name])
    return timeline_plot.timeline(answer.slices, TRACKS, (*kinds, HOST), "A run in time")


def operators(answer: ModuleAnswer) -> dict[str, float]:
    """Seconds of kernels by operator."""
    return {name.removeprefix("aten."): seconds for name, seconds in answer.by_operator.items()}


def paths(answer: ModuleAnswer) -> dict[str, float]:
    """Seconds of kernels by the path of the module that launches them."""
    return {path: seconds for path, seconds in answer.by_module.items() if path}


def modules(answer: ModuleAnswer) -> dict[str, float]:
    """Seconds of kernels by module, with the children of a module counted to it: the outermost
    modules of which there are several."""
    by_path = paths(answer)
    by_module: dict[str, float] = {}
    for depth in range(1, 1 + max((path.count(".") + 1 for path in by_path), default=0)):
        by_module = defaultdict(float)
        for path, seconds in by_path.items():
            by_module[".".join(path.split(".")[:depth])] += seconds
        if len(by_module) > 1:
            break
    return dict(sorted(by_module.items(), key=lambda item: -item[1]))


def parts_of(values: Mapping[str, float], first: Mapping[str, float]) -> list[BarPart]:
    """The parts of a bar of times, the small ones together; `first` are those of the first GPU,
    whose colours they have."""
    return parts_plot.parts(values, units.seconds, tuple(first), most=_PARTS)


__all__ = ["memory_parts", "modules", "operators", "parts_of", "paths", "run"]
