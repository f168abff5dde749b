"""Arguments of operators made from plain sizes: seeded, or only allocated."""

import math
from collections.abc import Sequence
from typing import Any, Final

import torch

from wavecast import limits
from wavecast.errors import UnknownName

_DRAWN_BYTES: Final = 8

FP8 = (
    torch.float8_e4m3fn,
    torch.float8_e4m3fnuz,
    torch.float8_e5m2,
    torch.float8_e5m2fnuz,
)


def torch_dtype(name: str) -> torch.dtype:
    """A dtype by its name in torch: `bfloat16`. Raises UnknownName."""
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        names = [
            attribute
            for attribute in dir(torch)
            if isinstance(getattr(torch, attribute), torch.dtype)
        ]
        raise UnknownName("dtype of PyTorch", name, names)
    return dtype


def unwritten(shape: Sequence[int], strides: Sequence[int], dtype: str) -> torch.Tensor:
    """A tensor that nobody has written; its dtype by the name in torch. Raises UnknownName."""
    return torch.empty_strided(shape, strides, dtype=torch_dtype(dtype))


class Make:
    """Makes tensors on `device`. Without `values` they are only allocated, which takes no time for
    shapes of any size: for captures, where nobody reads them, but integers of more than 8 bits,
    which may be indices and are always made."""

    def __init__(self, seed: int = 0, device: str = "cpu", *, values: bool = True) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.device = device
        self.values = values

    def _check_memory(self, shape: Sequence[int]) -> None:
        """Values are drawn in 32 or 64 bits and rounded. Raises UsageError for more than fits."""
        size = 2 * _DRAWN_BYTES * math.prod(shape)
        limits.check_memory(size, f"a tensor of {'x'.join(map(str, shape))} elements")

    def dtype(self, name: str) -> torch.dtype:
        """A dtype by its name in torch. Raises UnknownName."""
        return torch_dtype(name)

    def normal(
        self, shape: Sequence[int], dtype: str | torch.dtype, scale: float = 1.0
    ) -> torch.Tensor:
        """Normally distributed values times `scale`, rounded to any floating dtype."""
        kind = self.dtype(dtype) if isinstance(dtype, str) else dtype
        if not self.values:
            return torch.empty(tuple(shape), dtype=kind, device=self.device)
        self._check_memory(shape)
        values = torch.randn(tuple(shape), generator=self.generator) * scale
        if kind in FP8:
            limit = torch.finfo(kind).max
            values = values.clamp(-limit, limit)
        return values.to(kind).to(self.device)

    def uniform(
        self, shape: Sequence[int], dtype: str | torch.dtype, low: float = 0.0, high: float = 1.0
    ) -> torch.Tensor:
        """Evenly distributed values from `low` to `high`."""
        kind = self.dtype(dtype) if isinstance(dtype, str) else dtype
        if not self.values:
            return torch.empty(tuple(shape), dtype=kind, device=self.device)
        self._check_memory(shape)
        values = torch.rand(tuple(shape), generator=self.generator) * (high - low) + low
        return values.to(kind).to(self.device)

    def integers(
        self, shape: Sequence[int], low: int, high: int, dtype: str | torch.dtype = "int64"
    ) -> torch.Tensor:
        """Integers from `low` up to, but not, `high`."""
        kind = self.dtype(dtype) if isinstance(dtype, str) else dtype
        if not self.values and kind in (torch.int8, torch.uint8):
            return torch.empty(tuple(shape), dtype=kind, device=self.device)
        self._check_memory(shape)
        values = torch.randint(low, high, tuple(shape), generator=self.generator)
        return values.to(kind).to(self.device)

    def permutation(self, count: int, dtype: str | torch.dtype = "int64") -> torch.Tensor:
        """The numbers below `count` in random order."""
        kind = self.dtype(dtype) if isinstance(dtype, str) else dtype
        self._check_memory((count,))
        return torch.randperm(count, generator=self.generator).to(kind).to(self.device)

    def tensor(self, values: Any, dtype: str | torch.dtype) -> torch.Tensor:
        """Given values as a tensor."""
        kind = self.dtype(dtype) if isinstance(dtype, str) else dtype
        return torch.tensor(values, dtype=kind, device=self.device)
