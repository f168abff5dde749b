"""Mistakes of what the host does between two GPUs: it touches memory that a stream still uses."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

from typing import Any, Final

import torch
import torch.distributed as dist

from tests.emulate.check.gpus import memory, signals
from tests.emulate.check.gpus.planting import Bench, Case

N: Final = 64
ONE: Final = {"num_warps": 1}


def other_stream(bench: Bench, mistake: bool) -> None:
    x, side = bench.zeros(N), torch.cuda.Stream(0)
    with torch.cuda.stream(side):
        memory.fill[(1,)](x, 1, N=N, **ONE)
    if not mistake:
        side.synchronize()
    x.cpu()  # planted: read


def queried(bench: Bench, mistake: bool) -> None:
    x, side, done = bench.zeros(N), torch.cuda.Stream(0), torch.cuda.Event()
    with torch.cuda.stream(side):
        if mistake:
            done.record()
        memory.fill[(1,)](x, 1, N=N, **ONE)
        if not mistake:
            done.record()
    while not done.query():
        pass
    x.cpu()  # planted: read


def operator(bench: Bench, mistake: bool) -> None:
    x, y, side = bench.zeros(N), bench.zeros(N), torch.cuda.Stream(0)
    with torch.cuda.stream(side):
        memory.fill[(1,)](x, 1, N=N, **ONE)
    if not mistake:
        torch.cuda.current_stream(0).wait_stream(side)
    y += x  # planted: read


def peers_stores(bench: Bench, mistake: bool) -> None:
    x = bench.zeros(N)
    bench.on(1, lambda: memory.fill[(1,)](x, 1, N=N, **ONE))
    torch.cuda.synchronize(0 if mistake else 1)
    x[: N // 2].tolist()  # planted: read


def other_rows(bench: Bench, mistake: bool) -> None:
    """Of a matrix a kernel stores one half, and the host reads the other."""
    x, side = bench.zeros(4, N), torch.cuda.Stream(0)
    with torch.cuda.stream(side):
        memory.fill[(1,)](x[2], 1, N=N, **ONE)
    row = 2 if mistake else 1
    x[row].sum().item()  # planted: read


def reset_early(bench: Bench, mistake: bool) -> None:
    data, flag, out = bench.zeros(N), bench.zeros(1, gpu=1), bench.empty(N, gpu=1)
    for rank in range(2):
        with torch.cuda.device(rank):
            signals.epoch_call[(1,)](data, flag, out, rank, 1, 1, N=N, **ONE)
    torch.cuda.synchronize(0)
    if not mistake:
        torch.cuda.synchronize(1)
    data.zero_()  # planted: write


def assigned_early(bench: Bench, mistake: bool) -> None:
    x, out = bench.zeros(N), bench.empty(N, gpu=1)
    bench.on(1, lambda: memory.copy[(1,)](x, out, N=N, **ONE))
    if not mistake:
        torch.cuda.synchronize(1)
    x[3] = 7  # planted: write


def _sent(bench: Bench) -> tuple[Any, Any]:
    x, host = bench.zeros(N), torch.zeros(N, dtype=torch.int32, pin_memory=True)
    bench.on(0, lambda: memory.fill[(1,)](x, 1, N=N, **ONE))
    return x, host


def copy_to_pinned(bench: Bench, mistake: bool) -> None:
    x, host = _sent(bench)
    done = torch.cuda.Event()
    if mistake:
        done.record()
    host.copy_(x, non_blocking=True)
    if not mistake:
        done.record()
    done.synchronize()
    host.sum().item()  # planted: read


def copy_to_host(bench: Bench, mistake: bool) -> None:
    x, _ = _sent(bench)
    host = x.to("cpu", non_blocking=True)
    if not mistake:
        torch.cuda.current_stream(0).synchronize()
    host.numpy()  # planted: read


def staging_reused(bench: Bench, mistake: bool) -> None:
    x, host = _sent(bench)
    side = torch.cuda.Stream(0)
    with torch.cuda.stream(side):
        side.wait_stream(torch.cuda.default_stream(0))
        x.copy_(host, non_blocking=True)
    (torch.cuda.default_stream(0) if mistake else side).synchronize()
    host.fill_(2)  # planted: write


def pageable_copies(bench: Bench, mistake: bool) -> None:
    """A copy to memory that is not pinned returns when it is done."""
    x, host = _sent(bench)
    pageable = torch.zeros(N, dtype=torch.int32)
    (host if mistake else pageable).copy_(x, non_blocking=True)
    (host if mistake else pageable).tolist()  # planted: read


def collective(bench: Bench, mistake: bool) -> None:
    def step(rank: int) -> None:
        dist.init_process_group("wavecast")
        x = torch.full((N,), rank + 1.0, device="cuda")
        work: Any = dist.all_reduce(x, async_op=True)
        if not mistake:
            work.wait()
        x.sum().item()  # planted: read
        work.wait()

    bench.each(step)


RACE: Final = "host-race"
CASES: Final = (
    Case("other stream read", "the host reads what a kernel in another stream stores", RACE,
         other_stream, other_stream, ("read",)),
    Case("early event queried", "the event that the host asks for is recorded before the launch",
         RACE, queried, queried, ("read",)),
    Case("other stream in an operator", "an operator reads what another stream stores", RACE,
         operator, operator, ("read",)),
    Case("peer's stores read", "the host waits for the memory's GPU, not for the one that stores",
         RACE, peers_stores, peers_stores, ("read",)),
    Case("row of a kernel", "the host reads the row that a kernel stores", RACE, other_rows,
         other_rows, ("read",)),
    Case("reset early", "the host clears what the peer's kernel may still read", RACE, reset_early,
         reset_early, ("write",)),
    Case("assigned early", "the host assigns an element that a kernel reads", RACE, assigned_early,
         assigned_early, ("write",)),
    Case("copy not awaited", "pinned memory is read, and the event is recorded before the copy",
         RACE, copy_to_pinned, copy_to_pinned, ("read",)),
    Case("copy to the host not awaited", "the result of a non-blocking copy is read", RACE,
         copy_to_host, copy_to_host, ("read",)),
    Case("staging buffer reused", "pinned memory is written while a copy reads it", RACE,
         staging_reused, staging_reused, ("write",)),
    Case("pinned as pageable", "a copy to pinned memory is not waited for", RACE, pageable_copies,
         pageable_copies, ("read",)),
    Case("collective not awaited", "the host reads what a collective reduces", RACE, collective,
         collective, ("read",)),
)  # fmt: skip

__all__ = ["CASES"]
