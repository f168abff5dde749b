"""Every figure over the runs of a store, and where it changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from typing import Final, NamedTuple

from wavecast.benchmarking.history import changes
from wavecast.benchmarking.history.order import commits_between, sort_by_commit
from wavecast.benchmarking.kpis import KPIS, Kpi
from wavecast.benchmarking.records import (
    BenchRecord,
    BenchRun,
    BenchSubject,
    Conditions,
    Environment,
    Figure,
)
from wavecast.patterns import regex

_VERSIONS: Final = ("board", "driver", "runtime", "triton", "llvm", "torch", "python", "wavecast")
"""What of an environment is told where a figure changed."""


@dataclass(frozen=True, slots=True)
class Point:
    """A figure in one run: the median, and what bounds it: the middle half of its samples (all of
    fewer than four), or the interval of a prediction."""

    run: BenchRun
    value: float
    low: float
    high: float
    samples: int
    digest: str
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LevelChange:
    """A new level begins with `points[at]`. `before` and `after` are medians of the levels, `ratio`
    theirs (None from or to zero); `commits` as many as there are between the run before and this
    one, None where that is not known; `also` says what else changed with it. `few` says that there
    are too few runs to tell a change from outliers or two states of the machine."""

    at: int
    before: float
    after: float
    ratio: float | None
    worse: bool
    commits: int | None
    also: tuple[str, ...]
    few: bool


@dataclass(frozen=True, slots=True)
class Series:
    """One figure of one subject, measured in one way on one device."""

    subject: BenchSubject
    device: str
    conditions: Conditions
    kpi: Kpi
    points: tuple[Point, ...]
    changes: tuple[LevelChange, ...]


@dataclass(frozen=True, slots=True)
class History:
    """All series, by subject, device and figure; `order` are the ids of the runs in theirs; `notes`
    say what was left out or is uncertain."""

    series: tuple[Series, ...]
    order: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SeriesFilter:
    """Which series: a regular expression that is searched in the subjects' keys, figures, devices
    ((): all), the least relative change."""

    subject: str = ""
    kpis: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    minimum: float = changes.MINIMUM


class _Key(NamedTuple):
    subject: str
    device: str
    emulated: bool
    conditions: Conditions
    kpi: str


@dataclass(slots=True)
class _Seen:
    """What one run has of a series."""

    record: BenchRecord
    figures: list[Figure] = field(default_factory=list)


def history(
    records: Mapping[str, Sequence[BenchRecord]],
    runs: Sequence[BenchRun],
    chosen: SeriesFilter,
    folder: Path,
) -> History:
    """Series over `runs`, in the order of their commits in the checkout around `folder`.

    Raises UsageError for a regular expression that is none.
    """
    pattern = regex(chosen.subject, "subject")
    order, strangers = sort_by_commit(runs, folder)
    by_key: dict[_Key, dict[str, _Seen]] = {}
    refusals = 0
    strange: set[str] = set()
    for run in order:
        for record in records[run.id]:
            if not pattern.search(record.subject.key) or not _is_on(record, chosen.devices):
                continue
            if record.refused:
                refusals += 1
                continue
            for name, figure in record.figures.items():
                if name not in KPIS:
                    strange.add(name)
                elif not chosen.kpis or name in chosen.kpis:
                    by_run = by_key.setdefault(_key(record, name), {})
                    by_run.setdefault(run.id, _Seen(record)).figures.append(figure)
    by_id = {run.id: run for run in order}
    names = list(KPIS)
    keys = sorted(by_key, key=lambda key: (key[:3], str(key.conditions), names.index(key.kpi)))
    series = tuple(_series(key, by_key[key], by_id, chosen, folder) for key in keys)
    return History(series, tuple(by_id), _notes(refusals, strangers, strange, order))


def device_of(record: BenchRecord) -> str:
    """What a record's device is called: its id, else what the driver or the target says."""
    environment = record.environment
    return environment.device or environment.board or environment.target or "unknown"


def _is_on(record: BenchRecord, devices: Sequence[str]) -> bool:
    names = {device_of(record), record.environment.target, record.environment.board}
    return not devices or bool(names & set(devices))


def _key(record: BenchRecord, kpi: str) -> _Key:
    environment = record.environment
    return _Key(record.subject.key, device_of(record), environment.emulated, record.conditions, kpi)


def _series(
    key: _Key,
    by_run: Mapping[str, _Seen],
    runs: Mapping[str, BenchRun],
    chosen: SeriesFilter,
    folder: Path,
) -> Series:
    points = tuple(_point(runs[run], observation) for run, observation in by_run.items())
    kpi = KPIS[key.kpi]
    first = next(iter(by_run.values())).record
    level_changes = _changes(points, kpi, chosen.minimum, folder)
    return Series(first.subject, key.device, key.conditions, kpi, points, level_changes)


def _point(run: BenchRun, observation: _Seen) -> Point:
    value = median(figure.value for figure in observation.figures)
    samples = [sample for figure in observation.figures for sample in figure.samples]
    low = high = value
    if len(samples) >= 4:
        low, _, high = quantiles(samples, n=4, method="inclusive")
    elif samples:
        low, high = min(samples), max(samples)
    else:
        bounds = [
            (f.low, f.high) for f in observation.figures if f.low is not None and f.high is not None
        ]
        if bounds:
            low, high = (median(side) for side in zip(*bounds, strict=True))
    versions = _versions(observation.record.environment)
    return Point(run, value, low, high, len(samples), observation.record.digest, versions)


def _versions(environment: Environment) -> dict[str, str]:
    return {name: getattr(environment, name) for name in _VERSIONS}


def _changes(
    points: Sequence[Point], kpi: Kpi, minimum: float, folder: Path
) -> tuple[LevelChange, ...]:
    values = [point.value for point in points]
    if kpi.noisy and all(value > 0 for value in values):
        cuts = changes.steps(values, minimum)
    else:
        whole = all(float(value).is_integer() for value in values)
        cuts = changes.exact_steps(values, 0.0 if whole else minimum)
    edges = [0, *cuts, len(values)]
    levels = [median(values[a:b]) for a, b in pairwise(edges) if a < b]
    level_changes = []
    for index, at in enumerate(cuts):
        before, after = levels[index], levels[index + 1]
        last, first = points[at - 1], points[at]
        level_changes.append(
            LevelChange(
                at=at,
                before=before,
                after=after,
                ratio=after / before if before and after else None,
                worse=(after > before) == (kpi.better == "lower"),
                commits=commits_between(last.run.commit, first.run.commit, folder),
                also=_also(last, first),
                few=kpi.noisy and len(values) < changes.FEWEST_SHUFFLED,
            )
        )
    return tuple(level_changes)


def _also(before: Point, after: Point) -> tuple[str, ...]:
    """What is different between two points, but the figure."""
    differences = [
        f"{name} {before.versions[name] or 'unknown'} → {after.versions[name] or 'unknown'}"
        for name in _VERSIONS
        if before.versions[name] != after.versions[name]
    ]
    if before.digest and after.digest:
        same = before.digest == after.digest
        differences.append("the same machine code" if same else "other machine code")
    return tuple(differences)


def _notes(
    refusals: int, strangers: int, strange: set[str], order: Sequence[BenchRun]
) -> tuple[str, ...]:
    notes = []
    if refusals:
        notes.append(f"{refusals} refused records are left out: their times cannot be true")
    if strangers:
        notes.append(f"{strangers} runs of commits that this checkout lacks are sorted by date")
    elif order and not any(run.commit for run in order):
        notes.append("no run names a commit: sorted by date")
    if strange:
        notes.append(f"unknown figures are left out: {', '.join(sorted(strange))}")
    return tuple(notes)


__all__ = ["History", "LevelChange", "Point", "Series", "SeriesFilter", "device_of", "history"]
