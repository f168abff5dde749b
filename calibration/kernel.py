"""Fits what `kernel.toml` has of latencies and paths of a compute unit to whole HIP programs.

`python -m calibration.kernel DATA_DIR SOURCES [--ablate] [--leave-out] [--write]`

SOURCES is a checkout of the programs (docs/validate.md). Their launches are executed once; the
search then changes the simulator only. A third of the problem sizes of each program, by hash, is
left out of the fit and scored apart; `--leave-out` fits without each program in turn and scores
that program; `--ablate` scores the fit with one term taken away.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from calibration import common, hip_suite
from calibration.hip_program import HipProgram
from wavecast import arch
from wavecast.model import coefficients, queue
from wavecast.model.chip import Chip
from wavecast.model.profile import LaunchProfile
from wavecast.model.simulation import timing

FAMILY = "kernel"
DEVICE = arch.load("mi300a")
CHIP = Chip.of(DEVICE)
LEVELS = ("l2", "hbm")
FITTED = ("wait_l2", "wait_hbm", "store_latency", "scalar", "tag", "dispatch")
NEUTRAL: Mapping[str, float] = {
    "wait_l2": 1.0,
    "wait_hbm": 1.0,
    "store_latency": 1.0,
    "scalar": 1e-3,
    "tag": 1.0,
    "dispatch": 1e-3,
}
"""Values that take a term away."""
ROUNDS = 3


@dataclass(frozen=True)
class Problem:
    """A program with a problem size: its steps with launches executed, and what was measured."""

    program: str
    size: str
    seconds: float
    steps: Sequence[tuple[LaunchProfile, float] | queue.Step] = field(repr=False)

    @property
    def left_out(self) -> bool:
        """A third of the sizes of every program."""
        return zlib.crc32(f"{self.program} {self.size}".encode()) % 3 == 0


def problems(data: Path, sources: Path) -> Iterator[Problem]:
    """The programs that were measured, executed."""
    frame = pd.read_parquet(data / "hip_kernels_mi300a.parquet")
    for row in frame.to_dict("records"):
        op = HipProgram(str(row["kernel_name"]), str(row["problem_size"]), str(sources))
        steps: list[tuple[LaunchProfile, float] | queue.Step] = []
        for step in hip_suite.steps(op.program, op.size):
            if isinstance(step, hip_suite.Kernel):
                steps.append((op.profile(step, DEVICE), step.count))
            else:
                steps.append(step)
        yield Problem(op.program, op.size, float(row["avg_ms"]) * 1e-3, steps)


def fields(known: Mapping[str, float]) -> dict[str, float]:
    """Coefficients as fields of the simulator's machine."""
    found = {
        f"latency_{level}": CHIP.latency[level] * CHIP.clock * known[f"wait_{level}"]
        for level in LEVELS
    }
    found["latency_store"] = found["latency_l2"] * known["store_latency"]
    return {**found, **{name: known[name] for name in ("scalar", "tag", "dispatch")}}


def ratio(problem: Problem, known: Mapping[str, float]) -> float:
    """Predicted over measured."""
    steps: list[queue.Step] = []
    for step in problem.steps:
        if isinstance(step, tuple):
            found = timing(step[0], DEVICE, events=0, **fields(known))
            steps.append(queue.Launches(found.seconds - found.launch, step[1]))
        else:
            steps.append(step)
    return queue.elapsed(CHIP, steps) / problem.seconds


def ratios(of: Sequence[Problem], known: Mapping[str, float]) -> np.ndarray:
    return np.array([ratio(problem, known) for problem in of])


def loss(of: Sequence[Problem], known: Mapping[str, float]) -> float:
    """Mean over programs of the mean bounded error of each."""
    each: dict[str, list[float]] = {}
    for problem, error in zip(of, common.bounded(np.log(ratios(of, known))), strict=True):
        each.setdefault(problem.program, []).append(float(error))
    return float(np.mean([np.mean(errors) for errors in each.values()]))


def fit(of: Sequence[Problem], start: Mapping[str, float]) -> dict[str, float]:
    """The coefficients that make the loss small, from `start`."""
    return common.coordinate_search(lambda known: loss(of, known), start, FITTED, ROUNDS, step=1.2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("sources", type=Path)
    parser.add_argument("--ablate", action="store_true")
    parser.add_argument("--leave-out", action="store_true")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    known = coefficients.values(FAMILY, DEVICE)
    start = {name: known[name] for name in FITTED}
    everything = list(problems(given.data, given.sources))
    inside = [problem for problem in everything if not problem.left_out]
    outside = [problem for problem in everything if problem.left_out]
    fitted = fit(inside, start)
    print("fitted", {name: round(value, 3) for name, value in fitted.items()})
    print("in the fit  ", common.scores(ratios(inside, fitted)))
    print("sizes apart ", common.scores(ratios(outside, fitted)))
    for program in dict.fromkeys(problem.program for problem in everything):
        own = [problem for problem in everything if problem.program == program]
        print(f"  {program:18}", common.scores(ratios(own, fitted)))
    if given.leave_out:
        for program in dict.fromkeys(problem.program for problem in everything):
            own = [problem for problem in everything if problem.program == program]
            others = [problem for problem in everything if problem.program != program]
            print(f"without {program:18}", common.scores(ratios(own, fit(others, fitted))))
    if given.ablate:
        print("all terms          ", common.scores(ratios(everything, fitted)))
        for name in FITTED:
            without = {**fitted, name: NEUTRAL[name]}
            print(f"without {name:14}", common.scores(ratios(everything, without)))
    if given.write:
        scoped = {"tag": "tag@gfx942"}
        common.write(FAMILY, {scoped.get(name, name): value for name, value in fitted.items()})


if __name__ == "__main__":
    main()
