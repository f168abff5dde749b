"""Triton's compiler in child processes, so that a crash of it is an error and not the end.

LLVM aborts on code it cannot select, and on what its assertions are about. While this is installed,
a kernel that is not in Triton's disk cache is compiled by a fork of the process first. The fork
leaves it in that cache, from where the process takes it; what is in the cache already costs no
fork (docs/decisions/0013-compilers-in-forks.md). A fork has the limits of compilers
(`wavecast.limits`).
"""

from __future__ import annotations

import contextlib
import errno
import faulthandler
import functools
import gc
import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

from wavecast import limits, processes
from wavecast.compile.triton import target_name
from wavecast.errors import CompileError
from wavecast.limits import ProcessLimits
from wavecast.runtimes.patching import Patches
from wavecast.runtimes.triton import installation

_DIAGNOSTIC = re.compile(r"(?:fatal )?error: .*|.*LLVM ERROR: .*|.*Assertion .* failed.*")
_UNREACHABLE = re.compile(r"((?:.*\n){0,2}).*UNREACHABLE executed")
_DONE, _RAISED, _NO_MEMORY = b"d", b"r", b"m"


class Crashed(CompileError):
    """The compiler's process ended. `reason` says how, without the kernel and the target."""

    def __init__(
        self, reason: str, *, kernel: str = "", target: str = "", log: str = "", hint: str = ""
    ) -> None:
        self.reason = reason
        message = f"{kernel} for {target}: {reason}" if kernel else reason
        super().__init__(message, log=log, hint=hint)


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """How a call in a fork ended: whether it raised, and what it printed on stdout and stderr."""

    raised: bool
    out: str
    err: str


def install(patches: Patches) -> None:
    """Compile in forks until `patches` are undone, for all of Triton's ways to its compiler."""
    import triton
    from triton.compiler import compiler
    from triton.runtime.jit import JITFunction

    installation.install(patches)
    patches.attribute(compiler, "make_backend", _telling(compiler.make_backend))
    patches.attribute(triton, "compile", _apart(triton.compile))
    patches.attribute(JITFunction, "compile", _Compile())


@contextlib.contextmanager
def in_this_process() -> Iterator[None]:
    """Compile here, in a process that may crash."""
    with _during("direct"):
        yield


def compiler_output(error: BaseException) -> str:
    """What the compiler printed on stderr before it raised `error`."""
    return getattr(error, "_wavecast_printed", "")


def diagnostic(log: str) -> str:
    """The compiler's own first complaint in what it printed; "" when there is none."""
    for line in log.splitlines():
        match = _DIAGNOSTIC.search(line)
        if match:
            return match[0].strip()
    unreachable = _UNREACHABLE.search(log)
    return "; ".join(unreachable[1].split("\n")).strip("; ") if unreachable else ""


class _State(threading.local):
    """`direct`: compile in this process. `asking`: do not compile, tell that it is needed."""

    direct = False
    asking = False


_state = _State()


@contextlib.contextmanager
def _during(what: str) -> Iterator[None]:
    before = getattr(_state, what)
    setattr(_state, what, True)
    try:
        yield
    finally:
        setattr(_state, what, before)


class _Needed(BaseException):
    """Triton has not found a kernel in its cache."""


def _telling(make_backend: Callable) -> Callable:
    """A backend lists its stages when, and only when, a kernel is to be compiled."""

    @functools.wraps(make_backend)
    def make_telling_backend(*args: Any, **kwargs: Any) -> Any:
        backend = make_backend(*args, **kwargs)
        stages = backend.add_stages

        def add_stages(*args: Any, **kwargs: Any) -> Any:
            if _state.asking:
                raise _Needed
            return stages(*args, **kwargs)

        backend.add_stages = add_stages
        return backend

    return make_telling_backend


class _Compile:
    """`JITFunction.compile`, which every function gets for itself when it is first launched."""

    def __get__(self, function: Any, owner: type | None = None) -> Any:
        if function is None:
            return self
        if "compile" not in vars(function):
            raise AttributeError("compile")
        return _apart(vars(function)["compile"])

    def __set__(self, function: Any, value: Any) -> None:
        vars(function)["compile"] = value


def _apart(compile_kernel: Callable) -> Callable:
    """`triton.compile`, in a fork where the kernel is not in the cache."""

    @functools.wraps(compile_kernel)
    def compile_in_fork(*args: Any, **kwargs: Any) -> Any:
        if _state.direct:
            return compile_kernel(*args, **kwargs)
        try:
            with _during("asking"):
                return compile_kernel(*args, **kwargs)
        except _Needed:
            pass
        call = functools.partial(compile_kernel, *args, **kwargs)
        try:
            rehearsal = rehearse(call)
        except Crashed as crash:
            kernel, target = _about(*args, **kwargs)
            raise Crashed(
                crash.reason, kernel=kernel, target=target, log=crash.log, hint=crash.hint
            ) from None
        if rehearsal.raised:
            return _raising(call, rehearsal)
        sys.stdout.write(rehearsal.out)
        sys.stderr.write(rehearsal.err)
        with _from_cache():
            return call()

    return compile_in_fork


def _about(source: Any = None, target: Any = None, *_: Any, **kwargs: Any) -> tuple[str, str]:
    """The names of the kernel and of the target `triton.compile` is called for."""
    from triton.runtime.driver import driver

    source = kwargs.get("src", source)
    target = kwargs.get("target", target) or driver.active.get_current_target()
    return getattr(source, "name", "") or Path(str(source)).stem, target_name(target)


def _raising(call: Callable[[], object], rehearsal: Rehearsed) -> object:
    """The exception of the fork, raised once more here."""
    try:
        return call()
    except Exception as error:
        with contextlib.suppress(AttributeError):
            error._wavecast_printed = rehearsal.err  # type: ignore[attr-defined]
        raise


@contextlib.contextmanager
def _from_cache() -> Iterator[None]:
    """TRITON_ALWAYS_COMPILE has had its way in the fork."""
    from triton import knobs

    if not knobs.compilation.always_compile:
        yield
        return
    with knobs.compilation.scope():
        knobs.compilation.always_compile = False
        yield


def rehearse(call: Callable[[], object]) -> Rehearsed:
    """Run `call` in a fork, which ends with this process; its result and exception are lost.

    Raises Crashed when the fork dies of a signal, ends by itself or exceeds the limits of
    compilers.
    """
    process_limits = limits.of_compilers()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        reader, writer = os.pipe()
        try:
            child = _fork(lambda: _run(call, process_limits, writer, out.fileno(), err.fileno()))
            status = processes.wait(child)
            os.set_blocking(reader, False)  # forks of other threads have the writer too
            os.close(writer)
            writer = -1
            message = _read_byte(reader)
        finally:
            os.close(reader)
            if writer >= 0:
                os.close(writer)
        rehearsal = Rehearsed(message == _RAISED, _text(out), _text(err))
    if message == _NO_MEMORY or not message:
        number = status.signal if status is not None else 0
        log = "MemoryError" if message else rehearsal.err
        exceeded = processes.exceeded_limit(process_limits, number, log)
        if exceeded:
            hint = f"{limits.SECONDS} and {limits.GIB} change its limits"
            raise Crashed(f"the compiler was stopped: {exceeded}", log=rehearsal.err, hint=hint)
        raise Crashed(_ending(status, rehearsal.err), log=rehearsal.err)
    return rehearsal


def _fork(work: Callable[[], NoReturn]) -> int:
    try:
        return processes.fork(work)
    except OSError as error:
        raise Crashed(f"no process to compile in: {error.strerror}") from error


def _read_byte(reader: int) -> bytes:
    try:
        return os.read(reader, 1)
    except OSError as error:
        if error.errno != errno.EAGAIN:
            raise
        return b""


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _ending(status: processes.Ended | None, log: str) -> str:
    reason = diagnostic(log)
    if status is not None and status.signal:
        how = f"the compiler crashed ({status.signal_name})"
        if status.signal == signal.SIGKILL and not reason:
            reason = "perhaps the system has no memory left"
    else:
        how = "the compiler ended its process"
    return f"{how}: {reason}" if reason else how


def _run(
    call: Callable[[], object], process_limits: ProcessLimits, writer: int, out: int, err: int
) -> NoReturn:
    """In the fork: call, tell how that went, end."""
    try:
        gc.freeze()  # what there is would be copied only to be looked at
        faulthandler.disable()  # its stack would be taken for a crash of the program
        _first_to_end()
        os.dup2(out, 1)
        os.dup2(err, 2)
        sys.stdout = open(1, "w", errors="replace", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", errors="replace", closefd=False)  # noqa: SIM115
        processes.limit_self(process_limits)
        with in_this_process():
            try:
                call()
                ending = _DONE
            except MemoryError:
                ending = _NO_MEMORY
            except BaseException:
                ending = _RAISED
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(writer, ending)
    finally:
        os._exit(0)


def _first_to_end() -> None:
    """Where memory runs out, have Linux end this process and not the one that waits for it."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


__all__ = [
    "Crashed",
    "Rehearsed",
    "compiler_output",
    "diagnostic",
    "in_this_process",
    "install",
    "rehearse",
]
