"""Records of a run in a store, as if a gate had measured them: those of a GPU."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wavecast.benchmarking.gate.guards import Guard, family
from wavecast.benchmarking.gate.measuring import Taken
from wavecast.benchmarking.records import BenchRecord


def taken_from(guards: Sequence[Guard], records: Iterable[BenchRecord]) -> list[Taken]:
    """What a run says about every guard on its devices; the last record of a subject counts. A
    guard the run holds nothing of failed."""
    last = {(record.subject.key, record.environment.device): record for record in records}
    measurements = []
    for guard in guards:
        for device in guard.devices:
            mine = tuple(
                record for (_, on), record in last.items() if on == device and _is_of(record, guard)
            )
            failed = "" if mine else "the run holds no record of it"
            measurements.append(Taken(guard, device, mine, failed))
    return measurements


def _is_of(record: BenchRecord, guard: Guard) -> bool:
    subject = record.subject
    if family(subject.kind, subject.name) != family(guard.kind, guard.name):
        return False
    return all(subject.axes.get(name) == value for name, value in guard.axes.items())


__all__ = ["taken_from"]
