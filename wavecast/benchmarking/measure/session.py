"""One invocation that measures: every subject on every device, kept as it comes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from wavecast.arch import Device
from wavecast.benchmarking.environment import emulated_environment, now
from wavecast.benchmarking.measure import offline
from wavecast.benchmarking.measure.workload import Workload
from wavecast.benchmarking.records import BenchRecord, BenchRun
from wavecast.benchmarking.store.base import Store
from wavecast.errors import StoreError, WavecastError

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Failed:
    """A subject that could not be measured on a device, and why."""

    subject: str
    device: str
    why: str


@dataclass(slots=True)
class SessionResult:
    """What a session measured. `interrupted` says that it was ended (Ctrl-C) before the end."""

    run: BenchRun
    records: list[BenchRecord] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)
    interrupted: bool = False


Measure = Callable[[Workload, Device], Iterable[BenchRecord]]


def offline_measure(*, execute: bool = False, check: bool = False) -> Measure:
    """Measuring with no GPU, as `offline.measure` does."""

    def measure_workload(workload: Workload, device: Device) -> Iterator[BenchRecord]:
        environment = emulated_environment(device)
        yield from offline.measure(workload, device, environment, execute=execute, check=check)

    return measure_workload


def session(
    run: BenchRun,
    workloads: Sequence[Workload],
    devices: Sequence[Device],
    measure: Measure,
    store: Store | None = None,
    progress: Progress = lambda _: None,
) -> SessionResult:
    """Measure everything; each record is in the store before the next is taken. A subject that
    fails is in the outcome, and the others continue."""
    outcome = SessionResult(run)
    with keeping(outcome, store) as keep:
        for workload in workloads:
            for device in devices:
                progress(f"{workload.subject.key} on {device.id}")
                try:
                    for record in measure(workload, device):
                        keep(record)
                except StoreError:
                    raise
                except WavecastError as error:
                    outcome.failed.append(Failed(workload.subject.key, device.id, str(error)))
    return outcome


@contextlib.contextmanager
def keeping(outcome: SessionResult, store: Store | None) -> Iterator[Callable[[BenchRecord], None]]:
    """Gives what keeps a record, in the outcome and the store. An interrupt (Ctrl-C) of the block
    ends it and is told in the outcome; a run is finished in the store when its block is."""
    run = outcome.run
    if store is not None:
        store.begin(run)

    def keep(record: BenchRecord) -> None:
        if store is not None:
            store.add(run.id, record)
        outcome.records.append(record)

    try:
        yield keep
    except KeyboardInterrupt:
        outcome.interrupted = True
    if store is not None and not outcome.interrupted:
        store.finish(run.id, now())


__all__ = [
    "Failed",
    "Measure",
    "Progress",
    "SessionResult",
    "keeping",
    "offline_measure",
    "session",
]
