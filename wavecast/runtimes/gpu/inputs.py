"""Arguments of operators made on the GPU itself: large ones would take minutes on the host."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from wavecast.launch.inputs import FP8, Make

_DIRECT = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


class MakeThere(Make):
    """As `Make`, with the device's own random numbers: equal seeds give equal values on one kind of
    device."""

    def __init__(self, seed: int, device: str) -> None:
        super().__init__(seed, device)
        self._there = torch.Generator(device).manual_seed(seed)

    def normal(
        self, shape: Sequence[int], dtype: str | torch.dtype, scale: float = 1.0
    ) -> torch.Tensor:
        kind = self.dtype(dtype) if isinstance(dtype, str) else dtype
        tensor = self._empty(shape, kind).normal_(0.0, scale, generator=self._there)
        if kind in FP8:
            limit = torch.finfo(kind).max
            tensor = tensor.clamp_(-limit, limit)
        return tensor.to(kind)

    def uniform(
        self, shape: Sequence[int], dtype: str | torch.dtype, low: float = 0.0, high: float = 1.0
    ) -> torch.Tensor:
        kind = self.dtype(dtype) if isinstance(dtype, str) else dtype
        tensor = self._empty(shape, kind).uniform_(low, high, generator=self._there)
        return tensor.to(kind)

    def integers(
        self, shape: Sequence[int], low: int, high: int, dtype: str | torch.dtype = "int64"
    ) -> torch.Tensor:
        kind = self.dtype(dtype) if isinstance(dtype, str) else dtype
        there = self.device
        tensor = torch.randint(low, high, tuple(shape), generator=self._there, device=there)
        return tensor.to(kind)

    def _empty(self, shape: Sequence[int], kind: torch.dtype) -> torch.Tensor:
        """A tensor of the dtype where torch draws it, of float16 for narrower ones."""
        dtype = kind if kind in _DIRECT else torch.float16
        return torch.empty(tuple(shape), dtype=dtype, device=self.device)


def seed(number: int) -> None:
    """Seed torch's random numbers, on all devices."""
    torch.manual_seed(number)


def tensor_bytes(values: object) -> int:
    """Bytes of all tensors among values, lists and tuples of them included."""
    if isinstance(values, torch.Tensor):
        return math.prod(values.shape) * values.element_size()
    if isinstance(values, dict):
        return sum(tensor_bytes(value) for value in values.values())
    if isinstance(values, (list, tuple)):
        return sum(tensor_bytes(value) for value in values)
    return 0


__all__ = ["MakeThere", "seed", "tensor_bytes"]
