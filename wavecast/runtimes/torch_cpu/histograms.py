"""`torch.histc` of integers: PyTorch computes it on a GPU, and refuses it on a CPU."""

from __future__ import annotations

import functools
import warnings
from typing import Any

from wavecast.runtimes.patching import Patches


def install(patches: Patches) -> None:
    """Replace the CPU's kernel of `histc` for integers, with the bins of the GPU's kernel, and the
    sizes that `torch.compile` asks for; other dtypes keep theirs."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    original: Any = torch.library.get_kernel("aten::histc", "CPU")
    cpu = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
    in_python: Any = torch.ops.aten.histc.default
    own_sizes = in_python.py_kernels[torch._C.DispatchKey.Meta]

    @functools.wraps(torch.histc)
    def histc(
        values: torch.Tensor, bins: int = 100, min: float = 0, max: float = 0
    ) -> torch.Tensor:
        if values.dtype.is_floating_point or values.dtype.is_complex:
            return original.call_boxed(cpu, values, bins, min, max)
        return _counts(values, bins, int(min), int(max))

    @functools.wraps(torch.histc)
    def sizes(values: torch.Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Any:
        if values.dtype.is_floating_point or values.dtype.is_complex:
            return own_sizes(values, bins, min, max)
        return values.new_empty(bins)

    patches.callback(FakeTensorMode.cache_clear)
    library = torch.library.Library("aten", "IMPL")
    patches.callback(library._destroy)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Warning only once for all operators")
        library.impl("histc", histc, "CPU")
        library.impl("histc", sizes, "Meta")
    _replace_in_python(patches, in_python, torch._C.DispatchKey.Meta, sizes)


def _replace_in_python(patches: Patches, operator: Any, key: Any, kernel: Any) -> None:
    """Replace the kernel that PyTorch's dispatcher in Python, which Dynamo uses, has in a table of
    its own."""
    table, cache = operator.py_kernels, operator._dispatch_cache

    def put(kernel: Any) -> None:
        table[key] = kernel
        cache.clear()

    patches.callback(put, table[key])
    put(kernel)


def _counts(values: Any, bins: int, low: int, high: int) -> Any:
    """Values by bin, in the dtype of `values` (any shape): integers, divided as the GPU divides.
    The last bin includes its end. Raises RuntimeError as PyTorch for bounds in the wrong order."""
    if low == high and values.numel():
        low, high = int(values.min()), int(values.max())
    if low == high:
        low, high = low - 1, high + 1
    if bins < 1 or low > high:
        raise RuntimeError(f"torch.histc(): {bins} bins from {low} to {high}")
    wide = values.long()
    selection = wide[(wide >= low) & (wide <= high)]
    number = ((selection - low) * bins // (high - low)).clamp(max=bins - 1)
    return number.bincount(minlength=bins).to(values.dtype)


__all__ = ["install"]
