"""What the capturing process is asked to do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from wavecast.runtimes.devices import DeviceFacts

JOB_FILE = "job.json"
STATUS_FILE = "status.frames"
SAMPLE = "sample"
"""Setting: target -> devices for which samples of launches are executed."""
OBSERVE = "observe"
"""Setting: whether what the runs depend on is sent."""


PREPARE = "prepare"
"""Setting: `module:function` that is called with a function for notes before the script runs."""


@dataclass(frozen=True, slots=True)
class Job:
    """One script, its arguments, and the devices to run it for, each in its own process."""

    script: str
    arguments: tuple[str, ...]
    devices: tuple[DeviceFacts, ...]
    kernels: str
    configurations: str
    timeout: float | None
    quiet: bool
    jobs: int
    worker: str = "wavecast.runtimes.triton.worker"
    """The module whose `main` runs the job."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Further settings of the worker, as JSON values."""

    def save(self, folder: Path) -> None:
        (folder / JOB_FILE).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Job:
        values: dict[str, Any] = json.loads((folder / JOB_FILE).read_text(encoding="utf-8"))
        values["arguments"] = tuple(values["arguments"])
        values["devices"] = tuple(DeviceFacts(**item) for item in values["devices"])
        return cls(**values)


def frames_file(folder: Path, target: str) -> Path:
    """Where the process for one target leaves its frames."""
    return folder / f"{target}.frames"


def crash_file(folder: Path, target: str) -> Path:
    """Where a crash of the process for one target leaves the Python stack."""
    return folder / f"{target}.crash"
