"""What process groups share, and how their calls become those of `wavecast.ops.distributed`."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final, Protocol

import torch
from torch import Tensor

from wavecast.errors import MissingFact, UsageError
from wavecast.kernels import registry

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
                self._groups[key] = registry.collectives().groups_of(gpus)
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
