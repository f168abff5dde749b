"""Fits what `kernel.toml` and `cache.toml` have of a compute unit's paths and latencies to whole
HIP programs, and scores programs that had no part in the fit.

    python -m calibration.kernel DATA_DIR SOURCES SAMPLES [--sizes N] [--halves] [--ablate]
        [--leave-out] [--write]

SOURCES is a checkout of the programs (docs/validate.md), SAMPLES a folder that keeps their executed
samples. `--sizes` is how many problem sizes of a program count (default 5). `--halves` fits on the
programs of `hip_kernels_mi300a` and scores the other programs of the suite, and the other way
round. `--leave-out` fits without each program in turn and scores that program. `--ablate` scores
the fit of all programs, and of both halves with `--halves`, with one term taken away.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np

from calibration import common, hip_samples
from calibration.hip_samples import DEVICE, Problem
from wavecast.perfmodel import coefficients, queue
from wavecast.perfmodel.chip import Chip, of_device
from wavecast.perfmodel.cu.simulation import timing

FITTED: Final[Mapping[str, float]] = {
    "kernel.wait_l2": 1.0,
    "kernel.store_latency": 1.0,
    "kernel.scalar": 1e-3,
    "kernel.tag": 1e-3,
    "kernel.dispatch": 1e-3,
}
"""Coefficient -> the value that takes its term away."""
KNOWN: Final[Mapping[str, float]] = {
    "kernel.returned": 1e9,
    "kernel.l2_stores": 1.0,
    "cache.update_traffic": 0.0,
    "cache.dirty_share": 0.0,
}
"""The same of terms whose values are not searched, for `--ablate`."""
MOST: Final[Mapping[str, float]] = {"kernel.scalar": 16.0}
"""Largest values: the scalar cache returns a line of 64 bytes by a dword a clock at least. Few
programs are bound by it, and others of the suite do not determine it."""
ROUNDS: Final = 2
STEPS: Final = 200_000
"""Instructions a simulation replays at most: enough for a fit, a tenth of the time."""


@contextmanager
def overridden(known: Mapping[str, float]) -> Iterator[None]:
    """The coefficients `family.name` of the device have these values."""
    before: list[tuple[dict[str, float], str, float]] = []
    for key, value in known.items():
        row = coefficients.coefficient(*key.split("."))
        scope, values = row.scope(DEVICE) or "default", row.values
        assert isinstance(values, dict)
        before.append((values, scope, values[scope]))
        values[scope] = value
    _forget()
    try:
        yield
    finally:
        for values, scope, value in before:
            values[scope] = value
        _forget()


def _forget() -> None:
    coefficients.values.cache_clear()
    of_device.cache_clear()


def ratio(problem: Problem) -> float:
    """Predicted over measured."""
    steps: list[queue.Step] = []
    for step in problem.profiles:
        if isinstance(step, tuple):
            found = timing(step[0], DEVICE, steps=STEPS)
            steps.append(queue.Launches(found.seconds - found.launch, step[1]))
        else:
            steps.append(step)
    return queue.elapsed_time(Chip.of(DEVICE), steps) / problem.seconds


def ratios(of: Sequence[Problem], known: Mapping[str, float]) -> np.ndarray:
    with overridden(known):
        return np.array([ratio(problem) for problem in of])


def loss(of: Sequence[Problem], known: Mapping[str, float]) -> float:
    """Mean over programs of the mean bounded error of each."""
    each: dict[str, list[float]] = {}
    for problem, error in zip(of, common.bounded(np.log(ratios(of, known))), strict=True):
        each.setdefault(problem.program, []).append(float(error))
    return float(np.mean([np.mean(errors) for errors in each.values()]))


def fit(of: Sequence[Problem]) -> dict[str, float]:
    """The coefficients that make the loss small, from those of today."""
    start = {key: coefficients.coefficient(*key.split(".")).of(DEVICE) for key in FITTED}
    launching = [problem for problem in of if any(isinstance(s, tuple) for s in problem.steps)]
    return common.coordinate_search(
        lambda known: loss(launching, known), start, tuple(FITTED), ROUNDS, step=1.3, most=MOST
    )


def scores(of: Sequence[Problem], known: Mapping[str, float]) -> str:
    """The errors, with the sum of all over the sum of what was measured."""
    found, measured = ratios(of, known), np.array([problem.seconds for problem in of])
    weighted = np.sum(np.abs(found - 1) * measured) / measured.sum()
    return f"{common.scores(found)}, weighted {weighted:.1%}"


def _report(title: str, of: Sequence[Problem], known: Mapping[str, float]) -> None:
    print(f"{title:26}", scores(of, known), flush=True)
    for program in dict.fromkeys(problem.program for problem in of):
        own = [problem for problem in of if problem.program == program]
        print(f"  {program:24}", scores(own, known), flush=True)


def _ablation(of: Sequence[Problem], known: Mapping[str, float]) -> None:
    print("all terms                 ", scores(of, known), flush=True)
    for key, neutral in {**FITTED, **KNOWN}.items():
        print(f"without {key:18}", scores(of, {**known, key: neutral}), flush=True)


def _rounded(known: Mapping[str, float]) -> dict[str, float]:
    return {key: float(f"{value:.3g}") for key, value in known.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("sources", type=Path)
    parser.add_argument("samples", type=Path)
    parser.add_argument("--sizes", type=int, default=5)
    for option in ("--halves", "--leave-out", "--ablate", "--write"):
        parser.add_argument(option, action="store_true")
    given = parser.parse_args()
    asked = hip_samples.evenly(hip_samples.rows(given.data), given.sizes)
    everything = list(hip_samples.problems(asked, given.sources, given.samples))
    if given.halves:
        for public in (True, False):
            own = [problem for problem in everything if problem.public is public]
            others = [problem for problem in everything if problem.public is not public]
            fitted = fit(own)
            print("fitted", _rounded(fitted), flush=True)
            _report("in the fit", own, fitted)
            _report("not in the fit", others, fitted)
            if given.ablate:
                _ablation(others, fitted)
    if given.leave_out:
        for program in dict.fromkeys(problem.program for problem in everything):
            own = [problem for problem in everything if problem.program == program]
            others = [problem for problem in everything if problem.program != program]
            print(f"without {program:18}", scores(own, fit(others)), flush=True)
    if given.write or (given.ablate and not given.halves):
        fitted = fit(everything)
        print("fitted", _rounded(fitted), flush=True)
        _report("in the fit", everything, fitted)
        if given.ablate:
            _ablation(everything, fitted)
        if given.write:
            scoped = {"kernel.tag": "tag@gfx942"}
            values = {scoped.get(k, k.partition(".")[2]): v for k, v in fitted.items()}
            common.write("kernel", values)


if __name__ == "__main__":
    main()
