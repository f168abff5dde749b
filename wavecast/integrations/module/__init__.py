"""HIP, assembly and code objects as callable kernels: `wavecast.load`."""

from wavecast.integrations.module.function import Function
from wavecast.integrations.module.loading import Module, load

__all__ = ["Function", "Module", "load"]
