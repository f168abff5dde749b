"""Training runs of whole models: throughput of MLPerf Training and of published tables.

A run gives a case where its configuration is known: parallelism, micro-batch and what the row does
not have but the files of its benchmark do (`BENCHMARKS`).
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from wavecast.arch.systems import System, system
from wavecast.benchmarking.accuracy.cases import Case
from wavecast.benchmarking.accuracy.importers import agent_runs, collective_runs
from wavecast.benchmarking.accuracy.importers.base import Importer, rows, why
from wavecast.benchmarking.accuracy.importers.serving import known_model
from wavecast.errors import UnknownName, Unpredictable, WavecastError
from wavecast.systems.training.op import TrainedModel
from wavecast.systems.training.setup import TrainingSetup

if TYPE_CHECKING:
    import pandas as pd

BENCHMARKS: Final[Mapping[str, Mapping[str, Any]]] = {
    # LoRA of rank 16 on attention's projections, FP8_ACTIVATION=True (config_*.sh of the
    # submissions); the optimizer of the adapters is small.
    "llama2_70b_lora": {"model": "Llama-2-70B", "dtype": "fp8", "lora": 16, "sharding": 0,
                        "fp8_activations": True},
    # INTERLEAVED_PIPELINE=8 and FP8_PARAMS=True (config_*.sh of NVIDIA's submissions)
    "llama31_405b": {"model": "Llama-3.1-405B", "dtype": "fp8", "schedule": "interleaved",
                     "chunks": 8, "gradients": "bf16"},
}  # fmt: skip
"""What every submission of a benchmark of MLPerf Training shares."""
_AMD_LORA: Final = {"recompute": "full", "recompute_layers": 21}
"""ACG=full, ACM=block, ACL=21 (config_MI300X_1x8x1.sh of MLPerf Training v5.0); on several nodes
sequences are divided instead."""
_PUBLISHED: Final = {
    "DeepSeekV3": "DeepSeek-R1",
    "LLAMA3_70B": "Llama-3.3-70B",
    "GPT OSS 120B": "gpt-oss-120b",
    "Qwen3_30B_a3B": "Qwen3-30B-A3B",
    "Qwen3_235B_a22B": "Qwen3-235B-A22B",
}
"""Names of models in published tables with another spelling, or of another model of equal sizes."""
_DTYPES: Final = {"FP8": "fp8", "MXFP8": "mxfp8", "BF16": "bf16"}
_MACHINES: Final = {"GB200": "gb200-nvl72"}
"""Machines of names of GPUs; other GPUs are in nodes of eight."""
_NODE: Final = 8
_RECIPE: Final = {"gradients": "bf16"}
"""What all rows of Megatron-Bridge's tables share: grad_reduce_in_fp32=False
(perf_recipes/_common.py of NVIDIA-NeMo/Megatron-Bridge@067f987)."""
_RECIPES: Final[Mapping[tuple[str, str, str], Mapping[str, Any]]] = {
    # recompute_modules=["layernorm", "moe_act"] (gpt_oss_workload_base_configs.py, March 2026)
    ("B200", "GPT OSS 120B", "BF16"): {"recompute": "selective"},
    ("GB200", "GPT OSS 120B", "BF16"): {"recompute": "selective"},
    # overlap_moe_expert_parallel_comm=True (perf_recipes of @067f987), which needs several chunks
    # per GPU in a pipeline. DeepSeek on GB200 ran without it before June 2026, as most of its rows.
    ("B200", "DeepSeekV3", "MXFP8"): {"expert_overlap": True},
    ("GB200", "Qwen3_235B_a22B", "MXFP8"): {"expert_overlap": True},
}
"""What rows of a GPU, a model and a precision have besides, and their tables leave out."""
_FILE: Final = re.compile(r"tp(\d+)pp(\d+)cp(\d+)")


class TrainingRuns(Importer):
    """One row per metric of a run."""

    name: ClassVar[str] = "training"
    columns: ClassVar[tuple[frozenset[str], ...]] = (
        frozenset({"model", "gpu", "phase", "isl", "batch_or_concurrency", "metric", "value",
                   "n_gpus", "notes"}),
    )  # fmt: skip

    def cases(self, frame: pd.DataFrame) -> Iterator[Case]:
        """A case per row with a throughput of training, and per row with a time of a collective or
        of an agent's requests, which files of the same columns have."""
        for row in rows(frame):
            if row.get("phase") == "train":
                yield _case(row)
        yield from collective_runs.cases(frame)
        yield from agent_runs.cases(frame)


def _case(row: Mapping[str, Any]) -> Case:
    model, device, reason, seconds, op = "", "", "", math.nan, None
    try:
        machine = _machine(row)
        device = machine.device.id
        model, setup = _setup(row)
        seconds = _seconds(row, setup)
        nodes = -(-setup.gpus // machine.gpus)
        selector = _MACHINES.get(str(row["gpu"]), f"{machine.gpus}x{device}")
        op = TrainedModel(model, setup, f"{nodes}x{selector}" if nodes > 1 else selector)
    except (WavecastError, KeyError, ValueError, OverflowError, TypeError) as error:
        reason = error.message if isinstance(error, WavecastError) else why(error)
    return Case(
        kind="training",
        op=op,
        device=device,
        seconds=seconds,
        group=model,
        labels={"model": model, "dtype": op.setup.dtype if op else ""},
        source=f"{row.get('source_repo', '')} {row.get('source_path', '')}".strip(),
        reason=reason,
    )


def _machine(row: Mapping[str, Any]) -> System:
    """One node. Raises Unpredictable for cards with other links."""
    if re.search(r"NVL[- ]", str(row["notes"])) or "PCIe" in str(row["notes"]):
        raise Unpredictable("H100 NVL and H200 NVL have other clocks and links")
    name = str(row["gpu"])
    return system(_MACHINES.get(name, f"{_NODE}x{name}"))


def _setup(row: Mapping[str, Any]) -> tuple[str, TrainingSetup]:
    """Raises Unpredictable for settings that are not known or not modelled."""
    notes = str(row["notes"])
    if notes.startswith("MLPerf"):
        workload, settings = _mlperf(row, notes)
    else:
        workload, settings = _table(row, notes)
    model = str(workload.pop("model"))
    return model, TrainingSetup(
        gpus=int(row["n_gpus"]),
        batch=int(row["batch_or_concurrency"]),
        sequence=int(row["isl"]),
        **workload,
        **settings,
    )


def _mlperf(row: Mapping[str, Any], notes: str) -> tuple[dict[str, Any], dict[str, Any]]:
    benchmark = str(row["model"])
    if benchmark not in BENCHMARKS:
        raise Unpredictable(f"the layers of {benchmark} are not modelled")
    workload = dict(BENCHMARKS[benchmark])
    match = re.search(r"config=(\{.*?\})", notes)
    config: Mapping[str, str] = ast.literal_eval(match[1]) if match else {}
    file = _FILE.search(str(config.get("file", "")))
    sizes = dict(zip(("tp", "pp", "cp"), file.groups(), strict=True)) if file else dict(config)
    if "tp" not in sizes:
        raise Unpredictable("the row does not have the parallelism")
    if str(row["gpu"]) == "MI300X" and int(sizes.get("cp", 1)) == 1:
        workload |= _AMD_LORA
    tensor = int(sizes["tp"])
    return workload, {
        "tensor": tensor,
        "pipeline": int(sizes.get("pp", 1)),
        "context": int(sizes.get("cp", 1)),
        "tensor_overlap": tensor > 1,  # TP_COMM_OVERLAP=True in all of these configurations
        "micro_batch": int(config.get("mbs", 1)),
    }


def _table(row: Mapping[str, Any], notes: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A row of Megatron-Bridge's tables: MBS=1 CP=1 VP=4 FSDP=0."""
    if notes.startswith("LoRA"):
        raise Unpredictable("the row does not have the rank and the targets of the adapters")
    values = dict(re.findall(r"(\w+)=(\S+)", notes))
    dtype = _DTYPES.get(str(row["precision"]))
    if dtype is None:
        raise UnknownName("dtype of training", str(row["precision"]), list(_DTYPES))
    chunks = int(values["VP"]) if values.get("VP", "n/a").isdigit() else 1
    sharded = values.get("FSDP", "0").isdigit() and int(values["FSDP"]) > 0
    name = str(row["model"])
    model = _PUBLISHED.get(name) or known_model(name.replace("_", "-"))
    expert = row.get("ep")
    recipe = dict(_RECIPES.get((str(row["gpu"]), name, str(row["precision"])), {}))
    recipe["expert_overlap"] = recipe.get("expert_overlap", False) and chunks > 1
    return {"model": model, "dtype": dtype, **_RECIPE, **recipe}, {
        "micro_batch": int(values["MBS"]),
        "tensor": int(row["tp"]),
        "pipeline": int(row["pp"]),
        "context": int(values["CP"]),
        "expert": int(expert) if expert else 1,
        "chunks": chunks,
        "schedule": "interleaved" if chunks > 1 else "1f1b",
        "sharding": 3 if sharded else 1,
    }


def _seconds(row: Mapping[str, Any], setup: TrainingSetup) -> float:
    """Seconds of a step. Raises Unpredictable for another metric."""
    metric, value = str(row["metric"]), float(row["value"])
    if metric == "train_throughput_median":
        return setup.batch / value
    if metric == "train_tokens_per_gpu" and not str(row["notes"]).startswith("MLPerf"):
        return setup.tokens / (value * setup.gpus)
    raise Unpredictable(f"{metric} is not the time of a step, or repeats it")


__all__ = ["BENCHMARKS", "TrainingRuns"]
