"""The capturing process of a search: every new launch of the script is searched when it happens,
in the memory that its arguments have then."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from wavecast.lab.live import LiveSampler, devices_of
from wavecast.lab.searches import SEARCHES
from wavecast.runtimes.triton import compat, worker

if TYPE_CHECKING:
    from wavecast.runtimes.triton.hooks import Hooks
    from wavecast.runtimes.triton.job import Job


def main(folder: str) -> None:
    """Run the job described in `folder`."""
    worker.main(folder, _searching)


def _searching(job: Job, hooks: Hooks) -> Any:
    """Search the launches of a run; configurations of autotuned kernels are chosen as usual."""
    compat.warm_up()
    settings, note = job.settings, hooks.recorder.note
    search = SEARCHES[settings["search"]](Path(settings["journal"]), settings["values"], note)
    hooks.sampler = LiveSampler(devices_of(settings, hooks), search, note)
    return None


__all__ = ["main"]
