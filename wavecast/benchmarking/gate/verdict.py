"""What a gate says."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from wavecast.benchmarking.gate.guards import NOWHERE, KernelLocation


class Status(StrEnum):
    """The result of a figure or record. The first five break the gate, NEW where it is strict."""

    WORSE = "WORSE"
    """Worse than its threshold allows."""
    WRONG = "WRONG"
    """The result is wrong, or the figures cannot be true: nothing is derived from them."""
    FAILED = "FAILED"
    """It could not be measured: it does not compile, raises, or was interrupted."""
    GONE = "GONE"
    """The baseline has it, and it was not measured; it vanished or was renamed."""
    LOST = "LOST"
    """A figure of the baseline that is no longer had."""
    NEW = "NEW"
    """The baseline does not have it."""
    WARN = "WARN"
    """Worse than its threshold allows, where the time of the subject is better."""
    BETTER = "BETTER"
    SAME = "SAME"
    """The same, or worse by no more than allowed."""


BREAKING = (Status.WORSE, Status.WRONG, Status.FAILED, Status.GONE, Status.LOST)


@dataclass(frozen=True, slots=True)
class Judged:
    """One figure of a subject on a device, or the subject as a whole (`kpi` is ""). `limit` is the
    worst value that passes, `location` where the kernel is written, `reason` one line."""

    subject: str
    device: str
    kpi: str
    status: Status
    before: float | None = None
    after: float | None = None
    limit: float | None = None
    reason: str = ""
    location: KernelLocation = NOWHERE


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """Everything a gate judged, what breaks it first. `notes` are lines for the reader."""

    judged: tuple[Judged, ...]
    strict: bool = False
    notes: tuple[str, ...] = ()

    def breaks(self, judgement: Judged) -> bool:
        """Whether this makes the gate red."""
        return judgement.status in BREAKING or (self.strict and judgement.status is Status.NEW)

    @property
    def broken(self) -> tuple[Judged, ...]:
        """What makes the gate red."""
        return tuple(judgement for judgement in self.judged if self.breaks(judgement))

    @property
    def failures_and_warnings(self) -> tuple[Judged, ...]:
        """What makes the gate red, then what it warns of."""
        return (*self.broken, *self.of(Status.WARN))

    @property
    def changed(self) -> tuple[Judged, ...]:
        """What is not the same as in the baseline."""
        return tuple(one for one in self.judged if one.status is not Status.SAME)

    def in_repository(self, folder: str) -> GateVerdict:
        """The same with files named from the repository, where the project is in its `folder`."""
        if not folder:
            return self
        judged = tuple(
            replace(
                judgement,
                location=KernelLocation(
                    f"{folder}/{judgement.location.file}", judgement.location.line
                ),
            )
            if judgement.location.file and not judgement.location.file.startswith("/")
            else judgement
            for judgement in self.judged
        )
        return replace(self, judged=judged)

    def of(self, status: Status) -> tuple[Judged, ...]:
        """All of a status."""
        return tuple(judgement for judgement in self.judged if judgement.status is status)


__all__ = ["BREAKING", "GateVerdict", "Judged", "Status"]
