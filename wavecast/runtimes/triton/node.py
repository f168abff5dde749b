"""Triton's launches on the GPUs of a node: each goes to the queue of the current stream, and the
ranks of a program are threads of the process."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from wavecast.compile.codeobject import Launch
from wavecast.emulate.errors import Deadlock, ExecutionError
from wavecast.emulate.launch import AddressRange, Emulator
from wavecast.emulate.node import GpuNode
from wavecast.emulate.team import TeamMember
from wavecast.errors import LaunchError, UsageError
from wavecast.launch import recording
from wavecast.launch.callers import launch_caller
from wavecast.runtimes.distributed.progress import RankLeft, join_ranks
from wavecast.runtimes.hip_host.arena import ArenaPart
from wavecast.runtimes.hip_host.in_process import HipInProcess
from wavecast.runtimes.triton.execute import ExecutingHooks, LoadedKernel
from wavecast.runtimes.triton.hip_modules import ExecutingLauncher
from wavecast.runtimes.triton.launches import build_launch
from wavecast.runtimes.triton.processes import fork_always
from wavecast.runtimes.triton.rank_errors import raise_rank

if TYPE_CHECKING:
    from wavecast.runtimes.distributed.ranks import RankThreads
    from wavecast.runtimes.torch_cpu.gpus import Gpus
    from wavecast.runtimes.triton.node_checks import NodeChecks


@dataclass(kw_only=True)
class NodeLauncher(ExecutingLauncher):
    """What several GPUs answer of HIP: all but launches."""

    gpus: Gpus

    def on_device(self, number: int) -> None:
        self.gpus.select(number)

    def launch(self, *_: Any, **__: Any) -> NoReturn:
        raise UsageError(
            "launches through HIP's modules run on one emulated GPU",
            hint="emulate one GPU for programs of FlyDSL and other languages that launch so",
        )


class NodeHooks(ExecutingHooks):
    """`ExecutingHooks` for several GPUs: launches are queued, and run while the program launches
    others. `gpus` and `rank_threads` are set once PyTorch knows them."""

    gpus: Gpus
    rank_threads: RankThreads
    checks: NodeChecks | None = None

    def __init__(self, node: GpuNode, emulator: Emulator, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, emulator=emulator, **kwargs)
        self.node = node
        self.hip = HipInProcess(self._device, self._launcher, node.count)
        self.threads = max(1, emulator.threads // node.count)
        self._launching = threading.RLock()

    def install(self) -> None:
        """Make the node's GPUs Triton's devices. Raises as `ExecutingHooks.install`."""
        super().install()
        from triton.runtime.jit import JITFunction

        run = JITFunction.run

        @functools.wraps(run)
        def alone(*args: Any, **kwargs: Any) -> Any:
            # Triton's caches are not made for several threads; processes compile a kernel once.
            with self.node.preparing(), self._launching, self._one_process():
                result = run(*args, **kwargs)
            if self.gpus.backward:
                self.gpus.wait({self.gpus.current})
            return result

        self._patches.attribute(JITFunction, "run", alone)
        recording.start_blocking()  # replayed launches would not wait for the lock
        self._patches.callback(recording.stop_blocking)
        if self.checks is not None:
            self.checks.install(self._patches, self.node.changed)

    def ranks(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Call `function(rank, *args)` for every GPU in a thread whose current device it is.

        Returns the results in the order of ranks, after all launches have ended. Raises what the
        first rank raised that failed, as one line that names the rank.
        """
        results: list[Any] = [None] * self.node.count
        failures: list[tuple[int, BaseException]] = []
        left: list[int] = []
        deadlock, progress = threading.Event(), self.rank_threads.progress
        self.node.describe_rank = progress.describe

        def run(rank: int) -> None:
            try:
                with self.rank_threads.rank(rank, self.node.count), progress.following(rank):
                    self.gpus.select(rank)
                    results[rank] = until_exit(lambda: function(rank, *args))
                    self.node.synchronize(rank)
            except RankLeft as exit_:
                left.append(rank)
                if exit_.code:
                    failures.append((rank, ExecutionError(f"it left by os._exit({exit_.code})")))
            except BaseException as error:
                failures.append((rank, error))
                if isinstance(error, Deadlock):
                    deadlock.set()

        threads = [
            threading.Thread(target=run, args=(rank,), name=f"rank {rank}")
            for rank in range(self.node.count)
        ]
        with self.node.blocking():
            for thread in threads:
                thread.start()
            join_ranks(threads, deadlock)
        if failures:
            raise_rank(*failures[0], left=left)
        return results

    @property
    def checks_more(self) -> bool:
        """Whether more than launches was checked: copies, and what the host touches."""
        return self.checks is not None and self.checks.accesses.are_followed

    @property
    def executed(self) -> int:
        """How many launches were executed, in forks where this process has executed none."""
        board = self.node.board
        return super().executed or (board.launches if board is not None else 0)

    def _one_process(self) -> contextlib.AbstractContextManager[None]:
        """A block that one of the ranks is in, where they are processes."""
        board = self.node.board
        if board is None or not self.node.is_fork:
            return contextlib.nullcontext()
        return board.launching.exclusive()

    def use_processes(self) -> None:
        """Let ranks be processes: those that the program starts are forks of this one. Raises
        UsageError where ranks are threads only."""
        _ = self.node.rank_board
        self.node.processes = True
        fork_always(self._patches)

    def as_rank(self, rank: int, function: Callable[[], Any]) -> None:
        """Call `function` as a rank, of which this process, a fork, is the process. Raises what
        it raises, and what its launches raise."""
        self.node.become_rank(rank, self.node.count)
        with self.rank_threads.rank(rank, self.node.count):
            self.gpus.select(rank)
            until_exit(function)
            self.node.synchronize(rank)
        self.node.rank_board.leave()

    def _launcher(self, arena: ArenaPart) -> NodeLauncher:
        return NodeLauncher(
            self.emulator, self._device, arena, checks=self.emulator.mode is not None,
            tensors=self.tensors, timers=self.timers, profiled=self.profiled, gpus=self.gpus,
        )  # fmt: skip

    def _make_launch(
        self, kernel: Any, loaded: LoadedKernel, grid: tuple[int, int, int], values: tuple
    ) -> Launch:
        """The launch; its arguments are described for messages about deadlocks."""
        signature = kernel.src.signature
        return build_launch(loaded.code, loaded.layout, loaded.segment, signature, grid, values)

    def _execute(self, launch: Launch, ranges: list[AddressRange], values: tuple) -> None:
        from wavecast.runtimes.torch_cpu import gpus

        here = self.gpus.current
        for value in _tensors(values):
            owner = gpus.owner(value)
            if owner == gpus.HOST:
                raise LaunchError(
                    f"{launch.code.kernel}: a tensor of the host is passed to a kernel",
                    hint='move it with .to("cuda")',
                )
            if owner is None:
                gpus.assign(value, here)
            if self.checks is not None:
                self.checks.follow(value.untyped_storage(), here if owner is None else owner)
        self.emulator.translate(launch.code)
        caller = launch_caller()
        run = functools.partial(
            self.emulator.run,
            replace(launch, caller=caller),
            ranges,
            threads=self.threads,
            team=self.node.team,
            member=TeamMember(
                f"GPU {here}", memory_of, str(caller), lambda: self.node.has_failed(here)
            ),
        )
        references = [values]
        accesses = None if self.checks is None else self.checks.accesses
        submission = 0 if accesses is None else accesses.on_submit(ranges)

        def execute() -> None:
            try:
                run()
            finally:
                references.clear()
                if accesses is not None:
                    accesses.on_end(submission)

        self.gpus.queue().submit(execute)


def _tensors(values: Iterable[Any]) -> Iterator[Any]:
    """The tensors among parameters, also those in tuples."""
    for value in values:
        if isinstance(value, tuple):
            yield from _tensors(value)
        elif hasattr(value, "untyped_storage"):
            yield value


def memory_of(address: int) -> str:
    """`memory of GPU 1`: whose tensor an address lies in, "" for an address in none."""
    from wavecast.runtimes.torch_cpu import gpus

    for owner, first, end in gpus.owner_ranges():
        if first <= address < end:
            return "memory of the host" if owner == gpus.HOST else f"memory of GPU {owner}"
    return ""


def until_exit(function: Callable[[], Any]) -> Any:
    """What `function` returns; None where it ends with `sys.exit` and the code 0."""
    try:
        return function()
    except SystemExit as error:
        if error.code:
            raise
        return None


__all__ = ["NodeHooks"]
