"""Happens-before between workgroups, for one launch: what native code calls.

Native code calls `event` at atomic accesses and cache control, and `query` where what it keeps of a
clock does not settle an order (`order.py`). This module has the callbacks, the lock and the memory
of each resident workgroup; `clock_events.py` records the events, `clock_queries.py` answers the
queries.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping

import numpy as np

from wavecast.emulate import hostmemory
from wavecast.emulate.check import log
from wavecast.emulate.check.clocks.clocks import (
    ACQUIRE,
    CLOCK_WORDS,
    OBSERVE,
    RELEASE,
    UPDATE,
    ResidentClock,
    WorkgroupClock,
)
from wavecast.emulate.check.clocks.events import ClockEvents, ClockLaunch
from wavecast.emulate.check.clocks.missing_order import Unordered
from wavecast.emulate.check.clocks.queries import ClockQueries, LaunchHistory
from wavecast.emulate.check.clocks.reactions import LaunchReactions
from wavecast.emulate.check.clocks.records import MemoryRecord
from wavecast.emulate.check.clocks.release_memory import ReleaseMemory
from wavecast.emulate.check.clocks.vector_clock import Clock
from wavecast.emulate.lower import state

_EVENT = ctypes.CFUNCTYPE(
    None, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64
)
_QUERY = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64,
    ctypes.c_uint64,
)  # fmt: skip


class Clocks:
    """The clocks of one launch, with the releases of `memory`. Launches that run at once share the
    memory, a `lock` and a `history`, and may have `reactions`. `error` is the first exception of a
    callback."""

    def __init__(
        self,
        target: str,
        waves: int,
        memory: ReleaseMemory,
        launch: ClockLaunch | None = None,
        history: LaunchHistory | None = None,
        lock: threading.Lock | None = None,
    ) -> None:
        self.error: BaseException | None = None
        self.reactions: LaunchReactions | None = None
        """Where other launches may react to what this one releases."""
        self._launch = ClockLaunch() if launch is None else launch
        self._events = ClockEvents(target, waves, memory, self._launch)
        self._queries = ClockQueries(self._events, history)
        self._threads: dict[int, ResidentClock] = {}
        self._gained: list[Clock] = []
        self._lock = threading.Lock() if lock is None else lock
        self._event_callback = _EVENT(self._event)
        self._query_callback = _QUERY(self._query)

    @property
    def unordered(self) -> Mapping[tuple[int, int, int], Unordered]:
        """What was missing at the first conflict of each pair of instructions, and the launch of
        the earlier one."""
        return self._queries.unordered

    def attach(self, context: np.ndarray, progress: np.ndarray) -> None:
        """Fill the words of a host thread's context; `progress` is its `Progress.words`."""
        words = hostmemory.zeros(CLOCK_WORDS, np.uint64)
        context[log.CLOCKS] = words.ctypes.data
        for word, callback in (
            (log.ORDER_EVENT, self._event_callback),
            (log.ORDER_QUERY, self._query_callback),
        ):
            context[word] = ctypes.cast(callback, ctypes.c_void_p).value or 0
        with self._lock:
            self._threads[context.ctypes.data] = ResidentClock(
                context, progress, words, WorkgroupClock(-1)
            )

    def _event(self, context: int, what: int, addresses: int, lanes: int, number: int) -> None:
        try:
            if self.reactions is not None:
                event, instruction = what & 0xFF, what >> 8
                if event not in (OBSERVE, ACQUIRE):
                    self.reactions.on_step()
                if event in (RELEASE, UPDATE) and instruction in self._launch.system:
                    self.reactions.on_release()
            with self._lock:
                self._events.record(self._thread(context), what, addresses, lanes, number)
        except BaseException as error:  # nobody to raise it to
            self.error = self.error or error

    def _query(self, context: int, who: int, number: int, access: int, address: int) -> int:
        try:
            with self._lock:
                record = MemoryRecord.of(who, number)
                return self._queries.races(self._thread(context), record, access, address)
        except BaseException as error:
            self.error = self.error or error
            return 0

    def on_worker_end(self) -> None:
        """The calling host thread has run its last workgroup."""
        if self.reactions is not None:
            self.reactions.on_step()

    def acquired_clocks(self) -> list[Clock]:
        """What each workgroup of the launch has acquired, once it has ended."""
        with self._lock:
            for thread in self._threads.values():
                self._events.catch_up(thread)
                self._gained.append(thread.group.total)
            return self._gained

    def _thread(self, context: int) -> ResidentClock:
        thread = self._threads[context]
        number = int(thread.context[state.WORKGROUP]) + self._launch.first
        if thread.group.number != number:
            if self._launch.number:
                self._gained.append(thread.group.total)
            thread.group = WorkgroupClock(number)
        return thread


__all__ = ["Clocks"]
