"""Predictions of served models beside those of aiconfigurator, on the same measured runs.

    python -m calibration.beside_aiconfigurator DATA/systems/serving.parquet --python PYTHON

PYTHON is that of another environment with `aiconfigurator==0.12.0`. Runs are up to `--per` of every
GPU, engine and model on one instance of H200 or B200 without separate sequences per GPU, always the
same ones. Lengths that a benchmark draws from 0.8 times the nominal ones count with their mean.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from pathlib import Path

import pandas as pd

from wavecast import arch
from wavecast.benchmarking.accuracy.importers.serving import Serving
from wavecast.errors import WavecastError
from wavecast.systems.op import ServedModel

WORKER = Path(__file__).with_name("aiconfigurator_worker.py")
PATHS = {
    "DeepSeek-R1": "deepseek-ai/DeepSeek-R1",
    "Llama-3.3-70B": "meta-llama/Meta-Llama-3.1-70B",
    "Llama-3.1-8B": "meta-llama/Meta-Llama-3.1-8B",
    "Qwen3-235B-A22B": "Qwen/Qwen3-235B-A22B-FP8",
}
"""Models that both know."""
DEVICES = ("b200", "h200")


def runs(path: Path, per: int) -> list[dict[str, object]]:
    """The question for aiconfigurator, the measured and the predicted seconds of each run."""
    rows = []
    for case in Serving().cases(pd.read_parquet(path)):
        op = case.op
        if not isinstance(op, ServedModel) or case.device not in DEVICES or op.metric == "output":
            continue
        how = op.deployment
        if how.mode or how.parallel.attention_data or op.model not in PATHS:
            continue
        rows.append((case, op))
    frame = pd.DataFrame({"case": [row[0] for row in rows], "op": [row[1] for row in rows]})
    frame["cell"] = [f"{c.device} {c.labels['engine']} {c.group}" for c in frame.case]
    frame["run"] = [f"{op.deployment} {op.load}" for op in frame.op]
    chosen = frame.drop_duplicates("run").groupby("cell").sample(frac=1, random_state=0)
    keep = set(chosen.groupby("cell").head(per).run)
    return [_run(row.case, row.op, row.cell) for row in frame.itertuples() if row.run in keep]


def _run(case, op: ServedModel, cell: str) -> dict[str, object]:
    load, how = op.load, op.deployment
    mean = (1 + load.shortest) / 2
    begin = time.perf_counter()
    try:
        seconds = op.predict(arch.load(case.device)).seconds
    except WavecastError:
        seconds = None
    return {
        "cell": cell,
        "metric": op.metric,
        "measured": case.seconds,
        "wavecast": seconds,
        "wavecast_took": time.perf_counter() - begin,
        "dtype": how.dtype,
        "question": {
            "model_path": PATHS[op.model],
            "system_name": f"{case.device}_sxm",
            "backend_name": case.labels["engine"],
            "isl": round(load.prompt * mean),
            "osl": round(load.output * mean),
            "batch_size": load.concurrency,
            "tp_size": how.parallel.tensor,
            "moe_ep_size": how.parallel.expert,
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--per", type=int, default=16)
    options = parser.parse_args()
    questions = json.dumps(runs(options.file, options.per))
    answer = subprocess.run(
        [options.python, WORKER], input=questions, capture_output=True, text=True, check=True
    )
    frame = pd.DataFrame(json.loads(answer.stdout.splitlines()[-1]))
    print(frame.why[frame.why != ""].value_counts().to_string())
    frame = frame[frame.wavecast.notna() & frame.aiconfigurator.notna()]
    for name in ("wavecast", "aiconfigurator"):
        frame[name] = (frame[name] / frame.measured - 1).abs()
    frame["gpu"] = frame.cell.str.partition(" ")[0]
    names = ["wavecast", "aiconfigurator"]
    for keys in (["metric"], ["metric", "gpu"], ["metric", "cell"]):
        table = frame.groupby(keys)[names].median()
        table["runs"] = frame.groupby(keys).size()
        print(table.round(3).to_string(), "\n")
    print(frame[["wavecast_took", "aiconfigurator_took"]].median().round(3).to_string())


if __name__ == "__main__":
    main()
