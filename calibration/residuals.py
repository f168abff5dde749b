"""The intervals of predictions from the errors on what was left out.

    python -m calibration.residuals

reads `calibration/left_out.json` and writes `wavecast/model/residuals.toml`: for every distance
class, and for families, devices and libraries with enough left-out groups, the interval that
contains 80 % of a new group (`conformal`). `coverage` tries such intervals on the chips, libraries
and sources that were left out, each with a table that has no residual of what is tried.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from calibration import cells, conformal
from calibration.cells import Cell, LeftOutTable
from wavecast.model import intervals
from wavecast.model.distance import DistanceClass, Measured, MeasuredRange, PredictionSubject
from wavecast.model.intervals import BEST, COVERAGE, Key, Residuals, ResidualTable

OUTPUT: Final = Path(intervals.__file__).with_name("residuals.toml")
_GROUPS: Final = {"chip": "chips", "library": "libraries", "source": "sources", "model": "models"}


@dataclass(frozen=True, slots=True)
class GroupCoverage:
    """Of a left-out chip, library or source: the share of its `n` problems within intervals made
    without it, and the median of log(high / low). `distances` are the classes of its problems."""

    kind: str
    group: str
    family: str
    n: int
    median: float
    coverage: float
    width: float
    distances: tuple[str, ...]


def rows(known: Iterable[Cell]) -> dict[Key, Residuals]:
    """The rows of `residuals.toml` that have enough left-out groups."""
    members: dict[Key, list[Cell]] = defaultdict(list)
    for cell in known:
        for key in _keys(cell):
            members[key].append(cell)
    found = {}
    for key, same in members.items():
        row = _row(key, same)
        if row is not None:
            found[key] = row
    return found


def _keys(cell: Cell) -> Iterator[Key]:
    """The rows that a cell belongs to."""
    own, library = cell.distance, cell.library or BEST
    yield own, "", "", ""
    yield own, cell.family, "", ""
    yield own, cell.family, "", library
    yield own, cell.family, cell.device, ""
    yield own, cell.family, cell.device, library


def _row(key: Key, same: Sequence[Cell]) -> Residuals | None:
    groups: dict[str, list[Cell]] = defaultdict(list)
    for cell in same:
        groups[f"{cell.family} {cell.kind} {cell.group}"].append(cell)
    residuals = {}
    for name, members in groups.items():
        logs = np.concatenate([cell.logs for cell in members])
        weights = np.concatenate([np.full(len(c.logs), c.n / len(c.logs)) for c in members])
        residuals[name] = logs, weights
    ends = conformal.interval(residuals, COVERAGE)
    if ends is None:
        return None
    low, high = ends
    count = sum(cell.n for cell in same)
    return Residuals(round(low, 4), round(high, 4), count, len(groups), _source(key, same))


def _source(key: Key, same: Sequence[Cell]) -> str:
    """What was left out of what, in words."""
    _, family, device, library = key
    what = family or "all kinds of kernels"
    if library:
        what += f" by {'the best library' if library == BEST else library}"
    if device:
        what += f" on {device}"
    kinds = [name for kind, name in _GROUPS.items() if any(cell.kind == kind for cell in same)]
    return f"{what}, {' and '.join(kinds)} left out"


def table(known: LeftOutTable, only: Sequence[Cell] | None = None) -> ResidualTable:
    """The table of all cells, or of `only` some."""
    measured = [one for ranges in known.measured.values() for one in ranges]
    return ResidualTable(rows(known.cells if only is None else only), Measured(measured))


def coverage(known: LeftOutTable) -> list[GroupCoverage]:
    """Coverage of every left-out chip, library and source, by family."""
    tried: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for cell in known.cells:
        if cell.kind != "model":
            tried[cell.kind, cell.group].append(cell)
    found = []
    for (kind, group), same in sorted(tried.items()):
        rest = [cell for cell in known.cells if not _touches(cell, kind, group)]
        made = table(known, rest)
        families = sorted({cell.family for cell in same})
        found += [
            _coverage(kind, group, family, [c for c in same if c.family == family], made)
            for family in families
        ]
    return found


def _touches(cell: Cell, kind: str, group: str) -> bool:
    """Whether the residuals of a cell are of a left-out chip, library or source."""
    return {"chip": cell.device, "library": cell.library, "source": cell.source}[kind] == group


def _coverage(
    kind: str, group: str, family: str, same: Sequence[Cell], made: ResidualTable
) -> GroupCoverage:
    covered, widths, errors, weights = [], [], [], []
    for cell in same:
        low, high = _ends(cell, made)
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


def _ends(cell: Cell, made: ResidualTable) -> tuple[float, float]:
    """The interval that a prediction of a cell gets from a table without it."""
    subject = PredictionSubject(cell.family, cell.library)
    for key in intervals.keys(DistanceClass(cell.distance), subject, cell.device):
        if key in made.rows:
            row = made.rows[key]
            return min(0.0, row.low), max(0.0, row.high)
    raise ValueError("too few left-out groups for any interval")


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
