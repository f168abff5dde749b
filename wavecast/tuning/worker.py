"""The capturing process of a tuning: a `Tuner` chooses the configurations of autotuned kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wavecast.runtimes.triton import worker

if TYPE_CHECKING:
    from wavecast.runtimes.triton.hooks import Hooks
    from wavecast.runtimes.triton.job import Job
    from wavecast.tuning.tuner import Tuner


def main(folder: str) -> None:
    """Run the job described in `folder`."""
    worker.main(folder, _choosing)


def _choosing(job: Job, hooks: Hooks) -> Tuner:
    from wavecast.tuning.tuner import choosing

    return choosing(job.settings, hooks)
