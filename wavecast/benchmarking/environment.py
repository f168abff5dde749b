"""Where a run takes place: versions, commit, and the state of the GPU."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from uuid import uuid4

from wavecast.arch import Device
from wavecast.benchmarking.records import BenchRun, Environment
from wavecast.version import __version__


def emulated_environment(device: Device, folder: Path | None = None) -> Environment:
    """A device that is not there."""
    board = Environment(device=device.id, target=device.target, emulated=True, board=device.name)
    return with_software(board, folder)


def with_software(environment: Environment, folder: Path | None = None) -> Environment:
    """An environment with what runs here: versions, host, and the checkout around a folder."""
    commit, dirty = checkout(folder)
    return replace(
        environment,
        triton=version("triton"),
        torch=version("torch"),
        python=platform.python_version(),
        wavecast=__version__,
        host=platform.node(),
        commit=commit,
        dirty=dirty,
    )


def version(package: str) -> str:
    """The version of an installed package, "" where it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def checkout(folder: Path | None = None) -> tuple[str, bool]:
    """(commit, whether there are changes) of the Git checkout around a folder (default: the current
    one); ("", False) outside of one. `WAVECAST_COMMIT` takes precedence, for builds without Git."""
    override = os.environ.get("WAVECAST_COMMIT")
    if override:
        return override, False
    where = str(folder or Path.cwd())
    commit = _git(where, "rev-parse", "HEAD")
    if not commit:
        return "", False
    return commit, bool(_git(where, "status", "--porcelain", "--untracked-files=no"))


def new_run(label: str = "", command: str = "") -> BenchRun:
    """A run that begins now, in the current checkout."""
    commit, dirty = checkout()
    command_line = command or " ".join(["wavecast", *sys.argv[1:]])
    return BenchRun(uuid4().hex[:12], now(), label, command_line, commit, dirty)


def now() -> str:
    """The time, UTC, in ISO 8601, to microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _git(folder: str, *arguments: str) -> str:
    try:
        process = subprocess.run(
            ["git", "-C", folder, *arguments],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stdout.strip() if process.returncode == 0 else ""


__all__ = ["checkout", "emulated_environment", "new_run", "now", "version"]
