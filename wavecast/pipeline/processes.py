"""Parallel maps in processes that may die: compilers can crash a process, and leak memory in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Final, TypeVar

from wavecast import processes

Call = TypeVar("Call")
Result = TypeVar("Result")

_PER_PROCESS: Final = 16
"""Calls after which processes are replaced. `ProcessPoolExecutor` can do that by itself, but hangs
then (CPython issue 115634)."""


def map_unordered(
    function: Callable[[Call], Result], calls: Iterable[Call], jobs: int
) -> Iterator[tuple[Call, Result | None]]:
    """`function` of every call in `jobs` processes, as they end; None for a call whose process
    died. An exception of `function` is raised here. Function, calls and results are pickled."""
    waiting = list(calls)
    while waiting:
        batch, waiting = waiting[: _PER_PROCESS * jobs], waiting[_PER_PROCESS * jobs :]
        yield from _batch(function, batch, jobs)


def _batch(
    function: Callable[[Call], Result], waiting: list[Call], jobs: int
) -> Iterator[tuple[Call, Result | None]]:
    while waiting:
        unfinished: list[Call] = []
        with processes.started_pool(jobs) as pool:
            running: dict[Future[Result], Call] = {
                pool.submit(function, call): call for call in waiting
            }
            for future in as_completed(running):
                try:
                    yield running[future], future.result()
                except BrokenProcessPool:
                    unfinished.append(running[future])
        if jobs == 1 and unfinished:  # the first of them was the one that ran
            order = [call for call in waiting if any(call is candidate for candidate in unfinished)]
            yield order[0], None
            waiting = order[1:]
        else:  # which of them it was shows when each runs alone
            jobs, waiting = 1, unfinished


__all__ = ["map_unordered"]
