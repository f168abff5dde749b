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
    calls = [lambda: dist.all_reduce(_ones()), lambda: dist.broadcast(_ones(), 0)]
    for call in reversed(calls) if rank and mistake else calls:
        call()


def _shape(rank: int, mistake: bool) -> None:
    dist.all_reduce(_ones(4 + rank * mistake))


def _dtype(rank: int, mistake: bool) -> None:
    dist.all_reduce(_ones(dtype=torch.float16 if rank and mistake else torch.float32))


def _operation(rank: int, mistake: bool) -> None:
    wrong = rank and mistake
    dist.all_reduce(_ones(), dist.ReduceOp.MAX if wrong else dist.ReduceOp.SUM)


def _root(rank: int, mistake: bool) -> None:
    dist.broadcast(_ones(), rank if mistake else 0)


def _absent(rank: int, mistake: bool) -> None:
    if not (rank and mistake):
        dist.all_reduce(_ones())


DIFFERENT: Final = "collective 1: rank"
"""How the error begins that names the calls of two ranks."""
CASES: Final = (
    Case("order of collectives", "two ranks call them in different orders", DIFFERENT,
         _collectives(_order)),
    Case("sizes of a collective", "two ranks pass different sizes", DIFFERENT,
         _collectives(_shape)),
    Case("dtypes of a collective", "two ranks pass different dtypes",
         DIFFERENT, _collectives(_dtype)),
    Case("reductions of a collective", "two ranks reduce differently",
         DIFFERENT, _collectives(_operation)),
    Case("roots of a broadcast", "two ranks name different roots", DIFFERENT,
         _collectives(_root)),
    Case("absent rank", "a rank does not call", DEADLOCK, _collectives(_absent)),
)  # fmt: skip

__all__ = ["CASES"]
