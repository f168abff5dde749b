"""Python processes that have PyTorch, Triton and what captures need imported, forked from one that
imported them once.

Importing these takes seconds of every process that a test starts. `run_python` is `python`, and
with `captures` (tests/conftest.py) scripts are captured in such forks. A test of what a process
does before it imports anything starts its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from wavecast import processes

_SERVER = """
import atexit, gc, json, os, runpy, signal, socket, sys, traceback
from importlib import import_module

channel = socket.socket(fileno={channel})
gc.disable()
import torch, triton
import wavecast.runtimes.triton.hooks, wavecast.runtimes.triton.worker
gc.freeze()
gc.enable()

def run(first, *arguments):  # what `python` does with these arguments
    if first == "-P":
        first, *arguments = arguments
    elif first in ("-m", "-c"):
        sys.path.insert(0, os.getcwd())
    if first not in ("-m", "-c"):
        sys.argv = [first, *arguments]
        sys.path.insert(0, os.path.dirname(os.path.abspath(first)))
        runpy.run_path(first, run_name="__main__")
        return
    if first == "-m":
        sys.argv = list(arguments)
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [first, *arguments[1:]]
        exec(compile(arguments[0], "<string>", "exec"), sys.modules["__main__"].__dict__)

def work(job, streams):
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    channel.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(job["folder"])
    os.environ.clear()
    os.environ.update(job["environment"])
    named = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.path[:0] = [path for path in named if path not in sys.path]
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, "r" if not number else "w", closefd=False) for number in range(3)
    )
    code = 0
    try:
        if "capture" in job:
            import_module(job["capture"][0]).main(job["capture"][1])
        else:
            from wavecast.runtimes.triton import capture_process
            capture_process.prepare()  # without GPUs from here on
            os.environ.update({**job["environment"], **{hidden}})
            run(*job["command"])
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        if error.code is not None and not isinstance(error.code, int):
            print(error.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name, None)
        if stream is not None and not stream.closed:
            stream.flush()
    os._exit(code)

def say(**message):
    channel.send(json.dumps(message).encode())

def collect(*_):
    while True:
        try:
            child, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not child:
            return
        say(ended=child, code=os.waitstatus_to_exitcode(status))

signal.signal(signal.SIGCHLD, collect)
while True:
    data, streams, _, _ = socket.recv_fds(channel, 1 << 20, 3)
    if not data:
        break
    child = os.fork()
    if not child:
        try:
            work(json.loads(data), streams)
        finally:
            os._exit(70)
    say(started=child)
    for stream in streams:
        os.close(stream)
"""
_NO_GPU = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}
"""What the product sets for a process that captures."""


class _Server:
    """The process that forks; it ends when this one closes its end of the socket."""

    def __init__(self) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._codes: dict[int, int] = {}
        boot = _SERVER.replace("{channel}", str(theirs.fileno())).replace("{hidden}", repr(_NO_GPU))
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", boot],
            stdin=subprocess.DEVNULL,
            stdout=2,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()

    def start(self, job: Mapping[str, Any], streams: Sequence[int]) -> int:
        """Fork for a job with these files as standard input, output and error; its process id."""
        socket.send_fds(self._channel, [json.dumps(job).encode()], streams)
        while (started := self._read(None)) is None:
            pass
        return started

    def poll(self, child: int, timeout: float | None = 0.0) -> int | None:
        """The exit code of a child, after `timeout` seconds at most; None while it runs."""
        until = None if timeout is None else time.monotonic() + timeout
        while child not in self._codes:
            left = None if until is None else max(0.0, until - time.monotonic())
            if not select.select([self._channel], [], [], left)[0]:
                return None
            self._read(child)
        return self._codes[child]

    def close(self) -> None:
        """End it, which also makes its processor time count as that of a child."""
        self._process.terminate()
        self._process.wait()
        self._channel.close()

    def _read(self, child: int | None) -> int | None:
        """Take one message: note the code of a child that ended, return the id of a new one."""
        data = self._channel.recv(1 << 16)
        assert data, f"the process that forks ended while {child or 'it started one'}"
        message = json.loads(data)
        if "started" in message:
            return int(message["started"])
        self._codes[message["ended"]] = message["code"]
        return None


@cache
def _server(process: int) -> _Server:
    del process
    return _Server()


class _Capture:
    """A capture in a fork (`wavecast.runtimes.triton.capture_process.CaptureProcess`)."""

    def __init__(self, server: _Server, child: int) -> None:
        self._server, self._child = server, child
        self.returncode: int | None = None

    def poll(self) -> int | None:
        self.returncode = self._server.poll(self._child)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        code = self.returncode = self._server.poll(self._child, timeout)
        if code is None:
            raise subprocess.TimeoutExpired("capture", timeout or 0.0)
        return code

    def terminate(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._child, signal.SIGTERM)


def run_python(
    *command: object,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    stdin: str = "",
) -> subprocess.CompletedProcess[str]:
    """How `python` with these arguments ended, in a folder (this one). Scripts that it captures run
    in forks of it."""
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        given.write(stdin.encode())
        given.seek(0)
        words = [str(word) for word in command]
        job = {
            "command": words,
            "environment": dict(os.environ if environment is None else environment),
            "folder": str(folder or Path.cwd()),
        }
        server = _server(os.getpid())
        child = server.start(job, [file.fileno() for file in (given, out, err)])
        code = server.poll(child, None)
        assert code is not None
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(words, code, out.read().decode(), err.read().decode())


def finished(command: Sequence[str], limits: object) -> processes.Finished:
    """`wavecast.processes.run` of a Python of this environment, in a fork and without limits."""
    del limits
    done = run_python(*command[1:])
    return processes.Finished(done.returncode, done.stdout.encode(), done.stderr)


def run_module(
    *command: str, folder: Path, environment: Mapping[str, str] | None = None
) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of `python -m` with these arguments in a
    folder."""
    done = run_python("-m", *command, folder=folder, environment=environment)
    return done.returncode, done.stdout, done.stderr


def _start_capture(worker: str, folder: Path) -> _Capture:
    environment = {**os.environ, **_NO_GPU}
    environment.pop("TRITON_INTERPRET", None)
    job = {
        "capture": (worker, str(folder)),
        "environment": environment,
        "folder": str(Path.cwd()),
    }
    server = _server(os.getpid())
    with open(os.devnull, "rb") as nothing:
        return _Capture(server, server.start(job, [nothing.fileno(), 2, 2]))


@contextlib.contextmanager
def captures() -> Iterator[Callable[..., object]]:
    """Within, scripts are captured in forks; gives what captured them before, in new processes. At
    the end the process that forks ends."""
    from wavecast.runtimes.triton import capture_process

    before = capture_process.start
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(capture_process, "start", _start_capture)
        yield before
    if _server.cache_info().currsize:
        _server(os.getpid()).close()
        _server.cache_clear()


__all__ = ["captures", "finished", "run_module", "run_python"]
