"""Importers of the published measurements that the coefficients were fitted to."""

from __future__ import annotations

from pathlib import Path

from calibration.datasets.attention_published import AttentionPublished
from calibration.datasets.collectives import Collectives
from calibration.datasets.elementwise_norm import ElementwiseNorm
from calibration.datasets.gemm_published import GemmPublished
from calibration.datasets.hip_kernels import HipKernels
from calibration.datasets.instruction_latency import InstructionLatency
from calibration.datasets.microbench import Microbench
from calibration.datasets.moe_counters import MoeCounters
from calibration.datasets.nvidia_cutlass import NvidiaCutlass
from wavecast.benchmarking.accuracy.importers import Importer


def importers(sources: Path | None = None) -> tuple[Importer, ...]:
    """All importers of this folder; `sources` is a checkout of the HIP suite."""
    return (
        AttentionPublished(),
        InstructionLatency(),
        GemmPublished(),
        NvidiaCutlass(),
        MoeCounters(),
        ElementwiseNorm(),
        Collectives(),
        HipKernels(sources),
        Microbench(sources),
    )


__all__ = ["importers"]
