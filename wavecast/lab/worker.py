"""The capturing process of a search: every new launch of the script is searched when it happens,
in the memory that its arguments have then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wavecast import arch
from wavecast.arch import Device
from wavecast.compile import digest
from wavecast.compile.codeobject import Launch
from wavecast.errors import WavecastError
from wavecast.integrations.triton import compat, worker
from wavecast.integrations.triton.reach import makes_pointers, reachable
from wavecast.integrations.triton.sampling import Sampler
from wavecast.lab.evaluation import LabSubject
from wavecast.lab.journal import LabJournal, LabProblem, LabResult, read
from wavecast.lab.search import LabSearch
from wavecast.lab.setting import Setting

if TYPE_CHECKING:
    from wavecast.compile.triton import Slot
    from wavecast.integrations.triton.hooks import Hooks
    from wavecast.integrations.triton.job import Job
    from wavecast.model.profile import LaunchProfile


def main(folder: str) -> None:
    """Run the job described in `folder`."""
    worker.main(folder, _searching)


def _searching(job: Job, hooks: Hooks) -> Any:
    """Search the launches of a run; configurations of autotuned kernels are chosen as usual."""
    settings = job.settings
    every = (arch.load(name, tuple(settings["device_files"])) for name in settings["devices"])
    devices = tuple(d for d in every if d.target == hooks.driver.facts.target)
    hooks.sampler = _Searcher(devices, settings, hooks.recorder.note)
    return None


class _Searcher(Sampler):
    """Searches a launch where a capture would sample it."""

    def __init__(
        self, devices: tuple[Device, ...], settings: Any, note: Callable[[str], None]
    ) -> None:
        super().__init__([], note)
        self._of = devices
        self._settings = settings
        self._tell = note
        self._compiler = compat.compiler()
        compat.warm_up()
        path = Path(settings["journal"])
        self._known = _by_problem(path)
        self._journal = LabJournal(path)

    def sample(
        self, launch: Launch, kernel: Any, layout: Sequence[Slot], values: tuple
    ) -> dict[str, LaunchProfile]:
        everything = makes_pointers(kernel.asm)
        try:
            ranges = reachable(kernel.name, layout, values, everything=everything)
            self._search(LabSubject(launch, tuple(ranges), self._of))
        except WavecastError as error:
            self._tell(f"{kernel.name}: not searched: {error.message}")
        return {}

    def _search(self, subject: LabSubject) -> None:
        problems = [_problem(subject.launch, d, self._compiler) for d in subject.devices]

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


def _problem(launch: Launch, device: Device, compiler: str) -> LabProblem:
    shown = []
    for item in launch.arguments:
        if item.kind in ("tensor", "descriptor"):
            shown.append(f"{item.name}={item.dtype}{list(item.shape)}")
        elif item.kind == "scalar":
            shown.append(f"{item.name}={item.value}")
    text = ", ".join(shown)
    name = digest.digest(launch.code.digest, launch.grid, text)
    return LabProblem(
        launch.code.kernel, launch.code.target, device.id, compiler, name, launch.grid, text,
        launch.configuration,
    )  # fmt: skip


__all__ = ["main"]
