"""HIP, assembly and code objects as callable kernels: `wavecast.load`."""

from wavecast.capture.module.function import Function
from wavecast.capture.module.loading import Module, load

__all__ = ["Function", "Module", "load"]
