"""Tuning of autotuned calls in the process that runs the script."""

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
from wavecast.compile.configuration import Configuration
from wavecast.runtimes.patching import Patches
from wavecast.runtimes.triton import compat
from wavecast.runtimes.triton.isolation import diagnostic
from wavecast.runtimes.triton.trials import Trials
from wavecast.tuning import records
from wavecast.tuning.evaluation import EvaluationTask, evaluate
from wavecast.tuning.flydsl import FlydslTuning
from wavecast.tuning.pool import Died, Pool
from wavecast.tuning.records import Journal, Result, TuningProblem
from wavecast.tuning.search import strategy
from wavecast.tuning.search_state import SearchState
from wavecast.tuning.settings import TuneSettings
from wavecast.tuning.space import wide

if TYPE_CHECKING:
    from wavecast.runtimes.triton.hooks import Hooks

_FOR_SEARCH = 0.75
"""Share of a time budget for the search. The rest is for simulating the best configurations."""

_ROUNDS = 3
"""Rounds of simulations after the search."""
_CHECKS = (0.25, 0.5, 0.75)
"""Shares of a budget after which some configurations are simulated to correct the scores."""

Known = dict[Configuration, tuple[Result, ...]]
"""Results by configuration, one per device."""


class Tuner:
    """Chooses the configuration of every autotuned call of the script. Tunes each problem once."""

    def __init__(self, settings: TuneSettings, hooks: Hooks) -> None:
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
        self.flydsl = FlydslTuning(settings, self._devices, self._journal, self._finished, hooks)

    def __call__(self, tuner: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The best `triton.Config` of a call, None if none can run."""
        trials = Trials(self._hooks, tuner, args, kwargs)
        call = asdict(trials.call)
        problems = [
            TuningProblem(**call, target=d.target, device=d.id, compiler=self._compiler)
            for d in self._devices
        ]
        key = problems[0].identity
        if key not in self._chosen:
            self._chosen[key] = _Tuning(self._settings, trials, problems, self._devices).run(
                self._resume(problems), self._journal
            )
        best = self._chosen[key]
        return None if best is None else trials.config_of(best.settings)

    def _resume(self, problems: Sequence[TuningProblem]) -> Known:
        """Results of the journal for configurations that it has for all devices."""
        tables = [self._finished.get(problem.identity, {}) for problem in problems]
        shared = set.intersection(*(set(results) for results in tables))
        return {c: tuple(results[c] for results in tables) for c in tables[0] if c in shared}


class _Tuning:
    """The search for one call."""

    def __init__(
        self,
        settings: TuneSettings,
        trials: Trials,
        problems: Sequence[TuningProblem],
        devices: Sequence[Device],
    ) -> None:
        self._settings = settings
        self._trials = trials
        self._problems = problems
        self._devices = devices
        self._started = time.monotonic()
        self._state = SearchState(len(devices))

    def run(self, history: Known, journal: Journal) -> Configuration | None:
        """Search until the budget is spent; the best configuration on the first device."""
        self._journal = journal
        for configuration, results in history.items():
            self._state.add(configuration, results)
        seeds = tuple(dict.fromkeys(map(Configuration.of, self._trials.configurations())))
        work = partial(evaluate, self._trials, self._devices)
        with Pool(self._settings.jobs, work, limit=self._settings.limit) as pool:
            new = (c for c in seeds if c not in self._state.results)
            self._try(pool, self._affordable(new))
            if self._settings.space == "wide":
                self._search(pool, seeds)
            for _ in range(_ROUNDS):
                self._simulate(pool, self._settings.simulate)
        return self._state.best()

    def _search(
        self, pool: Pool[EvaluationTask, tuple[Result, ...]], seeds: Sequence[Configuration]
    ) -> None:
        state = self._state
        matrix = any(results[0].matrix for results in state.results.values())
        space = wide(seeds, self._devices[0].capabilities, matrix=matrix)
        settings = self._settings
        random = Random(settings.seed * settings.shards + settings.shard)
        checks = [share for share in _CHECKS if share > self._budget_share()]
        for batch in strategy(settings.search)(space, state.scores, random):
            if self._budget_share() >= 1.0:
                return
            self._try(pool, self._affordable(batch))
            for configuration in batch:  # of other shards
                state.scores.setdefault(configuration, math.inf)
            while checks and self._budget_share() >= checks[0]:
                checks.pop(0)
                self._simulate(pool, -(-settings.simulate // 2))

    def _affordable(self, configurations: Any) -> Iterator[Configuration]:
        """The configurations of this shard, until the budget is spent."""
        count = 0
        most = self._settings.budget.part(self._settings.shards).configurations
        room = math.inf if most is None else most - len(self._state.results)
        for configuration in configurations:
            if configuration.shard(self._settings.shards) != self._settings.shard:
                continue
            if count >= room or self._late(_FOR_SEARCH):
                return
            count += 1
            yield configuration

    def _budget_share(self) -> float:
        """The spent share of the budget of the search."""
        budget = self._settings.budget.part(self._settings.shards)
        if budget.configurations is not None:
            return len(self._state.results) / budget.configurations
        if budget.seconds is not None:
            return (time.monotonic() - self._started) / (budget.seconds * _FOR_SEARCH)
        return 0.0

    def _late(self, share: float) -> bool:
        limit = self._settings.budget.seconds
        return limit is not None and time.monotonic() - self._started > share * limit

    def _try(
        self,
        pool: Pool[EvaluationTask, tuple[Result, ...]],
        configurations: Iterator[Configuration],
    ) -> None:
        for task, answer in pool.map(map(EvaluationTask, configurations)):
            if isinstance(answer, Died):
                answer = self._crash_results(task, answer)
            self._keep(task.configuration, answer)

    def _simulate(self, pool: Pool[EvaluationTask, tuple[Result, ...]], count: int) -> None:
        """Simulate the best candidates from executed samples."""
        results = self._state.results
        candidates = self._state.candidates(count)
        tasks = (EvaluationTask(c, results[c]) for c in candidates if not self._late(1.0))
        for task, answer in pool.map(tasks):
            if isinstance(answer, Died):
                why = f"not simulated: the process {answer.reason}"
                answer = tuple(replace(result, reason=why) for result in task.estimated)
            self._keep(task.configuration, answer)

    def _crash_results(self, task: EvaluationTask, died: Died) -> tuple[Result, ...]:
        message = diagnostic(died.log)
        reason = f"the compiler {died.reason}{': ' + message if message else ''}"
        return tuple(Result(task.configuration, reason=reason) for _ in self._devices)

    def _keep(self, configuration: Configuration, results: tuple[Result, ...]) -> None:
        for problem, result in zip(self._problems, results, strict=True):
            self._journal.add(problem, result)
        self._state.add(configuration, results)


def choosing(settings: Mapping[str, Any], hooks: Hooks) -> Tuner:
    """The tuner of a job with these settings."""
    tuner = Tuner(TuneSettings.from_json(settings), hooks)
    tuner.flydsl.install(Patches())  # the process ends with the tuning
    return tuner


__all__ = ["Tuner", "choosing"]
