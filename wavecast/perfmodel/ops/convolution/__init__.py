"""Convolutions: the time of the fastest algorithm a library has for them."""

from wavecast.perfmodel.ops.convolution.problem import DIRECTIONS, LAYOUTS, Convolution

__all__ = ["DIRECTIONS", "LAYOUTS", "Convolution"]
