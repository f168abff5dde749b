"""Every function of a library that can be called, by `library.function`."""

from __future__ import annotations

from functools import cache

from wavecast.runtimes.hip_host.libraries.call import Function


@cache
def functions() -> dict[str, Function]:
    """The functions by the name that headers pass, without the type of elements."""
    from wavecast.runtimes.hip_host.libraries import (
        blas_matrices,
        blas_vectors,
        factors,
        fft,
        matmul,
        random,
        solver,
        sparse,
        sparse_factors,
    )  # fmt: skip

    of_library = {
        "hipblas": (blas_vectors, blas_matrices, factors, matmul),
        "hipfft": (fft,),
        "hiprand": (random,),
        "hipsparse": (sparse, sparse_factors),
        "hipsolver": (solver,),
    }
    return {
        f"{library}.{name}": function
        for library, modules in of_library.items()
        for module in modules
        for name, function in module.FUNCTIONS.items()
    }


__all__ = ["functions"]
