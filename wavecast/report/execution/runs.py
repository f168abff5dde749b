"""The parts of `wavecast.run/1` that are made of results."""

from __future__ import annotations

import math
from collections.abc import Sequence

from wavecast.documents.run import (
    ArrayResultJson,
    ComparisonJson,
    KernelLaunchJson,
    ProgramKernelJson,
)
from wavecast.pipeline.execute.execution import ArrayResult, Comparison, Execution
from wavecast.runtimes.hip_host.launching import LaunchedKernel


def launch(execution: Execution) -> KernelLaunchJson:
    """A launch of a kernel in a file."""
    return KernelLaunchJson.of(execution, arrays=[_array(each) for each in execution.outcomes])


def kernels(launched: Sequence[LaunchedKernel], *, predicted: bool) -> list[ProgramKernelJson]:
    """The kernels of a HIP program, whose times count where they are `predicted`."""
    return [
        ProgramKernelJson.of(
            each,
            grid=list(each.grid),
            block=list(each.block),
            predicted_seconds=each.seconds if predicted else None,
            why_not=each.why,
        )
        for each in launched
    ]


def _array(result: ArrayResult) -> ArrayResultJson:
    comparison = result.comparison
    return ArrayResultJson.of(
        result,
        shape=list(result.shape),
        comparison=None if comparison is None else _comparison(comparison),
        file="" if result.saved is None else str(result.saved),
    )


def _comparison(comparison: Comparison) -> ComparisonJson:
    return ComparisonJson.of(
        comparison,
        first=list(comparison.first),
        actual=_finite(comparison.actual),
        expected=_finite(comparison.expected),
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


__all__ = ["kernels", "launch"]
