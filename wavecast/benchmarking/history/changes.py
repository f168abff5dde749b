"""Where a noisy series steps from one level to another.

A part of n values is split where a two-sample t statistic is largest, over all cuts in two and all
arcs that differ from what is before and after (circular binary segmentation: Olshen,
Venkatraman, Lucito and Wigler, Biostatistics 5, 2004), and its pieces again. A split counts when
its statistic exceeds what the largest of all reaches by chance in `_CHANCE` of series of
independent normal values (`_CRITICAL`, by simulation), and, so that outliers and two states of a
clock raise no alarm, when at most `_SHUFFLED` of random orders of the same values split as well;
fewer than
`FEWEST_SHUFFLED` values have too few orders to say. At last, steps are dropped, the least certain
first, that are not seen between the two adjacent levels or are smaller than `minimum`.

Runs are taken as independent: a level that drifts is told as steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]

MINIMUM: Final = 0.01
"""Relative step that counts, unless another is given."""
FEWEST: Final = 4
"""Values below which no step is seen."""
_SHORTEST: Final = 2
"""Values on each side of a step: a single one may be an outlier."""
_CHANCE: Final = (0.0025, 0.0015)
"""Shares of series without a step in which a cut, an arc seems to be one."""
_SHUFFLED: Final = (0.005, 0.003)
FEWEST_SHUFFLED: Final = 12
_ORDERS: Final = (999, 4000)
"""Random orders at first, and more where these do not say clearly."""

_LENGTHS: Final = (4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 32, 48, 64, 96, 128, 256, 512, 1024)
_CRITICAL: Final = (
    (19.93, 11.85, 8.95, 7.59, 6.92, 6.25, 5.94, 5.41, 5.12, 4.92,
     4.67, 4.52, 4.37, 4.22, 4.18, 4.12, 4.11, 4.06, 4.13, 4.07),
    (0.0, 0.0, 7.68, 7.92, 7.68, 7.45, 7.11, 6.70, 6.40, 6.14,
     5.85, 5.66, 5.44, 5.23, 5.17, 5.07, 5.08, 5.15, 5.14, 5.23),
)  # fmt: skip
"""By length: the statistic of cuts, of arcs that `_CHANCE` of normal series exceed; from 400,000
series up to a length of 24, 1,500 of 1,024. The shortest have no arcs."""


def steps(values: Sequence[float], minimum: float = MINIMUM) -> list[int]:
    """Indices at which a new level begins. `values` are positive, in their order; `minimum` is the
    least relative step. The same values give the same steps."""
    logs = np.log(np.asarray(values, float))
    if len(logs) < FEWEST or not float(np.ptp(logs)):
        return []
    return _certain(logs, _split(logs, 0), minimum)


def exact_steps(values: Sequence[float], minimum: float = 0.0) -> list[int]:
    """Indices at which values without noise leave the level that began at the last step, or at
    the first value, by more than `minimum`, relative."""
    indices: list[int] = []
    level = values[0] if values else 0.0
    for index, value in enumerate(values):
        if abs(value - level) > minimum * abs(level):
            indices.append(index)
            level = value
    return indices


@dataclass(frozen=True, slots=True)
class _Best:
    """The largest statistic of each series over cuts and over arcs, and where: an arc holds
    `start` to `end`, a cut begins or ends with the series."""

    cut: Array
    cut_at: np.ndarray[Any, Any]
    arc: Array
    arc_at: np.ndarray[Any, Any]


def _best(series: Array) -> _Best:
    """`series` is one per row."""
    count, n = series.shape
    centred = series - series.mean(axis=1, keepdims=True)
    total = (centred**2).sum(axis=1)
    sums = np.concatenate([np.zeros((count, 1)), np.cumsum(centred, axis=1)], axis=1)
    best = {True: np.zeros(count), False: np.zeros(count)}
    at = {True: np.zeros((count, 2), int), False: np.zeros((count, 2), int)}
    rows = np.arange(count)
    for length in range(_SHORTEST, n - _SHORTEST + 1):
        between = (sums[:, length:] - sums[:, :-length]) ** 2 * (n / (length * (n - length)))
        starts = {
            True: np.array([0]),
            False: np.arange(_SHORTEST, n - length - _SHORTEST + 1),
        }
        for whole, start in starts.items():
            if not len(start):
                continue
            part = between[:, start]
            column = part.argmax(axis=1)
            value = part[rows, column]
            better = value > best[whole]
            best[whole][better] = value[better]
            at[whole][better, 0] = start[column[better]]
            at[whole][better, 1] = start[column[better]] + length
    return _Best(_t(best[True], total, n), at[True], _t(best[False], total, n), at[False])


def _t(between: Array, total: Array, n: int) -> Array:
    within = np.maximum(total - between, 1e-12 * np.maximum(total, 1e-300))
    return np.sqrt(between / within * (n - 2))


def _split(logs: Array, offset: int) -> list[int]:
    """Cuts of a part of the series, and of its pieces."""
    n = len(logs)
    if n < FEWEST or not float(np.ptp(logs)):
        return []
    best = _best(logs[None])
    over = [
        float(best.cut[0]) / critical(n, arcs=False),
        float(best.arc[0]) / critical(n, arcs=True),
    ]
    if max(over) <= 1 or not _unlikely(logs, best):
        return []
    start, end = (int(at) for at in (best.cut_at if over[0] >= over[1] else best.arc_at)[0])
    cuts = [cut for cut in (start, end) if 0 < cut < n]
    pieces = [0, *cuts, n]
    inner = [
        cut for first, last in pairwise(pieces) for cut in _split(logs[first:last], offset + first)
    ]
    return sorted([*(offset + cut for cut in cuts), *inner])


def _unlikely(logs: Array, best: _Best) -> bool:
    """Whether few random orders of the values split as well."""
    n = len(logs)
    if n < FEWEST_SHUFFLED:
        return True
    random = np.random.default_rng(n)
    count, as_large, shares = 1, np.ones(2), np.ones(2)
    for orders in _ORDERS:
        shuffled = _best(random.permuted(np.tile(logs, (orders, 1)), axis=1))
        as_large[0] += float((shuffled.cut >= best.cut[0] * (1 - 1e-9)).sum())
        as_large[1] += float((shuffled.arc >= best.arc[0] * (1 - 1e-9)).sum())
        count += orders
        shares = as_large / count / _SHUFFLED
        if shares.min() <= 0.3 or shares.min() > 2:  # clear enough
            break
    return bool(shares.min() <= 1)


def critical(n: int, *, arcs: bool) -> float:
    """The statistic that counts for n values; between the lengths of the table by their
    logarithms, infinite where there are no arcs."""
    if arcs and n < 3 * _SHORTEST:
        return math.inf
    return float(np.interp(math.log(n), np.log(_LENGTHS), _CRITICAL[arcs]))


def _certain(logs: Array, cuts: list[int], minimum: float) -> list[int]:
    """Without the steps that are not seen between the adjacent levels."""
    significant = sorted(set(cuts))
    while significant:
        edges = [0, *significant, len(logs)]
        parts = [logs[a:b] for a, b in pairwise(edges)]
        freedom = max(len(logs) - len(parts), 1)
        sigma = math.sqrt(sum(float(((p - p.mean()) ** 2).sum()) for p in parts) / freedom)
        weakest, least = -1, 1.0
        for index, (before, after) in enumerate(pairwise(parts)):
            step = abs(math.expm1(float(np.median(after) - np.median(before))))
            error = sigma * math.sqrt(1 / len(before) + 1 / len(after))
            apart = abs(float(after.mean() - before.mean())) / error if error else math.inf
            sure = apart / critical(len(logs), arcs=False)
            sure = 0.0 if step < minimum else sure
            if sure < least:
                weakest, least = index, sure
        if weakest < 0:
            break
        significant.pop(weakest)
    return significant


__all__ = ["FEWEST", "FEWEST_SHUFFLED", "MINIMUM", "critical", "exact_steps", "steps"]
