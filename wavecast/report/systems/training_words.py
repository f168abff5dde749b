"""Training of models in words and rows, for text and HTML."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from wavecast.report.kit import units
from wavecast.report.kit.kernel_tables import KernelRow, merge_rows

if TYPE_CHECKING:
    from wavecast.systems.training.answer import TrainingAnswer, TrainingFigures
    from wavecast.systems.training.step import TrainingStep

_DAY = 86400.0
_SHOWN = 0.0005
"""Least share of a step in which a GPU waits that is shown."""


def description(answer: TrainingAnswer) -> str:
    """Parameters, parallelism, dtype and batch in one line."""
    setup = answer.setup
    return " · ".join(
        (
            f"{answer.architecture.parameters / 1e9:,.1f} B parameters",
            str(setup),
            setup.dtype,
            f"batch {setup.batch:,} x {setup.sequence:,}",
            f"{setup.micro_batches:,} micro-batches of {setup.micro_batch}",
            f"recompute {setup.recompute}",
        )
    )


def parts(step: TrainingStep) -> dict[str, float]:
    """Seconds of a step by what a mean GPU does, the longest first, waiting last."""
    seconds_by_part = {f"{name} kernels": seconds for name, seconds in step.phases.items()}
    seconds_by_part |= {f"{name} communication": seconds for name, seconds in step.exposed.items()}
    seconds_by_part["optimizer"] = step.optimizer
    by_label = {
        name.replace("_", " "): seconds
        for name, seconds in sorted(seconds_by_part.items(), key=lambda part: -part[1])
        if seconds
    }
    idle = step.seconds - sum(by_label.values())
    return by_label | ({"waiting": idle} if idle > _SHOWN * step.seconds else {})


def figures(training_figures: TrainingFigures) -> list[tuple[str, str, str]]:
    """Name, value and ends of the interval of every figure of a step."""
    entries = [
        ("time", training_figures.seconds, units.seconds),
        ("tokens/s/GPU", training_figures.rate, "{:,.0f}".format),
        (f"MFU ({training_figures.peak_dtype})", training_figures.mfu, "{:.1%}".format),
        ("exposed communication", training_figures.exposed, "{:.1%}".format),
        ("pipeline bubble", training_figures.bubble, "{:.1%}".format),
        ("time to train", training_figures.training, _days),
    ]
    return [
        (name, words(interval.value), f"{words(interval.low)} – {words(interval.high)}")
        for name, interval, words in entries
        if interval is not None
    ]


def _days(seconds: float) -> str:
    return f"{seconds / _DAY:,.2f} d"


def rows(figures: TrainingFigures) -> list[KernelRow]:
    """The kernels of a micro-batch by phase, those computed again marked."""
    return merge_rows(
        KernelRow(
            f"{kernel.priced.node.name}{' (again)' if kernel.phase == 'recompute' else ''}",
            kernel.count,
            kernel.priced,
            kernel.seconds,
            kernel.phase,
        )
        for kernel in figures.kernels
    )


def modules(figures: TrainingFigures) -> dict[str, float]:
    """Seconds of kernels of a micro-batch by module, in the order of the step."""
    by_module: dict[str, float] = defaultdict(float)
    for kernel in figures.kernels:
        by_module[kernel.priced.node.module] += kernel.seconds
    return dict(by_module)


__all__ = ["description", "figures", "modules", "parts", "rows"]
