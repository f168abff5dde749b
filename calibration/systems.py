"""Scores predictions for whole models against measured serving runs, and writes their residuals.

    python -m calibration.systems DATA/systems/serving.parquet [--gpu mi355x] [--limit N] [--write]

Nothing is fitted to a model, so all errors are those of models that were left out. Every model
counts equally in the residuals that `--write` stores in `wavecast/systems/residuals.toml`. Coverage
is that of each model by the residuals of the others.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from wavecast import arch
from wavecast.bench.accuracy.importers.serving import Serving
from wavecast.errors import WavecastError

TARGET = Path(__file__).parents[1] / "wavecast" / "systems" / "residuals.toml"
QUANTILES = (0.1, 0.9)
FEWEST_MODELS = 2


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
        metric = case.op.op_class.removeprefix("serving ")
        found.append((metric, device.vendor, case.labels["engine"], case.device, case.group,
                      case.source.partition(" ")[0], np.log(case.seconds / seconds)))  # fmt: skip
    print(file=sys.stderr)
    for reason, count in reasons.most_common():
        print(f"not predicted: {count:5}  {reason}")
    columns = ["metric", "vendor", "engine", "gpu", "model", "source", "log"]
    return pd.DataFrame(found, columns=columns)


def quantiles(part: pd.DataFrame) -> tuple[float, float]:
    """Quantiles of residuals in which every model weighs the same."""
    weight = 1 / part.groupby("model").log.transform("size").to_numpy()
    order = np.argsort(part.log.to_numpy())
    logs, share = part.log.to_numpy()[order], np.cumsum(weight[order])
    low, high = (float(np.interp(q * share[-1], share, logs)) for q in QUANTILES)
    return low, high


def coverage(part: pd.DataFrame) -> float:
    """Share of runs in the interval from the residuals of the other models; models weigh the same.
    NaN for a single model."""
    shares = []
    for model, own in part.groupby("model"):
        others = part[part.model != model]
        if len(others):
            shares.append(float(own.log.between(*quantiles(others)).mean()))
    return float(np.mean(shares)) if shares else float("nan")


def report(found: pd.DataFrame) -> None:
    """Print errors by GPU, engine and model."""
    by = ["metric", "gpu", "engine", "model"]
    for keys in (by[:2], by[:3], by):
        lines = []
        for key, part in found.groupby(keys):
            error = np.abs(np.expm1(-part.log))
            lines.append((*_names(key), len(part), f"{error.median():.1%}",
                          f"{error.quantile(0.9):.1%}", f"{np.expm1(-part.log.median()):+.1%}",
                          f"{coverage(part):.0%}"))  # fmt: skip
        columns = [*keys, "runs", "median", "p90", "bias", "in interval"]
        print(pd.DataFrame(lines, columns=columns).to_string(index=False), end="\n\n")


def rows_of(found: pd.DataFrame) -> Iterable[str]:
    """The rows of `residuals.toml`."""
    for keys in (["metric", "vendor", "engine"], ["metric", "vendor"], ["metric"]):
        for key, part in found.groupby(keys):
            models = part.model.nunique()
            if models < FEWEST_MODELS:
                continue
            names = ", ".join(f'"{name}"' for name in [*_names(key), "", ""][:3])
            low, high = quantiles(part)
            yield f"  [{names}, {low:.3f}, {high:.3f}, {len(part)}, {models}],"


def write(found: pd.DataFrame) -> None:
    """Write `residuals.toml`."""
    head = (
        "# Quantiles of log(measured / predicted) of the times of serving runs, written by\n"
        "# `python -m calibration.systems DATA --write`. Columns: metric (output: time per token\n"
        "# of all requests), vendor, engine (empty: all), 10 %, 90 %, runs, models. Every model\n"
        "# weighs the same.\n"
    )
    TARGET.write_text(head + "rows = [\n" + "\n".join(rows_of(found)) + "\n]\n", encoding="utf-8")


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
    found = residuals(options.file, options.gpu, options.limit)
    report(found)
    if options.write:
        write(found)


if __name__ == "__main__":
    main()
