"""hipBLAS, hipFFT, hipRAND, hipSPARSE and hipSOLVER for HIP programs, computed on the host.

The headers (`compile/include/hipblas` …) pass the arguments of each call; functions here work on
the memory of the program by numpy.
"""

from __future__ import annotations

from wavecast.runtimes.hip_host.libraries.call import CalledFunction, Function
from wavecast.runtimes.hip_host.libraries.registry import functions

__all__ = ["CalledFunction", "Function", "functions"]
