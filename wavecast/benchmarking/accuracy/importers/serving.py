"""Serving runs of whole models: latencies and throughput by concurrency.

A run gives a case per metric. Its model is found by the longest part of its name that
`wavecast.systems` knows; endings such as `-FP8` or `-tp4` are format and parallelism.

A series is the runs of one table with a model, a format and an engine on a GPU. Where one of its
rows states more weights than its GPUs have memory, the table's number of GPUs is not what it seems,
and no row of the series is a case. A row that states more FLOP/s than its GPUs have is not a case;
the prompts of the others of its series are probably cached, and they are counted apart.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from wavecast import arch
from wavecast.benchmarking.accuracy.cases import Case
from wavecast.benchmarking.accuracy.importers.base import Importer, rows, why
from wavecast.benchmarking.accuracy.importers.generated import (
    generated_load,
    generated_settings,
    is_generated,
)
from wavecast.benchmarking.accuracy.importers.pools import load_pools, pools_of
from wavecast.benchmarking.accuracy.importers.recipes import settings_of
from wavecast.benchmarking.accuracy.importers.serving_checks import (
    CONFIGURATION,
    SERIES,
    ImpossibleRun,
    TooFast,
    check_rate,
    check_weights,
    has_derived_rate,
    is_disaggregated,
    key_of,
    mixtures,
    repeats,
    replace_throughput,
)
from wavecast.errors import UnknownName, Unpredictable, WavecastError
from wavecast.systems import huggingface
from wavecast.systems.answer import Deployment
from wavecast.systems.disaggregation import Disaggregation
from wavecast.systems.engine import split_release
from wavecast.systems.op import ServedModel
from wavecast.systems.parallel import Parallelism
from wavecast.systems.serving import Load
from wavecast.systems.speculation import Speculation, speculation

if TYPE_CHECKING:
    import pandas as pd

ENGINES: Final = (
    ("atom-vllm", "atom-vllm"),
    ("atom", "atom"),
    ("vllm", "vllm"),
    ("sglang", "sglang"),
    ("trt", "trtllm"),
    ("tensorr", "trtllm"),
)
"""Part of the name of a framework, and the profile of the engine; the first that matches."""
RELEASES: Final = {"vllm": "vllm@0.11", "sglang": "sglang@0.5.5"}
"""Releases whose profiles the rows are priced with: tables do not state theirs, and the profiles
were fitted to them."""
FORMATS: Final = (("nvfp4", "nvfp4"), ("fp4", "mxfp4"), ("fp8", "fp8"), ("int8", "int8"),
                  ("bf16", "bf16"))  # fmt: skip
"""Part of a name or a precision, and the format of the weights; the first that matches."""
METRICS: Final = {
    "ttft": (("median_ttft", "median"), ("mean_ttft", "mean")),
    "tpot": (("mean_tpot", "mean"), ("median_tpot", "median")),
    "output": (("output_throughput", "mean"),),
}
"""Metric, and the columns it may be in (milliseconds; tokens per second) with their statistic. The
median of first tokens counts where a run has both: SGLang compiles kernels in the first requests of
benchmarks without warm-up, and the mean is up to 22 times the median (with 5.9 s at 99 % where half
of the requests take 0.19 s)."""
DRAWN: Final = ((1024, 1024), (1024, 8192), (8192, 1024))
"""Lengths of prompt and output that benchmarks draw from 0.8 times them up, where a run does not
show it (InferenceX and ATOM: `--random-range-ratio 0.8`)."""
_EXACT: Final = 1e-5
"""How far the ratio of all tokens to output tokens is from the nominal one where no length is
drawn: rounding."""
_COMPILING: Final = ("sglang",)
"""Engines that compile kernels in the first requests of published benchmarks."""
_CHAT: Final = "general"
"""Class of workload of drafted runs."""
_EARLY: Final = ("dstackai/benchmarks", "samuel-bohman/AI-benchmarking-guide")
"""Repositories with runs of early 2025: vLLM 0.7, SGLang 0.4 and TensorRT-LLM 0.17 or older."""
_DECEMBER: Final = "gminneci/mantile"
"""Repository with runs of InferenceX of December 2025."""
_STORED: Final = "native"
"""Part of a precision that is the checkpoint's own."""
_OTHER: Final = re.compile(r"DPA|TBO|DSpark|PD-|-dp\d")
_TENSOR: Final = re.compile(r"-tp(\d+)")


class Serving(Importer):
    """One row per configuration and load of an engine."""

    name: ClassVar[str] = "serving"
    columns: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset({"model", "gpu", "framework", "isl", "osl", "batch_or_concurrency", "mean_tpot"}),
    )

    def cases(self, frame: pd.DataFrame) -> Iterator[Case]:
        """A case per metric of every row that has it."""
        impossible: set[tuple[str, ...]] = set()
        too_fast: set[tuple[str, ...]] = set()
        records = list(rows(frame))
        mixed, repeated = mixtures(records), repeats(records)
        cases_by_row = [(row, tuple(_cases(row, impossible, too_fast))) for row in records]
        for number, (row, cases) in enumerate(cases_by_row):
            reason = ""
            if number in repeated:
                reason = "the row repeats a run of another table"
            elif key_of(row, SERIES) in impossible:
                reason = "other rows of its series state more weights than their GPUs have room for"
            elif key_of(row, CONFIGURATION) in mixed:
                reason = "tokens take longer with fewer requests at once: not one deployment"
            cached = key_of(row, SERIES) in too_fast
            for case in cases:
                if case.op is not None and reason:
                    case = replace(case, op=None, reason=reason)
                elif isinstance(case.op, ServedModel) and cached:
                    case = replace(case, op=replace(case.op, cached=True))
                yield case


def known_model(name: str) -> str:
    """The model that a name begins with. Raises UnknownName."""
    words = re.sub(r"[()\s]+", "-", name.rsplit("/", 1)[-1]).strip("-").lower().split("-")
    aliases = {
        alias.lower(): model
        for model, values in huggingface.models().items()
        for alias in (model, *values.get("aliases", ()))
    }
    for count in range(len(words), 0, -1):
        for separator in ("-", ""):
            match = aliases.get("-".join(words[:count]) if separator else "".join(words[:count]))
            if match:
                return _family_of(match)
    raise UnknownName("model", name, huggingface.models())


def _family_of(model: str) -> str:
    """The entry of `models.toml` whose layers a model has: rows state the format themselves."""
    while like := huggingface.models()[model].get("like"):
        model = like
    return model


def _cases(
    row: Mapping[str, Any], impossible: set[tuple[str, ...]], too_fast: set[tuple[str, ...]]
) -> Iterator[Case]:
    """The cases of a row; adds its series to `impossible` or `too_fast` where the row cannot be."""
    metrics = {}
    for metric, columns in METRICS.items():
        value, statistic = next(
            ((float(row[name]), statistic) for name, statistic in columns if row.get(name)),
            (math.nan, ""),
        )
        if value > 0:
            metrics[metric] = 1 / value if metric == "output" else value * 1e-3, statistic
    model, device, deployment, load = "", "", None, None
    reason = "" if metrics else "the row has neither a latency nor a throughput"
    try:
        device = arch.load(str(row["gpu"])).id
        model = known_model(str(row["model"]))
        load = _load(row)
        deployment = _deployment(row, model, device, load)
        if has_derived_rate(row):
            replace_throughput(metrics, row, deployment)
        check_weights(model, device, deployment)
        check_rate(metrics, model, device, load, deployment)
    except (WavecastError, KeyError, ValueError, OverflowError) as error:
        deployment = None
        if isinstance(error, ImpossibleRun):
            impossible.add(key_of(row, SERIES))
        if isinstance(error, TooFast):
            too_fast.add(key_of(row, SERIES))
        reason = error.message if isinstance(error, WavecastError) else why(error)
    for metric, (seconds, statistic) in metrics.items() or [("", (math.nan, ""))]:
        op = None
        if deployment is not None and load is not None and metric:
            compiles = split_release(deployment.engine)[0] in _COMPILING
            cold = metric == "ttft" and statistic == "mean" and compiles
            cached = load.prefix > 0
            op = ServedModel(metric, model, deployment, load, statistic, cold, cached)
        yield Case(
            kind="serving",
            op=op,
            device=device,
            seconds=seconds,
            group=model,
            labels={
                "dtype": deployment.dtype or "stored" if deployment else "",
                "engine": split_release(deployment.engine)[0] if deployment else "",
                "model": model,
            },
            source=f"{row.get('source_repo', '')} {row.get('file', '')}".strip(),
            reason=reason,
        )


def _deployment(row: Mapping[str, Any], model: str, device: str, load: Load) -> Deployment:
    """Raises Unpredictable for settings that are not modelled, KeyError for an empty cell."""
    name, framework = str(row["model"]), str(row["framework"]).lower()
    if str(row.get("source_repo", "")).startswith(_EARLY):
        raise Unpredictable("engines of early 2025, older than the profiles of engines.toml")
    if _OTHER.search(name):
        raise Unpredictable("settings that the row does not state in full")
    engine = _engine(framework)
    if not engine:
        raise UnknownName("engine", framework, [engine for _, engine in ENGINES])
    match = _TENSOR.search(name)
    tensor = int(match[1]) if match else int(row.get("tp") or row.get("n_gpus") or 1)
    if is_disaggregated(row) and not row.get("tp"):
        tensor = 8  # instances of whole nodes
    replicas = int(row.get("dp") or 1)
    attention_data = replicas > 1 and tensor == 1 and row.get("n_gpus") == replicas
    tensor = (
        replicas if attention_data else tensor
    )  # every GPU has sequences, and a part of the layers
    text = f"{name} {row.get('precision', '')}".lower()
    dtype = next((dtype for part, dtype in FORMATS if part in text), "")
    dtype = "" if _STORED in text else dtype
    stored = huggingface.models()[model].get("quantization_config", {}).get("quant_method")
    if engine == "trtllm" and not is_disaggregated(row) and row.get("dp") is None:
        # Of aiconfigurator. Requests wait although the memory has room for all of them.
        raise Unpredictable("the row states neither all parallelism nor the engine's limits")
    lengths = (load.prompt, load.output)
    engine_pools = [
        pools for pools in load_pools() if (pools.gpu, pools.engine) == (device, engine)
    ]
    if model == "DeepSeek-R1" and engine_pools:
        if is_disaggregated(row):
            return _known_pools(row, device, engine, dtype, load)
        if tensor in {pools.gpus for pools in engine_pools}:
            # Tables of aiconfigurator repeat such runs as those of one instance.
            raise Unpredictable("the row states the GPUs of all pools as those of one instance")
    pools = _pools(row, tensor, dtype)
    settings, engine_fields = (
        generated_settings(load.prompt, load.concurrency, engine)
        if is_generated(row)
        else (
            settings_of(
                device, engine, model, dtype, tensor, lengths, load.concurrency, attention_data
            ),
            (),
        )
    )
    return Deployment(
        dtype="" if stored == dtype else dtype,
        settings=settings,
        engine_fields=engine_fields,
        parallel=Parallelism(
            tensor=tensor,
            expert=tensor if int(row.get("ep") or 1) > 1 else 1,
            attention_data=attention_data,
        ),
        engine=RELEASES.get(engine, engine),
        speculation=_speculation(row, engine),
        disaggregation=pools,
    )


def _engine(framework: str) -> str:
    """The profile of a framework, "" where there is none."""
    return next((engine for part, engine in ENGINES if part in framework), "")


def _speculation(row: Mapping[str, Any], engine: str) -> Speculation | None:
    """Raises Unpredictable where the number of drafted tokens is not known."""
    method = str(row.get("spec_decoding", "none"))
    if method in ("none", "nan"):
        return None
    if method != "mtp" or engine not in ("atom", "atom-vllm"):
        raise Unpredictable(f"{method} of {engine}: the row does not say how much is drafted")
    # .github/benchmark/*.json of ROCm/ATOM: --num-speculative-tokens 3, prompts as a chat.
    return speculation("mtp:3", workload=_CHAT)


def _known_pools(
    row: Mapping[str, Any], device: str, engine: str, dtype: str, load: Load
) -> Deployment:
    """The deployment of a run whose configuration is published. Raises Unpredictable."""
    drafts = {"mtp": True, "none": False}.get(str(row.get("spec_decoding")))
    tensor, replicas = int(row.get("tp") or 0), int(row.get("dp") or 0)
    pools = pools_of(
        device,
        engine,
        dtype,
        (load.prompt, load.output),
        load.concurrency,
        int(row.get("n_gpus") or 0),
        drafts=drafts,
        tensor=tensor if tensor > 1 else replicas,
        date="december" if str(row.get("source_repo", "")).startswith(_DECEMBER) else "",
    )
    drafted = speculation(f"mtp:{pools.drafted}", workload=_CHAT) if pools.drafted else None
    stored = huggingface.models()["DeepSeek-R1"]["quantization_config"]["quant_method"]
    return Deployment(
        dtype="" if stored == dtype else dtype,
        cache=pools.cache,
        settings=pools.decode.settings,
        parallel=pools.decode.parallel,
        engine=RELEASES.get(engine, engine),
        speculation=drafted,
        disaggregation=Disaggregation(
            pools.prefill.count,
            pools.decode.count,
            parallel=pools.prefill.parallel,
            settings=pools.prefill.settings,
        ),
    )


def _pools(row: Mapping[str, Any], tensor: int, dtype: str) -> Disaggregation | None:
    """Raises Unpredictable where the row does not say which GPUs prefill, or the format: tables of
    disaggregated runs have the fp4 and the fp8 checkpoint under one name."""
    if not is_disaggregated(row):
        return None
    if not dtype:
        raise Unpredictable("disaggregated: the row does not say the format of the weights")
    gpus = int(row.get("n_gpus") or 0)
    if tensor != 8 or gpus != 2 * tensor or row.get("ep") not in (None, 1.0):
        raise Unpredictable(f"disaggregated: the row does not say which of {gpus} GPUs prefill")
    return Disaggregation(1, 1)


def _load(row: Mapping[str, Any]) -> Load:
    lengths = int(row["isl"]), int(row["osl"])
    concurrency = max(1, int(row["batch_or_concurrency"]))
    if is_generated(row) and not is_disaggregated(row):
        return generated_load(lengths, concurrency, _engine(str(row["framework"]).lower()))
    return Load(
        *lengths,
        concurrency=concurrency,
        shortest=0.8 if _has_random_lengths(row, lengths) else 1.0,
    )


def _has_random_lengths(row: Mapping[str, Any], lengths: tuple[int, int]) -> bool:
    """Whether lengths are drawn: the ratio of tokens tells, else the usual ones are."""
    for ending in ("", "_per_gpu"):
        every, output = (row.get(f"{name}_throughput{ending}") for name in ("total", "output"))
        if every and output:
            nominal = sum(lengths) / lengths[1]
            return abs(float(every) / float(output) / nominal - 1) > _EXACT
    return lengths in DRAWN


__all__ = ["Serving", "known_model"]
