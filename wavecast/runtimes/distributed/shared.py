"""What process groups share, and how their calls become those of `wavecast.ops.distributed`."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np
import torch
from torch import Tensor

from wavecast.errors import MissingFact, UsageError
from wavecast.kernels import registry
from wavecast.runtimes.distributed.shared_region import SharedRegion
from wavecast.runtimes.torch_cpu.gpus import assign

_OPS: Final = {"SUM": "sum", "AVG": "avg", "PRODUCT": "product", "MIN": "min", "MAX": "max"}
_BOOLEAN: Final = {
    **dict.fromkeys(("SUM", "MAX", "BOR"), "max"),
    **dict.fromkeys(("PRODUCT", "MIN", "BAND"), "min"),
}
"""Reductions of bytes that are 0 or 1."""


class GroupMember(Protocol):
    """One rank of a group of the kernel library, which its collectives take."""

    @property
    def world(self) -> int:
        """The number of ranks."""
        ...


class RegionMemory:
    """Memory of a group that its ranks share as processes: that of `region` under a name."""

    def __init__(self, region: SharedRegion, group: str) -> None:
        self._region, self._group = region, group

    def tensor(self, name: str, size: int, gpu: int) -> Tensor:
        """uint8[size] on a GPU, zero at first."""
        tensor = torch.from_numpy(self.array(name, size))
        assign(tensor, gpu)
        return tensor

    def array(self, name: str, size: int) -> np.ndarray:
        """uint8[size] of the host, zero at first."""
        return self._region.array(f"{self._group}: {name}", size)


class SharedGroups:
    """The buffers and signals of all process groups: the first rank that needs some makes them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: dict[tuple[Any, ...], list[GroupMember]] = {}

    def of(self, name: str, gpus: Sequence[int]) -> list[GroupMember]:
        """The group of a name on some GPUs, by rank."""
        key = (name, *gpus)
        with self._lock:
            if key not in self._groups:
                words = " ".join(map(str, key))
                self._groups[key] = registry.collectives().groups_of(gpus, name=words)
            return self._groups[key]


def operation(opts: Any, x: Tensor) -> str:
    """The reduction that options ask for. Raises UsageError for one that no kernel does."""
    op = "SUM" if opts is None else getattr(opts.reduceOp, "op", opts.reduceOp).name
    operators = _BOOLEAN if x.dtype is torch.bool else _OPS
    if op not in operators:
        dtype = str(x.dtype).removeprefix("torch.")
        raise UsageError(f"reduction {op} of {dtype}; supported: {', '.join(operators)}")
    return operators[op]


def to_reducible(x: Tensor) -> Tensor:
    """A tensor as kernels reduce it: booleans are bytes."""
    return x.view(torch.uint8) if x.dtype is torch.bool else x


def shots_of(size: int, world: int) -> int:
    """The shots of an all-reduce: what is predicted to be faster; two, which move less, where no
    link is known. Both give the same bits."""
    try:
        return registry.collectives().shots_for(size, world)
    except MissingFact:
        return 2


__all__ = ["GroupMember", "SharedGroups", "operation", "shots_of", "to_reducible"]
