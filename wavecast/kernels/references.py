"""What references in plain PyTorch have in common."""

import torch
from torch import Tensor

from wavecast import dtypes


def short_name(dtype: torch.dtype) -> str:
    """The name that the model has for a dtype: `bf16`, `fp8`."""
    return dtypes.lookup(str(dtype).removeprefix("torch.")).short


def wide_dtype(x: Tensor) -> torch.dtype:
    """The dtype a reference computes in: float32, or float64 for float64."""
    return torch.promote_types(x.dtype, torch.float32)


def widened(x: Tensor) -> Tensor:
    """A tensor in the dtype a reference computes in."""
    return x.to(wide_dtype(x))
