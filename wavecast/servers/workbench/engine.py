"""The prepared process and its forks, as the server sees them. Messages are JSON."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from wavecast import processes
from wavecast.errors import WavecastError

SECONDS: Final = 120.0
"""An answer may take so long."""
_BOOT: Final = """
import sys
sys.path[:] = {path!r}
from wavecast.servers.workbench import answering
answering.main({descriptor})
"""


class NoAnswer(WavecastError):
    """A question without an answer: `str` says why in one line."""

    exit_code = 2


class ReplacedVersion(NoAnswer):
    """A later version of the file was explained instead."""


class WorkbenchEngine:
    """A process that explains versions of a file, the latest at a time.

    `environment` is that of the process. `explain` and `ask` may be called from several threads.
    Raises OSError when no process can be started.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair()
        boot = _BOOT.format(path=[*sys.path], descriptor=theirs.fileno())
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", boot],
            stdin=subprocess.DEVNULL,
            stdout=2,
            env={**os.environ, **environment},
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        self._socket = ours
        self._starting = threading.Lock()
        self._answering: _Answering | None = None

    def explain(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Explain a version of the file; what answered the last one ends.

        Raises NoAnswer, ReplacedVersion where another call came meanwhile.
        """
        with self._starting:
            previous, self._answering = self._answering, None
            if previous is not None:
                previous.end()
            started = self._answering = self._start_answering()
        return started.ask(request)

    def ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """A question about the version that was explained last. Raises NoAnswer."""
        answering = self._answering
        if answering is None:
            raise NoAnswer("nothing is explained yet")
        return answering.ask(question)

    def close(self) -> None:
        """End the process and its forks."""
        with self._starting:
            if self._answering is not None:
                self._answering.end()
            self._socket.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=2.0)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _start_answering(self) -> _Answering:
        try:
            self._socket.sendall(b"f")
            message, descriptors, _, _ = socket.recv_fds(self._socket, 64, 1)
        except OSError as error:
            raise NoAnswer(f"the process of the workbench ended: {error}") from None
        if not descriptors:
            raise NoAnswer(_exit_message(self._process))
        return _Answering(int(message), Connection(descriptors[0]))


class _Answering:
    """A fork that answers questions about one version of the file, one at a time."""

    def __init__(self, process: int, connection: Connection) -> None:
        self._process = process
        self._connection = connection
        self._asking = threading.Lock()
        self._replaced = False

    def ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        with self._asking:
            try:
                self._connection.send_bytes(json.dumps(question).encode())
                if not self._connection.poll(SECONDS):
                    self.end()
                    raise NoAnswer(f"no answer within {SECONDS:g} s")
                answer = json.loads(self._connection.recv_bytes())
            except (OSError, EOFError, ValueError):
                if self._replaced:
                    raise ReplacedVersion("a later version of the file is explained") from None
                raise NoAnswer("the process that explained the file ended") from None
        if "error" in answer:
            raise NoAnswer(answer["error"])
        return answer["answer"]

    def end(self) -> None:
        """End the fork, and a question that waits for it."""
        self._replaced = True
        processes.kill(self._process)


def _exit_message(process: subprocess.Popen[bytes]) -> str:
    code = process.poll()
    return f"the process of the workbench ended (exit code {code}): see its messages above"


def private_cache(folder: Path) -> dict[str, str]:
    """The environment in which Triton keeps what it compiles in `folder`."""
    return {"TRITON_CACHE_DIR": str(folder / "triton")}


__all__ = ["SECONDS", "NoAnswer", "ReplacedVersion", "WorkbenchEngine", "private_cache"]
