"""Modes of execution: what is added to the code of a kernel, and to the memory of a launch.

Plain execution has no mode. A mode makes an observer when a kernel is translated, and a watch for
every launch, which gives host threads their memory and says in the end what was seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from wavecast.compile.codeobject import Launch
from wavecast.emulate.compiled import NativeKernel
from wavecast.emulate.lower.observer import Observer, Observers
from wavecast.emulate.reports import Report
from wavecast.emulate.team import Team
from wavecast.isa.program import Kernel


class LaunchWatch(Protocol):
    """One launch being watched.

    `workgroups` are the numbers (int64, x fastest) of the only workgroups to run, None for all.
    `quantum` is the number of instructions after which another workgroup may run, None for the
    usual number: a mode whose code is slow where waves poll gives a smaller one. `slice` is the
    number that a wave executes at once. `residents` is the most workgroups that may be under way at
    once, None for any number.
    """

    workgroups: np.ndarray | None = None
    quantum: int | None = None
    slice: int | None = None
    residents: int | None = None

    def on_starvation(self, instruction: int) -> None:
        """`residents` workgroups are under way and all of them wait, one at an instruction, and
        others have not started. The launch continues without the limit."""

    def check_memory(self) -> None:
        """A host thread is between two slices. Raises UsageError where what the mode records does
        not fit into memory, which ends the launch."""

    def follow(self, team: Team) -> None:
        """Launches of a team run at once with this one."""

    def attach(self, context: np.ndarray) -> None:
        """Fill the words of a host thread's context (uint64) that the mode's code reads."""

    def on_fault(self, report: Report) -> None:
        """The launch has ended at an access to memory that it does not have."""

    def on_worker_end(self) -> None:
        """A host thread has run its last workgroup; others of the team wait for none of it."""

    def close(self, *, failed: bool) -> None:
        """The launch has ended; `failed` when it broke off."""


class Mode(Protocol):
    """A way to execute."""

    def key(self, target: str) -> str:
        """What native code for a target depends on besides the kernel; "" for code that is not to
        be kept on disk."""
        ...

    def observer(self, kernel: Kernel) -> Observer:
        """What to add to a kernel's code."""
        ...

    def watch(
        self,
        native: NativeKernel,
        launch: Launch,
        ranges: Sequence[tuple[int, int]],
        host_calls: tuple[int, int] | None = None,
    ) -> LaunchWatch:
        """Prepare for a launch that may touch `ranges` (first and end host addresses; the first
        range is the argument segment). `host_calls` is the one through which it calls the host,
        whose protocol is the runtime's, None without one."""
        ...


class Modes:
    """Several modes at once. At most one of them may choose the workgroups that run."""

    def __init__(self, *modes: Mode) -> None:
        self.modes = modes

    def key(self, target: str) -> str:
        keys = [mode.key(target) for mode in self.modes]
        return "+".join(keys) if all(keys) else ""

    @classmethod
    def of(cls, modes: Sequence[Mode]) -> Mode | None:
        """None for no mode, the mode itself for one."""
        return modes[0] if len(modes) == 1 else cls(*modes) if modes else None

    def observer(self, kernel: Kernel) -> Observer:
        return Observers(tuple(mode.observer(kernel) for mode in self.modes))

    def watch(
        self,
        native: NativeKernel,
        launch: Launch,
        ranges: Sequence[tuple[int, int]],
        host_calls: tuple[int, int] | None = None,
    ) -> LaunchWatch:
        return Watches([mode.watch(native, launch, ranges, host_calls) for mode in self.modes])


class Watches(LaunchWatch):
    """One launch watched by several modes."""

    def __init__(self, watches: Sequence[LaunchWatch]) -> None:
        self.watches = watches
        workgroups = [watch.workgroups for watch in watches if watch.workgroups is not None]
        assert len(workgroups) <= 1
        self.workgroups = workgroups[0] if workgroups else None
        self.quantum = min((w.quantum for w in watches if w.quantum is not None), default=None)
        self.slice = min((w.slice for w in watches if w.slice is not None), default=None)
        limits = [watch.residents for watch in watches if watch.residents is not None]
        self.residents = min(limits, default=None)

    def on_starvation(self, instruction: int) -> None:
        for watch in self.watches:
            if watch.residents is not None:
                watch.on_starvation(instruction)

    def check_memory(self) -> None:
        for watch in self.watches:
            watch.check_memory()

    def follow(self, team: Team) -> None:
        for watch in self.watches:
            watch.follow(team)

    def attach(self, context: np.ndarray) -> None:
        for watch in self.watches:
            watch.attach(context)

    def on_fault(self, report: Report) -> None:
        for watch in self.watches:
            watch.on_fault(report)

    def on_worker_end(self) -> None:
        for watch in self.watches:
            watch.on_worker_end()

    def close(self, *, failed: bool) -> None:
        for watch in self.watches:
            watch.close(failed=failed)


__all__ = ["LaunchWatch", "Mode", "Modes", "Watches"]
