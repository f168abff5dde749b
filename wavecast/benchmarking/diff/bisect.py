"""The first of several releases with which a figure is worse.

The search halves the releases between one that is good and one that is not, so it assumes that a
figure, once worse, stays worse: it asks about a handful of releases, not all. A release that cannot
be asked is passed over for its neighbour. What was found at every release asked is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from wavecast.benchmarking.diff.figures import is_worse
from wavecast.benchmarking.kpis import Kpi
from wavecast.errors import NothingAnalysed, WavecastError

Values = Mapping[str, float]
"""A figure by kernel and device."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One release asked. `values` are its figures, `worse` those that are worse than those of the
    oldest release that could be asked, `failed` why it could not be."""

    release: str
    values: Values = field(default_factory=dict)
    worse: tuple[str, ...] = ()
    failed: str = ""

    @property
    def verdict(self) -> Literal["good", "worse", "skipped"]:
        return "skipped" if self.failed else "worse" if self.worse else "good"


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to. `first_worse` is "" when the newest release is not worse than
    the oldest; `undecided` are releases between `last_good` and `first_worse` that could not be
    asked: any of them may be the first. `probes` are in the order they were asked."""

    kpi: Kpi
    releases: tuple[str, ...]
    last_good: str
    first_worse: str
    undecided: tuple[str, ...]
    probes: tuple[Probe, ...]


def bisect(
    kpi: Kpi,
    releases: Sequence[str],
    ask: Callable[[str], Values],
    *,
    minimum: float = 0.0,
    show: Callable[[Probe], None] = lambda _: None,
) -> Found:
    """Search `releases`, oldest first, for the first with which `kpi` is worse.

    `ask` gives the figures of a release or raises WavecastError when it cannot be asked; `show` is
    called with every probe. A figure is worse when it changed for the worse by more than `minimum`
    of what it was with the oldest release. Raises NothingAnalysed when fewer than two can be asked.
    """
    probes: list[Probe] = []
    base: Values = {}

    def probe(number: int) -> Probe:
        release = releases[number]
        try:
            values = dict(ask(release))
            failed = "" if values else f"no kernel has {kpi.name}"
            if base and values and not base.keys() & values.keys():
                failed = "none of its kernels is one of the oldest release"
        except WavecastError as error:
            values, failed = {}, str(error)
        worse = [
            name
            for name, value in values.items()
            if name in base and is_worse(kpi, base[name], value, minimum)
        ]
        probes.append(Probe(release, values, () if failed else tuple(worse), failed))
        show(probes[-1])
        return probes[-1]

    low = next((n for n in range(len(releases) - 1) if not probe(n).failed), None)
    if low is None:
        raise NothingAnalysed(f"no release can be asked: {probes[-1].failed}")
    base = probes[-1].values
    high = next((n for n in range(len(releases) - 1, low, -1) if not probe(n).failed), None)
    if high is None:
        raise NothingAnalysed(f"no release but {releases[low]} can be asked: {probes[-1].failed}")
    if not probes[-1].worse:
        return Found(kpi, tuple(releases), releases[high], "", (), tuple(probes))
    skipped: set[int] = set()
    while candidates := [n for n in range(low + 1, high) if n not in skipped]:
        middle = candidates[len(candidates) // 2]
        verdict = probe(middle).verdict
        if verdict == "skipped":
            skipped.add(middle)
        elif verdict == "good":
            low = middle
        else:
            high = middle
    undecided = tuple(releases[low + 1 : high])
    return Found(kpi, tuple(releases), releases[low], releases[high], undecided, tuple(probes))


__all__ = ["Found", "Probe", "Values", "bisect"]
