"""Happens-before over the launches of several GPUs: what each launch knows, and whose a record is.

Records outlive their launch: workgroups of all launches are counted on, and every launch has a
number. What streams, events and the host order is known when a launch starts (`stream_order.py`);
what its waves acquire refers to releases of other launches, and to all that those knew at their
start. At its end a launch passes on what its workgroups have acquired.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from wavecast.compile.codeobject import Launch
from wavecast.emulate.check.clocks.joined_rows import JoinedRows, Rows, joined_rows
from wavecast.emulate.check.clocks.missing_order import RaceSide
from wavecast.emulate.check.clocks.reactions import Reactions
from wavecast.emulate.check.clocks.records import MOST_GROUPS, MOST_LAUNCHES, MemoryRecord
from wavecast.emulate.check.clocks.vector_clock import Clock, all_rows
from wavecast.emulate.check.gpus.memory import GpuMemory, LinkTraffic
from wavecast.emulate.check.gpus.stream_order import (
    NOTHING,
    Before,
    LaunchPositions,
    LaunchRows,
    RunningWork,
    StreamOrder,
)
from wavecast.emulate.errors import Unsupported

_NO_LAUNCHES: Final = np.zeros(0, np.uint8)


@dataclass(slots=True)
class CheckedLaunch:
    """A launch of a GPU: its `number`, that of its `first` workgroup among all, its position in its
    queue, and what happened `before` it. `known` is 1 for each launch that ended before."""

    number: int
    gpu: int
    first: int
    queue: int
    position: int
    before: Before
    side: RaceSide
    launch: Launch
    known: np.ndarray = field(repr=False)


class GpuOrder:
    """The launches of a node with `count` GPUs."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.lock = threading.Lock()
        self.streams = StreamOrder()
        self.memory = GpuMemory(count)
        self.reactions = Reactions()
        self._launches: dict[int, CheckedLaunch] = {}
        self._firsts: list[int] = []
        self._numbers: list[int] = []
        self._positions = LaunchPositions.empty(MOST_LAUNCHES)
        self._groups = 0
        self._running: set[int] = set()

    def begin(self, launch: Launch, groups: int, side: RaceSide) -> CheckedLaunch:
        """A launch of the calling queue thread. Raises Unsupported where records cannot name it."""
        work = self.streams.running or RunningWork(side.gpu, 0, 0, NOTHING)
        with self.lock:
            if not self._running and self._full(groups):
                self._forget()
            if self._full(groups):
                raise Unsupported(
                    f"{launch.code.kernel}: checks of {MOST_LAUNCHES} launches without a pause"
                )
            number = len(self._numbers) + 1
            self._positions.queues[number] = work.queue
            self._positions.positions[number] = work.position
            ended_launches = self._positions.ended_launches(work.before, number + 1)
            checked_launch = CheckedLaunch(
                number, work.gpu, self._groups, work.queue, work.position, work.before,
                replace(side, gpu=work.gpu), launch, ended_launches,
            )  # fmt: skip
            self._launches[number] = checked_launch
            self.memory.on_launch(number, checked_launch.gpu)
            self._firsts.append(self._groups)
            self._numbers.append(number)
            self._groups += groups
            self._running.add(number)
            return checked_launch

    def end(self, launch: CheckedLaunch, gained: Sequence[Clock]) -> None:
        """A launch has ended: what its workgroups have acquired happens before what is behind."""
        with self.lock:
            self._running.discard(launch.number)
            launch.known = _NO_LAUNCHES
            after = NOTHING
            for number in frozenset().union(*(clock.launches for clock in gained)):
                after = after.join(self._launches[number].before)
            work = self.streams.running
            if work is not None:
                learned = self._by_launch(all_rows(gained), after, launch)
                work.after = after.join(Before({}, learned))

    def _by_launch(
        self, total: JoinedRows, before: Before, launch: CheckedLaunch
    ) -> dict[int, LaunchRows]:
        """Rows of workgroups by the number of their launch: of others than `launch`, and without
        those that have ended `before`."""
        known = list(total.items())
        groups = np.array([group for group, _ in known], np.int64)
        positions = np.searchsorted(np.array(self._firsts), groups, side="right") - 1
        by_launch: dict[int, Rows] = {}
        for (group, rows), position in zip(known, positions.tolist(), strict=True):
            by_launch.setdefault(self._numbers[position], {})[group] = rows
        authors = [(self._launches[number], rows) for number, rows in by_launch.items()]
        return {
            author.number: LaunchRows(author.queue, author.position, rows)
            for author, rows in authors
            if author is not launch and not self._ended_by(before, author)
        }

    def has_ended(self, launch: int, clock: Clock, other: int) -> bool:
        """Whether launch `other` ended before a wave of `launch` with a clock continues."""
        earlier = self._launches[other]
        return any(
            self._ended_by(predecessor.before, earlier)
            for predecessor in self._behind(launch, clock)
        )

    def rows(self, launch: int, clock: Clock, record: MemoryRecord) -> np.ndarray | None:
        """The rows of the workgroup of a record, or of any of its launch where several have made
        it, that such a wave knows from the starts it is behind; also from its clock for several."""
        partial = [
            predecessor.before.partial.get(record.launch)
            for predecessor in self._behind(launch, clock)
        ]
        behind = [launch_rows.rows for launch_rows in partial if launch_rows is not None]
        if record.group is not None:
            total: Rows = {}
            for groups in behind:
                if record.group in groups:
                    total = joined_rows(total, {record.group: groups[record.group]})
            return total.get(record.group)
        author = self._launches[record.launch]
        end = author.first + math.prod(author.launch.grid)
        rows = clock.all_rows().rows_between(author.first, end)
        if rows is not None:
            return rows
        for groups in behind:
            for group, rows in groups.items():
                if author.first <= group < end:
                    return rows
        return None

    def traffic(self) -> tuple[LinkTraffic, ...]:
        """What kernels have moved between GPUs, the most on a link first."""
        with self.lock:
            return self.memory.traffic()

    def launch(self, number: int) -> CheckedLaunch:
        """A launch by its number."""
        return self._launches[number]

    def gpu_of(self, launch: int) -> int:
        """The GPU of a launch by its number."""
        return self._launches[launch].gpu

    def is_before(self, number: int, before: Before) -> bool:
        """Whether a launch has ended before."""
        return self._ended_by(before, self._launches[number])

    def _behind(self, launch: int, clock: Clock) -> list[CheckedLaunch]:
        return [self._launches[number] for number in (launch, *clock.launches)]

    @staticmethod
    def _ended_by(before: Before, launch: CheckedLaunch) -> bool:
        return before.ended.get(launch.queue, 0) >= launch.position

    def _full(self, groups: int) -> bool:
        return len(self._numbers) + 1 >= MOST_LAUNCHES or self._groups + groups > MOST_GROUPS

    def _forget(self) -> None:
        """Forget what has been recorded: nothing runs."""
        self._launches.clear()
        self._firsts, self._numbers, self._groups = [], [], 0
        self._positions = LaunchPositions.empty(MOST_LAUNCHES)
        self.memory.clear()


__all__ = ["CheckedLaunch", "GpuOrder"]
