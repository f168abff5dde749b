"""The search for the best setting of one launch: values alone, then together, then verified."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from wavecast.lab.axes import MACHINE_CODE, applicable
from wavecast.lab.evaluation import LabEvaluator, LabSubject, LabTask
from wavecast.lab.journal import LabResult
from wavecast.lab.setting import Setting
from wavecast.tuning.pool import Died, Pool

LEAST: Final = 0.002
"""The least part of the time that another value must save to be added."""
NEIGHBOURS: Final = 8
"""Values that are tried together with the best setting in a round."""
ROUNDS: Final = 3
WORTH: Final = 0.005
"""The least part of the time that a setting must save to be verified."""

Known = Mapping[tuple[Setting, str], tuple[LabResult, ...]]
"""Results per device by setting and stage."""
Keep = Callable[[tuple[LabResult, ...]], None]


@dataclass(slots=True)
class LabSearch:
    """Searches one launch on devices of a target. `keep` stores results, one per device; `known`
    are those of an interrupted run. Of each device the `verified` fastest settings are executed.
    """

    subject: LabSubject
    jobs: int
    verified: int
    keep: Keep
    known: Known = field(default_factory=dict)
    limit: float = 600.0
    results: dict[Setting, tuple[LabResult, ...]] = field(default_factory=dict)
    executed: dict[Setting, tuple[LabResult, ...]] = field(default_factory=dict)

    def run(self) -> None:
        """Evaluate every value alone, combine the best, verify and sample the fastest."""
        alone = [Setting.of({axis.name: v}) for axis, v in applicable(self.subject.launch.code)]
        with Pool(self.jobs, LabEvaluator(self.subject).evaluate, limit=self.limit) as pool:
            self._evaluate(pool, [LabTask(Setting(), "base")])
            self._evaluate(pool, [LabTask(setting, "alone") for setting in alone])
            for _ in range(ROUNDS):
                tasks = [LabTask(s, "together") for s in self._neighbours(alone)]
                if not self._evaluate(pool, tasks):
                    break
            agree = self._verify(pool)
            fewer = {s.without(axis): None for s in agree for axis, _ in s.items}
            self._evaluate(pool, [LabTask(s, "without") for s in fewer if s.items])

    @property
    def _devices(self) -> range:
        return range(len(self.subject.devices))

    def ranked(self, device: int) -> list[Setting]:
        """Settings that save time on a device, the fastest first, one per machine code; refused
        and faulty ones are left out."""
        base = self.results[Setting()][device].figures
        assert base is not None
        best_by_digest: dict[str, tuple[float, int, Setting]] = {}
        for setting, results in self.results.items():
            figures = results[device].figures
            if figures is None or figures.seconds is None or set(figures.faults) - set(base.faults):
                continue
            entry = (figures.seconds, len(setting.items), setting)
            before = best_by_digest.get(figures.digest)
            if before is None or entry[:2] < before[:2]:
                best_by_digest[figures.digest] = entry
        limit = base.seconds if base.seconds is not None else math.inf
        order = sorted(best_by_digest.values(), key=lambda entry: entry[:2])
        return [setting for seconds, _, setting in order if seconds < limit * (1 - LEAST)]

    def _neighbours(self, alone: Sequence[Setting]) -> list[Setting]:
        """The best setting of each device with one more value of those that help alone."""
        neighbours: dict[Setting, None] = {}
        for device in self._devices:
            ranked = self.ranked(device)
            if not ranked:
                continue
            best = ranked[0]
            helpful = [s for s in ranked if len(s.items) == 1 and s in set(alone)]
            for setting in helpful[:NEIGHBOURS]:
                ((axis, value),) = setting.items
                neighbours[best.with_(axis, value)] = None
        return [setting for setting in neighbours if setting not in self.results]

    def _verify(self, pool: Pool[LabTask, tuple[LabResult, ...]]) -> list[Setting]:
        """Execute the fastest settings next to the original, then sample the best that agree, which
        are returned; of machine code, which has few, all that agree."""
        settings = {s: None for device in self._devices for s in self._worth(device)}
        tasks = [LabTask(setting, "verified", verify=True) for setting in settings]
        self._evaluate(pool, tasks)
        agree: dict[Setting, None] = {}
        for device in self._devices:
            good = [s for s in self._worth(device) if self.agrees(s)]
            few = self.subject.launch.code.origin in MACHINE_CODE
            agree |= dict.fromkeys(good if few else good[:2])
        if agree:
            tasks = [LabTask(s, "executed", sample=True) for s in (Setting(), *agree)]
            self._evaluate(pool, tasks)
        return list(agree)

    def _worth(self, device: int) -> list[Setting]:
        base = self.results[Setting()][device].figures
        if base is None or base.seconds is None:
            return []
        least = base.seconds * (1 - WORTH)
        ranked = self.ranked(device)
        times = {s: self.results[s][device].figures for s in ranked}
        worth = [s for s in ranked if (f := times[s]) and f.seconds and f.seconds <= least]
        return worth[: self.verified]

    def agrees(self, setting: Setting) -> bool:
        """Whether the executions of a setting and the original showed the same."""
        results = self.executed.get(setting, ())
        return bool(results) and all(r.execution is not None and r.execution.same for r in results)

    def _evaluate(
        self, pool: Pool[LabTask, tuple[LabResult, ...]], tasks: Iterable[LabTask]
    ) -> bool:
        """Evaluate tasks that have no result yet; whether there were any."""
        waiting = []
        for task in tasks:
            results = self.known.get((task.setting, task.stage))
            if results is not None:
                self._take(task, results)
            elif task.stage in ("verified", "executed") or task.setting not in self.results:
                waiting.append(task)
        for task, answer in pool.map(iter(waiting)):
            if isinstance(answer, Died):
                lost = LabResult(task.setting, task.stage, refused=f"the process {answer.reason}")
                answer = tuple(lost for _ in self._devices)
            self.keep(answer)
            self._take(task, answer)
        return bool(waiting)

    def _take(self, task: LabTask, answer: tuple[LabResult, ...]) -> None:
        if task.stage == "verified":
            self.executed[task.setting] = answer
        elif task.stage != "executed":
            self.results[task.setting] = answer


__all__ = ["LabSearch"]
