"""The capturing process of a scheduling: every new launch is scheduled when it happens."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wavecast.arch import Device
from wavecast.errors import WavecastError
from wavecast.integrations.triton import compat, worker
from wavecast.lab.evaluation import LabSubject
from wavecast.lab.journal import LabJournal, records
from wavecast.lab.live import LiveSampler, devices_of, problem_of
from wavecast.lab.schedule.kernel import KernelSchedule, schedule

if TYPE_CHECKING:
    from wavecast.integrations.triton.hooks import Hooks
    from wavecast.integrations.triton.job import Job


def main(folder: str) -> None:
    """Run the job described in `folder`."""
    worker.main(folder, _scheduling)


def _scheduling(job: Job, hooks: Hooks) -> Any:
    """Schedule the launches of a run; configurations of autotuned kernels are chosen as usual."""
    devices = devices_of(job.settings, hooks)
    hooks.sampler = _Scheduler(devices, job.settings, hooks.recorder.note)
    return None


class _Scheduler(LiveSampler):
    """Schedules a launch on every device; those in the journal are known."""

    def __init__(
        self, devices: tuple[Device, ...], settings: Any, note: Callable[[str], None]
    ) -> None:
        super().__init__(devices, note)
        self._note_problem = note
        self._schedule = partial(schedule, seed=settings["seed"], work=settings["work"])
        self._compiler = compat.compiler()
        compat.warm_up()
        path = Path(settings["journal"])
        self._known = {problem for problem, _ in records(path, KernelSchedule.from_json)}
        self._journal = LabJournal(path)

    def search(self, subject: LabSubject) -> None:
        for device in subject.devices:
            problem = problem_of(subject.launch, device, self._compiler)
            if problem in self._known:
                continue
            try:
                found = self._schedule(subject.launch, subject.ranges, device)
            except WavecastError as error:
                self._note_problem(f"{problem.kernel} on {device.id}: {error.message}")
                continue
            self._known.add(problem)
            self._journal.add(problem, found)


__all__ = ["main"]
