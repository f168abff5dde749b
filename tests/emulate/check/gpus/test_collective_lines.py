"""Races with what `torch.distributed` launches are reported at the lines of the program's calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("llvmlite", reason="needs llvmlite")

import torch
import torch.distributed as dist
from torch import multiprocessing

import wavecast
from wavecast.emulate.check.collected import Reports
from wavecast.emulate.reports import Kind
from wavecast.launch.script_lines import is_own

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:.*is deprecated:FutureWarning"),
]
N: Final = 64


class Buffers:
    """What a call reads and writes: `x` of one rank, `wide` of both, and `parts` of that."""

    def __init__(self, rank: int) -> None:
        self.rank, self.peer = rank, 1 - rank
        self.x = torch.ones(N, device=f"cuda:{rank}")
        self.wide = torch.ones(2 * N, device=f"cuda:{rank}")
        self.parts = list(self.wide.chunk(2))


def _send(b: Buffers) -> Any:
    return dist.isend(b.x, b.peer) if b.rank else dist.irecv(b.wide[:N], b.peer)


def _batch(b: Buffers) -> Any:
    send = dist.P2POp(dist.isend, b.x, b.peer)
    works = dist.batch_isend_irecv([send, dist.P2POp(dist.irecv, b.wide[:N], b.peer)])
    return works[-1]


CALLS: Final[dict[str, Callable[[Buffers], Any]]] = {
    "all_reduce": lambda b: dist.all_reduce(b.x, async_op=True),
    "reduce": lambda b: dist.reduce(b.x, 0, async_op=True),
    "broadcast": lambda b: dist.broadcast(b.x, 0, async_op=True),
    "all_gather_into_tensor": lambda b: dist.all_gather_into_tensor(b.wide, b.x, async_op=True),
    "all_gather": lambda b: dist.all_gather(b.parts, b.x, async_op=True),
    "gather": lambda b: dist.gather(b.x, None if b.rank else b.parts, async_op=True),
    "scatter": lambda b: dist.scatter(b.x, None if b.rank else b.parts, async_op=True),
    "reduce_scatter_tensor": lambda b: dist.reduce_scatter_tensor(b.x, b.wide, async_op=True),
    "reduce_scatter": lambda b: dist.reduce_scatter(b.x, b.parts, async_op=True),
    "all_to_all_single": lambda b: dist.all_to_all_single(b.wide, b.wide + 1, async_op=True),
    "all_to_all": lambda b: dist.all_to_all(b.parts, [b.x, b.x], async_op=True),
    "message": _send,
    "batch": _batch,
}
LISTS: Final = frozenset({"all_gather", "gather", "scatter", "all_to_all"})
"""Calls that copy to and from lists on the host, behind their launches: the program cannot race."""


def _race(rank: int, names: list[str]) -> None:
    """Every call, and a host that does not wait for it."""
    torch.cuda.set_device(rank)
    dist.init_process_group("wavecast")
    for name in names:
        buffers = Buffers(rank)
        work = CALLS[name](buffers)
        buffers.x.zero_()
        buffers.wide.zero_()
        work.wait()
        torch.cuda.synchronize()
    dist.destroy_process_group()


def _lines(call: Callable[..., Any]) -> range:
    code = call.__code__  # type: ignore[attr-defined]
    return range(code.co_firstlineno, max(line for *_, line in code.co_lines() if line) + 1)


def test_races_with_collectives_are_reported_at_the_lines_of_calls() -> None:
    reports = Reports()
    node: Any
    with wavecast.device("gfx942", count=2, check=reports) as node:
        node.ranks(_race, list(CALLS))
    races = [report for report in reports if report.kind is Kind.HOST_RACE]
    for report in races:
        for place in (report.location, report.other_location):
            assert place is not None
            assert not is_own(place.outermost.file)
    here = Path(__file__).name
    lines = {
        report.other_location.line
        for report in races
        if report.other_location is not None and Path(report.other_location.file).name == here
    }
    assert {name for name in CALLS if lines & {*_lines(CALLS[name])}} == CALLS.keys() - LISTS
    texts = {report.other_text for report in races}
    assert {f"all_reduce of {N} float32", f"isend of {N} float32 to rank 0"} <= texts
    assert any(f"isend of {N} float32 to rank 0 on GPU 1 reads" in one.message for one in races)


def test_spawned_ranks_are_reported_at_the_lines_of_calls() -> None:
    reports = Reports()
    with wavecast.device("gfx942", count=2, check=reports):
        multiprocessing.spawn(_spawned, (), nprocs=2)  # pyright: ignore[reportPrivateImportUsage]
    (report,) = {report.other_location for report in reports if report.kind is Kind.HOST_RACE}
    assert report is not None
    assert report.line in _lines(CALLS["all_reduce"])


def _spawned(rank: int) -> None:
    torch.cuda.set_device(rank)
    dist.init_process_group("wavecast", rank=rank, world_size=2)
    buffers = Buffers(rank)
    work = CALLS["all_reduce"](buffers)
    buffers.x.zero_()
    work.wait()
    dist.destroy_process_group()


def test_a_sender_reads_what_it_sends() -> None:
    reports = Reports()
    node: Any
    with wavecast.device("gfx942", count=2, check=reports) as node:
        sums = node.ranks(_read_while_sent)
    assert sums == [N, N]
    assert not [report for report in reports if report.severity == "error"]


def _read_while_sent(rank: int) -> float:
    """The program may read, though not write, what it sends or broadcasts."""
    torch.cuda.set_device(rank)
    dist.init_process_group("wavecast")
    buffers = Buffers(rank)
    if rank:
        dist.recv(buffers.wide[:N], 0)
        dist.broadcast(buffers.wide[N:], 0)
        total = buffers.wide[N:].sum().item()
    else:
        works = [dist.isend(buffers.x, 1), dist.broadcast(buffers.x, 0, async_op=True)]
        total = buffers.x.sum().item()
        for work in works:
            work.wait()
    dist.destroy_process_group()
    return total
