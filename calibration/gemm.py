"""Fits `gemm.toml` to tuned matrix products.

`python -m calibration.gemm DATA_DIR [OPTIONS]`

Repeats of a problem count once; of many similar shapes of one weight matrix few are drawn.
`--without` leaves out a target, a device or the sources whose name contains the word and scores
them apart, `--folds` random fifths of the weight matrices (N and K), `--shape-only` does not tell
which library ran.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
from scipy.optimize import least_squares

from calibration import common
from wavecast import arch
from wavecast.arch import Device
from wavecast.benchmarking.accuracy.cases import Case
from wavecast.benchmarking.accuracy.importers.gemm_tuned import GemmTuned
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.ops.gemm.libraries import candidates
from wavecast.perfmodel.ops.gemm.problem import FAMILY, Gemm, bounds
from wavecast.perfmodel.ops.gemm.tiles import GemmSizes

TUNED = {
    "ck": "ck",
    "cktile": "cktile",
    "asm": "asm",
    "opus": "opus",
    "triton": "triton",
    "flydsl": "flydsl",
    "flydsl_mxfp8": "flydsl",
    "flydsl_fp8": "flydsl",
    "hipblaslt": "blas",
    "torch": "blas",
    "rocblas": "blas",
    "": "asm",
}
"""Names in the tables -> libraries of the op. Files without a name are of hand-written kernels."""
LIBRARIES = ("asm", "blas", "ck", "cktile", "flydsl", "opus", "triton")
SHARED = (
    *("call", "start", "tail", "exposed", "vector_clocks", "l2_rate", "store_rate"),
    *("hbm_share", "combine_call", "combine_rate", "filled", "fabric"),
)
NAMES = (*SHARED, *(f"serial_{n}" for n in LIBRARIES), *(f"step_{n}" for n in LIBRARIES))
LIMITS = {
    "tail": (0.05, 1.0),
    "exposed": (0.02, 1.0),
    "hbm_share": (0.5, 0.95),
    "start": (2e-8, 3e-6),
    "vector_clocks": (0.5, 8.0),
    "l2_rate": (48, 500),
    "filled": (0.75, 0.95),
    "fabric": (5e11, 1e13),
    **{f"serial_{n}": (0.02, 3.0) for n in LIBRARIES},
    **{f"step_{n}": (2e-8, 1.5e-6) for n in LIBRARIES},
}
DRAWN = 80
"""Problems of a chip, format and library a fit sees."""
CHUNK = 1500
ABLATIONS: dict[str, dict[str, float]] = {
    "waits per step of K": {f"step_{n}": 1e-12 for n in LIBRARIES},
    "incomplete last rounds (all counted whole)": {"tail": 1.0},
    "quantisation (last rounds counted in part)": {"tail": 0.0},
    "memory time that is not hidden": {"exposed": 0.0},
    "memory": {"exposed": 0.0, "hbm_share": 1e3},
    "LDS, L2 and vector work": {f"serial_{n}": 0.0 for n in LIBRARIES},
    "fetches of several dies": {"fabric": 1e18},
    "vector work of block scales": {"vector_clocks": 0.0},
    "stores of a tile": {"store_rate": 1e9},
    "combining parts of K": {"combine_call": 0.0, "combine_rate": 1e9},
}


@dataclass(frozen=True)
class Kind:
    """Problems alike but for their sizes: what `Gemm` has beside them, on a device."""

    op: Gemm
    device: str


@dataclass(frozen=True)
class Problem:
    """One problem, with the median of its times in seconds."""

    op: Gemm
    device: str
    seconds: float
    sources: frozenset[str]

    @property
    def kind(self) -> Kind:
        return Kind(replace(self.op, m=1, n=1, k=1, batch=1, bias=False), self.device)

    @property
    def cell(self) -> tuple[object, ...]:
        """Problems that tell the same."""
        return self.op.n, self.op.k, int(2 * np.log2(self.op.m))


def problems(folder: Path, *, shape_only: bool = False) -> list[Problem]:
    """The problems of the file that can be predicted, once each."""
    frame = pd.read_parquet(folder / "gemm_tuned.parquet")
    same: dict[tuple[Gemm, str], list[Case]] = {}
    for case in GemmTuned().cases(frame):
        if isinstance(case.op, Gemm) and case.device:
            op = case.op if shape_only else told(case.op, case)
            same.setdefault((op, case.device), []).append(case)
    return [
        Problem(op, device, median(c.seconds for c in cases), frozenset(c.group for c in cases))
        for (op, device), cases in same.items()
    ]


def told(op: Gemm, case: Case) -> Gemm:
    """The problem with the library that ran, where that has kernels of its kind."""
    named = replace(op, library=TUNED.get(case.labels["library"], ""))
    generation = arch.load(case.device).generation
    found = candidates(op.dtype, op.scaling, op.layout, generation, named.library)
    return named if named.library and found else op


def by_kind(chosen: Sequence[Problem]) -> dict[Kind, list[int]]:
    found: dict[Kind, list[int]] = {}
    for number, problem in enumerate(chosen):
        found.setdefault(problem.kind, []).append(number)
    return found


def drawn(chosen: Sequence[Problem], count: int, seed: int = 0) -> list[Problem]:
    """At most `count` problems of every kind, spread over weight matrices and sizes."""
    random = np.random.default_rng(seed)
    taken = []
    for numbers in by_kind(chosen).values():
        cells: dict[object, int] = {}
        for number in numbers:
            cells[chosen[number].cell] = cells.get(chosen[number].cell, 0) + 1
        weight = np.array([1 / cells[chosen[number].cell] for number in numbers])
        few = min(count, len(numbers))
        taken += list(random.choice(numbers, few, replace=False, p=weight / weight.sum()))
    return [chosen[number] for number in sorted(taken)]


def logs(chosen: Sequence[Problem], known: Mapping[str, float]) -> np.ndarray:
    """log(predicted / measured) of problems."""
    found = np.zeros(len(chosen))
    for kind, numbers in by_kind(chosen).items():
        device = arch.load(kind.device)
        tiles, chip = kind.op.candidates(device.generation), Chip.of(device)
        own = {**known, **scoped(device)}
        for start in range(0, len(numbers), CHUNK):
            some = numbers[start : start + CHUNK]
            ops = [chosen[number].op for number in some]
            m, n, k, batch = (
                np.array([getattr(op, size) for op in ops], float)[:, None]
                for size in ("m", "n", "k", "batch")
            )
            times = bounds(kind.op, tiles, chip, own, GemmSizes((m,), n, k, batch)).seconds.min(1)
            found[some] = np.log(times / [chosen[number].seconds for number in some])
    return found


def fit(
    chosen: Sequence[Problem], names: Sequence[str], start: Mapping[str, float], rounds: int = 14
) -> dict[str, float]:
    """Values of `names` that make the robust squares of the logs least. Kinds weigh by the fourth
    root of how many problems they stand for."""
    few = drawn(chosen, DRAWN)
    whole, part = by_kind(chosen), by_kind(few)
    weight = np.zeros(len(few))
    for kind, numbers in part.items():
        weight[numbers] = (len(whole[kind]) / len(numbers)) ** 0.25
    first = np.log([start[name] for name in names])
    wide = [LIMITS.get(name, (start[name] / 30, start[name] * 30)) for name in names]
    low, high = np.log(wide).T

    def residuals(x: np.ndarray) -> np.ndarray:
        return logs(few, {**start, **dict(zip(names, np.exp(x), strict=True))}) * weight

    found = least_squares(
        residuals,
        np.clip(first, low + 1e-3, high - 1e-3),
        bounds=(low, high),
        loss="cauchy",
        f_scale=0.08,
        diff_step=3e-3,
        x_scale=0.3,
        max_nfev=rounds,
    )
    return {**start, **dict(zip(names, (float(v) for v in np.exp(found.x)), strict=True))}


def show(title: str, chosen: Sequence[Problem], found: np.ndarray) -> None:
    """Scores by target and format, and of all."""
    print(f"\n{title}")
    groups: dict[str, list[int]] = {}
    for number, problem in enumerate(chosen):
        target = arch.load(problem.device).target
        groups.setdefault(f"{target} {problem.op.dtype}", []).append(number)
    for name in sorted(groups):
        print(f"  {name:16} {common.scores(np.exp(found[groups[name]]))}")
    print(f"  {'all':16} {common.scores(np.exp(found))}")


def left_out(problem: Problem, word: str) -> bool:
    device = arch.load(problem.device)
    return word in (device.id, device.target) or any(word in source for source in problem.sources)


def scoped(device: Device) -> dict[str, float]:
    """Values of the table for this device's own scopes, which no fit here changes."""
    rows = coefficients.family(FAMILY).values()
    return {row.name: row.of(device) for row in rows if row.scope(device) not in (None, "default")}


def current() -> dict[str, float]:
    """The values of the table."""
    rows = coefficients.family(FAMILY).values()
    return {row.name: row.values["default"] for row in rows}


def unseen(chosen: Sequence[Problem], start: Mapping[str, float]) -> dict[str, float]:
    """The start of a fit that knows nothing of libraries without problems: theirs is the middle of
    the others'."""
    seen = {problem.op.library for problem in chosen}
    known = dict(start)
    for prefix in ("serial", "step"):
        middle = median(
            start[f"{prefix}_{name}"] for name in LIBRARIES if name in seen or "" in seen
        )
        for name in LIBRARIES:
            if seen.isdisjoint((name, "")):
                known[f"{prefix}_{name}"] = middle
    return known


def fold(problem: Problem, count: int) -> int:
    return zlib.crc32(f"{problem.op.n} {problem.op.k}".encode()) % count


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--without")
    for flag in ("--folds", "--ablate", "--shape-only", "--write", "--score"):
        parser.add_argument(flag, action="store_true")
    given = parser.parse_args()
    every = problems(given.data, shape_only=given.shape_only)
    start = current()
    inside = [p for p in every if not (given.without and left_out(p, given.without))]
    known = start if given.score else fit(inside, NAMES, unseen(inside, start))
    show(
        "fitted on all of this" if not given.score else "table as it is",
        inside,
        logs(inside, known),
    )
    if given.without:
        outside = [p for p in every if left_out(p, given.without)]
        show(f"left out: {given.without}", outside, logs(outside, known))
    if given.folds:
        found = np.zeros(len(inside))
        for number in range(5):
            rest = [p for p in inside if fold(p, 5) != number]
            own = [i for i, p in enumerate(inside) if fold(p, 5) == number]
            found[own] = logs([inside[i] for i in own], fit(rest, NAMES, start))
        show("left out: random fifths of the weight matrices", inside, found)
    if given.ablate:
        for name, changed in ABLATIONS.items():
            show(f"without {name}", inside, logs(inside, {**known, **changed}))
    for name in NAMES:
        print(f"{name:16} {start[name]:10.4g} -> {known[name]:10.4g}")
    if given.write:
        common.write(FAMILY, {name: known[name] for name in NAMES})


if __name__ == "__main__":
    main()
