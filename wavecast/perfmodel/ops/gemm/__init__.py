"""Matrix products: plain, batched and grouped, in every number format, by tile kernels."""

from wavecast.perfmodel.ops.gemm.problem import Gemm

__all__ = ["Gemm"]
