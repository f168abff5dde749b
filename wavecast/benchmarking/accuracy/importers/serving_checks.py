"""What a row of serving runs cannot be: rows that repeat others, that their GPUs cannot have
reached, or whose figures a table computes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any, Final

from wavecast import arch
from wavecast.dtypes import element_bytes
from wavecast.errors import Unpredictable
from wavecast.systems import huggingface
from wavecast.systems.answer import Deployment
from wavecast.systems.serving import Load

SERIES: Final = ("source_repo", "file", "gpu", "framework", "model", "precision")
"""Columns that the runs of a series have in common."""
CONFIGURATION: Final = (
    *SERIES,
    *("n_gpus", "tp", "dp", "ep", "isl", "osl", "spec_decoding", "disagg"),
)
"""Columns that the runs of a configuration have in common."""
_MATRIX: Final = ("bf16", "fp8", "fp4")
"""Dtypes whose rates bound what a GPU computes."""
_DERIVED: Final = 1e-3
"""How near a throughput is to the requests at once over the time per token where a table computes
it: it would be that of prompts without time (Little's law)."""
_FALLS: Final = 1.5
"""How much longer a token may take with fewer requests at once than with more. Between repeats of
a run it varies by a few percent; runs with few requests have larger shares of warm-up."""


class ImpossibleRun(Unpredictable):
    """A row states GPUs that cannot have the weights."""


class TooFast(Unpredictable):
    """A row states more FLOP/s than its GPUs have."""


def key_of(row: Mapping[str, Any], names: Sequence[str]) -> tuple[str, ...]:
    """The values of columns, which runs are grouped by."""
    return tuple(str(row.get(name, "")) for name in names)


def is_disaggregated(row: Mapping[str, Any]) -> bool:
    """Whether a run is disaggregated."""
    return str(row.get("disagg", "false")).lower() == "true"


def repeats(records: Sequence[Mapping[str, Any]]) -> set[int]:
    """The rows of disaggregated runs whose latencies are those of a row that states more: tables
    collect runs that others publish with their GPUs."""
    first: set[tuple[object, ...]] = set()
    repeated = set()
    for number, row in sorted(enumerate(records), key=lambda pair: not pair[1].get("n_gpus")):
        if not is_disaggregated(row) or not row.get("mean_tpot") or not row.get("mean_ttft"):
            continue
        names = ("gpu", "isl", "osl", "batch_or_concurrency")
        times = (round(float(row[name]), 3) for name in ("mean_ttft", "mean_tpot"))
        run = (*(row.get(name) for name in names), *times)
        if run in first:
            repeated.add(number)
        first.add(run)
    return repeated


def mixtures(records: Iterable[Mapping[str, Any]]) -> set[tuple[str, ...]]:
    """The configurations whose time per token falls with the requests at once by more than
    `_FALLS`: their rows are not of one deployment, or not of closed loops. Rows of disaggregated
    runs do not say their configurations."""
    times: dict[tuple[str, ...], dict[float, list[float]]] = {}
    for row in records:
        if not is_disaggregated(row) and row.get("mean_tpot") and row.get("batch_or_concurrency"):
            runs = times.setdefault(key_of(row, CONFIGURATION), {})
            runs.setdefault(row["batch_or_concurrency"], []).append(row["mean_tpot"])
    return {
        key
        for key, runs in times.items()
        if (medians := [median(runs[count]) for count in sorted(runs)])
        and any(time > _FALLS * min(medians[at:]) for at, time in enumerate(medians))
    }


def has_derived_rate(row: Mapping[str, Any]) -> bool:
    """Whether the output tokens per second are computed from the time per token."""
    rate, each = row.get("output_throughput"), row.get("mean_tpot")
    if not is_disaggregated(row) or not rate or not each:
        return False
    return abs(rate * each * 1e-3 / float(row["batch_or_concurrency"]) - 1) < _DERIVED


def replace_throughput(
    metrics: dict[str, tuple[float, str]], row: Mapping[str, Any], deployment: Deployment
) -> None:
    """The throughput of a disaggregated run that its table computes is that of a GPU that decodes,
    which it has as well, times their number; without it the run has no throughput."""
    del metrics["output"]
    each, pools = row.get("output_throughput_per_gpu"), deployment.disaggregation
    if each and pools is not None:
        metrics["output"] = 1 / (float(each) * pools.decode * deployment.parallel.gpus), "mean"


def check_weights(model: str, device: str, deployment: Deployment) -> None:
    """Raises ImpossibleRun where the weights in the format that the row states need more memory
    than its GPUs have."""
    if not deployment.dtype:
        return
    parameters = huggingface.read(huggingface.models()[model], model).parameters
    weights = parameters * element_bytes(deployment.dtype)
    memory = deployment.parallel.gpus * arch.load(device).facts.integer("mem_size", "B")
    if weights > memory:
        raise ImpossibleRun(
            f"the row states {weights / 1e9:.3g} GB of weights on {memory / 1e9:.3g} GB"
        )


def check_rate(
    metrics: Mapping[str, tuple[float, str]],
    model: str,
    device: str,
    load: Load,
    deployment: Deployment,
) -> None:
    """Raises TooFast for a closed loop that computes more than its GPUs can: by Little's law
    the requests per second are those at once over the time of one."""
    if "ttft" not in metrics or "tpot" not in metrics:
        return
    seconds = metrics["ttft"][0] + metrics["tpot"][0] * (load.output - 1)
    architecture = huggingface.read(huggingface.models()[model], model)
    tokens = load.concurrency / seconds * (load.prompt + load.output)
    pools = deployment.disaggregation
    gpus = pools.gpus(deployment.parallel) if pools else deployment.parallel.gpus
    rate = 2 * architecture.active_matrices * tokens / gpus
    chip = arch.load(device)
    peaks = [chip.peak_flops(name) for name in _MATRIX]
    peak = max((flops.number for flops in peaks if flops is not None), default=math.inf)
    if rate > peak:
        raise TooFast(
            f"the row states {rate / 1e15:.3g} PFLOP/s of a {device}, which has {peak / 1e15:.3g}"
        )


__all__ = [
    "CONFIGURATION",
    "SERIES",
    "ImpossibleRun",
    "TooFast",
    "check_rate",
    "check_weights",
    "has_derived_rate",
    "is_disaggregated",
    "key_of",
    "mixtures",
    "repeats",
    "replace_throughput",
]
