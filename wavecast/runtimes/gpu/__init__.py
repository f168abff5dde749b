"""The GPU of this machine, where there is one: what it is, and how long work takes on it."""

from __future__ import annotations

from wavecast.runtimes.gpu.local import LocalGpu, local_gpu
from wavecast.runtimes.gpu.profile import KernelRun, profile_script
from wavecast.runtimes.gpu.programs import program

__all__ = ["KernelRun", "LocalGpu", "local_gpu", "profile_script", "program"]
