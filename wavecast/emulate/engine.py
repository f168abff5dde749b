"""Running a launch: set up waves, walk the grid over host threads.

A host thread runs one workgroup after another natively. When one does nothing but wait, or takes
long, the thread starts others and alternates between them, so that workgroups may wait for
each other (grid barriers, locks, semaphores, look-back chains) as they may on the hardware.
"""

from __future__ import annotations

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
from wavecast.emulate import hostmemory, initial
from wavecast.emulate.compiled import NativeKernel
from wavecast.emulate.errors import ExecutionError
from wavecast.emulate.mode import Mode
from wavecast.emulate.native import translate
from wavecast.emulate.resident import (
    BROKEN,
    DEFAULT_BUDGET,
    NONE_LEFT,
    QUANTUM,
    LaunchGrid,
    Resident,
)
from wavecast.errors import LaunchError

MAXIMUM_THREADS = 1024
"""Work-items of a workgroup on every AMD target. Source: LLVM AMDGPU usage, "max flat workgroup
size"."""
MAXIMUM_ITEMS = 2**32 - 1
"""Work-items of a grid along one axis. Source: HSA system architecture specification, kernel
dispatch packet: grid_size_x has 32 bits."""
_RESIDENT_BYTES = 1 << 30
"""Host memory for workgroups that wait."""
_PATIENCE = 8
"""Slices a workgroup gets before its thread starts another; doubled each time."""
_ROUNDS = 16
"""Rounds without any change after which a host thread counts as stuck."""
_PAUSE = 0.0005
"""Seconds a stuck host thread sleeps while others are at work."""


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
) -> None:
    """Run a launch with code translated for `mode`. `ranges` are the (first, end) host addresses it
    may touch; `budget` is how many instructions each wave may execute (counted by basic blocks);
    then it ends at its next loop header if `cut`, and otherwise that is an error. `order` is for
    runs without a mode.

    Raises ExecutionError naming instruction, source line, workgroup, wave, lane and address, and
    LaunchError for a workgroup or a grid no hardware runs.
    """
    width, height, depth = launch.block
    if min(launch.block) < 1 or width * height * depth > MAXIMUM_THREADS:
        raise LaunchError(f"a workgroup of {width} x {height} x {depth} work-items cannot run")
    if min(launch.grid) < 1:
        return
    for groups, items in zip(launch.grid, launch.block, strict=True):
        if groups * items > MAXIMUM_ITEMS:
            raise LaunchError(
                f"{native.kernel.name}: {groups} workgroups of {items} along one axis",
                hint="2^32 work-items or more",
            )
    segment = initial.segment(native, launch)
    own = [(block.ctypes.data, block.ctypes.data + block.size) for block in (segment, native.data)]
    known = [*own, *ranges]
    watch = mode.watch(native, launch, known) if mode is not None else None
    grid = LaunchGrid(
        native,
        launch,
        initial.prepare(native, launch, segment),
        np.array(known, np.uint64),
        hostmemory.zeros(1, np.int64),
        hostmemory.zeros(1, np.int64),
        budget,
        watch.workgroups if watch is not None else order.groups if order is not None else None,
        cut,
        order.waves if order is not None else None,
        (watch.quantum if watch is not None else None) or QUANTUM,
    )
    attach = watch.attach if watch is not None else None
    team = _Team(threads)
    workers = [_Worker(grid, team, attach) for _ in range(threads)]
    done = False
    try:
        _start(workers)
        done = True
    finally:
        error = next((worker.error for worker in workers if worker.error is not None), None)
        if watch is not None:
            watch.close(failed=not done or error is not None)
    if error is not None:
        raise error


def _start(workers: list[_Worker]) -> None:
    """Run a launch to its end, one worker per host thread; this thread takes the first."""
    others: list[Future[None]] = []
    try:
        if len(workers) > 1:
            pool = _pool(os.getpid(), len(workers) - 1)
            others += [pool.submit(worker.run) for worker in workers[1:]]
        workers[0].run()
        wait(others)
    except BaseException:
        workers[0].grid.failed[0] = 1
        raise
    finally:
        wait(others)


@lru_cache(maxsize=4)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Host threads kept between launches; a forked process has none of its parent's."""
    del process
    return ThreadPoolExecutor(threads, thread_name_prefix="wavecast")


class _Team:
    """What host threads know of each other: who is stuck, and whether anything moves."""

    def __init__(self, size: int) -> None:
        self.working = size
        self.epoch = 0
        """How often something has changed."""
        self.stuck: set[int] = set()
        self.lock = threading.Lock()

    def moved(self) -> None:
        """Something has changed: whoever was stuck may continue."""
        with self.lock:
            self.epoch += 1
            self.stuck.clear()

    def left(self) -> None:
        """A worker has ended."""
        with self.lock:
            self.working -= 1
        self.moved()

    def all_stuck(self, worker: int, epoch: int) -> bool:
        """Note that a worker is stuck since an epoch; True when all are, in the same one."""
        with self.lock:
            if epoch == self.epoch:
                self.stuck.add(worker)
            return len(self.stuck) >= self.working


class _Worker:
    """One host thread: the workgroup it runs, and those it has put aside."""

    def __init__(
        self, grid: LaunchGrid, team: _Team, attach: Callable[[np.ndarray], None] | None
    ) -> None:
        self.grid, self.team, self.attach = grid, team, attach
        self.aside: deque[Resident] = deque()
        self.error: BaseException | None = None
        self.current = self._resident()
        self.patience, self.slices = _PATIENCE, 0
        self.still, self.epoch = 0, 0

    def _resident(self) -> Resident:
        made = Resident(self.grid)
        if self.attach is not None:
            self.attach(made.context)
        return made

    def run(self) -> None:
        """Run workgroups until none is left or one has failed. What is raised is kept in `error`: a
        thread has nobody to raise it to."""
        try:
            while not self.grid.failed[0] and self._step():
                pass
        except BaseException as error:
            self.error = error
            self.grid.failed[0] = 1
        finally:
            self.team.left()

    def _step(self) -> bool:
        """One call of the native loop. False when nothing is left to do."""
        resident = self.current
        result = resident.run()
        if result == BROKEN:
            raise resident.error()
        if result == NONE_LEFT:
            self.still = 0
            self.team.moved()
            if not self.aside:
                return False
            self.current = self.aside.popleft()
        elif not resident.active or resident.moved():
            if resident.active and resident.stalled():
                raise resident.endless()
            self.still = 0
            self.team.moved()
            self.slices += 1
            if self.slices > self.patience:
                self.slices, self.patience = 0, 2 * self.patience
                self._rotate()
        else:
            self.still = self.still + 1 if self.epoch == self.team.epoch else 0
            self.epoch = self.team.epoch
            self._rotate()
            self._check_deadlock()
        return True

    def _rotate(self) -> None:
        """Put the current workgroup aside for one not started yet, or for one put aside before."""
        room = (len(self.aside) + 2) * self.grid.resident_bytes <= _RESIDENT_BYTES
        if self.current.active and room and not self.grid.exhausted:
            self.aside.append(self.current)
            self.current = self._resident()
        elif self.aside:
            self.aside.append(self.current)
            self.current = self.aside.popleft()

    def _check_deadlock(self) -> None:
        if self.still < _ROUNDS * (len(self.aside) + 1):
            return
        if self.team.all_stuck(id(self), self.epoch):
            raise ExecutionError(self._deadlock())
        time.sleep(_PAUSE)

    def _deadlock(self) -> str:
        name = self.grid.name
        residents = [self.current, *self.aside]
        lines = [line for resident in residents for line in resident.waits()]
        text = "; ".join(lines[:4]) + (f"; and {len(lines) - 4} more" if len(lines) > 4 else "")
        if not self.grid.exhausted:
            text += "; the memory for workgroups under way is used up, others have not started"
        return f"{name}: deadlock: all that runs waits: {text}"


__all__ = ["DEFAULT_BUDGET", "RunOrder", "run", "translate"]
