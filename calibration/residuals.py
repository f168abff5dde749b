"""The intervals of predictions from the errors on what was left out.

    python -m calibration.residuals

reads `calibration/left_out.json` and writes `wavecast/perfmodel/residuals.toml`: for every distance
class, and for families, devices and libraries with enough left-out groups, the interval that
contains 80 % of a new group (`conformal`). Problems that several experiments leave out (a chip, and
the source that measured it) count once in a class, and a group needs a few problems. `coverage`
tries such intervals on the chips, libraries and sources that were left out, each with a table that
has no residual of what is tried; `by_class` the same of every distance class, of left-out models
too.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import numpy as np

from calibration import cells, conformal
from calibration.cells import Cell, LeftOutTable
from wavecast import arch
from wavecast.perfmodel import intervals
from wavecast.perfmodel.distance import (
    DistanceClass,
    Measured,
    MeasuredRange,
    PredictionSubject,
    related_families,
)
from wavecast.perfmodel.intervals import BEST, COVERAGE, Key, Residuals, ResidualTable

_By = TypeVar("_By")

OUTPUT: Final = Path(intervals.__file__).with_name("residuals.toml")
SMALL: Final = 3
"""Problems that a left-out group needs to count as one."""
TESTED: Final = 10
"""Groups that the coverage of a class needs, so that one of them is a tenth of it at most."""
GENERAL: Final[Key] = (DistanceClass.FAR.value, "", "", "")
"""The row for predictions that no other row describes."""
_NEAR: Final = {one.value for one in intervals.NEAR}
_FARTHER: Final[Key] = ("", "", "", "")
"""All of these, for the general row: predictions far from everything have no narrower interval than
those that are nearer."""
_WORDS: Final = {
    "chip": "chips",
    "target": "targets",
    "library": "libraries",
    "source": "sources",
    "model": "models",
    "later": "later measurements",
}
"""Kinds of experiments as reports name them. Of problems that several leave out, the first
counts."""


@dataclass(frozen=True, slots=True)
class GroupCoverage:
    """Of what an experiment left out: the share of its `n` problems within intervals made without
    it, and the median of log(high / low). `distances` are the classes of its problems."""

    kind: str
    group: str
    family: str
    n: int
    median: float
    coverage: float
    width: float
    distances: tuple[str, ...]


class Rows:
    """The rows that cells give, each made when it is asked for."""

    def __init__(self, known: Iterable[Cell]) -> None:
        self._members: dict[Key, list[Cell]] = defaultdict(list)
        for cell in known:
            for key in _keys(cell):
                self._members[key].append(cell)
        self._made: dict[Key, Residuals | None] = {}

    def get(self, key: Key) -> Residuals | None:
        """A row, None where it has too few left-out groups."""
        if key not in self._made:
            same = self._members.get(key, [])
            if key == GENERAL:
                same = self._members.get(_FARTHER, [])
            self._made[key] = _row(key, same)
        return self._made[key]

    def all(self) -> dict[Key, Residuals]:
        """Every row of `residuals.toml`, without those that have the cells of a wider row."""
        found = {}
        for key in [*self._members, GENERAL]:
            same = self._members.get(key, [])
            wider = [o for o in _wider(key) if len(self._members.get(o, [])) == len(same)]
            row = None if wider or key == _FARTHER else self.get(key)
            if row is not None:
                found[key] = row
        return found

    def found(self, cell: Cell) -> Residuals:
        """The row for predictions like those of a cell. Raises ValueError without any."""
        subject = PredictionSubject(cell.family, cell.library)
        device = arch.load(cell.device)
        for key in intervals.keys(DistanceClass(cell.distance), subject, device):
            row = self.get(key)
            if row is not None:
                return row
        raise ValueError("too few left-out groups for any interval")


def _wider(key: Key) -> Iterator[Key]:
    """The rows that are looked up after a row: one that has the same cells is as good."""
    own, family, device, library = key
    if device and library:
        yield own, family, device, ""
        yield own, family, "", library
    elif device and own in _NEAR:
        yield own, family, "", BEST
    if (device or library) and own not in _NEAR:
        yield own, family, "", ""


def _keys(cell: Cell) -> Iterator[Key]:
    """The rows that a cell belongs to."""
    own, library = cell.distance, cell.library or BEST
    if own not in _NEAR:
        yield _FARTHER
    yield own, "", "", ""
    if own not in _NEAR:
        for family in related_families(cell.family, arch.load(cell.device)):
            yield own, family, "", ""
    yield own, cell.family, "", library
    yield own, cell.family, cell.device, ""
    yield own, cell.family, cell.device, library


def _once(same: Sequence[Cell]) -> Iterator[Cell]:
    """Cells of a class without those of problems that are there as a left-out chip, or else
    library, or else source: a chip that only one source measured is not two groups."""
    kinds = tuple(_WORDS)
    first: dict[tuple[object, ...], str] = {}
    for cell in sorted(same, key=lambda cell: kinds.index(cell.kind)):
        first.setdefault(_problems(cell), cell.kind)
    yield from (cell for cell in same if cell.kind == first[_problems(cell)])


def _problems(cell: Cell) -> tuple[object, ...]:
    """What tells the problems of a cell from those of other cells of an experiment."""
    return cell.family, cell.device, cell.library, cell.source, cell.distance, cell.later


def _by_group(same: Sequence[Cell]) -> dict[str, list[Cell]]:
    """Cells by what counts equally: a left-out chip, library, source or model of a family. Models
    with fewer than `SMALL` problems are one group of their source; a group that has fewer yet
    does not count."""
    found: dict[str, list[Cell]] = defaultdict(list)
    for cell in _once(same):
        found[f"{cell.family} {cell.kind} {cell.group}"].append(cell)
    for name in _small(found):
        for cell in found.pop(name):
            found[f"{cell.family} {cell.kind}, few problems, {cell.source}"].append(cell)
    for name in _small(found):
        del found[name]
    return found


def _small(groups: Mapping[str, Sequence[Cell]]) -> list[str]:
    """The names of groups with fewer than `SMALL` problems."""
    return [name for name, members in groups.items() if sum(cell.n for cell in members) < SMALL]


def _row(key: Key, same: Sequence[Cell]) -> Residuals | None:
    groups = _by_group(same)
    residuals = {}
    for name, members in groups.items():
        logs = np.concatenate([cell.logs for cell in members])
        weights = np.concatenate([np.full(len(c.logs), c.n / len(c.logs)) for c in members])
        residuals[name] = logs, weights
    ends = conformal.interval(residuals, COVERAGE)
    if ends is None:
        return None
    low, high = ends
    counted = [cell for members in groups.values() for cell in members]
    count = sum(cell.n for cell in counted)
    return Residuals(round(low, 4), round(high, 4), count, len(groups), _source(key, counted))


def _source(key: Key, same: Sequence[Cell]) -> str:
    """What was left out of what, in words."""
    what = key[1] or "all kinds of kernels"
    libraries, devices = {cell.library for cell in same}, {cell.device for cell in same}
    if key[1] and len(libraries) == 1:
        library = libraries.pop()
        what += f" ({library})" if library else ""
    if key[1] and len(devices) == 1:
        what += f" on {devices.pop()}"
    kinds = [name for kind, name in _WORDS.items() if any(cell.kind == kind for cell in same)]
    return f"{what}, {' and '.join(kinds)} left out"


def table(known: LeftOutTable) -> ResidualTable:
    """What `residuals.toml` has."""
    measured = [one for ranges in known.measured.values() for one in ranges]
    return ResidualTable(Rows(known.cells).all(), Measured(measured))


def coverage(known: LeftOutTable) -> list[GroupCoverage]:
    """Coverage of everything that was left out but models, by family."""
    return [
        _coverage(kind, group, family, members, made)
        for kind, group, same, made in _tried(known)
        if kind != "model"
        for family, members in sorted(_split(same, lambda cell: cell.family).items())
    ]


def by_class(known: LeftOutTable) -> dict[str, list[GroupCoverage]]:
    """Coverage of everything that was left out, of the classes of distance, from the nearest. A
    group has `SMALL` problems of a family in a class. A class of fewer than `TESTED` groups is one
    with the next wider class."""
    covered: dict[str, list[GroupCoverage]] = defaultdict(list)
    for kind, group, same, made in _tried(known):
        parts = _split(same, lambda cell: (cell.family, cell.distance))
        for (family, distance), members in sorted(parts.items()):
            if sum(cell.n for cell in members) >= SMALL:
                covered[distance].append(_coverage(kind, group, family, members, made))
    merged: dict[str, list[GroupCoverage]] = {}
    names, groups = list[str](), list[GroupCoverage]()
    for distance in (one.value for one in DistanceClass):
        if covered[distance]:
            names.append(distance)
            groups += covered[distance]
        if len(groups) >= TESTED:
            merged[", ".join(names)] = groups
            names, groups = [], []
    if groups and merged:
        widest = list(merged)[-1]
        merged[", ".join([widest, *names])] = merged.pop(widest) + groups
    elif groups:
        merged[", ".join(names)] = groups
    return merged


def _tried(known: LeftOutTable) -> Iterator[tuple[str, str, list[Cell], Rows]]:
    """What every experiment left out, and the rows without any residual of it."""
    left_out = _split(known.cells, lambda cell: (cell.kind, cell.group))
    for (kind, group), same in sorted(left_out.items()):
        made = Rows(cell for cell in known.cells if not _touches(cell, kind, group))
        yield kind, group, same, made


def _split(same: Iterable[Cell], by: Callable[[Cell], _By]) -> dict[_By, list[Cell]]:
    parts: dict[_By, list[Cell]] = defaultdict(list)
    for cell in same:
        parts[by(cell)].append(cell)
    return parts


def _touches(cell: Cell, kind: str, group: str) -> bool:
    """Whether the residuals of a cell are of what an experiment left out. Of a model, that is the
    experiment itself: others do not say which models their problems are of."""
    if kind == "later":
        return cell.later
    if kind == "model":
        return cell.kind == "model" and cell.group == group
    values = {
        "chip": cell.device,
        "target": arch.load(cell.device).target,
        "library": cell.library,
        "source": cell.source,
    }
    return values[kind] == group


def _coverage(
    kind: str, group: str, family: str, same: Sequence[Cell], made: Rows
) -> GroupCoverage:
    covered, widths, errors, weights = [], [], [], []
    for cell in same:
        row = made.found(cell)
        low, high = min(0.0, row.low), max(0.0, row.high)
        logs = np.array(cell.logs)
        covered.append((low <= logs) & (logs <= high))
        widths.append(np.full(len(logs), high - low))
        errors.append(np.abs(np.exp(-logs) - 1))
        weights.append(np.full(len(logs), cell.n / len(logs)))
    weight = np.concatenate(weights)
    off = np.concatenate(errors)
    order = np.argsort(off)
    middle = np.searchsorted(np.cumsum(weight[order]), weight.sum() / 2)
    return GroupCoverage(
        kind,
        group,
        family,
        sum(cell.n for cell in same),
        float(off[order][min(middle, len(off) - 1)]),
        float(np.average(np.concatenate(covered), weights=weight)),
        float(np.median(np.concatenate(widths))),
        tuple(dict.fromkeys(cell.distance for cell in same)),
    )


def document(made: ResidualTable) -> str:
    """`residuals.toml`."""
    lines = [
        "# Written by `python -m calibration.residuals`: do not edit.",
        "# Intervals of log(measured / predicted) by distance class, family, device and library",
        '# ("" is all), from `problems` residuals in `groups` left-out groups.',
        'columns = ["distance", "family", "device", "library", "low", "high", "problems",'
        ' "groups", "source"]',
        "rows = [",
    ]
    for key, row in sorted(made.rows.items()):
        cells = [*key, row.low, row.high, row.problems, row.groups, row.source]
        lines.append(f"    [{', '.join(json.dumps(cell) for cell in cells)}],")
    lines += [
        "]",
        "# What was measured: family, device, library, dtype, problems, the range of each size.",
        "measured = [",
    ]
    lines += [f"    {_measured(one)}," for one in made.measured.ranges]
    return "\n".join([*lines, "]"]) + "\n"


def _measured(one: MeasuredRange) -> str:
    sizes = ", ".join(
        f"{json.dumps(name)} = [{low:.4g}, {high:.4g}]" for name, (low, high) in one.sizes.items()
    )
    head = ", ".join(
        json.dumps(cell) for cell in (one.family, one.device, one.library, one.dtype, one.n)
    )
    return f"[{head}, {{{sizes}}}]"


def main() -> None:
    known = cells.read()
    made = table(known)
    OUTPUT.write_text(document(made), encoding="utf-8")
    for one in coverage(known):
        print(
            f"{one.kind:8} {one.group:24} {one.family:12} n {one.n:5} median {one.median:6.1%} "
            f"covered {one.coverage:4.0%} log width {one.width:.2f} {', '.join(one.distances)}"
        )


if __name__ == "__main__":
    main()
