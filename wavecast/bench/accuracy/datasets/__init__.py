"""The data sets validate reads: name -> (module, adapter). Modules are imported when used.

The order is that of trial: a format whose columns include another's comes before it, the general
one last.
"""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from pathlib import Path

from wavecast.bench.accuracy.datasets.base import Case, Dataset, Figure, Given, device_of
from wavecast.errors import InputError

__all__ = ["DATASETS", "Case", "Dataset", "Figure", "Given", "adapter", "device_of", "recognise"]

DATASETS: dict[str, tuple[str, str]] = {
    "attention_published": (
        "wavecast.bench.accuracy.datasets.attention_published",
        "AttentionPublished",
    ),
    "instruction_latency": (
        "wavecast.bench.accuracy.datasets.instruction_latency",
        "InstructionLatency",
    ),
    "conv_miopen": ("wavecast.bench.accuracy.datasets.conv_miopen", "ConvMiopen"),
    "gemm_published": ("wavecast.bench.accuracy.datasets.gemm_published", "GemmPublished"),
    "gemm_tensile": ("wavecast.bench.accuracy.datasets.gemm_tensile", "GemmTensile"),
    "gemm_tuned": ("wavecast.bench.accuracy.datasets.gemm_tuned", "GemmTuned"),
    "moe_counters": ("wavecast.bench.accuracy.datasets.moe_counters", "MoeCounters"),
    "moe_tuned": ("wavecast.bench.accuracy.datasets.moe_tuned", "MoeTuned"),
    "elementwise_norm": ("wavecast.bench.accuracy.datasets.elementwise_norm", "ElementwiseNorm"),
    "collectives": ("wavecast.bench.accuracy.datasets.collectives", "Collectives"),
    "hip_kernels": ("wavecast.bench.accuracy.datasets.hip_kernels", "HipKernels"),
    "microbench": ("wavecast.bench.accuracy.datasets.microbench", "Microbench"),
    "general": ("wavecast.bench.accuracy.datasets.general", "General"),
}


def adapter(name: str) -> Dataset:
    """The adapter of a format of `DATASETS`."""
    module, attribute = DATASETS[name]
    return getattr(import_module(module), attribute)()


def recognise(columns: Collection[str], path: Path) -> Dataset:
    """The adapter of a file with these columns. Raises InputError when there is none."""
    for name in DATASETS:
        found = adapter(name)
        if found.recognise(columns, path):
            return found
    raise InputError(
        f"{path}: no known data set has the columns {', '.join(sorted(columns)[:12])}",
        hint="see docs/validate.md for the columns of the general format",
    )
