"""Child processes: the one place that forks, with one policy for signals and the parent's death.

A child
- ends when its parent does, however the parent dies (Linux prctl(2), PR_SET_PDEATHSIG),
- ends at once and silently on SIGINT and SIGTERM: handlers of the parent do not run in it.

A child that runs a user's program leads its own process group (`own_group`): Ctrl-C in the
terminal does not reach it, SIGINT has Python's meaning, and `kill_group` also ends the processes
that the program started.

`continue_in_child` is for a program that must keep its terminal: the child is the program, and its
parent only waits to tell how it ended.

Compilers have limits (`wavecast.limits`): programs through `run`, forks through `limit_self`.

The parent-death signal is sent when the thread that forked ends, so that thread must outlive the
child or expect its death.
"""

from __future__ import annotations

import _imp
import contextlib
import ctypes
import gc
import importlib
import math
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import IO, TYPE_CHECKING, Final

from wavecast.limits import ProcessLimits

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_THP_DISABLE: Final = 41
_NO_MEMORY: Final = re.compile(
    r"^(LLVM ERROR: |fatal error: )?out of memory\b|^MemoryError\b|^(error|panic): OutOfMemory\b"
    r"|\bterminat(e|ing)\b.*\bbad_alloc\b|: Cannot allocate memory$",
    re.MULTILINE | re.IGNORECASE,
)
"""What programs print whose memory is used up, not where they quote source code or symbols."""
_IMPORT_SECONDS: Final = 60.0
"""How long a fork waits for imports of other threads; those of PyTorch take seconds."""
_IMPORT_LOOK: Final = 0.001
_NO_TIME: Final = "CPU time limit exceeded"
"""What drivers print of a compiler that SIGXCPU ended (strsignal(3))."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended: by the signal `signal` (0 for none), or with the exit code `code`."""

    signal: int = 0
    code: int = 0

    @property
    def signal_name(self) -> str:
        """`SIGABRT`; "" when no signal ended it."""
        return signal.Signals(self.signal).name if self.signal else ""


@dataclass(frozen=True, slots=True)
class Finished:
    """What a program printed on stdout (`output`) and stderr (`log`), and its exit status, negative
    for the number of the signal that ended it. `exceeded` says which limit it exceeded, "" for
    none."""

    status: int
    output: bytes
    log: str
    exceeded: str = ""

    @property
    def text(self) -> str:
        return self.output.decode("utf-8", "replace")


def run(
    command: Sequence[str],
    limits: ProcessLimits,
    *,
    stdin: bytes | None = None,
    environment: Mapping[str, str] | None = None,
) -> Finished:
    """Run a program to its end, or until it exceeds a limit. The processes that it started end with
    it. Raises OSError when it cannot start.

    Its output goes to files, whose size is limited: it may not use up the memory of this process.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=out,
            stderr=err,
            env=environment,
            start_new_session=True,
        )
        late = False
        try:
            limit(process.pid, limits)
            process.communicate(stdin, timeout=limits.clock_seconds)
        except subprocess.TimeoutExpired:
            late = True
        finally:
            if process.returncode is None:
                kill_group(process.pid)
            status = process.wait()
        log = _content(err).decode("utf-8", "replace")
        exceeded = exceeded_limit(limits, _signal_of(status), log, late=late)
        return Finished(status, _content(out), log, exceeded if status or late else "")


def start(
    command: Sequence[str], environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a program that has this process's terminal, and ends when this process does. Raises
    OSError when it cannot start."""
    parent = os.getpid()
    return subprocess.Popen(command, env=environment, preexec_fn=lambda: _die_with(parent))


def limit(process: int, limits: ProcessLimits) -> None:
    """Apply limits to another process (Linux prlimit(2)), from its start on. Processes that it
    starts have the same."""
    if not hasattr(resource, "prlimit"):
        return
    with contextlib.suppress(ProcessLookupError):
        for number, value in _limits(limits, 0).items():
            _, hard = resource.prlimit(process, number)
            resource.prlimit(process, number, (_at_most(value, hard), hard))


def limit_self(limits: ProcessLimits) -> None:
    """Apply limits to this process, a fork, from now on: SIGALRM ends it at the limit of the clock,
    SIGPROF at that of the processor. What it has allocated does not count. Processes that it starts
    have the limits of whole seconds (SIGXCPU)."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cpu_seconds = usage.ru_utime + usage.ru_stime
    for number, value in _limits(limits, _allocated_bytes(), cpu_seconds).items():
        _, hard = resource.getrlimit(number)
        resource.setrlimit(number, (_at_most(value, hard), hard))
    for number in (signal.SIGALRM, signal.SIGPROF, signal.SIGXCPU):
        signal.signal(number, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, limits.clock_seconds)
    signal.setitimer(signal.ITIMER_PROF, limits.seconds)


def exceeded_limit(limits: ProcessLimits, number: int, log: str, *, late: bool = False) -> str:
    """Which limit a process that failed exceeded, by the signal that ended it and what it printed;
    "" for none."""
    if number in (signal.SIGPROF, signal.SIGXCPU) or _NO_TIME in log:
        return f"it needs more than {limits.seconds:g} s of processor time"
    if late or number == signal.SIGALRM:
        return f"it did not finish in {limits.clock_seconds:g} s"
    if number == signal.SIGXFSZ:
        return f"it wrote more than {limits.memory_text}"
    if _NO_MEMORY.search(log):
        return f"it needs more than {limits.memory_text} of memory"
    return ""


def _signal_of(status: int) -> int:
    """The signal that ended a process; a shell and LLVM's drivers exit with 128 + that of a child.
    0 for none."""
    return -status if status < 0 else max(0, status - 128)


def _limits(limits: ProcessLimits, allocated: int, cpu_seconds: float = 0.0) -> dict[int, int]:
    """Resource -> its limit. `allocated` bytes and `cpu_seconds` seconds are not the compiler's."""
    return {
        resource.RLIMIT_AS: allocated + limits.memory,
        resource.RLIMIT_CPU: math.ceil(cpu_seconds + limits.seconds),
        resource.RLIMIT_FSIZE: limits.memory,
        resource.RLIMIT_CORE: 0,
    }


def _at_most(value: int, hard: int) -> int:
    return value if hard == resource.RLIM_INFINITY else min(value, hard)


def _allocated_bytes() -> int:
    """Bytes of address space that this process has."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return 0


def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def continue_in_child() -> Ended | None:
    """Fork; None in the child, which continues as the program, with its terminal, signals and exit.
    The parent waits for it and returns how it ended. Ctrl-C in the terminal reaches both, and only
    the child handles it; SIGTERM and SIGHUP are passed to it.

    Raises OSError when the system has no process left.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    with _no_thread_in_llvm():
        child = os.fork()
    if not child:
        _die_with(parent)
        return None
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda sent, _: os.kill(child, sent))
    _, status = os.waitpid(child, 0)
    return _wait_status(status)


def _no_thread_in_llvm() -> contextlib.AbstractContextManager[object]:
    """Holds llvmlite's lock around a fork, where llvmlite is loaded.

    Another thread may be compiling. A child that is forked meanwhile has the lock without that
    thread, and waits for ever as soon as it frees an object of LLVM, which Python may do within the
    fork. llvmlite has no public name for the lock; it can be entered again by the same thread.
    """
    loaded = sys.modules.get("llvmlite.binding.ffi")
    return loaded.lib._lock if loaded is not None else contextlib.nullcontext()


def can_fork() -> bool:
    """Whether this system forks processes."""
    return hasattr(os, "fork")


@contextlib.contextmanager
def _no_thread_imports() -> Iterator[None]:
    """Wait, at most `_IMPORT_SECONDS`, until no other thread imports a module, and let none begin
    to: in a fork the locks of these modules would stay locked, and the first import of one of them
    would wait for ever. Where this thread imports something itself, others may wait for it, so it
    does not wait for them.

    Source: CPython, Lib/importlib/_bootstrap.py, `_ModuleLock`, whose table is read under the
    global lock; Python/import.c, `_PyImport_ReInitLock`, which forks keep locked once less.
    """
    end = time.monotonic() + _IMPORT_SECONDS
    _imp.acquire_lock()
    try:
        while True:
            importing = _importing_threads()
            others = importing - {threading.get_ident()}
            if not others or others != importing or time.monotonic() > end:
                break
            _imp.release_lock()
            time.sleep(_IMPORT_LOOK)
            _imp.acquire_lock()
        yield
    finally:
        with contextlib.suppress(RuntimeError):  # a fork has it no more
            _imp.release_lock()


def _importing_threads() -> set[int]:
    """Threads that hold the lock of a module."""
    locks = [reference() for reference in [*importlib._bootstrap._module_locks.values()]]  # type: ignore[attr-defined]
    owners = {getattr(lock, "owner", None) for lock in locks}
    return {owner for owner in owners if owner is not None}


def fork(work: Callable[[], object], *, own_group: bool = False) -> int:
    """Start `work` in a fork of this process; its process id.

    The fork has the calling thread only: `work` must not need other threads, or locks they may
    hold; those of LLVM and of modules are free. The exit code is 0 when `work` returns and 1 when
    it raises, with a traceback on stderr. Raises OSError when the system has no process left.
    """
    parent = os.getpid()
    with warnings.catch_warnings(), _no_thread_imports(), _no_thread_in_llvm():
        # Python 3.12 and JAX warn of other threads, which `work` does not need.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.filterwarnings("ignore", r"os.fork\(\) was called", RuntimeWarning)
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


def fork_for_bytes(write: Callable[[IO[bytes]], object]) -> tuple[bytes, Ended | None]:
    """What `write` writes to the file that it gets, in a fork, and how the fork ended. The fork is
    killed where waiting is interrupted. Conditions and errors are those of `fork`."""
    reader, writer = os.pipe()

    def work() -> None:
        os.close(reader)
        with os.fdopen(writer, "wb") as pipe:
            write(pipe)

    with os.fdopen(reader, "rb") as pipe:
        try:
            child = fork(work)
        finally:
            os.close(writer)
        try:
            content = pipe.read()
        except BaseException:
            kill(child)
            wait(child)
            raise
    return content, wait(child)


def become_child(parent: int) -> None:
    """Apply the policy to this process, a child of `parent`; for processes that are not forked
    here."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _die_with(parent)


def _die_with(parent: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def without_huge_pages() -> None:
    """Give this process, and those that it forks, pages of the usual size from now on (Linux
    prctl(2), PR_SET_THP_DISABLE). What touches a little of every 2 MiB of a large array would
    otherwise make all of it resident."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0)


@contextlib.contextmanager
def _no_script() -> Iterator[None]:
    """Processes that are started within do not import the script."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def started_pool(jobs: int, *, script: bool = True) -> ProcessPoolExecutor:
    """A pool of `jobs` processes that are started, not forked. Functions, arguments and
    results are pickled. Each imports the script that runs, which therefore needs a guard
    (`if __name__ == "__main__"`), except where nothing that is pickled is of the `script`."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    class _StartedPool(ProcessPoolExecutor):
        def _spawn_process(self) -> None:
            with contextlib.nullcontext() if script else _no_script():
                super()._spawn_process()  # type: ignore[misc]

    context = get_context("spawn")
    parent_state = os.getpid(), gc.get_threshold()
    return _StartedPool(jobs, context, initializer=_become_started, initargs=parent_state)


def _become_started(parent: int, thresholds: tuple[int, int, int]) -> None:
    """The policy, and the parent's collector: imports of PyTorch make it run hundreds of times."""
    become_child(parent)
    gc.set_threshold(*thresholds)


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
    return _wait_status(status)


def poll(child: int) -> Ended | None:
    """How a child ended; None while it runs. Raises ChildProcessError for no child."""
    pid, status = os.waitpid(child, os.WNOHANG)
    return _wait_status(status) if pid else None


def kill(child: int) -> None:
    """End a process now."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)


def end(child: int) -> None:
    """Ask a process to end (SIGTERM)."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGTERM)


def kill_group(child: int) -> None:
    """End the process group that a child with `own_group` leads."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)


def _wait_status(status: int) -> Ended:
    if os.WIFSIGNALED(status):
        return Ended(signal=os.WTERMSIG(status))
    return Ended(code=os.WEXITSTATUS(status))


__all__ = [
    "Ended",
    "Finished",
    "become_child",
    "can_fork",
    "continue_in_child",
    "end",
    "exceeded_limit",
    "fork",
    "kill",
    "kill_group",
    "limit",
    "limit_self",
    "poll",
    "run",
    "start",
    "started_pool",
    "wait",
    "without_huge_pages",
]
