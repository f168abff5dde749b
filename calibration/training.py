"""Scores predicted training steps against measured ones, and writes their residuals.

    python -m calibration.training DATA/mlperf_training.parquet DATA/published.parquet
        [--write] [--fit]

`--fit` prints the error over a grid of the two fitted coefficients (`kernel_slowdown` and the
overlap of split products, `assumptions.toml`) on MLPerf's LoRA benchmark alone; all other models
are left out of the fit. `--write` stores the residuals in `systems/training/residuals.toml`, where
every model counts equally.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd

from calibration import conformal
from wavecast import arch
from wavecast.arch.systems import system
from wavecast.benchmarking.accuracy.cases import Case
from wavecast.benchmarking.accuracy.importers.training import TrainingRuns
from wavecast.errors import WavecastError
from wavecast.systems import huggingface
from wavecast.systems.training import assumptions as numbers
from wavecast.systems.training import step as steps
from wavecast.systems.training.assumptions import Overlap
from wavecast.systems.training.op import TrainedModel

TARGET = Path(__file__).parents[1] / "wavecast" / "systems" / "training" / "residuals.toml"
FIT_MODEL = "Llama-2-70B"
FEWEST_MODELS = 2
COVERAGE = 0.8
SLOWDOWNS = np.arange(1.10, 1.36, 0.03)
OVERLAPS = np.arange(0.0, 1.01, 0.25)


def step_seconds(op: TrainedModel) -> tuple[float, float, float]:
    """A step with the assumed, the most and the least overlap of communication."""
    name, values, *_ = huggingface.load(op.model)
    model = steps.TrainingModel(huggingface.read(values, name), op.setup, system(op.machine))
    found = []
    for end in ("value", "high", "low"):
        shares = {key: getattr(known, end) for key, known in model.overlaps().items()}
        chosen = {key: Overlap(share, share, share) for key, share in shares.items()}
        found.append(model.step(chosen).seconds)
    return found[0], found[1], found[2]


def spread(part: pd.DataFrame) -> float:
    """Half the conformal interval of the residuals, models as groups (`calibration.conformal`).
    With few models the sign of the next one's bias is not known, so the ends are equal."""
    groups = {}
    for model, own in part.groupby("model"):
        both = np.concatenate([own.log.to_numpy(), -own.log.to_numpy()])
        groups[str(model)] = both, np.ones(len(both))
    ends = conformal.interval(groups, COVERAGE, FEWEST_MODELS)
    if ends is None:  # one model is left
        one = np.abs(part.log.to_numpy())
        return float(np.quantile(one, COVERAGE))
    return max(-ends[0], ends[1])


def coverage(part: pd.DataFrame) -> float:
    """Share of runs in the interval from the residuals of the other models, widened as
    `training.intervals` does; models weigh the same. NaN for a single model."""
    shares = []
    for model, own in part.groupby("model"):
        if part.model.nunique() > 1:
            size = spread(part.loc[part.model != model])
            least = np.minimum(own.predicted * np.exp(-size), own.least)
            most = np.maximum(own.predicted * np.exp(size), own.most)
            shares.append(float(own.measured.between(least, most).mean()))
    return float(np.mean(shares)) if shares else float("nan")


def cases(paths: Iterable[Path]) -> tuple[list[Case], Counter[str]]:
    """Cases that can be predicted, equal ones as one with the median time; reasons of others."""
    every = [case for path in paths for case in TrainingRuns().cases(pd.read_parquet(path))]
    reasons = Counter(case.reason for case in every if case.op is None)
    equal: dict[tuple[object, str], list[Case]] = {}
    for case in every:
        if case.op is not None:
            equal.setdefault((case.op, case.device), []).append(case)
    return [
        replace(found[0], seconds=float(np.median([case.seconds for case in found])))
        for found in equal.values()
    ], reasons


def residuals(known: Iterable[Case], reasons: Counter[str]) -> pd.DataFrame:
    """A row per case with `log`, the logarithm of measured over predicted time."""
    found = []
    for case in known:
        assert isinstance(case.op, TrainedModel)
        device = arch.load(case.device)
        try:
            seconds, least, most = step_seconds(case.op)
        except WavecastError as error:
            reasons[error.message] += 1
            continue
        name, values, *_ = huggingface.load(case.op.model)
        sort = "sparse" if huggingface.read(values, name).sparse else "dense"
        found.append((device.vendor, sort, case.device, case.op.model, case.op.setup.gpus,
                      str(case.op.setup), case.seconds, seconds, least, most,
                      np.log(case.seconds / seconds)))  # fmt: skip
    columns = ["vendor", "sort", "gpu", "model", "gpus", "setup", "measured", "predicted",
               "least", "most", "log"]  # fmt: skip
    return pd.DataFrame(found, columns=columns)


def report(found: pd.DataFrame, reasons: Counter[str]) -> None:
    """Print every run, and errors by GPU and model."""
    shown = found.assign(error=[f"{np.expm1(-log):+.1%}" for log in found.log])
    print(shown.drop(columns=["least", "most", "log"]).round(3).to_string(index=False), end="\n\n")
    for keys in (["sort"], ["gpu"], ["gpu", "model"]):
        lines = []
        for key, part in found.groupby(keys):
            error = np.abs(np.expm1(-part.log))
            lines.append((*(key if isinstance(key, tuple) else (key,)), len(part),
                          f"{error.median():.1%}", f"{error.quantile(0.9):.1%}",
                          f"{np.expm1(-part.log.median()):+.1%}",
                          f"{coverage(part):.0%}"))  # fmt: skip
        columns = [*keys, "runs", "median", "p90", "bias", "in interval"]
        print(pd.DataFrame(lines, columns=columns).to_string(index=False), end="\n\n")
    for reason, count in reasons.most_common():
        print(f"not predicted: {count:5}  {reason}")


def fit(known: Sequence[Case]) -> None:
    """Print the mean absolute logarithm of the error on `FIT_MODEL` over the grid."""
    own = []
    for case in known:
        op = case.op
        if isinstance(op, TrainedModel) and op.model == FIT_MODEL and op.setup.gpus <= 8:
            own.append(case)
    table = []
    for slowdown in SLOWDOWNS:
        line = []
        for overlap in OVERLAPS:
            base = numbers.assumptions()
            overlaps = {**base.overlap, "tensor_split": Overlap(overlap, overlap, overlap)}
            tried = replace(base, kernel_slowdown=float(slowdown), overlap=overlaps)
            with mock.patch.object(steps, "assumptions", lambda tried=tried: tried):
                frame = residuals(own, Counter())
            by_gpu = frame.assign(error=frame.log.abs()).groupby(["gpu", "setup"]).error.mean()
            line.append(float(by_gpu.mean()))
        table.append(line)
    print(pd.DataFrame(table, SLOWDOWNS.round(2), OVERLAPS).round(3).to_string())


def rows_of(found: pd.DataFrame) -> Iterable[str]:
    """The rows of `residuals.toml`."""
    for vendor, part in [*found.groupby("vendor"), ("", found)]:
        for sort, runs in part.groupby("sort"):
            models = runs.model.nunique()
            if models < FEWEST_MODELS:
                continue
            yield f'  ["{vendor}", "{sort}", {spread(runs):.3f}, {len(runs)}, {models}],'


def write(found: pd.DataFrame) -> None:
    """Write `residuals.toml`."""
    head = (
        "# Half the 80 % intervals of log(measured / predicted) of the times of training steps,\n"
        "# written by `python -m calibration.training DATA --write`. Columns: vendor (empty:\n"
        "# all), dense or sparse (mixture of experts), half, runs, models, which weigh the same.\n"
    )
    TARGET.write_text(head + "rows = [\n" + "\n".join(rows_of(found)) + "\n]\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--fit", action="store_true", help="print errors over the coefficients")
    parser.add_argument("--write", action="store_true", help="write residuals.toml")
    options = parser.parse_args()
    known, reasons = cases(options.files)
    if options.fit:
        fit(known)
        return
    found = residuals(known, reasons)
    report(found, reasons)
    if options.write:
        write(found)


if __name__ == "__main__":
    main()
