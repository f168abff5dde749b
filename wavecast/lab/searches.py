"""The searches of a launch by name: alternatives of the compiler, and another order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from wavecast.compile.names import readable
from wavecast.errors import WavecastError
from wavecast.lab.evaluation import LabSubject, SubjectSearch
from wavecast.lab.journal import (
    LabJournal,
    LabProblem,
    LabResult,
    problem_of,
    read,
    records,
)
from wavecast.lab.schedule.kernel import KernelSchedule, schedule
from wavecast.lab.search import LabSearch
from wavecast.lab.setting import Setting

Note = Callable[[str], None]


class TuneSearch:
    """Searches alternatives. `values`: the number of processes as `jobs`, and of settings to
    execute per device as `verify`."""

    def __init__(self, journal: Path, values: Mapping[str, Any]) -> None:
        self._values = values
        self._known: dict[LabProblem, dict[tuple[Setting, str], LabResult]] = {}
        for problem, result in read(journal):
            self._known.setdefault(problem, {})[result.setting, result.stage] = result
        self._journal = LabJournal(journal)

    def search(self, subject: LabSubject) -> None:
        problems = [problem_of(subject.launch, device) for device in subject.devices]

        def keep(results: tuple[LabResult, ...]) -> None:
            for problem, result in zip(problems, results, strict=True):
                self._journal.add(problem, result)

        stored = [self._known.get(problem, {}) for problem in problems]
        shared = set.intersection(*(set(problem_results) for problem_results in stored))
        common_results = {
            key: tuple(problem_results[key] for problem_results in stored) for key in shared
        }
        jobs, verify = self._values["jobs"], self._values["verify"]
        LabSearch(subject, jobs, verify, keep, common_results).run()


class ScheduleSearch:
    """Searches another order on every device; kernels in the journal are known. `values`: `seed`
    and `work` as of `schedule`."""

    def __init__(self, journal: Path, values: Mapping[str, Any], note: Note) -> None:
        self._values = values
        self._note = note
        self._known = {problem for problem, _ in records(journal, KernelSchedule.from_json)}
        self._journal = LabJournal(journal)

    def search(self, subject: LabSubject) -> None:
        for device in subject.devices:
            problem = problem_of(subject.launch, device)
            if problem in self._known:
                continue
            try:
                kernel_schedule = schedule(subject.launch, subject.ranges, device, **self._values)
            except WavecastError as error:
                message = error.message.removeprefix(f"{problem.kernel}: ")
                self._note(f"{readable(problem.kernel)} on {device.id}: {message}")
                continue
            self._known.add(problem)
            self._journal.add(problem, kernel_schedule)


SEARCHES: Final[Mapping[str, Callable[[Path, Mapping[str, Any], Note], SubjectSearch]]] = {
    "tune": lambda journal, values, _: TuneSearch(journal, values),
    "schedule": ScheduleSearch,
}

__all__ = ["SEARCHES"]
