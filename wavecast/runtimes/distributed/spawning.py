"""Ranks that a program starts as processes: threads instead, or forks if those are wanted."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from wavecast.errors import UsageError
from wavecast.runtimes.distributed.ranks import RankState, RankThreads
from wavecast.runtimes.patching import Patches
from wavecast.runtimes.torch_cpu.gpus import Gpus


def install(patches: Patches, gpus: Gpus, ranks: RankThreads) -> None:
    """Replace `torch.multiprocessing.spawn`."""
    import torch.multiprocessing as processes

    def spawn(
        fn: Callable[..., Any],
        args: tuple[Any, ...] = (),
        nprocs: int = 1,
        join: bool = True,
        daemon: bool = False,
        start_method: str = "spawn",
    ) -> Any:
        """Call `fn(i, *args)` in `nprocs` threads, each with its process groups, or in forks of
        this process. Raises what the first that failed raised, and UsageError for threads without
        `join`."""
        if gpus.node.processes:
            return original(fn, args, nprocs, join, daemon, start_method)
        if not join:
            raise UsageError(
                "spawn: emulated ranks are threads, which must be joined",
                hint="wavecast run --processes makes them processes",
            )
        failures: list[tuple[int, BaseException]] = []

        def run(number: int) -> None:
            try:
                with ranks.enter(RankState()):
                    fn(number, *args)
            except BaseException as error:
                failures.append((number, error))

        threads = [
            threading.Thread(target=run, args=(number,), name=f"rank {number}")
            for number in range(nprocs)
        ]
        with gpus.node.blocking():
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        if failures:
            number, error = failures[0]
            error.add_note(f"raised by process {number} of spawn")
            raise error
        return None

    original = vars(processes)["spawn"]
    patches.attribute(processes, "spawn", functools.wraps(original)(spawn))


__all__ = ["install"]
