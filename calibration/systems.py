"""Scores predictions for whole models against measured serving runs, and writes their residuals.

    python -m calibration.systems DATA/systems/serving.parquet [--gpu MI355X] [--limit N] [--write]

Nothing is fitted to a model: names of runs are translated to models, engines and formats, and every
run is predicted. Errors are by GPU, engine and model; every model counts equally in the residuals
that `--write` stores in `wavecast/systems/residuals.toml`. Coverage is that of each model by the
residuals of the other models.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from wavecast.arch import load as load_device
from wavecast.arch.systems import System
from wavecast.errors import WavecastError
from wavecast.systems import huggingface
from wavecast.systems.answer import Deployment, ModelOnSystem
from wavecast.systems.intervals import METRICS
from wavecast.systems.parallel import Parallelism
from wavecast.systems.serving import Load, serve

TARGET = Path(__file__).parents[1] / "wavecast" / "systems" / "residuals.toml"
QUANTILES = (0.1, 0.9)
FEWEST_MODELS = 2

MODELS = (
    ("deepseek-v3.2", "DeepSeek-V3.2"),
    ("deepseek-v4", ""),  # another architecture
    ("deepseek-r1|deepseek-v3", "DeepSeek-R1"),
    ("qwen3.5-397b", "Qwen3.5-397B-A17B"),
    ("qwen3-next", "Qwen3-Next-80B-A3B"),
    ("qwen3-235b", "Qwen3-235B-A22B"),
    ("qwen3-30b", "Qwen3-30B-A3B"),
    ("qwen3-32b", "Qwen3-32B"),
    ("glm-4.[5-7]", "GLM-4.5"),
    ("glm-5", "GLM-5"),
    ("maverick", "Llama-4-Maverick"),
    (r"llama.*70b", "Llama-3.3-70B"),
    (r"llama.*\b8b", "Llama-3.1-8B"),
)
"""Patterns of names of runs, and the model of `models.toml` they mean."""
ENGINES = (("atom", "atom"), ("vllm", "vllm"), ("sglang", "sglang"), ("trt|tensorr", "trtllm"))
GPUS = {"MI355X": "mi355x", "MI300X": "mi300x", "MI325X": "mi325x", "H100": "h100_sxm",
        "H200": "h200", "B200": "b200", "GB200": "b200"}  # fmt: skip
OTHER = r"DPA|TBO|PD-|-dp\d"
"""Runs with settings that a row does not state in full."""
MEASURED = {
    "ttft": ("mean_ttft", "median_ttft", 1e-3),
    "tpot": ("mean_tpot", "median_tpot", 1e-3),
    "output_rate": ("output_throughput", "output_throughput", 1.0),
}


def runs(path: Path) -> pd.DataFrame:
    """The runs of one node, without speculation or disaggregation, whose model is known."""
    rows = pd.read_parquet(path)
    rows = rows[rows.disagg.eq("false") & ~rows.spec_decoding.isin(["mtp", "dspark"])]
    rows = rows[~rows.model.str.contains(OTHER)]
    for name in ("isl", "osl", "batch_or_concurrency"):
        rows = rows[rows[name].gt(0)]
    rows = rows[rows.mean_tpot.notna() | rows.median_tpot.notna() | rows.output_throughput.notna()]
    rows = rows.assign(
        known=rows.model.map(lambda name: _first(MODELS, name)),
        engine=rows.framework.map(lambda name: _first(ENGINES, name)),
        device=rows.gpu.map(GPUS),
        tensor=rows.model.str.extract(r"-tp(\d)")[0]
        .astype(float)
        .fillna(rows.tp)
        .fillna(rows.n_gpus)
        .fillna(1),
        dtype=[_dtype(name, text) for name, text in zip(rows.model, rows.precision, strict=True)],
    )
    known = rows.known.ne("") & rows.engine.ne("") & rows.device.notna()
    return rows[known & rows.tensor.le(8)]


def predicted(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with predictions of every metric, or `error`."""
    found = []
    for number, row in enumerate(rows.itertuples()):
        print(f"\r{number + 1}/{len(rows)}", end="", file=sys.stderr)
        try:
            spread = row.ep if row.ep and row.ep > 1 else 1
            ready = _ready(
                row.known, row.device, int(row.tensor), spread > 1, row.dtype, row.engine
            )
            load = Load(int(row.isl), int(row.osl), max(1, int(row.batch_or_concurrency)))
            served = serve(ready.model, ready.memory, load)
        except WavecastError as error:
            found.append((np.nan, np.nan, np.nan, error.message))
            continue
        found.append((served.ttft.mean, served.tpot.mean, served.output_rate, ""))
    print(file=sys.stderr)
    return rows.assign(**dict(zip((*METRICS, "error"), zip(*found, strict=True), strict=True)))


def residuals(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per run and metric: log(measured / predicted)."""
    parts = []
    for metric, (first, second, unit) in MEASURED.items():
        measured = rows[first].fillna(rows[second]) * unit
        part = rows[["known", "engine", "device", "gpu", "dtype", "source_repo"]].assign(
            metric=metric,
            vendor=np.where(rows.device.str.startswith("mi"), "amd", "nvidia"),
            log=np.log(measured / rows[metric]),
        )
        parts.append(part[np.isfinite(part.log)])
    return pd.concat(parts)


def quantiles(part: pd.DataFrame) -> tuple[float, float]:
    """Quantiles of residuals in which every model weighs the same."""
    weight = 1 / part.groupby("known").log.transform("size").to_numpy()
    order = np.argsort(part.log.to_numpy())
    logs, share = part.log.to_numpy()[order], np.cumsum(weight[order])
    low, high = (float(np.interp(q * share[-1], share, logs)) for q in QUANTILES)
    return low, high


def coverage(part: pd.DataFrame) -> float:
    """Share of runs in the interval from the residuals of the other models, models weighing the
    same."""
    shares = []
    for _, own in part.groupby("known"):
        others = part[part.known != own.known.iloc[0]]
        if not len(others):
            continue
        low, high = quantiles(others)
        shares.append(float(own.log.between(low, high).mean()))
    return float(np.mean(shares)) if shares else float("nan")


def report(found: pd.DataFrame) -> None:
    """Print errors by GPU, engine and model."""
    for keys in (
        ["metric", "gpu"],
        ["metric", "gpu", "engine"],
        ["metric", "gpu", "engine", "known"],
    ):
        lines = []
        for key, part in found.groupby(keys):
            error = np.abs(np.expm1(-part.log))
            bias = np.expm1(-part.log.median())
            lines.append((*key, len(part), f"{error.median():.1%}", f"{error.quantile(0.9):.1%}",
                          f"{bias:+.1%}", f"{coverage(part):.0%}"))  # fmt: skip
        columns = [*keys, "runs", "median", "p90", "bias", "in interval"]
        print(pd.DataFrame(lines, columns=columns).to_string(index=False), end="\n\n")


def rows_of(found: pd.DataFrame) -> Iterable[str]:
    """The rows of `residuals.toml`."""
    groups = (["metric", "vendor", "engine"], ["metric", "vendor"], ["metric"])
    for keys in groups:
        for key, part in found.groupby(keys):
            models = part.known.nunique()
            if models < FEWEST_MODELS:
                continue
            low, high = quantiles(part)
            names = [*key, "", ""][:3]
            values = ", ".join(f'"{name}"' for name in names)
            yield f"  [{values}, {low:.3f}, {high:.3f}, {len(part)}, {models}],"


def write(found: pd.DataFrame) -> None:
    """Write `residuals.toml`."""
    head = (
        "# Quantiles of log(measured / predicted) of serving runs, written by\n"
        "# `python -m calibration.systems DATA --write`. Columns: metric, vendor, engine (empty:\n"
        "# all), 10 %, 90 %, runs, models. Every model weighs the same.\n"
    )
    TARGET.write_text(head + "rows = [\n" + "\n".join(rows_of(found)) + "\n]\n", encoding="utf-8")


@cache
def _ready(
    model: str, device: str, tensor: int, spread: bool, dtype: str, engine: str
) -> ModelOnSystem:
    name, values = huggingface.load(model)
    stored = bool(values.get("quantization_config")) and dtype == "fp8"
    deployment = Deployment(
        dtype="" if stored else dtype,
        parallel=Parallelism(tensor=tensor, expert=tensor if spread else 1),
        engine=engine,
    )
    system = System(f"{tensor}x {device}", load_device(device), tensor)
    return ModelOnSystem(name, values, system, deployment)


def _first(patterns: Iterable[tuple[str, str]], name: str) -> str:
    return next((to for pattern, to in patterns if re.search(pattern, name.lower())), "")


def _dtype(name: str, precision: str | None) -> str:
    text = f"{name} {precision or ''}".lower()
    for pattern, dtype in (("nvfp4", "nvfp4"), ("fp4", "mxfp4"), ("fp8", "fp8"), ("bf16", "bf16")):
        if pattern in text:
            return dtype
    return ""


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--gpu", help="only runs of this GPU")
    parser.add_argument("--limit", type=int, help="about this many runs, always the same ones")
    parser.add_argument(
        "--write", action="store_true", help="write wavecast/systems/residuals.toml"
    )
    options = parser.parse_args()
    rows = runs(options.file)
    if options.gpu:
        rows = rows[rows.gpu == options.gpu]
    if options.limit and len(rows) > options.limit:
        rows = rows.sample(options.limit, random_state=0)
    rows = predicted(rows)
    for message, count in rows.error[rows.error != ""].value_counts().items():
        print(f"not predicted: {count} runs: {message}")
    found = residuals(rows)
    report(found)
    if options.write:
        write(found)


if __name__ == "__main__":
    main()
