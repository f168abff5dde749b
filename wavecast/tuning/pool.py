"""A pool of forks of this process. A fork may crash or hang without harm."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import pickle
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from typing import IO, Generic, TypeVar

from wavecast import processes

Task = TypeVar("Task")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Died:
    """The end of a process during its task. `log` is its output on stderr."""

    reason: str
    log: str = ""


@dataclass
class _Child(Generic[Task]):
    process: int
    pipe: Connection
    log: IO[bytes]
    task: Task | None = None
    since: float = field(default_factory=time.monotonic)


class Pool(Generic[Task, Answer]):
    """At most `jobs` forks that call `work` on tasks, each task for at most `limit` seconds.

    A fork has the state of this process at the time of the fork: at the first task, and after a
    crash. `work` must not raise.
    """

    def __init__(self, jobs: int, work: Callable[[Task], Answer], *, limit: float) -> None:
        self._jobs = jobs
        self._work = work
        self._limit = limit
        self._children: list[_Child[Task]] = []

    def __enter__(self) -> Pool[Task, Answer]:
        return self

    def __exit__(self, *_: object) -> None:
        for child in list(self._children):
            self._end(child)

    def map(self, tasks: Iterator[Task]) -> Iterator[tuple[Task, Answer | Died]]:
        """Tasks and answers in the order they finish. Takes a task from the iterator only when a
        fork is free for it, so the iterator may depend on earlier answers."""
        waiting = True
        while True:
            while waiting:
                free = next((child for child in self._children if child.task is None), None)
                if free is None and len(self._children) >= self._jobs:
                    break
                task = next(tasks, None)
                if task is None:
                    waiting = False
                    break
                self._give(free or self._fork(), task)
            busy = [child for child in self._children if child.task is not None]
            if not busy:
                return
            yield from self._collect(busy)

    def _give(self, child: _Child[Task], task: Task) -> None:
        """Send a task, to a new fork where this one died while it was idle."""
        try:
            child.pipe.send(task)
        except BrokenPipeError:
            self._end(child)
            child = self._fork()
            child.pipe.send(task)
        child.task, child.since = task, time.monotonic()

    def _collect(self, busy: list[_Child[Task]]) -> Iterator[tuple[Task, Answer | Died]]:
        ready = wait([child.pipe for child in busy], timeout=0.2)
        for child in busy:
            task = child.task
            assert task is not None
            if child.pipe in ready:
                try:
                    answer = child.pipe.recv()
                except (EOFError, ConnectionResetError, pickle.UnpicklingError):
                    answer = self._end(child)
                child.task = None
                yield task, answer
            elif time.monotonic() - child.since > self._limit:
                processes.kill(child.process)
                self._end(child)
                yield task, Died(f"took longer than {self._limit:g} s")

    def _fork(self) -> _Child[Task]:
        ours, theirs = Pipe()
        log = tempfile.TemporaryFile()  # noqa: SIM115
        process = processes.fork(lambda: self._serve(ours, theirs, log))
        theirs.close()
        child: _Child[Task] = _Child(process, ours, log)
        self._children.append(child)
        return child

    def _serve(self, ours: Connection, theirs: Connection, log: IO[bytes]) -> None:
        """In the fork: answer tasks until the pipe is closed."""
        faulthandler.disable()
        os.dup2(log.fileno(), 2)
        ours.close()
        for other in self._children:
            other.pipe.close()
        with contextlib.suppress(EOFError, OSError):
            while True:
                task = theirs.recv()
                log.seek(0)
                log.truncate()
                theirs.send(self._work(task))

    def _end(self, child: _Child[Task]) -> Died:
        """Close the pipe of a fork and wait for its end; how it ended."""
        self._children.remove(child)
        child.pipe.close()
        status = processes.wait(child.process)
        child.log.seek(0)
        log = child.log.read().decode(errors="replace")
        child.log.close()
        if status is None:
            return Died("ended early", log)
        if status.signal:
            return Died(f"crashed ({status.signal_name})", log)
        return Died(f"ended early (exit code {status.code})", log)


__all__ = ["Died", "Pool"]
