"""Child processes: the one place that forks, with one policy for signals and the parent's death.

A child
- ends when its parent does, however the parent dies (Linux prctl(2), PR_SET_PDEATHSIG),
- ends at once and silently on SIGINT and SIGTERM: handlers of the parent do not run in it.

A child that runs a user's program leads its own process group (`own_group`): Ctrl-C in the
terminal does not reach it, SIGINT has Python's meaning, and `kill_group` also ends the processes
that the program started.

The parent-death signal is sent when the thread that forked ends, so that thread must outlive the
child or expect its death.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import traceback
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended: by the signal `signal` (0 for none), or with the exit code `code`."""

    signal: int = 0
    code: int = 0

    @property
    def signal_name(self) -> str:
        """`SIGABRT`; "" when no signal ended it."""
        return signal.Signals(self.signal).name if self.signal else ""


def can_fork() -> bool:
    """Whether this system forks processes."""
    return hasattr(os, "fork")


def fork(work: Callable[[], object], *, own_group: bool = False) -> int:
    """Start `work` in a fork of this process; its process id.

    The fork has the calling thread only: `work` must not need other threads, or locks they may
    hold. The exit code is 0 when `work` returns and 1 when it raises, with a traceback on stderr.
    Raises OSError when the system has no process left.
    """
    parent = os.getpid()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of other threads
        child = os.fork()
    if child:
        if own_group:  # here too: `kill_group` may come before the child runs
            with contextlib.suppress(OSError):
                os.setpgid(child, child)
        return child
    code = 1
    try:
        become_child(parent)
        if own_group:
            os.setpgid(0, 0)
            signal.signal(signal.SIGINT, signal.default_int_handler)
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def become_child(parent: int) -> None:
    """Apply the policy to this process, a child of `parent`; for processes that are not forked
    here."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def started(jobs: int) -> ProcessPoolExecutor:
    """A pool of `jobs` processes that are started, not forked. Functions, arguments and
    results are pickled."""
    context = get_context("spawn")
    return ProcessPoolExecutor(jobs, context, initializer=become_child, initargs=(os.getpid(),))


def wait(child: int) -> Ended | None:
    """Wait for a child to end. None when its end cannot be known: the program ignores SIGCHLD or
    has waited for all its children. The child is killed when the wait is interrupted."""
    try:
        _, status = os.waitpid(child, 0)
    except ChildProcessError:
        return None
    except BaseException:
        kill(child)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)
        raise
    return _ended(status)


def poll(child: int) -> Ended | None:
    """How a child ended; None while it runs. Raises ChildProcessError for no child."""
    done, status = os.waitpid(child, os.WNOHANG)
    return _ended(status) if done else None


def kill(child: int) -> None:
    """End a process now."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)


def kill_group(child: int) -> None:
    """End the process group that a child with `own_group` leads."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)


def _ended(status: int) -> Ended:
    if os.WIFSIGNALED(status):
        return Ended(signal=os.WTERMSIG(status))
    return Ended(code=os.WEXITSTATUS(status))


__all__ = [
    "Ended",
    "become_child",
    "can_fork",
    "fork",
    "kill",
    "kill_group",
    "poll",
    "started",
    "wait",
]
