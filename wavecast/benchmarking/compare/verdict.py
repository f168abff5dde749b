"""What a comparison says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from wavecast.benchmarking.records import BenchSubject


class FigureVerdict(StrEnum):
    """FASTER and SLOWER for times, BETTER and WORSE for other figures; AMBIGUOUS where the data
    does not decide; GONE and NEW for a subject of only one side; REFUSED for what cannot be
    compared."""

    FASTER = "FASTER"
    SLOWER = "SLOWER"
    BETTER = "BETTER"
    WORSE = "WORSE"
    SAME = "SAME"
    AMBIGUOUS = "AMBIGUOUS"
    GONE = "GONE"
    NEW = "NEW"
    REFUSED = "REFUSED"


@dataclass(frozen=True, slots=True)
class Compared:
    """One KPI of one subject on one device, before and after.

    `ratio` is after / before (of the share of the bound across chips), `low` and `high` its
    interval at the level of the comparison, equal to it for exact figures. `reasons` are codes with
    what they mean here: `below-effect: 0.4 % < 1 %`. `p` is the probability of such a difference
    without a change, `adjusted` the same with false discoveries under control.
    """

    subject: BenchSubject
    device: str
    kpi: str
    verdict: FigureVerdict
    before: float | None
    after: float | None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    adjusted: float | None = None
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunComparison:
    """All figures of two sets of runs; `across` says that devices differ, and shares of the bound
    were compared instead of seconds."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    compared: tuple[Compared, ...]
    across: bool = False
    notes: tuple[str, ...] = ()


__all__ = ["Compared", "FigureVerdict", "RunComparison"]
