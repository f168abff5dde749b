"""Choosing configurations of autotuned calls, inside the process that runs the script."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from wavecast import arch
from wavecast.arch import Device
from wavecast.integrations.triton import compat
from wavecast.integrations.triton.isolation import diagnostic
from wavecast.integrations.triton.trials import Trials
from wavecast.kernels.configuration import Configuration
from wavecast.tune import records
from wavecast.tune.evaluation import Task, evaluate
from wavecast.tune.pool import Died, Pool
from wavecast.tune.records import Journal, Problem, Result
from wavecast.tune.search import search
from wavecast.tune.settings import Settings
from wavecast.tune.space import Space, wide
from wavecast.tune.standing import Standing

if TYPE_CHECKING:
    from wavecast.integrations.triton.hooks import Hooks

_FOR_SEARCH = 0.75
"""Share of a budget of time after which nothing new is tried; simulating the best has the rest."""

_ROUNDS = 3
"""Times that the next best are simulated at most, once the search is over."""
_CHECKS = (0.25, 0.5, 0.75)
"""Shares of a budget after which some are simulated, so that the search goes by that."""

Known = dict[Configuration, tuple[Result, ...]]
"""Results by configuration, one per device."""


class Tuner:
    """Called with every autotuned call of the script; tunes each problem once."""

    def __init__(self, settings: Settings, hooks: Hooks) -> None:
        self._settings = settings
        self._hooks = hooks
        every = (arch.load(name, settings.device_files) for name in settings.devices)
        self._devices = [d for d in every if d.target == hooks.driver.facts.target]
        self._compiler = compat.compiler()
        compat.warm_up()
        self._journal = Journal(Path(settings.journal))
        self._finished: dict[str, dict[Configuration, Result]] = {}
        for problem, result in records.read(Path(settings.journal)):
            self._finished.setdefault(problem.identity, {})[result.configuration] = result
        self._chosen: dict[str, Configuration | None] = {}

    def __call__(self, tuner: Any, args: tuple, named: dict[str, Any]) -> Any:
        """The best `triton.Config` of a call, None where none can run."""
        trials = Trials(self._hooks, tuner, args, named)
        call = asdict(trials.call)
        problems = [
            Problem(**call, target=d.target, device=d.id, compiler=self._compiler)
            for d in self._devices
        ]
        key = problems[0].identity
        if key not in self._chosen:
            self._chosen[key] = _Tuning(self._settings, trials, problems, self._devices).run(
                self._resumed(problems), self._journal
            )
        chosen = self._chosen[key]
        return None if chosen is None else trials.chosen(chosen.settings)

    def _resumed(self, problems: Sequence[Problem]) -> Known:
        """What the journal has for all devices."""
        found = [self._finished.get(problem.identity, {}) for problem in problems]
        shared = set.intersection(*(set(results) for results in found))
        return {c: tuple(results[c] for results in found) for c in found[0] if c in shared}


class _Tuning:
    """The search for one call."""

    def __init__(
        self,
        settings: Settings,
        trials: Trials,
        problems: Sequence[Problem],
        devices: Sequence[Device],
    ) -> None:
        self._settings = settings
        self._trials = trials
        self._problems = problems
        self._devices = devices
        self._started = time.monotonic()
        self._standing = Standing(len(devices))

    def run(self, known: Known, journal: Journal) -> Configuration | None:
        """The best configuration on the first device, after all that the budget allows."""
        self._journal = journal
        for configuration, results in known.items():
            self._standing.learn(configuration, results)
        own = tuple(dict.fromkeys(map(Configuration.of, self._trials.configurations())))
        work = partial(evaluate, self._trials, self._devices)
        with Pool(self._settings.jobs, work, limit=self._settings.limit) as pool:
            new = (c for c in own if c not in self._standing.known)
            self._try(pool, self._affordable(new))
            if self._settings.space == "wide":
                self._search(pool, own)
            for _ in range(_ROUNDS):
                self._simulate(pool, self._settings.simulate)
        return self._standing.best()

    def _search(self, pool: Pool[Task, tuple[Result, ...]], own: Sequence[Configuration]) -> None:
        standing = self._standing
        matrix = any(results[0].matrix for results in standing.known.values())
        space: Space = wide(own, self._devices[0].target, matrix=matrix)
        settings = self._settings
        random = Random(settings.seed * settings.shards + settings.shard)
        checks = [share for share in _CHECKS if share > self._spent()]
        for batch in search(settings.search)(space, standing.scores, random):
            if self._spent() >= 1.0:
                return
            self._try(pool, self._affordable(batch))
            for configuration in batch:  # another shard's
                standing.scores.setdefault(configuration, math.inf)
            while checks and self._spent() >= checks[0]:
                checks.pop(0)
                self._simulate(pool, -(-settings.simulate // 2))

    def _affordable(self, configurations: Any) -> Iterator[Configuration]:
        """Those of this shard, until the budget is spent."""
        given = 0
        most = self._settings.budget.part(self._settings.shards).configurations
        room = math.inf if most is None else most - len(self._standing.known)
        for configuration in configurations:
            if configuration.shard(self._settings.shards) != self._settings.shard:
                continue
            if given >= room or self._late(_FOR_SEARCH):
                return
            given += 1
            yield configuration

    def _spent(self) -> float:
        """The share of the budget that is used up, of that for searching."""
        budget = self._settings.budget.part(self._settings.shards)
        if budget.configurations is not None:
            return len(self._standing.known) / budget.configurations
        if budget.seconds is not None:
            return (time.monotonic() - self._started) / (budget.seconds * _FOR_SEARCH)
        return 0.0

    def _late(self, share: float) -> bool:
        limit = self._settings.budget.seconds
        return limit is not None and time.monotonic() - self._started > share * limit

    def _try(
        self, pool: Pool[Task, tuple[Result, ...]], configurations: Iterator[Configuration]
    ) -> None:
        for task, answer in pool.map(map(Task, configurations)):
            if isinstance(answer, Died):
                answer = self._crashed(task, answer)
            self._keep(task.configuration, answer)

    def _simulate(self, pool: Pool[Task, tuple[Result, ...]], count: int) -> None:
        """Simulate the most promising from executed samples."""
        known = self._standing.known
        promising = self._standing.promising(count)
        tasks = (Task(c, known[c]) for c in promising if not self._late(1.0))
        for task, answer in pool.map(tasks):
            if isinstance(answer, Died):
                why = f"not simulated: the process {answer.reason}"
                answer = tuple(replace(result, reason=why) for result in task.before)
            self._keep(task.configuration, answer)

    def _crashed(self, task: Task, died: Died) -> tuple[Result, ...]:
        said = diagnostic(died.log)
        reason = f"the compiler {died.reason}{': ' + said if said else ''}"
        return tuple(Result(task.configuration, reason=reason) for _ in self._devices)

    def _keep(self, configuration: Configuration, results: tuple[Result, ...]) -> None:
        for problem, result in zip(self._problems, results, strict=True):
            self._journal.add(problem, result)
        self._standing.learn(configuration, results)


def choosing(settings: Mapping[str, Any], hooks: Hooks) -> Tuner:
    """The tuner that a job's settings ask for."""
    return Tuner(Settings.from_json(settings), hooks)


__all__ = ["Tuner", "choosing"]
