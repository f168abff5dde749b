"""HIP, assembly and code objects as callable kernels: `wavecast.load`."""

from wavecast.runtimes.module.function import Function
from wavecast.runtimes.module.loading import Module, load

__all__ = ["Function", "Module", "load"]
