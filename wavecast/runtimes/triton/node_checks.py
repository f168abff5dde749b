"""What checks across GPUs need to see of a program: its memory, and what its threads order."""

from __future__ import annotations

import functools
import threading
import weakref
from typing import TYPE_CHECKING, Any

from wavecast.emulate.check.gpus.host_accesses import HostAccesses
from wavecast.emulate.check.gpus.order import GpuOrder
from wavecast.emulate.node import THREAD_PREFIX

if TYPE_CHECKING:
    from wavecast.runtimes.patching import Patches

_FOLLOWED = "_wavecast_records"
"""Attribute of a storage: PyTorch keeps the Python object of a storage as long as its memory."""


class _Lifetime:
    """Lives as long as the storage that it is an attribute of."""


class NodeChecks:
    """The checks of a node with `count` GPUs. `accesses` is set once there is the node."""

    accesses: HostAccesses

    def __init__(self, count: int) -> None:
        self.order = GpuOrder(count)

    def follow(self, storage: Any, gpu: int) -> None:
        """The records of a storage's memory end with it."""
        if getattr(storage, _FOLLOWED, None) is not None:
            return
        first = storage.data_ptr()
        memory, lifetime = (first, first + storage.nbytes()), _Lifetime()
        with self.order.lock:
            self.order.memory.belongs(memory, gpu)
        weakref.finalize(lifetime, self.order.memory.free, memory).atexit = False
        setattr(storage, _FOLLOWED, lifetime)

    def install(self, patches: Patches, internal: threading.Condition) -> None:
        """Follow what host threads order: starts and ends of threads, and conditions but the
        `internal` one."""
        streams = self.order.streams
        enter, leave = threading.Condition.__enter__, threading.Condition.__exit__
        start, join = threading.Thread.start, threading.Thread.join

        @functools.wraps(enter)
        def acquire_condition(condition: threading.Condition) -> Any:
            result = enter(condition)
            if condition is not internal:
                streams.take(condition)
            return result

        @functools.wraps(leave)
        def exit_condition(condition: threading.Condition, *error: Any) -> Any:
            if condition is not internal:
                streams.leave(condition)
            return leave(condition, *error)

        @functools.wraps(start)
        def start_thread(thread: threading.Thread) -> None:
            if not thread.name.startswith(THREAD_PREFIX):
                run = thread.run

                def run_in_order() -> None:
                    streams.take(thread)
                    try:
                        run()
                    finally:
                        streams.finish(thread)

                streams.leave(thread)
                thread.run = run_in_order
            start(thread)

        @functools.wraps(join)
        def join_thread(thread: threading.Thread, timeout: float | None = None) -> None:
            join(thread, timeout)
            if not thread.is_alive():
                streams.take(thread)

        patches.attribute(threading.Condition, "__enter__", acquire_condition)
        patches.attribute(threading.Condition, "__exit__", exit_condition)
        patches.attribute(threading.Thread, "start", start_thread)
        patches.attribute(threading.Thread, "join", join_thread)


__all__ = ["NodeChecks"]
