"""Planted kernels explained: scripts in this process, HIP files as `wavecast explain` does."""

from __future__ import annotations

import runpy
from functools import cache
from pathlib import Path

from tests.rules.planted.cases import PlantedKernel
from wavecast.pipeline import SourceOptions, explain_launches, explain_path, select
from wavecast.pipeline.explain.result import Explanation
from wavecast.pipeline.explain.steps import Given
from wavecast.pipeline.plan import Plan, Planned


@cache
def explained(path: Path, device: str) -> tuple[Explanation, ...]:
    """The launches of a script's `main`, explained."""
    from wavecast.runtimes.triton import capture

    selection = select([device])
    with capture(device) as launches:
        runpy.run_path(str(path))["main"]()
    found, failures = explain_launches(launches, selection, Given())
    assert not failures, failures
    return found


def wrong_and_fixed(
    case: PlantedKernel,
) -> tuple[tuple[Explanation, ...], tuple[Explanation, ...]]:
    """The kernel with its mistake, and without."""
    return _of(case, fixed=False), _of(case, fixed=True)


def _of(case: PlantedKernel, *, fixed: bool) -> tuple[Explanation, ...]:
    if not case.is_hip:
        return explained(case.path(fixed=fixed), case.device)
    given = case.fixed_arguments if fixed else case.arguments
    plan = Plan(
        "",
        case.fixed_grid if fixed else case.grid,
        case.fixed_block if fixed else case.block,
        0,
        {name: Planned(value) for name, value in given.items()},
    )
    report = explain_path(case.path(fixed=fixed), select([case.device]), SourceOptions(plan=plan))
    assert not report.failures, report.failures
    return report.explanations


def seconds(explanations: tuple[Explanation, ...]) -> float:
    """The predicted time of all launches, each as often as it was launched."""
    total = 0.0
    for explanation in explanations:
        prediction = explanation.predicted.prediction
        assert prediction is not None, explanation.predicted.why_not
        assert explanation.launch is not None
        total += prediction.seconds * explanation.launch.count
    return total
