"""Runs of coding agents: long prompts that grow from request to request, most of them cached.

A run is scored where it states the share of the GPU's prefix cache and no cache behind it. Agents
wait between requests, so the requests at once are those in flight: the rate of requests times their
latency (Little's law). Lengths are the means, and their distribution is assumed. A rate follows
from the requests in flight and the predicted latency: as many new requests as end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from wavecast import arch
from wavecast.benchmarking.accuracy.cases import Case
from wavecast.benchmarking.accuracy.importers.base import rows, why
from wavecast.benchmarking.accuracy.importers.serving import FORMATS, known_model
from wavecast.errors import Unpredictable, WavecastError
from wavecast.systems import huggingface
from wavecast.systems.answer import Deployment
from wavecast.systems.engine import Setting, releases
from wavecast.systems.op import ServedModel
from wavecast.systems.parallel import Parallelism
from wavecast.systems.serving import Load

if TYPE_CHECKING:
    import pandas as pd

METRICS: Final = {
    "mean_ttft": "ttft",
    "mean_tpot": "tpot",
    "output_throughput_per_gpu": "output",
    "mean_qps": "requests",
}
"""Metric of a row, and of `ServedModel`: latencies in milliseconds, and rates."""
_RATES: Final = ("output", "requests")
_HITS: Final = "server_gpu_cache_hit_rate"
_LENGTHS: Final = ("mean_input_tokens", "mean_output_tokens_actual")
_FLIGHT: Final = ("mean_qps", "mean_e2el")
_LARGEST_SHARE: Final = 0.99
"""The last block of a prompt is computed again."""
_AITER: Final = (("aiter", 1),)
"""InferenceX's scripts of vLLM for AMD set VLLM_ROCM_USE_AITER=1."""


def cases(frame: pd.DataFrame) -> Iterator[Case]:
    """A case per row with a latency of an agent's requests; the reason where it has no op."""
    runs: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in rows(frame):
        if _is_agent(row):
            runs.setdefault(str(row.get("run_id")), {}).setdefault(str(row["metric"]), row)
    for run in runs.values():
        if _LENGTHS[0] in run or _HITS in run:
            yield from _cases(run)


def _is_agent(row: Mapping[str, Any]) -> bool:
    names = (*METRICS, _HITS, *_LENGTHS, *_FLIGHT)
    return row.get("phase") == "serve" and row["metric"] in names


def _cases(run: Mapping[str, Mapping[str, Any]]) -> Iterator[Case]:
    row = next(iter(run.values()))
    model, device, reason, deployment, load = "", "", "", None, None
    try:
        device = arch.load(str(row["gpu"])).id
        model = known_model(str(row["model"]))
        load = _load(run)
        deployment = _deployment(row, model)
    except (WavecastError, KeyError, ValueError, TypeError) as error:
        reason = error.message if isinstance(error, WavecastError) else why(error)
    for name, metric in METRICS.items():
        if name not in run:
            continue
        op = None
        if deployment is not None and load is not None:
            op = ServedModel(metric, model, deployment, load, cached=True)
        yield Case(
            kind="serving",
            op=op,
            device=device,
            seconds=_seconds(run[name], metric),
            group=model,
            labels={"engine": str(row["framework"]), "model": model, "load": "agents"},
            source=f"{row['source_repo']} {row['source_path']}",
            reason=reason,
        )


def _seconds(row: Mapping[str, Any], metric: str) -> float:
    """A latency, or the time per token or request of a rate; NaN for none."""
    value = float(row["value"])
    if metric not in _RATES:
        return value * 1e-3
    gpus = float(row["n_gpus"]) if str(row["metric"]).endswith("per_gpu") else 1.0
    return 1 / (value * gpus) if value > 0 else float("nan")


def _load(run: Mapping[str, Mapping[str, Any]]) -> Load:
    """Raises Unpredictable for a run whose cached share is not that of the GPU's cache, or not
    stated, KeyError for a length or rate that is not stated."""
    values = {name: float(row["value"]) for name, row in run.items()}
    notes = str(next(iter(run.values()))["notes"])
    if "faulty" in notes:
        raise Unpredictable("flagged faulty by its authors")
    if _HITS not in values:
        raise Unpredictable("the run does not state the share of prompts in the prefix cache")
    if "offloading=none" not in notes:
        raise Unpredictable("a cache behind that of the GPU, whose share is not stated")
    prompt, output = (round(values[name]) for name in _LENGTHS)
    rate, latency = (values[name] for name in _FLIGHT)
    return Load(
        prompt,
        output,
        concurrency=max(1, round(rate * latency * 1e-3)),
        prefix=min(_LARGEST_SHARE, values[_HITS]),
        distribution="lognormal",
    )


def _deployment(row: Mapping[str, Any], model: str) -> Deployment:
    """Raises Unpredictable for an engine or image that is not named."""
    engine = str(row["framework"])
    if engine not in ("vllm", "sglang"):
        raise Unpredictable("the run does not name its engine")
    text = f"{row['model']} {row['precision']}".lower()
    dtype = next((dtype for part, dtype in FORMATS if part in text), "")
    dtype = {"nvfp4": "mxfp4"}.get(dtype, dtype)
    stored = huggingface.models()[model].get("quantization_config", {}).get("quant_method")
    settings: tuple[tuple[str, Setting], ...] = _AITER if engine == "vllm" else ()
    return Deployment(
        dtype="" if stored == dtype else dtype,
        parallel=Parallelism(tensor=int(row["tp"])),
        engine=f"{engine}@{_release(engine, str(row.get('software')))}",
        settings=settings,
    )


def _release(engine: str, image: str) -> str:
    """The newest profile that is not newer than an image. Raises Unpredictable without a
    version."""
    match = re.search(r":v(\d+(?:\.\d+)+)", image)
    if not match:
        raise Unpredictable("the run does not name the version of its engine")
    version = _numbers(match[1])
    profiles = releases(engine)
    older = [release for release in profiles if _numbers(release) <= version]
    return older[-1] if older else profiles[0]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


__all__ = ["METRICS", "cases"]
