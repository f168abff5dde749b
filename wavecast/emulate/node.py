"""The GPUs of a node: launch queues that run at once, and the host threads that fill them.

Every stream of a GPU is a queue with a host thread. Launches of all queues are one team, so a
kernel may wait for what another GPU stores. A deadlock is certain when all launches are stuck and
no host thread can launch more; where a host thread does something else, it is assumed after
`PATIENCE` seconds.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from wavecast.emulate.errors import Deadlock, ExecutionError
from wavecast.emulate.rank_board import RankBoard
from wavecast.emulate.team import Team
from wavecast.errors import UsageError, WavecastError
from wavecast.launch.group_calls import CallsDiffer
from wavecast.wording import count

if TYPE_CHECKING:
    from wavecast.emulate.check.gpus.stream_order import Before, StreamOrder

PATIENCE: Final = 60.0
"""Seconds without a change in any launch after which host threads that launch nothing count as
waiting."""
_DAEMON_PATIENCE: Final = 5.0
"""The same where all of them are daemon threads that sleep, such as those of progress bars."""
MOST_GPUS: Final = 64
"""GPUs of the largest node with all-to-all links: NVL72 has 72, no AMD node more than 8 per board
and 64 per rack. Every one takes a host thread per stream."""
THREAD_PREFIX: Final = "wavecast-"
"""What names of the emulator's own threads start with: they are not host threads of programs."""
_GPU: Final = re.compile(r"GPU (\d+)")
_SETTLING_LOOK: Final = 0.0002
_LOOK: Final = 0.2
"""Seconds between looks of a host thread that waits, so that Ctrl-C works."""


class QueueState(Enum):
    """What the host thread of a queue does."""

    IDLE = "idle"
    BUSY = "busy"
    WAITING = "waiting"
    """It waits for an event of another queue."""


@dataclass(frozen=True, slots=True)
class Marker:
    """A position in a queue: everything submitted before it."""

    queue: LaunchQueue
    count: int

    @property
    def is_reached(self) -> bool:
        """Whether everything before it has ended."""
        return self.queue.ended >= self.count


class LaunchQueue:
    """Work of one stream of one GPU, executed in order by a host thread."""

    def __init__(self, node: GpuNode, gpu: int, number: int) -> None:
        self.node, self.gpu, self.number = node, gpu, number
        self.submitted = self.ended = 0
        self.state = QueueState.IDLE
        self._awaited: Marker | None = None
        """What its host thread waits for."""
        self._work: deque[tuple[Callable[[], None], Before | None]] = deque()
        self._thread: threading.Thread | None = None

    def submit(self, work: Callable[[], None]) -> None:
        """Append work: a launch in the node's team, or a copy. Raises what an earlier launch of the
        GPU raised, and UsageError in a fork."""
        node = self.node
        node.check_process()
        if node.is_fork and not node.is_process:
            node.become_rank(self.gpu, node.count)
        with node.changed:
            node.raise_failure(self.gpu)
            before = None if node.order is None else node.order.host()
            self._work.append((work, before))
            self.submitted += 1
            if self._thread is None:
                node.process = os.getpid()
                name = f"{THREAD_PREFIX}gpu{self.gpu}-{self.number}"
                self._thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._thread.start()
            node.changed.notify_all()

    def marker(self) -> Marker:
        """Everything submitted so far."""
        return Marker(self, self.submitted)

    def wait_for(self, marker: Marker) -> None:
        """Let what is submitted from now on wait for a marker of another queue."""
        if marker.queue is not self and (not marker.is_reached or self.node.order is not None):
            self.submit(lambda: self._wait(marker))

    def join(self) -> None:
        """Wait for the end of its host thread, once the node is closed."""
        if self._thread is not None:
            self._thread.join()

    @property
    def expects_more(self) -> bool:
        """Whether its host thread will start something by itself. To be asked under `changed`."""
        if self.state is QueueState.IDLE:
            return bool(self._work)
        if self._awaited is not None:
            return self._awaited.is_reached
        thread = self._thread.ident if self._thread is not None else None
        return self.state is QueueState.BUSY and not self.node.team.runs(thread)

    def _wait(self, marker: Marker) -> None:
        node = self.node
        with node.changed:
            self.state, self._awaited = QueueState.WAITING, marker
            node.changed.wait_for(lambda: marker.is_reached or node.closed)
            self.state, self._awaited = QueueState.BUSY, None
        if node.order is not None:
            node.order.on_wait(self, marker)

    def _run(self) -> None:
        node = self.node
        while True:
            with node.changed:
                self.state = QueueState.IDLE
                node.changed.wait_for(lambda: self._work or node.closed)
                if not self._work or node.closed:
                    return
                self.state = QueueState.BUSY
                work, before = self._work.popleft()
            if node.order is not None:
                node.order.on_start(self, before)
            try:
                if not node.has_failed(self.gpu):
                    work()
            except BaseException as error:
                node.fail(self.gpu, error)
            finally:
                del work
                if node.order is not None:
                    node.order.on_end(self)
                with node.changed:
                    self.state = QueueState.BUSY
                    self.ended += 1
                    if node.is_process:
                        node.rank_board.on_launch_end()
                    node.changed.notify_all()


class GpuNode:
    """`count` GPUs and the host threads of one process that use them. Checks follow what is ordered
    in `order`.

    Raises UsageError for a count out of range.
    """

    def __init__(self, count: int, order: StreamOrder | None = None) -> None:
        if not 1 <= count <= MOST_GPUS:
            raise UsageError(f"count={count}: 1 to {MOST_GPUS} GPUs can be emulated")
        self.count, self.order = count, order
        self.board: RankBoard | None = None
        """Set where ranks may be other processes, forks of this one."""
        self.team = Team(
            self._expects_more, self._conclude, self._expects_more_soon, self._publish, self._revoke
        )
        self.changed = threading.Condition(threading.RLock())
        self.closed = False
        self.describe_rank: Callable[[int], str] = lambda _: ""
        """What the rank of a GPU does, "" where that is not known."""
        self.processes = False
        """Whether ranks that a program starts are to be processes, not threads."""
        self._home = os.getpid()
        self.process = 0
        """The process that has the queues' host threads, 0 for none."""
        self._queues: dict[tuple[int, int], LaunchQueue] = {}
        self._failures: dict[int, BaseException] = {}
        self._raised: set[int] = set()
        """GPUs whose failure the program has been told of."""
        self._blocked: set[threading.Thread] = set()
        self._settling: set[threading.Thread] = set()
        self._hosts: set[threading.Thread] = {threading.current_thread()}
        self._preparing: set[threading.Thread] = set()

    def queue(self, gpu: int, number: int = 0) -> LaunchQueue:
        """The queue of a stream, made when it is first asked for."""
        queue = self._queues.get((gpu, number))  # in a fork the lock may be locked for ever
        if queue is not None:
            return queue
        with self.changed:
            return self._queues.setdefault((gpu, number), LaunchQueue(self, gpu, number))

    def check_process(self) -> None:
        """Raises UsageError in a fork of a process whose GPUs have run something: no host thread
        of a queue exists there."""
        if self.process not in (0, os.getpid()):
            raise UsageError(
                "a fork cannot use emulated GPUs that its parent has used",
                hint="fork before the first launch",
            )

    @property
    def rank_board(self) -> RankBoard:
        """What processes know of each other. Raises UsageError where ranks are threads."""
        if self.board is None:
            raise UsageError(
                "ranks are threads, and this is another process",
                hint="checks follow ranks that are threads: leave out --processes, or --check",
            )
        return self.board

    @property
    def is_fork(self) -> bool:
        """Whether this is another process than the one that has made the node."""
        return os.getpid() != self._home

    @property
    def is_process(self) -> bool:
        """Whether this process is that of a rank."""
        return self.board is not None and self.board.is_joined

    def become_rank(self, rank: int, world: int) -> None:
        """This process, a fork, is that of a rank of `world`. Raises UsageError where ranks are
        threads, and in a fork of a process whose GPUs have run something."""
        self.check_process()
        self.rank_board.join(rank, world)
        self._hosts, self._blocked = {threading.current_thread()}, set()

    def synchronize(self, gpu: int | None = None) -> None:
        """Wait until all that was submitted to a GPU, or to all, has ended. Raises what a launch
        raised, and UsageError in a fork."""
        self.check_process()
        gpus = range(self.count) if gpu is None else (gpu,)
        for number in gpus:
            self.wait_for(number)
        for number in gpus:
            self.raise_failure(number)

    def wait_for(self, gpu: int) -> None:
        """Wait until all that was submitted to a GPU so far has ended. Raises what a launch that
        was waited for raised."""
        with self.changed:
            markers = [queue.marker() for queue in self._queues.values() if queue.gpu == gpu]
        for marker in markers:
            self.wait(marker)

    def wait(self, marker: Marker, *, orders: bool = True) -> None:
        """Wait for a marker, without `orders` in a call that does not wait on a GPU. Raises what a
        launch of its GPU raised, and UsageError in a fork."""
        if not marker.is_reached:
            self.check_process()
            with self.blocking(), self.changed:
                while not marker.is_reached and not self.closed:
                    self.changed.wait(_LOOK)
        if self.order is not None and orders:
            self.order.host_waited(marker)
        self.raise_failure(marker.queue.gpu)

    def fail(self, gpu: int, error: BaseException) -> None:
        """A launch of a GPU has failed: nothing more runs there."""
        with self.changed:
            self._failures.setdefault(gpu, error)
            self.changed.notify_all()

    def stop(self, gpu: int, error: BaseException) -> None:
        """Launches of a GPU, maybe of another process, wait for what will not come, for a reason
        that the program is told."""
        if self.is_process:
            self.rank_board.stop(gpu, str(error))
        self._raised.add(gpu)
        self.fail(gpu, error)

    def has_failed(self, gpu: int) -> bool:
        """Whether a launch of a GPU has failed, or another process has stopped those of this
        one."""
        if gpu not in self._failures and self.is_process and (reason := self.rank_board.reason):
            self._raised.add(gpu)
            self.fail(gpu, CallsDiffer(reason))
        return gpu in self._failures

    def raise_failure(self, gpu: int) -> None:
        """Raise what a launch of a GPU raised, as one line that names the GPU."""
        error = self._failures.get(gpu)
        if error is not None:
            self._raised.add(gpu)
        if isinstance(error, Deadlock | CallsDiffer):  # of several GPUs
            raise type(error)(error.message, hint=error.hint) from error
        if isinstance(error, WavecastError):
            raise type(error)(f"GPU {gpu}: {error.message}", hint=error.hint) from error
        if error is not None:
            raise ExecutionError(f"GPU {gpu}: {type(error).__name__}: {error}") from error

    def add_host(self, thread: threading.Thread) -> None:
        """A host thread that may launch from now on."""
        with self.changed:
            self._hosts.add(thread)

    def remove_host(self, thread: threading.Thread) -> None:
        """A host thread that launches nothing more."""
        with self.changed:
            self._hosts.discard(thread)

    @contextlib.contextmanager
    def blocking(self) -> Iterator[None]:
        """The calling thread waits for GPUs or for other host threads, and launches nothing."""
        with self._member(self._blocked):
            yield

    @contextlib.contextmanager
    def preparing(self) -> Iterator[None]:
        """The calling thread compiles what it is about to launch: however long that takes, it does
        not wait."""
        with self._member(self._preparing):
            yield

    @contextlib.contextmanager
    def _member(self, threads: set[threading.Thread]) -> Iterator[None]:
        """A block in which the calling thread is one of some."""
        me = threading.current_thread()
        nested = me in threads
        if not nested:
            self._change(threads.add, me)
        try:
            yield
        finally:
            if not nested:
                self._change(threads.discard, me)

    def _change(self, change: Callable[[threading.Thread], None], thread: threading.Thread) -> None:
        with self.changed:
            before = bool(self._preparing - self._blocked)
            change(thread)
            now = bool(self._preparing - self._blocked)
        if now != before:
            if self.is_process:
                self.rank_board.prepare(now)
            self.team.on_change()

    def close(self, *, failed: bool) -> None:
        """Wait for all queues, or with `failed` stop their launches, and end the host threads.
        Raises what a launch raised and nothing has told the program of, unless `failed`. A fork
        has nothing to end."""
        if self.process not in (0, os.getpid()):
            return
        try:
            reported_gpus = self._raised & set(self._failures)
            for gpu in range(self.count):
                if not failed and gpu not in reported_gpus:
                    self.synchronize(gpu)
        finally:
            with self.changed:
                self.team.stopped = self.closed = True
                self.changed.notify_all()
            for queue in self._queues.values():
                queue.join()

    def settle(self, is_used: Callable[[], bool], seconds: float) -> None:
        """Wait, at most some seconds, until no launch `is_used`, or all that run wait and none is
        about to start by itself. The calling thread starts nothing meanwhile."""
        me, end = threading.current_thread(), time.monotonic() + seconds
        with self.changed:
            self._settling.add(me)
        try:
            while is_used() and time.monotonic() < end and not self._only_waits():
                time.sleep(_SETTLING_LOOK)
        finally:
            with self.changed:
                self._settling.discard(me)

    def _only_waits(self) -> bool:
        return not self._starts_more(set()) and self.team.only_waits()

    def _expects_more(self) -> bool:
        return self._starts_more(self._hosts - self._blocked)

    def _expects_more_soon(self) -> bool:
        return self._starts_more(self._hosts - self._blocked - self._settling)

    def _starts_more(self, hosts: set[threading.Thread]) -> bool:
        """Whether a queue starts something by itself, or one of some host threads may."""
        with self.changed:
            if self._preparing - self._blocked:
                return True
            if any(queue.expects_more for queue in self._queues.values()):
                return True
            if hosts and time.monotonic() - self.team.since < patience(hosts):
                return True
        return self.is_process and self.rank_board.may_change(self.team.waits)

    def _publish(self, epoch: int) -> None:
        if self.is_process:
            self.rank_board.publish(epoch)

    def _revoke(self) -> None:
        if self.is_process:
            self.rank_board.revoke()

    def _conclude(self, lines: list[str]) -> list[str]:
        """Where the launches of all GPUs wait, of which this process has some `lines`, and why
        others run nothing, in the order of GPUs."""
        if self.is_process:
            return self.rank_board.conclude(lines)
        return sorted([*lines, *self._absent()], key=lambda line: int(_GPU.findall(line)[0]))

    def _absent(self) -> list[str]:
        """The GPUs that run nothing, and why."""
        with self.changed:
            busy = {queue.gpu for queue in self._queues.values() if queue.state is QueueState.BUSY}
            completions = dict.fromkeys(range(self.count), 0)
            for queue in self._queues.values():
                completions[queue.gpu] += queue.ended
        lines = []
        for gpu in sorted(set(completions) - busy):
            error = self._failures.get(gpu)
            why = f"has failed: {error}" if error is not None else "runs nothing"
            rank = self.describe_rank(gpu)
            launches = count(completions[gpu], "launch", "launches")
            lines.append(f"GPU {gpu} {why} ({launches} ended){rank and f': {rank}'}")
        return lines


def patience(hosts: set[threading.Thread]) -> float:
    """Seconds after which host threads that launch nothing count as waiting."""
    frames = sys._current_frames()

    def sleeps(host: threading.Thread) -> bool:
        frame = frames.get(host.ident or 0)
        return host.daemon and frame is not None and frame.f_code in _SLEEPS

    return _DAEMON_PATIENCE if all(map(sleeps, hosts)) else PATIENCE


_SLEEPS: Final = (threading.Condition.wait.__code__, threading.Event.wait.__code__)
"""What the innermost frame of a thread that sleeps runs."""


__all__ = [
    "MOST_GPUS",
    "PATIENCE",
    "THREAD_PREFIX",
    "GpuNode",
    "LaunchQueue",
    "Marker",
    "QueueState",
    "patience",
]
