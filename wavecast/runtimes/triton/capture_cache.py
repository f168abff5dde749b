"""Captures of scripts in the cache: what a run sent, and what it depended on.

An entry is found by the script's path, its arguments and the devices. It is used where the rest is
as it was: the script, the environment, Python, and every file that the run looked at
(`dependencies`). It consists of the frames of the run (`wire`), msgpack like all entries.

    WAVECAST_CAPTURE_CACHE=0   always run scripts, and store nothing
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from wavecast.compile.cache import DiskCache
from wavecast.compile.digest import digest, key
from wavecast.runtimes.triton.dependencies import RunDependencies, merge_dependencies, state
from wavecast.runtimes.triton.job import Job

Caching = Literal["off", "renew", "use"]
"""Whether a capture is taken from the cache and stored there, only stored, or neither."""
VARIABLE: Final = "WAVECAST_CAPTURE_CACHE"
_FORMAT: Final = 2
_NOT_THE_SCRIPT_S: Final = frozenset({"OLDPWD", "PYTEST_CURRENT_TEST", "SHLVL", "_"})
"""Variables that shells change between two commands, and pytest between two tests."""


@dataclass(frozen=True, slots=True)
class StoredCapture:
    """The frames of a run by target, and when it was (seconds, Unix)."""

    frames: Mapping[str, Sequence[Mapping[str, Any]]]
    time: float

    @property
    def note(self) -> str:
        """What the user must see."""
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(self.time))
        return (
            f"the script was not run: its launches are those of {when}, and all files that it "
            "read are unchanged (--recapture runs it)"
        )


class CaptureCache:
    """The entry of one job. Created before the script runs: what it says of the script and of the
    environment is what they were then."""

    def __init__(self, job: Job) -> None:
        self._script = os.path.abspath(job.script)
        devices = [asdict(device) for device in job.devices]
        request = [self._script, job.arguments, devices, job.kernels, job.configurations]
        self._key = key("captures", _FORMAT, request)
        self._source = state(self._script)
        variables = {n: v for n, v in os.environ.items() if n not in _NOT_THE_SCRIPT_S}
        self._conditions = digest(
            self._source, os.getcwd(), variables, sys.executable, sys.version, os.cpu_count()
        )

    def load(self) -> StoredCapture | None:
        """The stored capture, None where there is none or something has changed."""
        entry = DiskCache().get(self._key)
        if not isinstance(entry, dict) or entry.get("conditions") != self._conditions:
            return None
        if not RunDependencies.unpack(entry["dependencies"]).is_unchanged():
            return None
        return StoredCapture(entry["frames"], entry["time"])

    def store(
        self,
        frames: Mapping[str, Sequence[Mapping[str, Any]]],
        dependencies: Sequence[RunDependencies],
    ) -> None:
        """Store the frames of runs that ended well. Nothing is stored where the script is another
        one by now."""
        all_of_them = merge_dependencies(dependencies)
        if all_of_them is None or all_of_them.paths.get(self._script) != self._source:
            return
        DiskCache().put(
            self._key,
            {
                "conditions": self._conditions,
                "dependencies": all_of_them.pack(),
                "frames": {target: list(target_frames) for target, target_frames in frames.items()},
                "time": time.time(),
            },
        )


def cache_of(job: Job, caching: Caching) -> CaptureCache | None:
    """The cache of a job; None where captures are not cached."""
    if caching == "off" or not job.quiet or os.environ.get(VARIABLE) == "0":
        return None
    return CaptureCache(job)


def ignored_folders(folder: Path, compiler_cache: str) -> tuple[str, ...]:
    """Folders whose content decides nothing: that of the job, and caches by content."""
    return (str(folder), compiler_cache, str(DiskCache().root))


__all__ = ["VARIABLE", "Caching", "CaptureCache", "StoredCapture", "cache_of", "ignored_folders"]
