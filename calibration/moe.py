"""Fits `moe.toml` to AITER's tuned layers and to its kernels of known tiles.

`python -m calibration.moe DATA_DIR [--without gfx950] [--folds] [--ablate] [--write]`

A problem counts once. Layers, whose tiles the model chooses, are most of the loss; kernels with a
tile in their name keep what the choice of tiles would hide. `--without` leaves out a device, a
target or the sources whose name contains the word, with the coefficients of that chip, and scores
them apart; `--folds` random fifths of the layers' models.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd

from calibration import common
from calibration.datasets.moe_counters import MoeCounters
from wavecast import arch
from wavecast.arch import Device
from wavecast.benchmarking.accuracy.cases import Case
from wavecast.benchmarking.accuracy.importers import Importer
from wavecast.benchmarking.accuracy.importers.moe_tuned import MoeTuned
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.ops.moe import FusedMoe, strategies
from wavecast.perfmodel.ops.moe.stages import FAMILY, MoeModel

FILES: tuple[tuple[str, Importer], ...] = (
    ("moe_tuned.parquet", MoeTuned()),
    ("moe_counters.parquet", MoeCounters()),
)
FITTED = (
    *("launch", "fixed", "stream_fraction", "stream_fraction@mi300x", "unit_stream", "resident"),
    *("pipe", "pipe@gfx942"),
    *("rescale", "widen", "combine_rows", "scaled_rows@gfx950", "combine_tokens"),
    *("stream_fraction@rdna4", "combine_rows@rdna4"),
    *("kernel_stream", "kernel_unit_stream", "launch_repeat"),
    *("step", "tile_end"),
)
"""Coefficients by name, with the scope where it is not the default."""
MOST = {
    "stream_fraction": 0.95,
    "stream_fraction@mi300x": 0.95,
    "stream_fraction@rdna4": 0.99,
    "kernel_stream": 1.0,
    "pipe": 1.0,
    "pipe@gfx942": 1.0,
}
"""What is left of a bandwidth after refresh and turnarounds, and all clocks there are."""
LAYERS = 0.7
"""Share of the layers in the loss."""
ABLATIONS: Mapping[str, Mapping[str, float]] = {
    "chain of a workgroup": {"unit_stream": 1e15, "fixed": 0.0},
    "adding rows to tokens": {
        "combine_rows": 1e15,
        "combine_tokens": 1e15,
        "combine_scaled_rows": 1e15,
        "combine_scaled_rows@gfx950": 1e15,
    },
    "vector work": {"rescale": 0.0, "widen": 0.0},
    "instructions without scales": {"plain_rate@gfx950": 1.0},
    "launches": {"launch": 0.0},
    "imperfect overlap": {"overlap": 20.0},
}


@dataclass(frozen=True)
class Problem:
    """One op on a device, with the median of its times in seconds."""

    op: FusedMoe
    device: str
    seconds: float
    groups: frozenset[str]


@dataclass(frozen=True)
class Batch:
    """Problems of one device, format, part and tile, which are computed at once."""

    problems: Sequence[Problem]
    device: Device
    seconds: Callable[[Mapping[str, float]], np.ndarray]


def problems(folder: Path) -> list[Problem]:
    """The problems of both files, once each."""
    same: dict[tuple[str, FusedMoe, str], list[Case]] = {}
    for name, dataset in FILES:
        for case in dataset.cases(pd.read_parquet(folder / name)):
            if isinstance(case, Case) and isinstance(case.op, FusedMoe) and not case.reason:
                same.setdefault((name, case.op, case.device), []).append(case)
    return [
        Problem(op, device, median(c.seconds for c in cases), frozenset(c.group for c in cases))
        for (_, op, device), cases in same.items()
    ]


def batches(chosen: Iterable[Problem]) -> list[Batch]:
    """Problems that differ only in sizes, together."""
    alike: dict[tuple[object, ...], list[Problem]] = {}
    for problem in chosen:
        op = problem.op
        key = (problem.device, op.form, op.part, op.block_m, op.tile_n, op.kernel)
        alike.setdefault(key, []).append(problem)
    return [_batch(members) for members in alike.values()]


def _batch(members: Sequence[Problem]) -> Batch:
    first, device = members[0].op, arch.load(members[0].device)
    chip, form = Chip.of(device), first.form
    same = [problem.op.sizes for problem in members]
    batch = strategies.TiledProblems.of(first.part, same, first.block_m, first.tile_n)

    def seconds(known: Mapping[str, float]) -> np.ndarray:
        return batch.seconds(MoeModel.of(chip, form, known, first.part, first.kernel))

    return Batch(members, device, seconds)


def logs(batch: Batch, known: Mapping[str, float]) -> np.ndarray:
    """log(predicted / measured) with coefficients `known`."""
    scopes = tuple(reversed(coefficients.scopes(batch.device)))
    predicted = batch.seconds(common.resolved(known, scopes))
    return np.log(predicted / [problem.seconds for problem in batch.problems])


def fit(chosen: Sequence[Problem], start: Mapping[str, float]) -> dict[str, float]:
    """The fitted coefficients that make the bounded |log| of layers and kernels least."""
    layers = batches(p for p in chosen if p.op.part == "layer")
    kernels = batches(p for p in chosen if p.op.part != "layer")

    def mean(group: Sequence[Batch], known: Mapping[str, float]) -> float:
        off = [common.bounded(logs(batch, known)) for batch in group]
        return float(np.mean(np.concatenate(off))) if off else 0.0

    def loss(known: Mapping[str, float]) -> float:
        return LAYERS * mean(layers, known) + (1 - LAYERS) * mean(kernels, known)

    names = [name for name in FITTED if name in start]
    return common.coordinate_search(loss, start, names, rounds=6, most=MOST)


def report(title: str, chosen: Sequence[Problem], known: Mapping[str, float]) -> None:
    """Scores of layers by device, and of kernels by part."""
    print(title)
    found: dict[str, list[np.ndarray]] = {}
    for batch in batches(chosen):
        part = batch.problems[0].op.part
        off = logs(batch, known)
        found.setdefault(part, []).append(off)
        if part == "layer":
            found.setdefault(f"layer on {batch.device.id}", []).append(off)
    for name in sorted(found):
        print(f"  {name:18} {common.scores(np.exp(np.concatenate(found[name])))}")


def folds(chosen: Sequence[Problem], start: Mapping[str, float]) -> None:
    """Every fifth of the models (all but the tokens) predicted by a fit to the others."""
    off: list[np.ndarray] = []
    for number in range(5):
        left = [p for p in chosen if p.op.part == "layer" and _fold(p.op) == number]
        known = fit([p for p in chosen if _fold(p.op) != number], start)
        off += [logs(batch, known) for batch in batches(left)]
    print(f"  layers of left-out models: {common.scores(np.exp(np.concatenate(off)))}")


def _fold(op: FusedMoe) -> int:
    return zlib.crc32(f"{op.model} {op.inter} {op.experts} {op.topk}".encode()) % 5


def _ablate(chosen: Sequence[Problem], known: Mapping[str, float]) -> None:
    print("layers without a term, nothing refitted")
    layers = batches(p for p in chosen if p.op.part == "layer")
    for name, zeros in {"—": {}, **ABLATIONS}.items():
        off = np.concatenate([logs(batch, {**known, **zeros}) for batch in layers])
        print(f"  {name:28} {common.scores(np.exp(off))}")


def _left_out(problem: Problem, word: str) -> bool:
    if word in (problem.device, arch.load(problem.device).target):
        return True
    return bool(word) and all(word in group for group in problem.groups)


def _without(known: Mapping[str, float], word: str) -> dict[str, float]:
    """Coefficients without those fitted to a chip, which get the default's values at the end; what
    documents tell of it stays."""
    if not word:
        return dict(known)
    rows = coefficients.family(FAMILY)
    scopes = {word, *(d.id for d in arch.devices() if d.target == word)}
    return {
        name: value
        for name, value in known.items()
        if name.partition("@")[2] not in scopes or rows[name.partition("@")[0]].status != "fitted"
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--without", default="")
    parser.add_argument("--folds", action="store_true")
    parser.add_argument("--ablate", action="store_true")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    chosen, start = problems(given.folder), common.starting(FAMILY)
    left = [p for p in chosen if _left_out(p, given.without)]
    used = [p for p in chosen if not _left_out(p, given.without)]
    report("before", chosen, start)
    table, start = start, _without(start, given.without)
    known = fit(used, start)
    report("in sample", used, known)
    if left:
        report(f"left out: {given.without}", left, known)
    if given.folds:
        folds(chosen, start)
    if given.ablate:
        _ablate(used, known)
    known |= {name: known[name.partition("@")[0]] for name in table.keys() - start.keys()}
    changed = {name: value for name, value in known.items() if value != table[name]}
    for name, value in changed.items():
        print(f"{name} = {value:.3g} (was {table[name]:.3g})")
    if given.write:
        common.write(FAMILY, changed)


if __name__ == "__main__":
    main()
