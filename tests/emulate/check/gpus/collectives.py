"""The planted mistakes of ranks that call collectives which do not fit together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
import torch.distributed as dist

from tests.emulate.check.gpus.planting import DEADLOCK, Bench, Case


def _collectives(
    call: Callable[[int, bool], Any],
) -> Callable[[Bench, bool], None]:
    """`call(rank, mistake)` by the ranks of a process group."""

    def run(bench: Bench, mistake: bool) -> None:
        def rank(number: int) -> None:
            dist.init_process_group("wavecast")
            call(number, mistake)

        bench.each(rank)

    return run


def _ones(count: int = 4, dtype: Any = torch.float32) -> Any:
    return torch.ones(count, dtype=dtype, device="cuda")


def _order(rank: int, mistake: bool) -> None:
    x = _ones()
    if rank and mistake:
        dist.broadcast(x, 0)  # planted: call
    dist.all_reduce(x)  # planted: call
    if not (rank and mistake):
        dist.broadcast(x, 0)


def _shape(rank: int, mistake: bool) -> None:
    dist.all_reduce(_ones(4 + rank * mistake))  # planted: call


def _dtype(rank: int, mistake: bool) -> None:
    dtype = torch.float16 if rank and mistake else torch.float32
    dist.all_reduce(_ones(dtype=dtype))  # planted: call


def _operation(rank: int, mistake: bool) -> None:
    wrong = rank and mistake
    op = dist.ReduceOp.MAX if wrong else dist.ReduceOp.SUM
    dist.all_reduce(_ones(), op)  # planted: call


def _root(rank: int, mistake: bool) -> None:
    dist.broadcast(_ones(), rank if mistake else 0)  # planted: call


def _absent(rank: int, mistake: bool) -> None:
    if not (rank and mistake):
        dist.all_reduce(_ones())  # planted: call


def _receive(rank: int, mistake: bool) -> None:
    x = _ones()
    if rank and not mistake:
        dist.send(x, 0)
    else:
        dist.recv(x, 1 - rank)  # planted: call


def _wrong_sender(rank: int, mistake: bool) -> None:
    """Rank 0 receives from itself one behind: a message that nobody sends."""
    x = _ones()
    if rank:
        dist.send(x, 0)
        dist.send(x, 0)
    else:
        for _ in range(3 if mistake else 2):
            dist.recv(x, 1)  # planted: call


def _both_send(rank: int, mistake: bool) -> None:
    x = _ones()
    if rank and not mistake:
        dist.recv(x, 0)
    else:
        dist.send(x, 1 - rank)  # planted: call


def _message_size(rank: int, mistake: bool) -> None:
    if rank:
        dist.recv(_ones(4 + mistake), 0)  # planted: receive
    else:
        dist.send(_ones(4), 1)  # planted: send


def _instead(rank: int, mistake: bool) -> None:
    if rank and mistake:
        dist.reduce(_ones(), 0)  # planted: reduce
    else:
        dist.all_reduce(_ones())  # planted: call


def _group_order(rank: int, mistake: bool) -> None:
    groups = [dist.new_group([0, 1]) for _ in range(2)]
    for group in reversed(groups) if rank and mistake else groups:
        dist.all_reduce(_ones(), group=group)  # planted: call


def _created(rank: int, mistake: bool) -> None:
    for members in ([1], [0]) if rank and mistake else ([0], [1]):
        dist.new_group(members)  # planted: create


MESSAGE: Final = "message 1: rank"
GROUP: Final = "group 1: rank"
DIFFERENT: Final = "collective 1: rank"
"""How the error begins that names the calls of two ranks."""
CASES: Final = (
    Case("order of collectives", "two ranks call them in different orders", DIFFERENT,
         _collectives(_order), _order, ("call",)),
    Case("sizes of a collective", "two ranks pass different sizes", DIFFERENT,
         _collectives(_shape), _shape, ("call",)),
    Case("dtypes of a collective", "two ranks pass different dtypes",
         DIFFERENT, _collectives(_dtype), _dtype, ("call",)),
    Case("reductions of a collective", "two ranks reduce differently",
         DIFFERENT, _collectives(_operation), _operation, ("call",)),
    Case("roots of a broadcast", "two ranks name different roots", DIFFERENT,
         _collectives(_root), _root, ("call",)),
    Case("absent rank", "a rank does not call", DEADLOCK, _collectives(_absent), _absent,
         ("call",)),
    Case("both receive", "two ranks receive, and none sends", DEADLOCK, _collectives(_receive),
         _receive, ("call",)),
    Case("both send", "two ranks send, and none receives", DEADLOCK, _collectives(_both_send),
         _both_send, ("call",)),
    Case("size of a message", "a rank receives more than the other sends", MESSAGE,
         _collectives(_message_size), _message_size, ("send", "receive")),
    Case("another collective", "a rank reduces, the other all-reduces", DIFFERENT,
         _collectives(_instead), _instead, ("call", "reduce")),
    Case("order of groups", "two ranks use two groups in different orders", DEADLOCK,
         _collectives(_group_order), _group_order, ("call",)),
    Case("groups created", "two ranks create groups in different orders", GROUP,
         _collectives(_created), _created, ("create",)),
    Case("message not sent", "a rank receives once more than the other sends", DEADLOCK,
         _collectives(_wrong_sender), _wrong_sender, ("call",)),
)  # fmt: skip

__all__ = ["CASES"]
