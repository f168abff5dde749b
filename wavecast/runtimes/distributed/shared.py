"""What process groups share, and how their calls become those of `wavecast.ops.distributed`."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import torch
from torch import Tensor

from wavecast.errors import MissingFact, UsageError
from wavecast.kernels import registry
from wavecast.launch.group_calls import CallBoard, CallsDiffer, Parts
from wavecast.launch.group_memory import memory_of
from wavecast.launch.script_lines import location_suffix, script_line
from wavecast.runtimes.distributed.calls import GroupCall
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

    @property
    def rank(self) -> int:
        """The number of this one."""
        ...

    def sends_equal_parts(self, parts: Parts) -> bool:
        """Whether the next call sends equal parts, which need not be compared."""
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

    def exclusive(self) -> AbstractContextManager[None]:
        """A block that one of all ranks is in."""
        return self._region.exclusive()


@dataclass(slots=True)
class CallCounter:
    """The calls of rank `rank` of a process group; `number` is that of the last."""

    rank: int
    board: CallBoard
    number: int = 0

    def post(self, call: GroupCall) -> None:
        """Start a call. Raises ArgumentError if a peer has called something else."""
        self.number += 1
        text = f"{call}{location_suffix(script_line())}"
        self.board.post(self.rank, self.number, call.shared, text)

    def refuse(self) -> list[int]:
        """The last has raised an error here. Returns the ranks that wait in it."""
        return self.board.refuse(self.rank, self.number)

    def check_peers(self) -> None:
        """The last is launched here. Raises CallsDiffer if a peer has raised an error in it."""
        if self.board.is_refused(self.rank, self.number):
            raise CallsDiffer(self.last)

    @property
    def last(self) -> str:
        """What the ranks call that have come to the number of the last."""
        return self.board.describe(self.number)


@dataclass(frozen=True, slots=True)
class CallingMember:
    """A rank of a process group: its part of the `group` of the kernel library, and its `calls`."""

    group: GroupMember
    calls: CallCounter


class SharedGroups:
    """The buffers, signals and calls of all process groups: the first rank that needs some makes
    them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: dict[tuple[Any, ...], list[CallingMember]] = {}
        self._boards: dict[tuple[Any, ...], CallBoard] = {}

    def of(self, name: str, gpus: Sequence[int], kind: str) -> list[CallingMember]:
        """The group of a name on some GPUs, by rank, whose calls messages call a `kind`."""
        key = (name, *gpus)
        with self._lock:
            if key not in self._groups:
                board = self._board(name, gpus, kind)
                groups = registry.collectives().groups_of(gpus, name=" ".join(map(str, key)))
                self._groups[key] = [
                    CallingMember(group, CallCounter(rank, board))
                    for rank, group in enumerate(groups)
                ]
            return self._groups[key]

    def board(self, name: str, gpus: Sequence[int], kind: str) -> CallBoard:
        """Where the ranks of a group on some GPUs note calls."""
        with self._lock:
            return self._board(name, gpus, kind)

    def _board(self, name: str, gpus: Sequence[int], kind: str) -> CallBoard:
        key = (name, *gpus)
        if key not in self._boards:
            size = CallBoard.size(len(gpus))
            region = memory_of(" ".join(map(str, key)))
            memory = np.zeros(size, np.uint8) if region is None else region.array("board", size)
            self._boards[key] = CallBoard(memory, gpus, kind)
        return self._boards[key]


def op_name(opts: Any) -> str:
    """The reduction that options ask for, by PyTorch's name."""
    return "SUM" if opts is None else getattr(opts.reduceOp, "op", opts.reduceOp).name


def operation(opts: Any, x: Tensor) -> str:
    """The reduction that options ask for. Raises UsageError for one that no kernel does."""
    op = op_name(opts)
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


__all__ = [
    "CallCounter",
    "CallingMember",
    "GroupMember",
    "SharedGroups",
    "op_name",
    "operation",
    "shots_of",
    "to_reducible",
]
