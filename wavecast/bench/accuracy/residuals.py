"""Quantiles of residuals for intervals, and the coverage of such intervals on left-out problems.

An interval's ends are quantiles of log(measured / predicted) over problems. To be judged they are
fitted on four fifths of the problems and tried on the rest (five folds), and again with whole
groups (models, papers, files) left out. New problems differ from the fitted ones more than fitted
problems differ from each other: the quantiles contain 80 % of left-out groups and problems.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from wavecast import arch
from wavecast.bench.accuracy.outcome import ScoredProblem
from wavecast.errors import InputError
from wavecast.model import intervals
from wavecast.model.intervals import Key, Residuals

FOLDS = 5
LEAST = 60
"""Problems a row for a limiter or a size needs."""
LEAST_ALL = 10
"""Problems a row for a whole op needs."""
LEVELS = tuple(round(intervals.COVERAGE + 0.01 * step, 2) for step in range(18))
"""Shares of the fitted problems that intervals may hold, the least that is enough is taken."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Shares of measured times inside intervals fitted without them; None with too few problems.

    `packaged` are the intervals predictions carry now. The others hold a share `level` of the
    problems they were fitted on; `width` is the median of their high / low.
    """

    op: str
    n: int
    packaged: float
    by_problem: float | None
    by_group: float | None
    groups: int
    level: float
    width: float


@dataclass(frozen=True, slots=True)
class LeftOut:
    """log(measured / predicted) of a problem on a target that was left out of the calibration."""

    op: str
    log: float


def fit(known: Sequence[ScoredProblem], left_out: Sequence[LeftOut] = ()) -> dict[Key, Residuals]:
    """The rows of `residuals.toml`."""
    rows: dict[Key, Residuals] = {}
    logs: dict[str, np.ndarray] = {}
    for op, members in _by_op(known).items():
        level = _level(members)
        cells = _cells(members)
        rows.update({key: _quantiles(values, level) for key, values in cells.items()})
        logs[op] = np.array([-outcome.log_ratio for outcome in members])
    unmeasured = _logs_left_out(left_out)
    rows.update(_unmeasured_rows(logs, unmeasured))
    rows[intervals.ANY, "", "", "", ""] = _pooled(unmeasured or logs)
    return rows


def coverage(outcomes: Sequence[ScoredProblem]) -> tuple[Coverage, ...]:
    """Coverage by op."""
    return tuple(_coverage(op, members) for op, members in _by_op(outcomes).items())


def read_left_out(path: Path) -> tuple[LeftOut, ...]:
    """What `python -m calibration.left_out` wrote. Raises InputError."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["left_out"]
        return tuple(LeftOut(str(row["op"]), float(row["log"])) for row in rows)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: no residuals of left-out targets: {error}") from None


def document(rows: Mapping[Key, Residuals]) -> str:
    """`residuals.toml`."""
    lines = [
        "# Written by `python -m calibration.validate --write-intervals`: do not edit.",
        "# Quantiles of log(measured / predicted) of n problems, by op class, fidelity, target,",
        '# limiter and decade of predicted time; "" is all, and for the target: not measured.',
        'columns = ["op", "fidelity", "target", "limiter", "size", "low", "high", "n"]',
        "rows = [",
    ]
    for key, row in sorted(rows.items()):
        cells = [*map(_quoted, key), f"{row.low:.4f}", f"{row.high:.4f}", str(row.n)]
        lines.append(f"    [{', '.join(cells)}],")
    return "\n".join([*lines, "]"]) + "\n"


def _by_op(outcomes: Sequence[ScoredProblem]) -> dict[str, list[ScoredProblem]]:
    found: dict[str, list[ScoredProblem]] = defaultdict(list)
    for outcome in outcomes:
        found[outcome.op_class].append(outcome)
    return dict(sorted(found.items()))


def _keys(outcome: ScoredProblem) -> tuple[Key, ...]:
    """The rows of a measured target an outcome belongs to, the narrowest first."""
    prediction = outcome.prediction
    return intervals.keys(
        outcome.op_class,
        prediction.fidelity,
        _target(outcome.case.device),
        prediction.limiter,
        intervals.size_class(prediction.seconds),
    )[:-1]


@cache
def _target(device: str) -> str:
    return arch.load(device).target


def _cells(outcomes: Sequence[ScoredProblem]) -> dict[Key, np.ndarray]:
    """log(measured / predicted) of every row that has enough problems."""
    cells: dict[Key, list[float]] = defaultdict(list)
    for outcome in outcomes:
        for key in _keys(outcome):
            cells[key].append(-outcome.log_ratio)
    return {
        key: np.array(logs)
        for key, logs in cells.items()
        if len(logs) >= (LEAST if key[3] or key[4] else LEAST_ALL)
    }


def _quantiles(logs: Sequence[float] | np.ndarray, level: float = intervals.COVERAGE) -> Residuals:
    """Ends that hold a share `level` of `logs`, rounded outwards as few points are."""
    outside = (1 - level) / 2
    return Residuals(
        low=float(np.quantile(logs, outside, method="lower")),
        high=float(np.quantile(logs, 1 - outside, method="higher")),
        n=len(logs),
    )


def _logs_left_out(left_out: Sequence[LeftOut]) -> dict[str, list[float]]:
    """The same of left-out targets, of ops with enough problems."""
    logs: dict[str, list[float]] = defaultdict(list)
    for missed in left_out:
        logs[missed.op].append(missed.log)
    return {op: values for op, values in logs.items() if len(values) >= LEAST_ALL}


def _unmeasured_rows(
    known: Mapping[str, np.ndarray], unmeasured: Mapping[str, Sequence[float]]
) -> dict[Key, Residuals]:
    """Rows for targets nobody measured: what left-out targets missed by, or where no target was
    left out of an op, those of all ops; never narrower than on measured targets."""
    rows = {}
    for op, logs in known.items():
        inner = _quantiles(logs)
        if op in unmeasured:
            outer = _quantiles(unmeasured[op])
        else:
            outer = _pooled(unmeasured) if unmeasured else inner
        low, high = min(inner.low, outer.low), max(inner.high, outer.high)
        rows[op, "", "", "", ""] = Residuals(low, high, outer.n)
    return rows


def _pooled(by_op: Mapping[str, Sequence[float] | np.ndarray]) -> Residuals:
    """Quantiles over all ops, each op weighing the same."""
    logs = np.concatenate([np.asarray(values) for values in by_op.values()])
    weights = np.concatenate([np.full(len(v), 1 / len(v)) for v in by_op.values()])
    order = np.argsort(logs)
    below = np.cumsum(weights[order]) / weights.sum()
    outside = (1 - intervals.COVERAGE) / 2
    low, high = np.searchsorted(below, [outside, 1 - outside])
    return Residuals(
        float(logs[order][low]), float(logs[order][min(high, len(logs) - 1)]), len(logs)
    )


def _coverage(op: str, outcomes: Sequence[ScoredProblem]) -> Coverage:
    level = _level(outcomes)
    tried = _left_out_folds(outcomes, _problem, (level,)).get(level)
    by_group = _left_out_folds(outcomes, _group, (level,)).get(level)
    return Coverage(
        op=op,
        n=len(outcomes),
        packaged=float(np.mean([outcome.covered for outcome in outcomes])),
        by_problem=tried[0] if tried else None,
        by_group=by_group[0] if by_group else None,
        groups=len({outcome.case.group for outcome in outcomes}),
        level=level,
        width=tried[1] if tried else float("nan"),
    )


def _level(outcomes: Sequence[ScoredProblem]) -> float:
    """The least of `LEVELS` whose intervals contain 80 % of left-out groups and of problems."""
    found = [
        tried for unit in (_group, _problem) if (tried := _left_out_folds(outcomes, unit, LEVELS))
    ]
    enough = (
        level for level in LEVELS if all(tried[level][0] >= intervals.COVERAGE for tried in found)
    )
    return next(enough, LEVELS[-1])


def _left_out_folds(
    outcomes: Sequence[ScoredProblem], unit: Callable[[ScoredProblem], str], levels: Sequence[float]
) -> dict[float, tuple[float, float]]:
    """By level: share of outcomes inside intervals fitted on the other folds, and the median width.

    Empty with fewer units than folds.
    """
    folds: dict[int, list[ScoredProblem]] = defaultdict(list)
    for outcome in outcomes:
        folds[_fold(unit(outcome))].append(outcome)
    if len({unit(outcome) for outcome in outcomes}) < FOLDS or len(folds) < 2:
        return {}
    covered: dict[float, list[np.ndarray]] = defaultdict(list)
    widths: dict[float, list[np.ndarray]] = defaultdict(list)
    for fold, members in folds.items():
        rest = [o for other, known in folds.items() if other != fold for o in known]
        cells = _cells(rest)
        everything = np.array([-outcome.log_ratio for outcome in rest])
        for key, logs in _logs_by_row(members, cells).items():
            for level in levels:
                row = _quantiles(everything if key is None else cells[key], level)
                low, high = min(0.0, row.low), max(0.0, row.high)
                covered[level].append((low <= logs) & (logs <= high))
                widths[level].append(np.full(len(logs), np.exp(high - low)))
    return {
        level: (
            float(np.mean(np.concatenate(covered[level]))),
            float(np.median(np.concatenate(widths[level]))),
        )
        for level in levels
    }


def _logs_by_row(
    outcomes: Sequence[ScoredProblem], rows: Collection[Key]
) -> dict[Key | None, np.ndarray]:
    """log(measured / predicted) by the row that holds for it, None where none does."""
    found: dict[Key | None, list[float]] = defaultdict(list)
    for outcome in outcomes:
        key = next((key for key in _keys(outcome) if key in rows), None)
        found[key].append(-outcome.log_ratio)
    return {key: np.array(logs) for key, logs in found.items()}


def _group(outcome: ScoredProblem) -> str:
    return outcome.case.group


def _problem(outcome: ScoredProblem) -> str:
    return outcome.case.problem or str(outcome.case.op)


def _fold(name: str) -> int:
    return hashlib.sha256(name.encode()).digest()[0] % FOLDS


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
