"""Fused mixture of experts: grouped products of both stages, with expected routing."""

from wavecast.perfmodel.ops.moe.problem import FusedMoe

__all__ = ["FusedMoe"]
