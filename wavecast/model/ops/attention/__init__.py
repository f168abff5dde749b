"""Attention: fused forward and backward kernels, decoding over split keys, unfused products."""

from wavecast.model.ops.attention.libraries import BEST
from wavecast.model.ops.attention.problem import Attention

__all__ = ["BEST", "Attention"]
