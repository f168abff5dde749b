"""All guarded subjects, measured in one run, in this process or in several."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from wavecast.arch import Device
from wavecast.benchmarking.environment import emulated_environment, now
from wavecast.benchmarking.gate.guards import Guard
from wavecast.benchmarking.gate.measuring import Taken, failure_of, measure, one_line
from wavecast.benchmarking.gate.scripts import EnvironmentOf
from wavecast.benchmarking.records import BenchRun, Environment
from wavecast.benchmarking.store.sqlite import open_store
from wavecast.errors import WavecastError
from wavecast.pipeline.processes import map_unordered

Progress = Callable[[str], None]

_PAYS: Final = 8
"""Measurements a process should have, so that starting it pays: importing PyTorch and Triton takes
about as long as ten warm ones."""
_ROUNDS: Final = 2
"""Batches per process: more than one, so that none waits long for the last."""


@dataclass(frozen=True, slots=True)
class GuardBatch:
    """Guards measured one after another in one process. `folders` go first into `sys.path`."""

    guards: tuple[Guard, ...]
    root: str
    folders: tuple[str, ...]
    run: str = ""
    store: str = ""


@dataclass(slots=True)
class Session:
    """What was measured; `interrupted` says that it was ended (Ctrl-C) before its end."""

    taken: list[Taken] = field(default_factory=list)
    interrupted: bool = False


def session(
    guards: Sequence[Guard],
    root: Path,
    folders: Sequence[Path],
    *,
    jobs: int | None = None,
    run: BenchRun | None = None,
    store: Path | None = None,
    progress: Progress = lambda _: None,
) -> Session:
    """Measure all guards. With one job all is done in this process; by default there are as many
    as there are processors, if that much is to be measured. With `run` and `store` every record is
    kept as it comes. Raises StoreError when that cannot be done."""
    single = [single_guard for guard in guards for single_guard in _by_device(guard)]
    if jobs is None:
        jobs = max(1, min(os.cpu_count() or 1, len(single) // _PAYS))
    if run is not None and store is not None:
        with open_store(store) as opened:
            opened.begin(run)
    batch = GuardBatch(
        guards=(),
        root=str(root),
        folders=tuple(map(str, folders)),
        run=run.id if run else "",
        store=str(store) if store else "",
    )
    outcome = Session()
    try:
        _measure(batch, single, jobs, outcome, progress)
    except KeyboardInterrupt:
        outcome.interrupted = True
    _complete(single, outcome)
    if run is not None and store is not None and not outcome.interrupted:
        with open_store(store) as opened:
            opened.finish(run.id, now())
    return outcome


def _measure(
    batch: GuardBatch, single: Sequence[Guard], jobs: int, outcome: Session, progress: Progress
) -> None:
    position = 0
    if jobs == 1:
        for guard in single:
            progress(f"{position}/{len(single)} {guard.line} on {', '.join(guard.devices)}")
            outcome.taken += measure_batch(replace(batch, guards=(guard,)))
            position += 1
        return
    count = min(len(single), jobs * _ROUNDS)
    batches = [replace(batch, guards=tuple(single[start::count])) for start in range(count)]
    progress(f"0/{len(single)}")
    while batches:
        alone: list[GuardBatch] = []
        for part, measurements in map_unordered(measure_batch, batches, jobs):
            if measurements is None and len(part.guards) > 1:  # one of them took the process down
                alone += [replace(part, guards=(guard,)) for guard in part.guards]
                continue
            if measurements is None:
                measurements = [
                    Taken(guard, device, failed="the process that measured it died")
                    for guard in part.guards
                    for device in guard.devices
                ]
            outcome.taken += measurements
            position += len(part.guards)
            progress(f"{position}/{len(single)}")
        batches = alone


def measure_batch(part: GuardBatch) -> list[Taken]:
    """The guards of a batch, in this process."""
    root = Path(part.root)
    environment_of = _environments(root)
    before = list(sys.path)
    sys.path[:0] = part.folders
    measurements: list[Taken] = []
    store = open_store(part.store) if part.store else None
    try:
        for guard in part.guards:
            for measurement in _whatever_happens(guard, root, environment_of):
                measurements.append(measurement)
                if store is not None:
                    for record in measurement.records:
                        store.add(part.run, record)
    finally:
        sys.path[:] = before
        if store is not None:
            store.close()
    return measurements


def _whatever_happens(guard: Guard, root: Path, environment_of: EnvironmentOf) -> list[Taken]:
    """A guard on its devices. A mistake of wavecast's own fails this guard: the reports of the
    others are written."""
    try:
        return measure(guard, root, environment_of)
    except Exception as error:
        failure = WavecastError(
            f"internal error, a bug in wavecast: {type(error).__name__}: {one_line(error)}"
        )
        failure.__cause__ = error
        return [failure_of(guard, device, failure, root) for device in guard.devices]


def _environments(root: Path) -> EnvironmentOf:
    """Environments of emulated devices; the checkout is looked at once."""
    cache: list[Environment] = []

    def of(device: Device) -> Environment:
        if not cache:
            cache.append(emulated_environment(device, root))
        return replace(cache[0], device=device.id, target=device.target, board=device.name)

    return of


def _by_device(guard: Guard) -> list[Guard]:
    """A guard per device; a script runs once for all of its devices."""
    if guard.kind == "kernel":
        return [guard]
    return [replace(guard, devices=(device,)) for device in guard.devices]


def _complete(single: Sequence[Guard], outcome: Session) -> None:
    """Put results into the order of the guards, and say what was not measured."""
    by_guard = {
        (measurement.guard.key, measurement.device): measurement for measurement in outcome.taken
    }
    outcome.taken = [
        by_guard.get((guard.key, device))
        or Taken(guard, device, failed="interrupted before it was measured")
        for guard in single
        for device in guard.devices
    ]


__all__ = ["GuardBatch", "Session", "measure_batch", "session"]
