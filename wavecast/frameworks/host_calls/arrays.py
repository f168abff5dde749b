"""Arrays of numpy, in the dtypes of JAX and TensorFlow, as tensors of PyTorch and back, without
copies."""

# pyright: reportMissingImports=false

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np
import torch

from wavecast.errors import UsageError

_NAMES: Final = (
    *("float64", "float32", "float16", "bfloat16"),
    *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"),
    *("int64", "int32", "int16", "int8", "uint8", "bool"),
)
"""Dtypes that numpy with `ml_dtypes` and PyTorch have under one name."""
_TORCH: Final = {
    np.dtype(getattr(ml_dtypes, name, None) or name): getattr(torch, name) for name in _NAMES
}
_NUMPY: Final = {theirs: ours for ours, theirs in _TORCH.items()}
_BITS: Final = {1: torch.uint8, 2: torch.int16}
"""Dtypes of equal size that both know, for those that numpy has only by `ml_dtypes`."""


def torch_dtype(dtype: Any) -> torch.dtype:
    """The dtype in PyTorch. Raises UsageError for a dtype that PyTorch does not have."""
    equivalent = _TORCH.get(np.dtype(dtype))
    if equivalent is None:
        raise UsageError(f"PyTorch has no dtype {np.dtype(dtype).name}")
    return equivalent


def numpy_dtype(dtype: torch.dtype) -> np.dtype[Any]:
    """The dtype in numpy. Raises UsageError for a dtype that numpy does not have."""
    equivalent = _NUMPY.get(dtype)
    if equivalent is None:
        raise UsageError(f"numpy has no dtype {dtype}")
    return equivalent


def tensor(array: np.ndarray[Any, Any]) -> torch.Tensor:
    """A tensor with the array's memory, or a copy of a read-only or strided one."""
    array = np.require(array, requirements=("C", "W"))
    if array.dtype.isbuiltin == 1:
        return torch.from_numpy(array)
    bits = _BITS[array.dtype.itemsize]
    return torch.from_numpy(array.view(numpy_dtype(bits))).view(torch_dtype(array.dtype))


def array(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """The tensor's memory as an array, or a copy of a strided one."""
    tensor = tensor.detach().contiguous()
    dtype = numpy_dtype(tensor.dtype)
    if dtype.isbuiltin == 1:
        return tensor.cpu().numpy()
    return tensor.view(_BITS[tensor.element_size()]).cpu().numpy().view(dtype)


__all__ = ["array", "numpy_dtype", "tensor", "torch_dtype"]
