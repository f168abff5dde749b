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


AMD_ONLY: Final[Mapping[str, tuple[str, str]]] = {
    "flydsl.compiler.kernel_function": ("FlyDSL", "KernelFunction._emit_kernel"),
}
"""Module -> a language without code for other GPUs, and the function that begins to compile a
kernel."""

SEEN_ON_NVIDIA: Final[Mapping[str, str]] = {"cuda.tile": "cuTile"}
"""Module -> the language that compiles for NVIDIA GPUs only, and launches by CUDA's driver."""

SEEN_ON_AMD: Final[Mapping[str, str]] = {
    "bitsandbytes": "bitsandbytes",
    "cupy": "CuPy",
    "flydsl": "FlyDSL",
    "tilelang": "TileLang",
    "tinygrad": "tinygrad",
}
"""Module -> the language or library whose launches go through HIP."""


def unseen_launches(is_amd: bool = True) -> str:
    """A line for a program that launched nothing that is seen on a GPU of AMD or another vendor; ""
    where it has imported nothing that launches otherwise."""
    names = [name for module, name in UNSEEN.items() if module in sys.modules]
    texts = [f"what {' and '.join(names)} launches is not seen"] if names else []
    others = [name for module, name in SEEN_ON_AMD.items() if module in sys.modules]
    if others and not is_amd:
        texts.append(f"what {' and '.join(others)} launches is seen on AMD GPUs only")
    return "; ".join(texts)


__all__ = [
    "AMD_ONLY",
    "LANGUAGES",
    "SEEN_ON_AMD",
    "SEEN_ON_NVIDIA",
    "TIMERS",
    "UNSEEN",
    "WATCHED",
    "unseen_launches",
]
