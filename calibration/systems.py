"""Scores predictions for whole models against measured serving runs, and writes their residuals.

    python -m calibration.systems DATA/systems/serving.parquet [--gpu mi355x] [--limit N] [--write]

Nothing is fitted to a model, so all errors are those of models that were left out. `--write` stores
intervals in `wavecast/systems/residuals.toml`, by how far a prediction is from what was measured:

    chip      the engine ran on this chip, the model did not
    engine    it ran on other chips of the vendor, the model did not
    vendor    other engines ran on chips of the vendor
    any       chips of other vendors ran

A group is a model on a chip with an engine; groups count equally. The interval of a distance is
conformal (`calibration.conformal`): every group is scored by groups at that distance. Coverage is
that of each model by the intervals from the others. Pairs of runs of equal configurations on two
chips give the errors of ratios of systems: their interval, and where too few models were measured
the correlation of both errors.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from calibration import conformal, serving_baselines
from calibration.page import SERVING
from wavecast import arch
from wavecast.benchmarking.accuracy.importers.serving import Serving
from wavecast.errors import WavecastError
from wavecast.perfmodel.ops.base import Op
from wavecast.systems.op import ServedModel

TARGET = Path(__file__).parents[1] / "wavecast" / "systems" / "residuals.toml"
COVERAGE = 0.8
LEAST = 3
"""Groups that an interval needs."""
DISTANCES: Mapping[str, tuple[str, ...]] = {
    "chip": ("model",),
    "engine": ("model", "gpu"),
    "vendor": ("model", "engine"),
    "any": ("model", "vendor"),
}
"""What a prediction at a distance has in common with no run."""
FIELDS = ("vendor", "engine", "gpu", "model")
KINDS: Mapping[str, Callable[[pd.Series, pd.Series], bool]] = {
    "engine": lambda one, two: one.engine == two.engine and one.vendor == two.vendor,
    "vendor": lambda one, two: one.engine != two.engine and one.vendor == two.vendor,
    "any": lambda one, two: one.vendor != two.vendor,
}
"""What two runs that are compared have in common."""


def residuals(path: Path, gpu: str, limit: int | None) -> pd.DataFrame:
    """A row per run and metric with `log`, the logarithm of measured over predicted time."""
    frame = pd.read_parquet(path)
    cases = [case for case in Serving().cases(frame) if not gpu or case.device == gpu]
    reasons = Counter(case.reason for case in cases if case.op is None)
    cases = [case for case in cases if case.op is not None]
    if limit and len(cases) > limit:
        cases = random.Random(0).sample(cases, limit)
    # Runs of one deployment follow each other: its kernels are predicted once.
    cases.sort(key=lambda case: (case.device, str(case.op).partition(" of ")[2]))
    found = []
    for number, case in enumerate(cases):
        if number % 20 == 0:
            print(f"\r{number}/{len(cases)}", end="", file=sys.stderr)
        assert case.op is not None
        device = arch.load(case.device)
        try:
            seconds = case.op.predict(device).seconds
        except WavecastError as error:
            reasons[error.message] += 1
            continue
        assert isinstance(case.op, ServedModel)
        metric = case.op.op_class.removeprefix("serving ")
        found.append((metric, device.vendor, case.labels["engine"], case.device, case.group,
                      setup(case.op), np.log(case.seconds / seconds), case.seconds,
                      *serving_baselines.of_run(case.op, device, case.seconds)))  # fmt: skip
    print(file=sys.stderr)
    for reason, count in reasons.most_common():
        print(f"not predicted: {count:5}  {reason}")
    columns = ["metric", *FIELDS, "setup", "log", "seconds", "roofline", "configuration"]
    return pd.DataFrame(found, columns=columns)


def setup(op: Op) -> str:
    """What runs on two chips have in common for their errors to be a pair."""
    assert isinstance(op, ServedModel)
    load, how = op.load, op.deployment
    return f"{how.dtype} {how.parallel} {load.prompt} {load.output} {load.concurrency}"


def ends(part: pd.DataFrame, distance: str) -> tuple[float, float] | None:
    """The interval of residuals at a distance; None where too few groups were measured. Where one
    vendor was measured, `any` is what other models tell."""
    groups, rows = {}, {}
    for key, own in part.groupby(list(FIELDS)):
        name = " ".join(_names(key))
        rows[name] = own.iloc[0]
        groups[name] = own.log.to_numpy(), np.ones(len(own))

    fields = DISTANCES[distance]
    if distance == "any" and part.vendor.nunique() == 1:
        fields = DISTANCES["chip"]

    def apart(name: str, other: str) -> bool:
        return all(rows[name][field] != rows[other][field] for field in fields)

    return conformal.interval(groups, COVERAGE, LEAST, apart)


def parts(
    known: pd.DataFrame, metric: str, vendor: str, engine: str, gpu: str
) -> Iterator[tuple[str, pd.DataFrame]]:
    """The runs that tell about a prediction, by distance, the nearest first."""
    every = known[known.metric == metric]
    own = every[every.vendor == vendor]
    same = own[own.engine == engine]
    if (same.gpu == gpu).any():
        yield "chip", same
    yield "engine", same
    yield "vendor", own
    yield "any", every


def covered(found: pd.DataFrame) -> pd.Series:
    """For every run whether it is in the interval from the runs of other models; NaN without."""
    within = pd.Series(np.nan, found.index)
    for model, own in found.groupby("model"):
        others, known = found[found.model != model], {}
        for (metric, *where), same in own.groupby(["metric", *FIELDS]):
            for distance, part in parts(others, metric, *where[:3]):
                key = (
                    metric,
                    distance,
                    *(where[:2] if distance in ("chip", "engine") else where[:1]),
                )
                if key not in known:
                    known[key] = ends(part, distance)
                if (reach := known[key]) is not None:
                    low, high = min(0.0, reach[0]), max(0.0, reach[1])
                    within[same.index] = same.log.between(low, high).astype(float)
                    break
    return within


def coverage(part: pd.DataFrame) -> float:
    """Share of runs that are `within` their intervals; models weigh the same."""
    return float(part.groupby("model").within.mean().mean())


def scores(found: pd.DataFrame, keys: Sequence[str]) -> list[dict[str, object]]:
    """A row per group of runs: its errors, its coverage and the errors of baselines, as shares.
    `found` has `within` (`covered`) and the residuals of baselines."""
    lines = []
    for key, part in found.groupby(list(keys)):
        error = np.abs(np.expm1(-part.log))
        line: dict[str, object] = dict(zip(keys, _names(key), strict=True))
        line |= {"runs": len(part), "models": part.model.nunique()}
        figures = {
            "median": error.median(),
            "p90": error.quantile(0.9),
            "bias": np.expm1(-part.log.median()),
            "in interval": coverage(part),
        }
        for name in serving_baselines.NAMES:
            figures[name] = np.abs(np.expm1(-part[f"{name} log"])).median()
        lines.append(line | {name: round(float(value), 3) for name, value in figures.items()})
    return lines


def scored(found: pd.DataFrame) -> pd.DataFrame:
    """The runs with what `scores` needs."""
    found = found.reset_index(drop=True)
    found["within"] = covered(found)
    base = serving_baselines.residuals(found)
    return found.join(base.add_suffix(" log"))


def report(found: pd.DataFrame) -> None:
    """Print errors by GPU, engine and model, and correlations of pairs. `found` is `scored`."""
    by = ["metric", "gpu", "engine", "model"]
    for keys in (by[:2], by[:3], by):
        print(pd.DataFrame(scores(found, keys)).to_string(index=False), end="\n\n")
    for (metric, kind), part in pairs(found).groupby(["metric", "kind"]):
        print(f"ratios of {metric}, {kind}: {len(part)} pairs, half {ratio_half(part) or 0:.3f}, "
              f"in interval {ratio_coverage(part):.0%}")  # fmt: skip


def pairs(found: pd.DataFrame) -> pd.DataFrame:
    """A row per pair of runs of one configuration on two chips: the metric, what they have in
    common (a key of `KINDS`), the model, and both residuals."""
    lines = []
    for (metric, model, _), same in found.groupby(["metric", "model", "setup"]):
        each = same.groupby(["vendor", "gpu", "engine"]).log.median().reset_index()
        for one, two in combinations([row for _, row in each.iterrows()], 2):
            if one.gpu != two.gpu:
                kind = next(name for name, test in KINDS.items() if test(one, two))
                lines.append((metric, kind, model, one["log"], two["log"]))
    return pd.DataFrame(lines, columns=["metric", "kind", "model", "one", "two"])


def correlation(part: pd.DataFrame) -> float:
    """Of both residuals of pairs around zero, in which every model weighs the same: the share of
    the error that two systems have in common. Not below 0."""
    weight = 1 / part.groupby("model").one.transform("size")
    both = (weight * part.one * part.two).sum()
    squares = (weight * part.one**2).sum() * (weight * part.two**2).sum()
    return max(0.0, float(both / np.sqrt(squares)))


def ratio_half(part: pd.DataFrame) -> float | None:
    """Half the interval of log(measured / predicted) of a ratio of two systems, from pairs; models
    count equally, and which system is first does not matter. None with too few models."""
    apart = part.one - part.two
    groups = {}
    for model, own in apart.groupby(part.model):
        both = np.concatenate([own.to_numpy(), -own.to_numpy()])
        groups[str(model)] = both, np.ones(len(both))
    reach = conformal.interval(groups, COVERAGE, LEAST)
    return None if reach is None else max(-reach[0], reach[1])


def ratio_coverage(part: pd.DataFrame) -> float:
    """Share of pairs whose ratio is in the interval from pairs of the other models; models weigh
    the same. NaN with too few models."""
    shares = []
    for model, own in part.groupby("model"):
        half = ratio_half(part[part.model != model])
        if half is not None:
            shares.append(float(((own.one - own.two).abs() <= half).mean()))
    return float(np.mean(shares)) if shares else float("nan")


def rows_of(found: pd.DataFrame) -> Iterator[str]:
    """The rows of `residuals.toml`."""
    for keys, distances in (
        (["metric", "vendor", "engine"], ("chip", "engine")),
        (["metric", "vendor"], ("vendor",)),
        (["metric"], ("any",)),
    ):
        for key, part in found.groupby(keys):
            names = [*_names(key), "", ""][:3]
            for distance in distances:
                reach = ends(part, distance)
                if reach is None:
                    continue
                chips = " ".join(sorted(part.gpu.unique())) if distance == "chip" else ""
                texts = ", ".join(f'"{name}"' for name in [*names, distance, chips])
                yield (f"  [{texts}, {reach[0]:.3f}, {reach[1]:.3f}, {len(part)}, "
                       f"{part.model.nunique()}],")  # fmt: skip


def pair_rows(found: pd.DataFrame) -> Iterator[str]:
    """The errors of ratios of `residuals.toml`, where two models or more tell."""
    for (metric, kind), part in pairs(found).groupby(["metric", "kind"]):
        if part.model.nunique() < 2:
            continue
        half = ratio_half(part) or 0.0
        yield (f'  ["{metric}", "{kind}", {correlation(part):.2f}, {half:.3f}, {len(part)}, '
               f"{part.model.nunique()}],")  # fmt: skip


def write(found: pd.DataFrame) -> None:
    """Write `residuals.toml`, and `serving.json`, from which docs/accuracy.md has its table.
    `found` is `scored`."""
    lines = scores(found, ["metric", "gpu", "engine"])
    SERVING.write_text(json.dumps(lines, indent=0).replace("NaN", "null") + "\n", encoding="utf-8")
    head = (
        "# Intervals of log(measured / predicted) of the times of serving runs, written by\n"
        "# `python -m calibration.systems DATA --write`. Columns: metric (output: time per token\n"
        "# of all requests), vendor, engine (empty: all), distance, chips of that distance, low\n"
        "# and high end, runs, models. `pairs`: metric, what two systems have in common,\n"
        "# correlation of their errors, half the interval of the log of their ratio (0: too few\n"
        "# models), pairs of runs, models.\n"
    )
    text = head + "rows = [\n" + "\n".join(rows_of(found)) + "\n]\n"
    text += "pairs = [\n" + "\n".join(pair_rows(found)) + "\n]\n"
    TARGET.write_text(text, encoding="utf-8")


def _names(key: object) -> Sequence[str]:
    return [str(part) for part in key] if isinstance(key, tuple) else [str(key)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--gpu", default="", help="only runs of this device")
    parser.add_argument("--limit", type=int, help="about this many runs, always the same ones")
    parser.add_argument(
        "--write", action="store_true", help="write wavecast/systems/residuals.toml"
    )
    options = parser.parse_args()
    found = scored(residuals(options.file, options.gpu, options.limit))
    report(found)
    if options.write:
        write(found)


if __name__ == "__main__":
    main()
