"""Fits `convolution.toml` to MIOpen's find-db.

`python -m calibration.convolution DATA_DIR [--without gfx90a] [--ablate] [--write]`

Every algorithm is fitted to its own fastest solver of each problem, then all together to the best;
the constants are shared by dtypes, directions and chips. A fifth of the problems, by hash, is left
out of the fit and scored apart; so is a target with `--without`.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from calibration import common
from wavecast import arch
from wavecast.benchmarking.accuracy.cases import device_of
from wavecast.benchmarking.accuracy.importers.conv_miopen import PROBLEM, algorithm_of, problem_of
from wavecast.errors import UsageError, WavecastError
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.coefficients import scopes
from wavecast.perfmodel.ops.convolution.algorithms import ALGORITHMS, timings
from wavecast.perfmodel.ops.convolution.geometry import ConvolutionBatch
from wavecast.perfmodel.ops.convolution.units import has_matrix

FAMILY = "convolution"
OVERRIDES = {
    "gfx908": ("gemm_launch", "column_launch"),
    "gfx1030": ("memory", "addresses", "vector_rate", "gemm_rate", "winograd_rate", "direct_rate",
                "winograd_weights", "launch", "gemm_launch", "column_launch", "winograd_launch",
                "naive_forward", "naive_data", "naive_weights", "naive_last_forward", "gemm_loop"),
}  # fmt: skip
"""What is fitted apart on a target: the host's share of a call, and the kernels of a chip without
matrix units, whose board ran most of its measurements at a low clock (its times have two modes, a
factor of four apart)."""
SHARES = ("_rate", "_weights", "_convert", "memory", "transpose", "dense")
"""Ends of the names of coefficients that are shares, at most one."""
LONGEST = 2e-4
"""Seconds of a launch, at most."""
FAR = 2.0
"""Algorithms slower than this times the best are hopeless."""


@dataclass(frozen=True)
class Block:
    """Problems of one kind on one chip; seconds by algorithm, NaN where it was not measured."""

    name: str
    chip: Chip
    geometry: ConvolutionBatch
    seconds: Mapping[str, np.ndarray]
    best: np.ndarray
    winner: np.ndarray
    left_out: np.ndarray


def blocks(path: Path, sample: int | None = None) -> Iterator[Block]:
    """The problems of the file by chip, direction, dtype, layout and rank, or some of each."""
    frame = pd.read_parquet(path)
    frame["algorithm"] = [algorithm_of(row) for row in _records(frame[["solver", "algo"]])]
    frame["problem"] = frame.groupby(list(PROBLEM), observed=True).ngroup()
    kinds = ["arch", "cu_count", "device", "direction", "dtype", "layout"]
    for _, rows in frame.groupby(kinds, observed=True):
        first = _records(rows.head(1)[kinds])[0]
        device, _ = device_of(str(first["arch"]), float(first["cu_count"]), str(first["device"]))
        if device:
            name = " ".join(str(first[kind]) for kind in ("arch", *kinds[3:]))
            yield _block(rows, name, Chip.of(arch.load(device)), sample)


def _block(rows: pd.DataFrame, name: str, chip: Chip, sample: int | None) -> Block:
    table = rows.pivot_table(index="problem", columns="algorithm", values="time_us", aggfunc="min")
    if sample and len(table) > sample:
        table = table.sample(sample, random_state=0)
    firsts = rows.drop_duplicates("problem").set_index("problem").loc[table.index]
    problems = []
    for row in _records(firsts):
        try:
            problems.append(problem_of(row))
        except UsageError:
            problems.append(None)
    valid = np.array([problem is not None for problem in problems])
    problems = [problem for problem in problems if problem is not None]
    times = table.to_numpy()[valid] * 1e-6
    names = np.array(table.columns)
    return Block(
        name,
        chip,
        ConvolutionBatch.of(problems),
        {name: times[:, number] for number, name in enumerate(names)},
        np.nanmin(times, axis=1),
        names[np.nanargmin(times, axis=1)],
        np.array([zlib.crc32(str(problem).encode()) % 5 == 0 for problem in problems]),
    )


def _records(frame: Any) -> list[dict[str, Any]]:
    return [
        {str(name): value for name, value in row.items()} for row in frame.to_dict(orient="records")
    ]


def errors(data: list[Block], known: Mapping[str, float], algorithm: str) -> np.ndarray:
    """Log ratios of one algorithm over the problems of the fit.

    Times beyond `FAR` times the best count as that: how slow the hopeless is does not matter.
    """
    found = [np.empty(0)]
    entry = ALGORITHMS[algorithm]
    for block in data:
        if algorithm not in block.seconds or not entry.applies(block.geometry, block.chip.device):
            continue
        measured = block.seconds[algorithm]
        predicted = entry.time(block.geometry, block.chip, values(known, block)).seconds
        use = np.isfinite(measured) & np.isfinite(predicted) & ~block.left_out
        far = FAR * block.best
        ratio = np.log(np.minimum(predicted, far)[use] / np.minimum(measured, far)[use])
        found.append(ratio[(measured < far)[use] | (ratio != 0.0)])
    return np.concatenate(found)


def loss(data: list[Block], known: Mapping[str, float], names: list[str]) -> float:
    """Mean bounded error of the algorithms `names`, each as much as it has problems."""
    ratios = np.concatenate([errors(data, known, name) for name in names])
    return float(common.bounded(ratios).mean()) if len(ratios) else 0.0


def best_loss(data: list[Block], known: Mapping[str, float]) -> float:
    """Mean bounded error of the fastest predicted algorithm against the fastest measured."""
    ratios = [np.log(_best(block, known)[0] / block.best)[~block.left_out] for block in data]
    return float(common.bounded(np.concatenate(ratios)).mean())


def _best(block: Block, known: Mapping[str, float]) -> tuple[np.ndarray, np.ndarray]:
    found = timings(block.geometry, block.chip, values(known, block))
    names, table = np.array(list(found)), np.array([t.seconds for t in found.values()])
    return table.min(axis=0), names[table.argmin(axis=0)]


GROUPS = {
    "implicit GEMM": ("gather_", "nhwc_", "vector_", "addresses", "dense", "edge", "split",
                      "resident_area", "transpose", "memory", "launch", "scatter"),
    "GEMM": ("gemm_", "column_"),
    "Winograd": ("winograd_", "passes_"),
    "direct": ("direct_",),
    "naive": ("naive_",),
}  # fmt: skip
"""Coefficients by the algorithm they are fitted to first, by the beginning of their names."""


def fit(
    data: list[Block], start: Mapping[str, float], names: list[str], rounds: int
) -> dict[str, float]:
    """Values for `names`: each algorithm on its own, then all together on the best."""
    known = dict(start)
    for algorithm, prefixes in GROUPS.items():
        own = [name for name in names if name.startswith(prefixes)]
        known = common.coordinate_search(
            lambda k, a=algorithm: loss(data, k, [a]), known, own, rounds, most=_most(known)
        )
        print(f"{algorithm}: {loss(data, known, [algorithm]):.4f}", flush=True)
    return together(data, known, names, 2, 1.12)


def together(
    data: list[Block], start: Mapping[str, float], names: list[str], rounds: int, step: float
) -> dict[str, float]:
    """Values for `names` on the best algorithm, and a little on each of them."""
    known = common.coordinate_search(
        lambda k: best_loss(data, k) + 0.3 * loss(data, k, list(GROUPS)),
        start,
        names,
        rounds,
        step,
        _most(start),
    )
    print(f"best: {best_loss(data, known):.4f}", flush=True)
    return known


def _most(known: Mapping[str, float]) -> dict[str, float]:
    """The largest values: shares are at most one, launches no longer than `LONGEST`."""
    kinds = {name: name.partition("@")[0] for name in known}
    return {name: 1.0 for name, kind in kinds.items() if kind.endswith(SHARES)} | {
        name: LONGEST for name, kind in kinds.items() if kind.endswith("launch")
    }


def values(known: Mapping[str, float], block: Block) -> dict[str, float]:
    """The values that hold for a block's chip."""
    return common.resolved(known, scopes(block.chip.device)[::-1])


def report(
    data: list[Block], known: Mapping[str, float], title: str, *, kinds: bool = True
) -> None:
    """Scores of the best, by block and over all, in the fit and left out of it."""
    print(f"\n{title}")
    rows = []
    for block in data:
        try:
            seconds, names = _best(block, known)
        except WavecastError as error:
            print(f"  {block.name}: {error}")
            continue
        rows.append((block, seconds, names))
    for part, chosen in (("in the fit", False), ("left out", True)):
        pick = [b.left_out == chosen for b, _, _ in rows]
        ratio = np.concatenate([(s / b.best)[p] for (b, s, _), p in zip(rows, pick, strict=True)])
        right = np.concatenate(
            [(n == b.winner)[p] for (b, _, n), p in zip(rows, pick, strict=True)]
        )
        print(f"  {part}: {common.scores(ratio)}, algorithm named {right.mean():.1%}")
    for block, seconds, names in rows if kinds else ():
        right = (names == block.winner).mean()
        print(f"    {block.name:40s} {common.scores(seconds / block.best)}, named {right:.0%}")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--without", default="", help="a target to leave out of the fit")
    parser.add_argument("--sample", type=int, default=300, help="problems per kind in the fit")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ablate", action="store_true")
    parser.add_argument("--write", action="store_true", help="write the values to the table")
    given = parser.parse_args()
    path = given.data / "conv_miopen.parquet"
    everything = list(blocks(path))
    known = common.starting(FAMILY)
    if given.rounds:
        sample = [b for b in blocks(path, given.sample) if b.chip.device.target != given.without]
        known = fit_all(sample, known, given.rounds)
    for target in sorted({b.chip.device.target for b in everything}):
        part = [b for b in everything if b.chip.device.target == target]
        report(part, known, target + (" (not in the fit)" if target == given.without else ""))
    report(everything, known, "all", kinds=False)
    if given.ablate:
        ablate(everything, known)
    for name, value in known.items():
        print(f"{name} = {value:.3g}")
    if given.write:
        common.write(FAMILY, known)


def fit_all(data: list[Block], start: Mapping[str, float], rounds: int) -> dict[str, float]:
    """The shared values on chips with matrix units, then what is particular to others."""
    targets = {b.chip.device.target for b in data}
    start = {name: value for name, value in start.items() if "@" not in name}
    matrix = [b for b in data if has_matrix(b.chip.device)]
    own = (
        {f"{name}@gfx908": start[name] for name in OVERRIDES["gfx908"]}
        if len(targets & {"gfx90a", "gfx908"}) > 1
        else {}
    )
    shared = list(start)
    known = fit(matrix, {**start, **own}, [*shared, *own], rounds)
    if "gfx1030" in targets:
        print("gfx1030")
        rest = [b for b in data if b.chip.device.target == "gfx1030"]
        own = {f"{name}@gfx1030": known[name] for name in OVERRIDES["gfx1030"]}
        own = {
            name: v * 0.3 if name.partition("@")[0].endswith(SHARES) else v
            for name, v in own.items()
        }
        known = together(rest, {**known, **own}, list(own), rounds, 1.4)
    return known


NEUTRAL = {
    "edge": 0.0,
    "addresses": 1e9,
    "gather_step": 0.0,
    "vector_step": 0.0,
    "direct_step": 0.0,
    "gather_start": 0.0,
    "nhwc_start": 0.0,
    "gemm_start": 0.0,
    "vector_start": 0.0,
    "gemm_launch": 0.0,
    "gemm_loop": 0.0,
    "transpose_launch": 0.0,
    "column_launch": 0.0,
    "split": 0.0,
    "scatter": 0.0,
    "direct_convert": 1.0,
}
"""Values that take a term out of the model."""


def ablate(data: list[Block], known: Mapping[str, float]) -> None:
    """The error of the best without each term, the others as they are."""
    print("\nwithout the term")
    for name, value in NEUTRAL.items():
        changed = {key: old for key, old in known.items() if key.partition("@")[0] != name}
        ratio = np.concatenate([_best(b, {**changed, name: value})[0] / b.best for b in data])
        print(f"  {name:18s} {common.scores(ratio)}")


if __name__ == "__main__":
    main()
