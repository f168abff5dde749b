"""Plots of training: the parts of a step, of a micro-batch and of the memory, and the pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wavecast.report.kit import parts_plot, timeline_plot, units
from wavecast.report.kit.parts_plot import BarPart
from wavecast.report.kit.timeline_plot import DrawnTimeline
from wavecast.report.systems import training_words
from wavecast.systems.graph import MODULES
from wavecast.systems.training.step import PASSES

if TYPE_CHECKING:
    from wavecast.systems.training.answer import TrainingAnswer, TrainingFigures
    from wavecast.systems.training.step import TrainingStep

_PARTS = 8
"""Parts of a step that are named."""
_STAGES = 16
"""Stages of the pipeline that are drawn: the first ones."""


def memory_parts(answer: TrainingAnswer) -> list[BarPart]:
    """What the memory of the fullest GPU has to store, and what is left, largest first."""
    memory = answer.memory
    free = max(0.0, memory.available - memory.needed)
    return parts_plot.parts(memory.parts, units.size, free=free)


def step_parts(step: TrainingStep) -> list[BarPart]:
    """What a mean GPU does in a step."""
    return parts_plot.parts(training_words.parts(step), units.seconds, most=_PARTS)


def module_parts(figures: TrainingFigures) -> list[BarPart]:
    """The kernels of a micro-batch by module."""
    return parts_plot.parts(training_words.modules(figures), units.seconds, MODULES)


def pipeline(figures: TrainingFigures) -> DrawnTimeline | None:
    """The first micro-batches on the stages of the pipeline."""
    tracks = list(
        dict.fromkeys(
            sorted((timeline_slice.track for timeline_slice in figures.timeline), key=_number)
        )
    )
    stages = tracks[:_STAGES]
    slices = [
        timeline_slice for timeline_slice in figures.timeline if timeline_slice.track in stages
    ]
    return timeline_plot.timeline(slices, stages, tuple(PASSES.values()), "The pipeline in time")


def _number(track: str) -> int:
    return int(track.rpartition(" ")[2])


__all__ = ["memory_parts", "module_parts", "pipeline", "step_parts"]
