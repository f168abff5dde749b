"""The capturing process of a search: every new launch of the script is searched when it happens,
in the memory that its arguments have then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wavecast.arch import Device
from wavecast.integrations.triton import compat, worker
from wavecast.lab.evaluation import LabSubject
from wavecast.lab.journal import LabJournal, LabProblem, LabResult, read
from wavecast.lab.live import LiveSampler, devices_of, problem_of
from wavecast.lab.search import LabSearch
from wavecast.lab.setting import Setting

if TYPE_CHECKING:
    from wavecast.integrations.triton.hooks import Hooks
    from wavecast.integrations.triton.job import Job


def main(folder: str) -> None:
    """Run the job described in `folder`."""
    worker.main(folder, _searching)


def _searching(job: Job, hooks: Hooks) -> Any:
    """Search the launches of a run; configurations of autotuned kernels are chosen as usual."""
    devices = devices_of(job.settings, hooks)
    hooks.sampler = _Searcher(devices, job.settings, hooks.recorder.note)
    return None


class _Searcher(LiveSampler):
    """Searches a launch where a capture would sample it."""

    def __init__(
        self, devices: tuple[Device, ...], settings: Any, note: Callable[[str], None]
    ) -> None:
        super().__init__(devices, note)
        self._settings = settings
        self._compiler = compat.compiler()
        compat.warm_up()
        path = Path(settings["journal"])
        self._known = _by_problem(path)
        self._journal = LabJournal(path)

    def search(self, subject: LabSubject) -> None:
        problems = [problem_of(subject.launch, d, self._compiler) for d in subject.devices]

        def keep(results: tuple[LabResult, ...]) -> None:
            for problem, result in zip(problems, results, strict=True):
                self._journal.add(problem, result)

        stored = [self._known.get(problem, {}) for problem in problems]
        shared = set.intersection(*(set(one) for one in stored))
        known = {key: tuple(one[key] for one in stored) for key in shared}
        search = LabSearch(subject, self._settings["jobs"], self._settings["verify"], keep, known)
        search.run()


def _by_problem(path: Path) -> dict[LabProblem, dict[tuple[Setting, str], LabResult]]:
    found: dict[LabProblem, dict[tuple[Setting, str], LabResult]] = {}
    for problem, result in read(path):
        found.setdefault(problem, {})[result.setting, result.stage] = result
    return found


__all__ = ["main"]
