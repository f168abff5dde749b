"""A pool of forks of this process. A fork may crash or hang without harm."""

from __future__ import annotations

import faulthandler
import os
import pickle
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from typing import IO, Generic, TypeVar

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
                free = free or self._fork()
                free.task, free.since = task, time.monotonic()
                free.pipe.send(task)
            busy = [child for child in self._children if child.task is not None]
            if not busy:
                return
            yield from self._collect(busy)

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
                os.kill(child.process, signal.SIGKILL)
                self._end(child)
                yield task, Died(f"took longer than {self._limit:g} s")

    def _fork(self) -> _Child[Task]:
        ours, theirs = Pipe()
        log = tempfile.TemporaryFile()  # noqa: SIM115
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads
            process = os.fork()
        if process == 0:
            self._serve(ours, theirs, log)
        theirs.close()
        child: _Child[Task] = _Child(process, ours, log)
        self._children.append(child)
        return child

    def _serve(self, ours: Connection, theirs: Connection, log: IO[bytes]) -> None:
        try:
            faulthandler.disable()
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            os.dup2(log.fileno(), 2)
            ours.close()
            for other in self._children:
                other.pipe.close()
            while True:
                task = theirs.recv()
                log.seek(0)
                log.truncate()
                theirs.send(self._work(task))
        except (EOFError, OSError):
            os._exit(0)
        finally:
            os._exit(1)

    def _end(self, child: _Child[Task]) -> Died:
        """Close the pipe of a fork and wait for its end; how it ended."""
        self._children.remove(child)
        child.pipe.close()
        _, status = os.waitpid(child.process, 0)
        child.log.seek(0)
        log = child.log.read().decode(errors="replace")
        child.log.close()
        if os.WIFSIGNALED(status):
            return Died(f"crashed ({signal.Signals(os.WTERMSIG(status)).name})", log)
        return Died(f"ended early (exit code {os.WEXITSTATUS(status)})", log)


__all__ = ["Died", "Pool"]
