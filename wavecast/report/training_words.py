"""Training of models in words and rows, for text and HTML."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from wavecast.report import units
from wavecast.report.kernel_tables import KernelRow, merged

if TYPE_CHECKING:
    from wavecast.systems.training.answer import TrainingAnswer, TrainingFigures
    from wavecast.systems.training.step import TrainingStep

_DAY = 86400.0
_SHOWN = 0.0005
"""Least share of a step in which a GPU waits that is shown."""


def described(answer: TrainingAnswer) -> str:
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
    found = {f"{name} kernels": seconds for name, seconds in step.phases.items()}
    found |= {f"{name} communication": seconds for name, seconds in step.exposed.items()}
    found["optimizer"] = step.optimizer
    named = {
        name.replace("_", " "): seconds
        for name, seconds in sorted(found.items(), key=lambda part: -part[1])
        if seconds
    }
    left = step.seconds - sum(named.values())
    return named | ({"waiting": left} if left > _SHOWN * step.seconds else {})


def figures(found: TrainingFigures) -> list[tuple[str, str, str]]:
    """Name, value and ends of the interval of every figure of a step."""
    shown = [
        ("time", found.seconds, units.seconds),
        ("tokens/s/GPU", found.rate, "{:,.0f}".format),
        (f"MFU ({found.peak_dtype})", found.mfu, "{:.1%}".format),
        ("exposed communication", found.exposed, "{:.1%}".format),
        ("pipeline bubble", found.bubble, "{:.1%}".format),
        ("time to train", found.training, _days),
    ]
    return [
        (name, words(one.value), f"{words(one.low)} – {words(one.high)}")
        for name, one, words in shown
        if one is not None
    ]


def _days(seconds: float) -> str:
    return f"{seconds / _DAY:,.2f} d"


def rows(figures: TrainingFigures) -> list[KernelRow]:
    """The kernels of a micro-batch by phase, those computed again marked."""
    return merged(
        KernelRow(
            f"{one.priced.node.name}{' (again)' if one.phase == 'recompute' else ''}",
            one.count,
            one.priced,
            one.seconds,
            one.phase,
        )
        for one in figures.kernels
    )


def modules(figures: TrainingFigures) -> dict[str, float]:
    """Seconds of kernels of a micro-batch by module, in the order of the step."""
    found: dict[str, float] = defaultdict(float)
    for kernel in figures.kernels:
        found[kernel.priced.node.module] += kernel.seconds
    return dict(found)


__all__ = ["described", "figures", "modules", "parts", "rows"]
