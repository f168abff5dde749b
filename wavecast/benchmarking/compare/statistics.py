"""Whether two sets of runs differ, from their samples.

Times are compared as logarithms. A run is summarised by its median m, whose standard error s comes
from a bootstrap over blocks as long as samples stay correlated, and is at least that of a
first-order autoregressive process of their correlation. Runs scatter beyond that (another
clock, another placement in memory): the variance τ² between runs is that of their medians beyond
their s² (DerSimonian and Laird 1986), pooled over both sides; it is at least an assumed variance,
which also serves if there are too few runs. A side of k runs then has

    mean m̄ of its m,   variance (τ² + mean s²) / k

and the difference of both sides is tested against Student's distribution whose degrees of freedom
follow Welch and Satterthwaite. Many kernels are judged at once: p values are adjusted by Benjamini
and Hochberg (`adjusted`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from wavecast.errors import MissingTool
from wavecast.extras import install_hint

Array = np.ndarray[Any, np.dtype[np.float64]]

RUN_SCATTER: Final = 0.004
"""Assumed standard deviation of a kernel's time from run to run, relative (0.4 %): what is taken
where fewer than three runs a side say nothing."""
FEWEST_SAMPLES: Final = 5
"""Samples below which the error of a run is not estimated."""
_RESAMPLED: Final = 400
_MODES: Final = 0.02
"""Relative distance from which two clusters of samples count as two states of the machine."""
_BETWEEN_MODES: Final = 1.25
"""A median may flip from one state to the other: changes up to so many of their distances are in
doubt."""


@dataclass(frozen=True, slots=True)
class Summary:
    """One run. `median` is a logarithm, `error` its standard error; `count` as many independent
    samples as there are in effect. `doubt` is how far the median may lie off for what is odd about
    the samples, which `reasons` name: `few-samples`, `drift`, `bimodal`, `outliers`."""

    median: float
    error: float
    count: float
    doubt: float
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """After against before: the ratio, its interval, the p value of no difference, and how large
    the errors are that do not come from chance: `doubt`, relative."""

    ratio: float
    low: float
    high: float
    p: float
    doubt: float
    reasons: tuple[str, ...]


def summarise(samples: Sequence[float], seed: int = 0) -> Summary:
    """The summary of one run's samples (seconds, in the order they were taken).

    Raises ValueError without samples, or with some that are not positive.
    """
    times = np.asarray(samples, float)
    if not len(times) or not bool(np.all(np.isfinite(times) & (times > 0))):
        raise ValueError("samples are positive numbers")
    logs = np.log(times)
    reasons = []
    if len(logs) < FEWEST_SAMPLES:
        return Summary(float(np.median(logs)), RUN_SCATTER, 1.0, 0.0, ("few-samples",))
    sigma = _sigma(logs)
    doubt = _drift(logs, sigma)
    if doubt:
        reasons.append("drift")
    gap = _gap(logs)
    if gap:
        reasons.append("bimodal")
        doubt = max(doubt, _BETWEEN_MODES * gap)
    if sigma and np.mean(np.abs(logs - np.median(logs)) > 6 * sigma) > 0.02:
        reasons.append("outliers")
    correlated = _correlation(logs)
    count = len(logs) * (1 - correlated) / (1 + correlated)
    least = 1.2533 * float(logs.std(ddof=1) if gap else sigma) / math.sqrt(max(count, 1.0))
    error = max(_error(logs, seed), least if correlated else 0.0)
    return Summary(float(np.median(logs)), error, count, doubt, tuple(reasons))


def difference(
    before: Sequence[Sequence[float]], after: Sequence[Sequence[float]], level: float = 0.99
) -> Difference:
    """How two sets of runs differ; each run is its samples in seconds. `level` is that of the
    interval. Raises ValueError without runs, MissingTool without SciPy."""
    stats = _scipy()
    sides = [[summarise(run, seed) for seed, run in enumerate(runs)] for runs in (before, after)]
    if not all(sides):
        raise ValueError("no runs")
    tau, assumed = _between(sides)
    means, variances, freedoms = [], [], []
    for runs in sides:
        medians = np.array([run.median for run in runs])
        within = float(np.mean([run.error**2 for run in runs]))
        k = len(runs)
        means.append(float(medians.mean()))
        variances.append((tau**2 + within) / k)
        run_freedom = k - 1 if k >= 3 else 0
        freedoms.append(max(run_freedom, sum(run.count for run in runs) - k, 1.0))
    total = sum(variances)
    freedom = total**2 / sum(v**2 / f for v, f in zip(variances, freedoms, strict=True))
    error = math.sqrt(total)
    change = means[1] - means[0]
    p = float(2 * stats.t.sf(abs(change) / error, freedom))
    reach = float(stats.t.ppf(0.5 + level / 2, freedom)) * error
    reasons = {reason: None for runs in sides for run in runs for reason in run.reasons}
    if assumed:
        reasons["run-scatter-assumed"] = None
    return Difference(
        math.exp(change),
        math.exp(change - reach),
        math.exp(change + reach),
        p,
        max(run.doubt for runs in sides for run in runs),
        tuple(reasons),
    )


def adjust_p_values(p_values: Sequence[float]) -> list[float]:
    """P values with the false discovery rate under control. Raises MissingTool without SciPy."""
    if not p_values:
        return []
    return [float(p) for p in _scipy().false_discovery_control(np.clip(p_values, 0.0, 1.0))]


def _between(sides: Sequence[Sequence[Summary]]) -> tuple[float, bool]:
    """(standard deviation between runs, whether it is assumed)."""
    squares, freedom, within = 0.0, 0, []
    for runs in sides:
        medians = np.array([run.median for run in runs])
        squares += float(((medians - medians.mean()) ** 2).sum())
        freedom += len(runs) - 1
        within += [run.error**2 for run in runs]
    if freedom < 8:
        variance = squares / freedom - float(np.mean(within)) if freedom else 0.0
        return math.sqrt(max(variance, RUN_SCATTER**2)), True
    # What few runs show of their scatter is itself uncertain: half as much again, and never less
    # than a quarter of what is usual.
    variance = max(squares / freedom - float(np.mean(within)), 0.0)
    return max(math.sqrt(variance), RUN_SCATTER / 4), False


def _sigma(logs: Array) -> float:
    """A standard deviation that outliers do not move: 1.4826 · median absolute deviation."""
    return 1.4826 * float(np.median(np.abs(logs - np.median(logs))))


def _error(logs: Array, seed: int) -> float:
    """Standard error of the median, by resampling blocks of correlated samples."""
    n = len(logs)
    block = _block(logs)
    random = np.random.default_rng(seed)
    starts = random.integers(0, n, size=(_RESAMPLED, -(-n // block)))
    indices = (starts[:, :, None] + np.arange(block)) % n
    resampled = logs[indices.reshape(_RESAMPLED, -1)[:, :n]]
    medians = np.median(resampled, axis=1)
    floor = float(logs.std()) / n  # a bootstrap of ties sees none
    return max(float(medians.std(ddof=1)), floor)


def _block(logs: Array) -> int:
    """Samples until correlation has died away: twice the integrated autocorrelation time."""
    n = len(logs)
    ranks = np.argsort(np.argsort(logs)).astype(float)
    centred = ranks - ranks.mean()
    power = float((centred**2).sum())
    if not power:
        return 1
    time = 1.0
    for lag in range(1, n // 4 + 1):
        correlation = float((centred[:-lag] * centred[lag:]).sum()) / power
        if correlation < 2 / math.sqrt(n):
            break
        time += 2 * correlation
    return int(min(max(1, round(2 * time) if time > 1 else 1), max(1, n // 4)))


def _correlation(logs: Array) -> float:
    """Correlation of a sample with the next one, by ranks, corrected for the bias of few samples
    (Kendall 1954); 0 where there is none to be seen."""
    n = len(logs)
    ranks = np.argsort(np.argsort(logs)).astype(float)
    centred = ranks - ranks.mean()
    correlation = float((centred[:-1] * centred[1:]).sum() / (centred**2).sum())
    if correlation < 1 / math.sqrt(n):
        return 0.0
    return min((correlation + 1 / n) / (1 - 3 / n) if n > 6 else correlation, 0.95)


def _drift(logs: Array, sigma: float) -> float:
    """How far samples move from the first third to the last, 0 where chance explains it."""
    third = len(logs) // 3
    if third < 4:
        return 0.0
    drift = abs(float(np.median(logs[-third:]) - np.median(logs[:third])))
    return drift if drift > max(4 * 1.2533 * sigma * math.sqrt(2 / third), 0.005) else 0.0


def _gap(logs: Array) -> float:
    """How far apart the two states are that samples lie in, 0 where there is one: the best split
    leaves within its sides less than a tenth of the variance, and each side has a sixth of the
    samples."""
    ordered = np.sort(logs)
    n = len(ordered)
    least = max(3, n // 6)
    total = float(ordered.var()) * n
    if n < 3 * least or not total:
        return 0.0
    counts = np.arange(1, n)
    sums = np.cumsum(ordered)[:-1]
    left, right = sums / counts, (ordered.sum() - sums) / (n - counts)
    between = counts * (n - counts) / n * (right - left) ** 2
    inner = between[least - 1 : n - least]
    best = int(np.argmax(inner)) + least - 1
    gap = float(right[best] - left[best])
    return gap if gap > _MODES and between[best] > 0.9 * total else 0.0


def _scipy() -> Any:
    try:
        from scipy import stats
    except ImportError:
        raise MissingTool("comparing samples needs SciPy", hint=install_hint("bench")) from None
    return stats


__all__ = ["RUN_SCATTER", "Difference", "Summary", "adjust_p_values", "difference", "summarise"]
