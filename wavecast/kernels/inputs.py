"""Arguments of operators made from plain sizes: seeded, or only allocated."""

from collections.abc import Sequence
from typing import Any

import torch

FP8 = (
    torch.float8_e4m3fn,
    torch.float8_e4m3fnuz,
    torch.float8_e5m2,
    torch.float8_e5m2fnuz,
)


class Make:
    """Makes tensors on `device`. Without `values` they are only allocated, which takes no time for
    shapes of any size: for captures, where nobody reads them, but integers of more than 8 bits,
    which may be indices and are always made."""

    def __init__(self, seed: int = 0, device: str = "cpu", *, values: bool = True) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.device = device
        self.values = values

    def dtype(self, name: str) -> torch.dtype:
        """A dtype by its name in torch: `bfloat16`."""
        return getattr(torch, name)

    def normal(
        self, shape: Sequence[int], dtype: str | torch.dtype, scale: float = 1.0
    ) -> torch.Tensor:
        """Normally distributed values times `scale`, rounded to any floating dtype."""
        kind = self.dtype(dtype) if isinstance(dtype, str) else dtype
        if not self.values:
            return torch.empty(tuple(shape), dtype=kind, device=self.device)
        drawn = torch.randn(tuple(shape), generator=self.generator) * scale
        if kind in FP8:
            limit = torch.finfo(kind).max
            drawn = drawn.clamp(-limit, limit)
        return drawn.to(kind).to(self.device)

    def uniform(
        self, shape: Sequence[int], dtype: str | torch.dtype, low: float = 0.0, high: float = 1.0
    ) -> torch.Tensor:
        """Evenly distributed values from `low` to `high`."""
        kind = self.dtype(dtype) if isinstance(dtype, str) else dtype
        if not self.values:
            return torch.empty(tuple(shape), dtype=kind, device=self.device)
        drawn = torch.rand(tuple(shape), generator=self.generator) * (high - low) + low
        return drawn.to(kind).to(self.device)

    def integers(
        self, shape: Sequence[int], low: int, high: int, dtype: str | torch.dtype = "int64"
    ) -> torch.Tensor:
        """Integers from `low` up to, but not, `high`."""
        kind = self.dtype(dtype) if isinstance(dtype, str) else dtype
        if not self.values and kind in (torch.int8, torch.uint8):
            return torch.empty(tuple(shape), dtype=kind, device=self.device)
        drawn = torch.randint(low, high, tuple(shape), generator=self.generator)
        return drawn.to(kind).to(self.device)

    def permutation(self, count: int, dtype: str | torch.dtype = "int64") -> torch.Tensor:
        """The numbers below `count` in random order."""
        kind = self.dtype(dtype) if isinstance(dtype, str) else dtype
        return torch.randperm(count, generator=self.generator).to(kind).to(self.device)

    def tensor(self, values: Any, dtype: str | torch.dtype) -> torch.Tensor:
        """Given values as a tensor."""
        kind = self.dtype(dtype) if isinstance(dtype, str) else dtype
        return torch.tensor(values, dtype=kind, device=self.device)
