"""Ranks that share memory: what each of them knows of the others.

A rank has a buffer that peers read and a pad of signals that peers write. The buffer has two halves
used by alternate calls: a rank that starts call e + 2 has seen the signals of call e + 1 of all
peers, which these send after their call e has ended.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, ParamSpec, TypeVar

import numpy as np
import torch
from torch import Tensor

from wavecast.errors import ArgumentError
from wavecast.kernels.checks import FLOATS, require
from wavecast.kernels.distributed.signals import pad_size
from wavecast.launch.group_calls import CallBoard, Parts, calling, current_call
from wavecast.launch.group_memory import memory_of
from wavecast.launch.script_lines import location_suffix, script_line
from wavecast.perfmodel.ops.collectives.libraries import OWN_HALF

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
WAVES: Final = 8
"""Waves of a program."""
HALF: Final = OWN_HALF
"""Bytes of a half of a buffer; longer inputs take several launches."""
_ALIGNED: Final = 256
OPS: Final = ("sum", "avg", "max", "min", "product")
MOVED: Final = (
    *FLOATS,
    *(torch.float64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
    *(torch.uint16, torch.uint32, torch.uint64, torch.complex64, torch.complex128),
    *(torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz),
)
"""The dtypes that are copied between ranks."""


@dataclass(frozen=True, slots=True)
class RankCall:
    """What all ranks must agree on in a call; `options` are further ones, `root=1`. `count` is that
    of elements, of a row where ranks pass different numbers of rows."""

    name: str
    count: int
    dtype: torch.dtype
    options: str = ""
    op: str = ""

    def __str__(self) -> str:
        dtype = str(self.dtype).removeprefix("torch.")
        op = f"op={self.op}" if self.op not in ("", "sum") else ""
        options = ", ".join(filter(None, (op, self.options)))
        return f"{self.name} of {self.count} {dtype}{f' ({options})' if options else ''}"


@dataclass(frozen=True, slots=True)
class RankLayout:
    """Where a rank of a group is: its number, that of all ranks, its GPU, and half of its buffer in
    bytes. Without a GPU (in graphs of compilers, whose tensors say none) devices are not
    checked."""

    rank: int
    world: int
    gpu: int | None
    half: int

    def accepts(self, name: str, x: Tensor, label: str = "x", *, empty: bool = False) -> None:
        """Raises ArgumentError for a tensor that `name` cannot take: empty (unless `empty`), not
        contiguous, or of another GPU."""
        require(empty or x.numel() > 0, name, f"{label} is empty")
        require(x.is_contiguous(), name, f"{label} is not contiguous")
        self.is_of_rank(name, x, label)

    def is_of_rank(self, name: str, x: Tensor, label: str = "x") -> None:
        """Raises ArgumentError for a tensor of another device than the rank's GPU."""
        device = x.device
        fits = self.gpu is None or (device.type == "cuda" and device.index == self.gpu)
        require(fits, name, f"{label} is on {device}, rank {self.rank} on cuda:{self.gpu}")


@dataclass(slots=True)
class RankGroup:
    """One rank of a group. `buffers` (uint8) and `signals` (int32) are those of all ranks, each on
    its GPU, `board` is shared by all."""

    rank: int
    buffers: Sequence[Tensor]
    signals: Sequence[Tensor]
    board: CallBoard
    calls: int = 0
    launches: int = 0
    epoch: int = 0

    @property
    def world(self) -> int:
        """The number of ranks."""
        return len(self.buffers)

    @property
    def half(self) -> int:
        """Bytes that one call may stage."""
        return self.buffers[0].numel() // 2

    @property
    def layout(self) -> RankLayout:
        """What tensors of the rank are checked against."""
        gpu = self.buffers[self.rank].get_device()
        return RankLayout(self.rank, self.world, gpu, self.half)

    def accepts(self, name: str, x: Tensor, *, empty: bool = False) -> None:
        """As `RankLayout.accepts`."""
        self.layout.accepts(name, x, empty=empty)

    def begin(self, call: RankCall) -> None:
        """Start a call. Raises ArgumentError if a peer has called something else."""
        text = f"{_call_text(current_call(), call)}{location_suffix(script_line())}"
        self.board.post(self.rank, self.calls + 1, str(call), text)
        self.calls += 1

    def sends_equal_parts(self, parts: Parts) -> bool:
        """Whether the next call sends equal parts of one size, for which nobody waits; else ranks
        tell each other sizes first. Raises ArgumentError where ranks with equal parts that say no
        sizes meet others."""
        equal = parts is Parts.EQUAL
        path, wishes = self.board.choose(self.rank, self.calls + 1, parts, int(equal))
        fits = not {Parts.EQUAL, Parts.SIZES} <= {*wishes}
        require(fits, "all_to_all", "some ranks say no sizes of parts, others have different ones")
        return bool(path)

    def launch(self, dtype: torch.dtype, epochs: int) -> tuple[list[Tensor], int]:
        """For one launch: the half of every rank's buffer to use, and its first epoch."""
        first = self.epoch + 1
        self.epoch += epochs
        start = self.launches % 2 * self.half
        self.launches += 1
        end = start + self.half
        return [buffer[start:end].view(dtype) for buffer in self.buffers], first


def groups(world: int, half: int = HALF) -> list[RankGroup]:
    """A group of the GPUs 0 to `world` - 1, one element per rank.

    Raises ArgumentError for fewer than two ranks.
    """
    return groups_of(range(world), half)


def _call_text(program: str, call: RankCall) -> str:
    """A call as messages have it, which is part of what the `program` calls, "" if of nothing."""
    function, _, details = program.partition(" ")
    if function != call.name:
        return f"{program} ({call})" if program else str(call)
    return program if details.startswith("of ") else " ".join(filter(None, (str(call), details)))


def rank_operator(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """A function that the ranks of a group call: its launches are named by it, unless the program
    calls something that consists of it."""

    @functools.wraps(function)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with calling(current_call() or function.__name__):
            return function(*args, **kwargs)

    return run


class ProcessMemory:
    """Memory of this process, whose ranks are threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def tensor(self, name: str, size: int, gpu: int) -> Tensor:
        """uint8[size] on a GPU."""
        del name
        return torch.zeros(size, dtype=torch.uint8, device=f"cuda:{gpu}")

    def array(self, name: str, size: int) -> np.ndarray:
        """uint8[size] of the host."""
        del name
        return np.zeros(size, np.uint8)

    def exclusive(self) -> AbstractContextManager[Any]:
        """A block that one of the ranks is in."""
        return self._lock


def groups_of(gpus: Sequence[int], half: int = HALF, name: str = "") -> list[RankGroup]:
    """A group of some GPUs, one element per rank; `half` is that of a rank's buffer in bytes.
    Processes of ranks share what they make by the same `name`, or in the same order. Raises
    ArgumentError for fewer than two ranks."""
    world = len(gpus)
    if world < 2:
        raise ArgumentError(f"a group of {world}: collectives need two ranks or more")
    memory = memory_of(name) or ProcessMemory()
    calls = memory.array("calls", CallBoard.size(world))
    board = CallBoard(calls, gpus, exclusive=memory.exclusive)
    size = 2 * (-(-half // _ALIGNED) * _ALIGNED)
    pad = 4 * pad_size(world, WAVES)
    buffers = [memory.tensor(f"buffer of {gpu}", size, gpu) for gpu in gpus]
    signals = [memory.tensor(f"signals of {gpu}", pad, gpu).view(torch.int32) for gpu in gpus]
    return [RankGroup(rank, buffers, signals, board) for rank in range(world)]


__all__ = [
    "HALF",
    "MOVED",
    "OPS",
    "WAVES",
    "RankCall",
    "RankGroup",
    "RankLayout",
    "groups",
    "groups_of",
    "rank_operator",
]
