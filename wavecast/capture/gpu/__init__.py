"""The GPU of this machine, where there is one: what it is, and how long work takes on it."""

from __future__ import annotations

from wavecast.capture.gpu.local import LocalGpu, local_gpu
from wavecast.capture.gpu.profile import KernelRun, profile_script
from wavecast.capture.gpu.programs import program

__all__ = ["KernelRun", "LocalGpu", "local_gpu", "profile_script", "program"]
