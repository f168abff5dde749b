"""Which modules of Python need HIP's runtime, and what each needs before it is used."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Final

LANGUAGES: Final[Mapping[str, str]] = {
    "bitsandbytes": "wavecast.runtimes.languages.rocm_folder:use_rocm_folder",
    "cupy": "wavecast.runtimes.languages.cupy:prepare",
    "flydsl": "wavecast.runtimes.languages.flydsl:prepare",
    "tilelang.env": "wavecast.runtimes.languages.tilelang:prepare",
}
"""Module -> the function that is called with the target before a program imports it. What that
returns is called at the end."""

WATCHED: Final[Mapping[str, str]] = {
    "flydsl.compiler.kernel_function": "wavecast.runtimes.languages.flydsl:watch_kernels",
    "tinygrad": "wavecast.runtimes.languages.tinygrad:prepare",
}
"""As `LANGUAGES`, of functions that are called once a program has imported the module."""

TIMERS: Final[Mapping[str, Sequence[str]]] = {
    "flydsl.autotune": ("do_bench",),
    "tilelang.profiler.bench": ("_do_bench_impl",),
}
"""Module -> its functions that time a function as `triton.testing.do_bench` does."""

UNSEEN: Final[Mapping[str, str]] = {
    "cutlass": "CuTe DSL",
    "cuda.tile": "cuTile",
    "numba.cuda": "Numba",
    "warp": "Warp",
    "taichi": "Taichi",
    "pycuda": "PyCUDA",
    "pyopencl": "PyOpenCL",
    "hip": "HIP Python",
    "max": "MAX",
    "mlx": "MLX",
}
"""Module -> the language or library whose launches are not seen."""


def unseen_launches() -> str:
    """A line for a program that launched nothing that is seen; "" where it has imported none of
    `UNSEEN`."""
    names = [name for module, name in UNSEEN.items() if module in sys.modules]
    return f"what {' and '.join(names)} launches is not seen" if names else ""


__all__ = ["LANGUAGES", "TIMERS", "UNSEEN", "WATCHED", "unseen_launches"]
