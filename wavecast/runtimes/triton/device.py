"""A GPU that is not there, as Triton's device: `with wavecast.device("gfx942"): …`, and scripts
run on it."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wavecast.errors import UsageError, WavecastError
from wavecast.runtimes.devices import DeviceFacts
from wavecast.runtimes.languages.registry import unseen_launches
from wavecast.runtimes.triton.program import (
    named_exception,
    own_traceback,
    program_of,
    run_as_main,
    starts_processes,
)
from wavecast.runtimes.triton.rank_processes import ScriptExit, run_ranks
from wavecast.runtimes.triton.session import device_facts

if TYPE_CHECKING:
    from wavecast.arch import Device
    from wavecast.emulate.check.collected import Reports
    from wavecast.emulate.launch_counts import LaunchCounts
    from wavecast.emulate.node import GpuNode
    from wavecast.emulate.trace.mode import TraceMode
    from wavecast.runtimes.triton.execute import ExecutingHooks


@contextlib.contextmanager
def device(
    arch: str | Device | DeviceFacts = "gfx942",
    *,
    count: int = 1,
    threads: int | None = None,
    kernels: str = "",
    check: bool | Reports = False,
    max_instructions: int | None = None,
    trace: bool | TraceMode = False,
    pytorch: bool = True,
) -> Iterator[ExecutingHooks]:
    """Execute every Triton launch of the block on the emulator, at once, in this process.

    Tensors live on the CPU, also those asked for with `device="cuda"` where PyTorch has no GPU;
    results land in them. With a `count` of 2 or more, there are as many GPUs, `cuda:0` to
    `cuda:N-1`: launches go to the queues of streams and run at once, kernels may access the memory
    of any GPU, and host code waits for the streams of the tensors it uses (docs/multi-gpu.md).
    `threads` is the number of host threads (default: all there are),
    `kernels` a regular expression of the kernels to execute, others are left out, and
    `max_instructions` how many instructions each wave may execute (default: minutes' worth).

    Launches raise `wavecast.emulate.errors.Unsupported` for an instruction without a meaning here
    and `ExecutionError` when they touch memory outside their tensors' storages, run endlessly or
    deadlock. Raises UnknownName for an unknown `arch`, UsageError inside a capture or a device
    or for another value of `check`.

    With `check`, launches are watched for races, missing waits, reads of memory nobody wrote and
    more (docs/checks.md). What is found gathers in `reports` of the object the block gets; when the
    block ends with errors there, ChecksFailed is raised. Given a `Reports`, it only gathers there.

    Times that `triton.testing` gives, and autotuners choose by, are predictions for the device, and
    so are those between events of `torch.cuda` and of HIP: the sum of the launches between them.
    Launches that a function times are not executed. One that cannot be predicted takes `inf`; why
    is in `notes` of the object the block gets, and a warning at its end.

    With `trace`, `traces` of that object holds what every launch executed and touched
    (docs/trace.md); give a `TraceMode` to choose workgroups or to record waves.

    Without `pytorch`, PyTorch is as it is without a GPU: only launches are executed. That is for
    programs that know their tensors are the CPU's.
    """
    from wavecast.emulate.check.collected import Reports, gathering
    from wavecast.emulate.check.gpus.host_accesses import HostAccesses
    from wavecast.emulate.checked_emulator import checked_emulator
    from wavecast.emulate.node import PATIENCE, GpuNode
    from wavecast.emulate.rank_board import RankBoard
    from wavecast.emulate.trace.mode import TraceMode
    from wavecast.emulate.written_bytes import WrittenBytes, session
    from wavecast.runtimes.distributed import emulated_ranks
    from wavecast.runtimes.torch_cpu import emulated_cuda, has_gpu
    from wavecast.runtimes.torch_cpu.fresh import FreshMemory
    from wavecast.runtimes.triton.execute import ExecutingHooks
    from wavecast.runtimes.triton.node import NodeHooks
    from wavecast.runtimes.triton.node_checks import NodeChecks

    facts = device_facts(arch)
    check_reports = gathering(check)
    checked = check_reports is not None
    reports = check_reports if check_reports is not None else Reports()
    tracing = TraceMode() if trace is True else trace or None
    written = WrittenBytes()
    predicted = _predicted_device(arch, facts)
    node_checks = NodeChecks(count) if checked and count != 1 else None
    if count != 1 and tracing is not None:
        raise UsageError(
            "traces see one launch, not what other GPUs do: not with several GPUs",
            hint="leave out --gpus (count=1) for --trace and --fidelity",
        )
    if count != 1 and reports.determinism:
        raise UsageError(
            "launches that other GPUs may change cannot be repeated: no check of determinism with "
            "several GPUs",
            hint="check the kernel with count=1",
        )
    emulator = checked_emulator(
        check_reports,
        predicted,
        trace=tracing,
        threads=threads,
        max_instructions=max_instructions,
        written=written,
        gpus=node_checks.order if node_checks is not None else None,
    ).emulator
    streams = node_checks.order.streams if node_checks is not None else None
    node = GpuNode(count, streams) if count != 1 else None
    if node is None:
        hooks = ExecutingHooks(facts, predicted, emulator, reports, kernels=kernels)
    else:
        hooks = NodeHooks(node, emulator, facts, predicted, reports=reports, kernels=kernels)
        hooks.checks = node_checks
        if not checked and sys.platform == "linux":
            node.board = RankBoard(count, PATIENCE)
        if node_checks is not None:
            node_checks.accesses = HostAccesses(
                node_checks.order, facts.target, reports.add, node.settle
            )
    if tracing is not None:
        hooks.traces = tracing.traces
    real = has_gpu()
    if node is not None and (real or not pytorch):
        raise UsageError("several GPUs can be emulated only where PyTorch has no GPU, with pytorch")
    hooks.install()
    try:
        with contextlib.ExitStack() as modes:
            if not real and pytorch:
                gpus = modes.enter_context(
                    emulated_cuda(
                        facts,
                        _ignore,
                        executing=True,
                        node=node,
                        on_address=hooks.tensors.add,
                        clock=hooks.timers.on_event,
                        profiled=hooks.profiled,
                    )
                )
                if isinstance(hooks, NodeHooks):
                    hooks.gpus = gpus
                    if node_checks is not None:
                        from wavecast.runtimes.torch_cpu.host_watch import HostWatch

                        gpus.mode.watch = HostWatch(gpus, node_checks.accesses)
                    hooks.rank_threads = modes.enter_context(emulated_ranks(gpus))
            if checked:
                modes.enter_context(session(written))
                fresh = FreshMemory(written)
                modes.enter_context(fresh)
                if isinstance(hooks, NodeHooks):
                    hooks.gpus.followed.append(lambda: fresh)
            if node is not None:
                modes.enter_context(_closing(node))
            yield hooks
    finally:
        hooks.remove()
        if node_checks is not None:
            reports.traffic = node_checks.order.traffic()
    for note in hooks.notes:
        warnings.warn(note, stacklevel=3)
    if reports is not check:
        reports.raise_errors()


class PausedDevice:
    """An emulated GPU that executes launches only in blocks of `running`, without PyTorch's modes:
    what was compiled and translated for it stays from one block to the next. `close` ends it.
    Raises UnknownName for an unknown `arch`, UsageError for a GPU that is not AMD's."""

    def __init__(self, arch: str) -> None:
        from wavecast.emulate.launch import Emulator
        from wavecast.runtimes.triton.execute import ExecutingHooks

        facts = device_facts(arch)
        self.hooks = ExecutingHooks(facts, _predicted_device(arch, facts), Emulator())

    @contextlib.contextmanager
    def running(self) -> Iterator[ExecutingHooks]:
        """Execute every Triton launch of the block. Raises UsageError inside another device."""
        self.hooks.install()
        try:
            yield self.hooks
        finally:
            self.hooks.pause()

    def close(self) -> None:
        """Let go of what was compiled for it."""
        self.hooks.remove()


@contextlib.contextmanager
def _closing(node: GpuNode) -> Iterator[None]:
    """Wait for a node's launches at the end of the block, or stop them if it failed."""
    try:
        yield
    except BaseException:
        node.close(failed=True)
        raise
    node.close(failed=False)


def _predicted_device(arch: str | Device | DeviceFacts, facts: DeviceFacts) -> Device:
    """What times are predicted for: the device named, or the usual one of a target."""
    if isinstance(arch, (str, DeviceFacts)):
        from wavecast import arch as devices

        return devices.load(arch if isinstance(arch, str) else facts.target)
    return arch


def _ignore(note: str) -> None:
    """Notes are about comparisons passed over and other things that only captures do."""
    del note


def run_script(
    path: Path,
    arguments: Sequence[str],
    arch: str,
    *,
    once: bool | None = None,
    rank_processes: bool = False,
    launched: LaunchCounts | None = None,
    **options: Any,
) -> ScriptExit:
    """Run a script as `__main__` in this process with its launches executed; `options` are those of
    `device`. With a `count` of 2 or more it is run once per GPU, in threads with the variables that
    `torchrun` sets, unless `once` is True, or None and it imports `multiprocessing`, whose `spawn`
    starts threads then. With `rank_processes` ranks are processes, forks of this one: those that
    the script starts, else one per GPU. `launched` counts launches.

    What the emulator cannot do is raised as it is; anything else the script raises is described.
    """
    with device(arch, **options) as hooks:
        hooks.emulator.launched = launched
        ended = _run(path, arguments, hooks, once, rank_processes)
        if launched is not None:
            launched.update(ended.launched)
        executed = ended.executed or hooks.executed  # ranks that left have not told
        ended = replace(ended, executed=executed, checks_more=hooks.checks_more)
        return replace(ended, notes=(*ended.notes, *_notes(ended, hooks)))


def _notes(ended: ScriptExit, hooks: ExecutingHooks) -> Iterator[str]:
    if ended.checks_more and not ended.executed:
        yield "the script launched no kernel: copies and what the host touches were checked"
    elif not (ended.executed or ended.traceback or ended.notes):
        yield ": ".join(filter(None, ("the script launched no kernel", unseen_launches())))
    if hooks.timers.has_events:
        yield f"times between events are predictions for {hooks.driver.facts.name}"


def _run(
    path: Path,
    arguments: Sequence[str],
    hooks: ExecutingHooks,
    once: bool | None,
    rank_processes: bool,
) -> ScriptExit:
    from wavecast.runtimes.triton.node import NodeHooks

    if not isinstance(hooks, NodeHooks):
        return _ended(lambda: run_as_main(path, arguments), path, hooks)
    if rank_processes:
        hooks.use_processes()
    if once if once is not None else starts_processes(path):
        return _ended(lambda: run_as_main(path, arguments), path, hooks)
    run = program_of(path, arguments)
    if rank_processes:

        def run_rank(rank: int) -> ScriptExit:
            ended = _ended(lambda: hooks.as_rank(rank, run), path, hooks, in_fork=True)
            launched = hooks.emulator.launched
            return replace(ended, launched={} if launched is None else launched.by_size())

        return run_ranks(hooks.node.count, run_rank)
    return _ended(lambda: hooks.ranks(lambda _: run()), path, hooks)


def _ended(
    run: Callable[[], object], path: Path, hooks: ExecutingHooks, *, in_fork: bool = False
) -> ScriptExit:
    """How a script that `run` runs has ended, in this process or in a fork of it."""
    try:
        run()
    except WavecastError:
        raise
    except SystemExit as error:
        return _script_exit(error, hooks.executed)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and not in_fork:  # Ctrl-C ends a fork by itself
            raise
        text = own_traceback(error, path)
        return ScriptExit(1, hooks.executed, text, raised=named_exception(error))
    return ScriptExit(0, hooks.executed)


def _script_exit(error: SystemExit, executed: int) -> ScriptExit:
    """`sys.exit` takes a number, or something to print with exit code 1. A rank that called it is
    named."""
    ranks: list[str] = getattr(error, "__notes__", [])
    if error.code is None or isinstance(error.code, int):
        notes = tuple(f"sys.exit({error.code}) {rank}" for rank in ranks)
        return ScriptExit(error.code or 0, executed, notes=notes)
    return ScriptExit(1, executed, "".join(f"{line}\n" for line in (error.code, *ranks)))
