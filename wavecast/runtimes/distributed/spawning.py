"""Ranks that a program starts as processes: threads instead, or forks if those are wanted."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any

from wavecast.emulate.errors import Deadlock
from wavecast.errors import UsageError
from wavecast.launch.group_calls import CallsDiffer
from wavecast.runtimes.distributed.progress import RankLeft, join_ranks
from wavecast.runtimes.distributed.ranks import RankThreads
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
        deadlock = threading.Event()

        def run(number: int) -> None:
            try:
                with ranks.enter(ranks.new_state()), ranks.progress.following(number):
                    fn(number, *args)
            except (RankLeft, SystemExit) as error:
                if error.code:
                    code = error.code if isinstance(error.code, int) else 1
                    failures.append((number, _exited(number, code)))
            except BaseException as error:
                failures.append((number, error))
                if isinstance(error, Deadlock):
                    deadlock.set()

        gpus.node.describe_rank = ranks.progress.describe
        threads = [
            threading.Thread(target=run, args=(number,), name=f"rank {number}")
            for number in range(nprocs)
        ]
        with gpus.node.blocking():
            for thread in threads:
                thread.start()
            join_ranks(threads, deadlock)
        if failures:
            number, error = failures[0]
            if isinstance(error, Deadlock | CallsDiffer):  # they name all ranks
                raise error
            error.add_note(f"raised by process {number} of spawn")
            raise error
        return None

    original = vars(processes)["spawn"]
    patches.functions({original: functools.wraps(original)(spawn)})


def _exited(number: int, code: int) -> BaseException:
    """What PyTorch raises for a process that ended with a code."""
    from torch.multiprocessing.spawn import ProcessExitedException

    message = f"process {number} terminated with exit code {code}"
    return ProcessExitedException(message, number, os.getpid(), code)


__all__ = ["install"]
