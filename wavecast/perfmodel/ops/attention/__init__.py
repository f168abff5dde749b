"""Attention: fused forward and backward kernels, decoding over split keys, unfused products."""

from wavecast.perfmodel.ops.attention.libraries import BEST
from wavecast.perfmodel.ops.attention.problem import Attention

__all__ = ["BEST", "Attention"]
