"""Fused mixture of experts: grouped products of both stages, with expected routing."""

from wavecast.model.ops.moe.problem import FusedMoe

__all__ = ["FusedMoe"]
