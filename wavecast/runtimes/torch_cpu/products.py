"""Products of 16-bit matrices in float32, rounded once, as the matrix instructions of a GPU do.

A host without instructions for these dtypes multiplies them with PyTorch's plain loops: 2 GFLOP/s
on a core with AVX2 that computes 70 GFLOP/s in float32. Tests compare kernels with such products.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, Final

from wavecast.runtimes.patching import Patches

PRODUCTS: Final = ("mm", "bmm", "addmm", "baddbmm")
"""PyTorch's operators for products of matrices; the others call these."""


def install(patches: Patches) -> None:
    """Replace the CPU's kernels of `PRODUCTS` for 16-bit dtypes that this host has no fast ones
    for. Other dtypes keep theirs."""
    import torch

    slow = unsupported_dtypes()
    if not slow:
        return
    library = torch.library.Library("aten", "IMPL")
    patches.callback(library._destroy)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Warning only once for all operators")
        for name in PRODUCTS:
            library.impl(name, _float32_kernel(name, slow), "CPU")


def unsupported_dtypes() -> frozenset[Any]:
    """16-bit floats that oneDNN, PyTorch's library for products, has no kernels for here."""
    import torch

    supported = {
        torch.bfloat16: torch.ops.mkldnn._is_mkldnn_bf16_supported,
        torch.float16: torch.ops.mkldnn._is_mkldnn_fp16_supported,
    }
    return frozenset(dtype for dtype, is_supported in supported.items() if not is_supported())


def _float32_kernel(name: str, slow: frozenset[Any]) -> Callable[..., Any]:
    import torch

    original: Any = torch.library.get_kernel(f"aten::{name}", "CPU")
    cpu = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)

    @functools.wraps(getattr(torch, name))
    def product(*tensors: torch.Tensor, **factors: Any) -> torch.Tensor:
        dtypes = {tensor.dtype for tensor in tensors}
        if len(dtypes) > 1 or not dtypes <= slow:
            return original.call_boxed(cpu, *tensors, **factors)
        wide = original.call_boxed(cpu, *(tensor.float() for tensor in tensors), **factors)
        return wide.to(tensors[0].dtype)

    return product
