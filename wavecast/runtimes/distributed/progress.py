"""What the threads of ranks do, for messages about those that wait for others."""

from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Final

from wavecast.launch.script_lines import frame_line, location_suffix

_LOOK: Final = 0.2
"""Seconds between looks at threads that have not ended."""
_GRACE: Final = 2.0
"""Seconds that ranks have to raise what ends them."""


class RankLeft(BaseException):
    """A rank has called `os._exit(code)`: its thread ends, the process does not."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class RankStopped(BaseException):
    """A rank computes while all others wait for it in a deadlock, which has been reported."""


class RankProgress:
    """The ranks of a program, each a thread."""

    def __init__(self) -> None:
        self._threads: dict[int, threading.Thread] = {}
        self._ends: dict[int, str] = {}

    @contextlib.contextmanager
    def following(self, rank: int) -> Iterator[None]:
        """A block of the calling thread that is a rank."""
        self._threads[rank] = threading.current_thread()
        self._ends.pop(rank, None)
        how = "has ended"
        try:
            yield
        except RankLeft as left:
            how = f"left by os._exit({left.code})"
            raise
        except SystemExit:
            how = "left by sys.exit"
            raise
        except BaseException as error:
            how = f"has raised {type(error).__name__}"
            raise
        finally:
            self._ends[rank] = how

    def describe(self, rank: int) -> str:
        """`rank 1 has ended`, `rank 1 is at train.py:12`; "" for a rank without a thread."""
        thread = self._threads.get(rank)
        if thread is None:
            return ""
        if rank in self._ends:
            return f"rank {rank} {self._ends[rank]}"
        frame = sys._current_frames().get(thread.ident or 0)
        line = None if frame is None else frame_line(frame)
        return f"rank {rank} is{location_suffix(line)}" if line else f"rank {rank} runs"


def join_ranks(threads: Sequence[threading.Thread], stops: threading.Event) -> None:
    """Wait until the threads of ranks have ended. Once one `stops` the others, those that continue
    to compute end by RankStopped."""
    end = None
    for thread in threads:
        while thread.is_alive():
            thread.join(_LOOK)
            if stops.is_set():
                end = time.monotonic() + _GRACE if end is None else end
                if time.monotonic() > end:
                    _raise_in(thread)


def _raise_in(thread: threading.Thread) -> None:
    """Raise RankStopped in another thread, at its next instruction of Python."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident or 0), ctypes.py_object(RankStopped)
    )


__all__ = ["RankLeft", "RankProgress", "RankStopped", "join_ranks"]
