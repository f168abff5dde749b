"""The parts of `wavecast.run/1` that are made of results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from wavecast.compile.names import distinct_names
from wavecast.documents.run import (
    ArrayResultJson,
    ComparisonJson,
    ExecutedKernelJson,
    KernelLaunchJson,
)
from wavecast.emulate.launch_counts import KernelSize
from wavecast.pipeline.execute.execution import ArrayResult, Comparison, Execution
from wavecast.report.kit import units
from wavecast.runtimes.hip_host.launching import LaunchedKernel


def launch(execution: Execution) -> KernelLaunchJson:
    """A launch of a kernel in a file."""
    return KernelLaunchJson.of(execution, arrays=[_array(each) for each in execution.outcomes])


def kernels(counts: Mapping[KernelSize, int]) -> list[ExecutedKernelJson]:
    """The kernels that were launched, by their numbers of launches."""
    names = distinct_names(size.symbol for size in counts)
    return [
        ExecutedKernelJson(
            kernel=names[size.symbol],
            symbol=size.symbol,
            target=size.target,
            grid=list(size.grid),
            block=list(size.block),
            launches=launches,
            predicted_seconds=None,
            why_not="",
        )
        for size, launches in counts.items()
    ]


def program_kernels(
    launched: Sequence[LaunchedKernel], *, predicted: bool
) -> list[ExecutedKernelJson]:
    """The kernels of a HIP program, whose times count where they are `predicted`."""
    names = distinct_names(each.symbol for each in launched if each.symbol)
    return [
        ExecutedKernelJson.of(
            each,
            kernel=names.get(each.symbol, each.kernel),
            grid=list(each.grid),
            block=list(each.block),
            predicted_seconds=each.seconds if predicted else None,
            why_not=each.why,
        )
        for each in launched
    ]


def differences(execution: Execution) -> list[str]:
    """Arrays that are not what was expected, a line each."""
    compared = [(each, each.comparison) for each in execution.outcomes]
    return [
        f"{units.count(comparison.different)} of {units.count(each.size)} elements of {each.name} "
        "differ from what is expected"
        for each, comparison in compared
        if comparison is not None and comparison.different
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


__all__ = ["differences", "kernels", "launch", "program_kernels"]
