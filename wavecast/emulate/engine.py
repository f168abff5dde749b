"""Running a launch: set up waves, walk the grid over host threads.

A host thread runs one workgroup after another natively. When one does nothing but wait, or takes
long, the thread starts others and alternates between them, so that workgroups may wait for
each other (grid barriers, locks, semaphores, look-back chains) as they may on the hardware.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from wavecast.compile.codeobject import Launch
from wavecast.compile.names import readable
from wavecast.emulate import clusters, hostmemory, initial
from wavecast.emulate.compiled import NativeKernel
from wavecast.emulate.errors import AddressFault, Deadlock, ExecutionError, Unsupported
from wavecast.emulate.host_calls import HostCallBuffer
from wavecast.emulate.job import LoopResult
from wavecast.emulate.mode import LaunchWatch, Mode
from wavecast.emulate.native import translate
from wavecast.emulate.resident import (
    DEFAULT_BUDGET,
    QUANTUM,
    SHARED_QUANTUM,
    SLICE,
    LaunchGrid,
    Resident,
)
from wavecast.emulate.team import Team, TeamMember
from wavecast.errors import LaunchError

MAXIMUM_ITEMS = 2**32 - 1
"""Work-items of a grid along one axis. Source: HSA system architecture specification, kernel
dispatch packet: grid_size_x has 32 bits."""
_RESIDENT_BYTES = 1 << 30
"""Host memory for workgroups that wait."""
_PATIENCE = 8
"""Slices a workgroup gets before its thread starts another; doubled each time."""
_ROUNDS = 16
"""Rounds without any change after which a host thread counts as stuck."""
_LINES = 4
"""Positions of waves that the message of a deadlock lists, of each GPU."""
_EAGER_ROUNDS = 2
"""Rounds without any change after which workgroups that wait for other GPUs leave the host."""
_PAUSE = 0.0005
"""Seconds a stuck host thread sleeps while others are at work."""
_MOST_DOUBLINGS = 5
"""How often that is doubled while nothing changes."""


@dataclass(frozen=True, slots=True)
class RunOrder:
    """The order workgroups start in, and that of the waves of a workgroup: permutations of their
    numbers (int64)."""

    groups: np.ndarray
    waves: np.ndarray


def run(
    native: NativeKernel,
    launch: Launch,
    ranges: list[tuple[int, int]],
    *,
    threads: int = 1,
    budget: int = DEFAULT_BUDGET,
    cut: bool = False,
    mode: Mode | None = None,
    order: RunOrder | None = None,
    team: Team | None = None,
    member: TeamMember | None = None,
) -> None:
    """Run a launch with code translated for `mode`. `ranges` are the (first, end) host addresses it
    may touch; `budget` is how many instructions each wave may execute (counted by basic blocks);
    then it ends at its next loop header if `cut`, and otherwise that is an error. `order` is for
    runs without a mode. Launches that may wait for each other have one `team`, of which each
    is a `member`.

    Raises ExecutionError naming instruction, source line, workgroup, wave, lane and address, and
    LaunchError for a workgroup or a grid no hardware runs.
    """
    width, height, depth = launch.block
    if min(launch.block) < 1 or width * height * depth > clusters.MAXIMUM_THREADS:
        raise LaunchError(f"a workgroup of {width} x {height} x {depth} work-items cannot run")
    if min(launch.grid) < 1:
        return
    for groups, items in zip(launch.grid, launch.block, strict=True):
        if groups * items > MAXIMUM_ITEMS:
            raise LaunchError(
                f"{native.kernel.name}: {groups} workgroups of {items} along one axis",
                hint="2^32 work-items or more",
            )
    clusters.check(launch)
    calls = _host_calls(native, launch, quiet=cut or order is not None)
    segment = initial.segment(native, launch, calls.interval[0] if calls is not None else 0)
    blocks = [
        (block.ctypes.data, block.ctypes.data + block.size) for block in (segment, native.data)
    ]
    all_ranges = [*blocks, *ranges]
    host_calls = calls.interval if calls is not None else None
    if host_calls is not None:
        all_ranges.append(host_calls)
    watch = mode.watch(native, launch, all_ranges, host_calls) if mode is not None else None
    grid = LaunchGrid(
        native,
        launch,
        initial.prepare(native, launch, segment),
        np.array(all_ranges, np.uint64),
        hostmemory.zeros(1, np.int64),
        hostmemory.zeros(1, np.int64),
        budget,
        _chosen(launch, watch, order),
        cut,
        order.waves if order is not None else None,
        (watch.quantum if watch is not None else None)
        or (QUANTUM if member is None and calls is None else SHARED_QUANTUM),
        (watch.slice if watch is not None else None) or SLICE,
        clusters.barriers(launch),
    )
    attach = watch.attach if watch is not None else None
    team, shared = Team() if team is None else team, team is not None
    if watch is not None and shared:
        watch.follow(team)
    crowd = _Crowd(watch)
    workers = [_Worker(grid, team, attach, member, crowd, calls) for _ in range(threads)]
    success = False
    try:
        team.enter(len(workers))
        _start(workers, shared=shared)
        success = True
    finally:
        team.on_end()
        error = next((worker.error for worker in workers if worker.error is not None), None)
        if watch is not None:
            if isinstance(error, AddressFault) and error.report is not None:
                watch.on_fault(error.report)
            watch.close(failed=not success or error is not None)
    if error is not None:
        raise error


def _host_calls(native: NativeKernel, launch: Launch, *, quiet: bool) -> HostCallBuffer | None:
    """The buffer through which a kernel may call the host; None for one that does not."""
    if all(argument.kind != initial.HOST_CALLS for argument in native.descriptor.arguments):
        return None
    waves = math.prod(launch.grid) * -(-math.prod(launch.block) // native.layout.lanes)
    return HostCallBuffer(readable(native.kernel.name), waves, quiet=quiet)


def _chosen(launch: Launch, watch: LaunchWatch | None, order: RunOrder | None) -> np.ndarray | None:
    """The numbers of the workgroups to run, in order; None for all. Raises Unsupported."""
    chosen = watch.workgroups if watch is not None else order.groups if order is not None else None
    together = clusters.order(launch)
    if together is None:
        return chosen
    if chosen is not None and len(chosen) < len(together):
        raise Unsupported(f"{launch.code.kernel}: a sample of a launch with clusters")
    return together


def _start(workers: list[_Worker], *, shared: bool) -> None:
    """Run a launch to its end, one worker per host thread; this thread takes the first. The workers
    of launches that may wait for each other do not queue for `shared` host threads."""
    others: list[Future[None]] = []
    count = len(workers) - 1
    pool = None
    try:
        if count:
            pool = _executor(count) if shared else _pool(os.getpid(), count)
            others += [pool.submit(worker.run) for worker in workers[1:]]
        workers[0].run()
        wait(others)
    except BaseException:
        workers[0].grid.failed[0] = 1
        raise
    finally:
        wait(others)
        if shared and pool is not None:
            pool.shutdown()


@lru_cache(maxsize=4)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Host threads kept between launches; a forked process has none of its parent's."""
    del process
    return _executor(threads)


def _executor(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="wavecast-workers")


class _Crowd:
    """The workgroups of a launch that are under way, and how many may be."""

    def __init__(self, watch: LaunchWatch | None) -> None:
        self.watch = watch
        self.limit = watch.residents if watch is not None else None
        self.count = 0
        """Workgroups put aside, and the current ones of the workers."""
        self.lock = threading.Lock()
        self.lifted = False

    @property
    def full(self) -> bool:
        return self.limit is not None and self.count >= self.limit

    def lift(self, instruction: int) -> bool:
        """Let more workgroups start where those under way all wait, one at an instruction, because
        no more may. False where that is not why."""
        with self.lock:
            if self.full and self.watch is not None:
                self.watch.on_starvation(instruction)
                self.limit, self.lifted = None, True
                return True
            return False


class _Worker:
    """One host thread: the workgroup it runs, and those it has put aside."""

    def __init__(
        self,
        grid: LaunchGrid,
        team: Team,
        attach: Callable[[np.ndarray], None] | None,
        member: TeamMember | None,
        crowd: _Crowd,
        calls: HostCallBuffer | None,
    ) -> None:
        self.calls = calls
        self.grid, self.team, self.attach, self.member = grid, team, attach, member
        self.crowd, self.lifted = crowd, False
        self.aside: deque[Resident] = deque()
        self.error: BaseException | None = None
        self.current = self._resident()
        self.patience, self.slices = _PATIENCE, 0
        self.still, self.epoch = 0, 0
        self.publications = 0
        """Those of the team when the current round over the workgroups began."""
        self.idle = 0
        """Calls of the native loop since one of this worker's workgroups has moved."""

    def _resident(self) -> Resident:
        with self.crowd.lock:
            self.crowd.count += 1
        resident = Resident(self.grid)
        if self.attach is not None:
            self.attach(resident.context)
        return resident

    def run(self) -> None:
        """Run workgroups until none is left or one has failed. What is raised is kept in `error`: a
        thread has nobody to raise it to."""
        try:
            while not self.grid.failed[0] and self._step():
                if self.team.stopped or (self.member is not None and self.member.is_stopped()):
                    raise ExecutionError(f"{self.grid.name}: stopped before its end")
                if self.crowd.watch is not None:
                    self.crowd.watch.check_memory()
            if self.crowd.watch is not None:
                self.crowd.watch.on_worker_end()
        except BaseException as error:
            self.error = error
            self.grid.failed[0] = 1
        finally:
            self.team.left(id(self))

    def _step(self) -> bool:
        """One call of the native loop. False when nothing is left to do."""
        resident = self.current
        result = resident.run()
        answered = self.calls is not None and self.calls.serve()
        if answered:
            resident.shorten()
        if result is LoopResult.BROKEN:
            raise resident.error()
        if result is LoopResult.NONE_LEFT:
            self._reset_idle()
            if not self.aside:
                return False
            self.current = self.aside.popleft()
            with self.crowd.lock:
                self.crowd.count -= 1
        elif not resident.active or resident.has_moved() or answered:
            if resident.active and resident.is_stalled() and self._alone() and not self._lift():
                raise resident.endless()
            self._reset_idle()
            self.slices += 1
            if self.slices > self.patience:
                self.slices, self.patience = 0, 2 * self.patience
                self._rotate()
        else:
            self.idle += 1
            self.still = self.still + 1 if self.epoch == self.team.epoch else 0
            self.epoch = self.team.epoch
            self._rotate()
            self._check_deadlock()
        return True

    def _rotate(self) -> None:
        """Put the current workgroup aside for one not started yet, or for one put aside before."""
        room = (len(self.aside) + 2) * self.grid.resident_bytes <= _RESIDENT_BYTES
        room = room and not self.crowd.full
        if self.current.active and room and not self.grid.is_exhausted:
            self.aside.append(self.current)
            self.current = self._resident()
        elif self.aside:
            self.aside.append(self.current)
            self.current = self.aside.popleft()

    def _check_deadlock(self) -> None:
        rounds = _ROUNDS * (len(self.aside) + 1)
        if self.still >= rounds:
            waits = self.team.deadlock(id(self), self.epoch, self._waits)
            if waits and not self._lift():
                raise self._deadlock(waits)
        if self.member is not None:
            self._leave_the_host(len(self.aside) + 1)
        elif self.idle >= rounds:
            time.sleep(_PAUSE)

    def _lift(self) -> bool:
        """Whether more workgroups can start now, which could not because of the limit."""
        if self.grid.is_exhausted:
            return False
        limit, waiting = self.crowd.limit, self.grid.groups - int(self.grid.counter[0])
        if not self.crowd.lift(self.current.waiting()) and self.lifted == self.crowd.lifted:
            return False
        if limit is not None and waiting > limit:
            raise ExecutionError(
                f"{self.grid.name}: the launch ended where a GPU would hang: "
                f"{waiting:,} workgroups cannot start"
            )
        self.lifted, self.still = True, 0
        self.team.clear_deadlock()
        return True

    def _leave_the_host(self, residents: int) -> None:
        """Sleep between rounds in which no workgroup has moved, longer every time."""
        rounds, rest = divmod(self.idle, residents)
        if rest or rounds < _EAGER_ROUNDS:
            return
        self.team.idle(id(self), self.publications)
        seconds = _PAUSE * 2 ** min(rounds - _EAGER_ROUNDS, _MOST_DOUBLINGS)
        self.team.rest(self.publications, seconds)
        self.publications = self.team.publications

    def _reset_idle(self) -> None:
        if self.idle:
            self.team.on_move(id(self))
        self.still = self.idle = 0
        self.team.on_change()

    def _alone(self) -> bool:
        """Whether no launch of another GPU can change what this one waits for."""
        return self.member is None or self.team.others_idle(id(self))

    def _waits(self) -> list[str]:
        residents = [self.current, *self.aside]
        member = self.member
        if member is None:
            return [line for resident in residents for line in resident.waits()]
        polled = [line for resident in residents for line in resident.polls(member.memory)]
        launched = f" ({self.grid.name}, {member.origin})" if member.origin else ""
        return [f"{member.name}{launched}: {_first(polled)}{self._not_started()}"]

    def _deadlock(self, lines: list[str]) -> ExecutionError:
        if self.member is not None and self.member.origin:
            return Deadlock(f"deadlock: all that runs waits: {'; '.join(lines)}")
        text = "; ".join(lines) if self.member is not None else _first(lines) + self._not_started()
        return ExecutionError(f"{self.grid.name}: deadlock: all that runs waits: {text}")

    def _not_started(self) -> str:
        if self.grid.is_exhausted:
            return ""
        return "; the memory for workgroups under way is used up, others have not started"


def _first(lines: list[str]) -> str:
    more = f"; and {len(lines) - _LINES} more" if len(lines) > _LINES else ""
    return "; ".join(lines[:_LINES]) + more


__all__ = ["DEFAULT_BUDGET", "RunOrder", "run", "translate"]
