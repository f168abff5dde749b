"""The process that a capture runs in: a new Python, or a fork of one that is prepared.

A server that captures often imports PyTorch and Triton once (`prepare`): its captures are forks of
it, without the second that the imports take.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Final, Protocol

from wavecast import processes

_BOOT: Final = """
import os, sys
try:
    import wavecast
except ImportError:
    sys.path.append({root!r})
from importlib import import_module
import_module({worker!r}).main({folder!r})
sys.stderr.flush()
os._exit(0)  # without the time that PyTorch takes to end
"""
_STEP_SECONDS: Final = 0.005
_prepared = False


class CaptureProcess(Protocol):
    """A running capture. `returncode` is None while it runs."""

    @property
    def returncode(self) -> int | None: ...
    def poll(self) -> int | None:
        """The exit code, None while it runs."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end. Raises subprocess.TimeoutExpired after `timeout` seconds."""
        ...

    def terminate(self) -> None:
        """End it with SIGTERM."""
        ...


def prepare() -> None:
    """Import what captures need into this process, which has one thread; `start` forks from now on.

    Raises ImportError without PyTorch or Triton.
    """
    global _prepared
    for name, value in _environment().items():
        os.environ[name] = value
    os.environ.pop("TRITON_INTERPRET", None)
    import_module("wavecast.runtimes.triton.worker").import_once()
    _prepared = True


def start(worker: str, folder: Path) -> CaptureProcess:
    """Start `main(folder)` of the module `worker`."""
    if _prepared:
        return _Forked(worker, folder)
    package = str(Path(__file__).parents[3])
    boot = _BOOT.format(root=package, worker=worker, folder=str(folder))
    environment = {**os.environ, **_environment()}
    environment.pop("TRITON_INTERPRET", None)
    return subprocess.Popen(
        [sys.executable, "-P", "-c", boot], stdin=subprocess.DEVNULL, stdout=2, env=environment
    )


def _environment() -> dict[str, str]:
    return {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}


class _Forked:
    """A capture in a fork of this process."""

    def __init__(self, worker: str, folder: Path) -> None:
        self.returncode: int | None = None
        self._process = processes.fork(lambda: import_module(worker).main(str(folder)))

    def poll(self) -> int | None:
        if self.returncode is None and (status := processes.poll(self._process)) is not None:
            self.returncode = -status.signal or status.code
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        limit = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if limit is not None and time.monotonic() > limit:
                raise subprocess.TimeoutExpired("capture", timeout or 0.0)
            time.sleep(_STEP_SECONDS)
        return code

    def terminate(self) -> None:
        processes.end(self._process)


__all__ = ["CaptureProcess", "prepare", "start"]
