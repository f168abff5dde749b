"""Two sets of runs, subject by subject and KPI by KPI."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Final

from wavecast.benchmarking.compare.statistics import Difference, adjust_p_values, difference
from wavecast.benchmarking.compare.verdict import Compared, FigureVerdict, RunComparison
from wavecast.benchmarking.kpis import KPIS, Kpi
from wavecast.benchmarking.records import BenchRecord, Conditions, Figure
from wavecast.errors import NothingAnalysed

REASONS: Final[Mapping[str, str]] = {
    "below-effect": "the difference is real, and smaller than the least that counts",
    "not-significant": "chance explains the difference",
    "wide-interval": "the interval holds changes that would count",
    "doubt": "the samples drift or lie in two states, by as much as the difference",
    "drift": "times move within a run",
    "bimodal": "times lie in two clusters, as with a clock that jumps",
    "outliers": "more than 2 % of the samples lie far off",
    "few-samples": "fewer than five samples in a run",
    "run-scatter-assumed": "too few runs to see how much they scatter",
    "throttled": "the GPU lowered its clocks for power or heat",
    "physics": "the times cannot be true",
    "conditions": "measured in another way",
    "origin": "one side was measured, the other predicted",
    "axes": "other shapes or dtypes",
    "no-floor": "the least time the work needs is not known on one of the chips",
    "exact": "a figure without noise",
    "other-code": "the machine code is not the same",
    "same-code": "the machine code is the same, byte by byte",
}
"""What a comparison says about itself: code -> meaning."""


@dataclass(frozen=True, slots=True)
class Criteria:
    """`minimum` is the least relative change that counts, `equivalent` how wide an interval around
    no change may be to say SAME; `alpha` the share of false discoveries among what is called
    FASTER or SLOWER; `kpis` the figures to look at (all there are, where it is empty)."""

    minimum: float = 0.01
    equivalent: float = 0.03
    alpha: float = 0.01
    kpis: tuple[str, ...] = ()


Runs = Mapping[str, Sequence[BenchRecord]]
"""Records by run."""


def compare(before: Runs, after: Runs, criteria: Criteria = Criteria()) -> RunComparison:
    """What changed from one set of runs to another.

    Where the sets have no device in common, shares of the bound are compared instead of seconds.
    Raises NothingAnalysed when one of them has no records, MissingTool without SciPy where samples
    are to be compared.
    """
    for name, runs in (("before", before), ("after", after)):
        if not any(runs.values()):
            raise NothingAnalysed(f"nothing was measured {name}: {', '.join(runs) or 'no runs'}")
    across = not (_devices(before) & _devices(after))
    old, new = _sides(before, across), _sides(after, across)
    comparisons: list[Compared] = []
    noisy: list[tuple[int, Difference]] = []
    for key in [*old, *(key for key in new if key not in old)]:
        if key not in old or key not in new:
            comparisons.append(_alone(key, old, new))
            continue
        for comparison, measured in _pair(old[key], new[key], across, criteria):
            if measured is not None:
                noisy.append((len(comparisons), measured))
            comparisons.append(comparison)
    for (index, measured), p in zip(noisy, adjust_p_values([d.p for _, d in noisy]), strict=True):
        comparisons[index] = _judge(comparisons[index], measured, p, across, criteria)
    return RunComparison(
        tuple(before), tuple(after), tuple(comparisons), across, _notes(before, after, across)
    )


Key = tuple[str, str]
"""(subject, device); the device is "" across chips."""


def _sides(runs: Runs, across: bool) -> dict[Key, dict[str, BenchRecord]]:
    """Per subject and device its record in every run; the last one of a run counts."""
    by_key: dict[Key, dict[str, BenchRecord]] = {}
    for run, records in runs.items():
        for record in records:
            key = (record.subject.key, "" if across else _device(record))
            by_key.setdefault(key, {})[run] = record
    return by_key


def _device(record: BenchRecord) -> str:
    return record.environment.device or record.environment.board or record.environment.target


def _devices(runs: Runs) -> set[str]:
    return {_device(record) for records in runs.values() for record in records}


def _alone(
    key: Key,
    old: Mapping[Key, Mapping[str, BenchRecord]],
    new: Mapping[Key, Mapping[str, BenchRecord]],
) -> Compared:
    """A subject of one side; where the other has the same one at other axes, a reason names it."""
    mine, other = (old, new) if key in old else (new, old)
    record = next(iter(mine[key].values()))
    subject = record.subject
    similar = [
        next(iter(records.values())).subject
        for other_key, records in other.items()
        if other_key not in mine and other_key[1] == key[1]
    ]
    renamed = [s for s in similar if (s.kind, s.name, s.part) == (subject.kind, subject.name, subject.part)]  # noqa: E501  # fmt: skip
    verdict = FigureVerdict.GONE if key in old else FigureVerdict.NEW
    reasons: tuple[str, ...] = ()
    if len(renamed) == 1:
        changed = [
            f"{name} {subject.axes.get(name, '-')} ≠ {renamed[0].axes.get(name, '-')}"
            for name in {**subject.axes, **renamed[0].axes}
            if subject.axes.get(name) != renamed[0].axes.get(name)
        ]
        verdict, reasons = FigureVerdict.REFUSED, (f"axes: {', '.join(changed)}",)
    return Compared(subject, _device(record), "", verdict, None, None, reasons=reasons)


def _pair(
    old: Mapping[str, BenchRecord], new: Mapping[str, BenchRecord], across: bool, criteria: Criteria
) -> Iterable[tuple[Compared, Difference | None]]:
    """Every KPI both sides have; noisy ones with their difference, to be judged together."""
    first, last = next(iter(old.values())), next(iter(new.values()))
    device = _device(first) if not across else f"{_device(first)} → {_device(last)}"
    reasons = _refusals(old, new, across)
    if reasons:
        yield (
            Compared(first.subject, device, "", FigureVerdict.REFUSED, None, None, reasons=reasons),
            None,
        )
        return
    same = _same_code(old, new)
    for name, kpi in KPIS.items():
        is_selected = name in criteria.kpis if criteria.kpis else True
        if not is_selected or name not in first.figures or name not in last.figures:
            continue
        if across and kpi.unit != "s":
            continue
        sides = [[record.figures[name] for record in runs.values() if name in record.figures]
                 for runs in (old, new)]  # fmt: skip
        base = Compared(first.subject, device, name, FigureVerdict.SAME, _middle(sides[0]), _middle(sides[1]))  # noqa: E501  # fmt: skip
        if len({figure.origin for side in sides for figure in side}) > 1:
            yield replace(base, verdict=FigureVerdict.REFUSED, reasons=("origin",)), None
        elif kpi.noisy:
            scales = (first.floor_seconds, last.floor_seconds) if across else (1.0, 1.0)
            measured = difference(
                _samples(sides[0], scales[0] or 1.0), _samples(sides[1], scales[1] or 1.0)
            )
            throttled = any(r.sensors.get("throttled") for r in (*old.values(), *new.values()))
            codes = (*same, *(("throttled",) if throttled else ()))
            yield replace(base, reasons=codes), measured
        elif across:
            yield _exact_share(base, first, last, criteria), None
        else:
            yield _exact(base, kpi, same, criteria), None


def _samples(figures: Sequence[Figure], scale: float) -> list[list[float]]:
    return [[sample / scale for sample in figure.samples or (figure.value,)] for figure in figures]


def _middle(figures: Sequence[Figure]) -> float:
    ordered = sorted(figure.value for figure in figures)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _same_code(old: Mapping[str, BenchRecord], new: Mapping[str, BenchRecord]) -> tuple[str, ...]:
    digests = {record.digest for record in (*old.values(), *new.values())}
    if "" in digests:
        return ()
    return ("same-code",) if len(digests) == 1 else ("other-code",)


def _refusals(
    old: Mapping[str, BenchRecord], new: Mapping[str, BenchRecord], across: bool
) -> tuple[str, ...]:
    """Why two sides cannot be compared, () if they can."""
    both = (*old.values(), *new.values())
    refusals = {record.refused: None for record in both if record.refused}
    if refusals:
        return tuple(f"physics: {reason}" for reason in refusals)
    reasons = []
    for field in fields(Conditions):
        values = {getattr(record.conditions, field.name): None for record in both}
        if len(values) > 1:
            text = " ≠ ".join(str(value) or "not known" for value in values)
            reasons.append(f"conditions: {field.name} {text}")
    if len({record.environment.emulated for record in both}) > 1:
        reasons.append("origin: a GPU on one side, none on the other")
    if across and not all(record.floor_seconds for record in both):
        reasons.append("no-floor")
    return tuple(reasons)


def _exact(base: Compared, kpi: Kpi, codes: tuple[str, ...], criteria: Criteria) -> Compared:
    """A figure without noise: any change is one, below the least effect it does not count."""
    assert base.before is not None
    assert base.after is not None
    codes = ("exact", *codes)
    if base.before == base.after:
        return replace(base, ratio=1.0, low=1.0, high=1.0, reasons=codes)
    ratio = base.after / base.before if base.before else math.inf
    worse = (base.after > base.before) == (kpi.better == "lower")
    verdict = FigureVerdict.WORSE if worse else FigureVerdict.BETTER
    if kpi.unit == "s":
        verdict = FigureVerdict.SLOWER if worse else FigureVerdict.FASTER
    if kpi.threshold and abs(ratio - 1) < criteria.minimum:
        verdict, codes = FigureVerdict.SAME, (*codes, "below-effect")
    finite_ratio = ratio if math.isfinite(ratio) else None
    return replace(
        base,
        verdict=verdict,
        ratio=finite_ratio,
        low=finite_ratio,
        high=finite_ratio,
        reasons=codes,
    )


def _exact_share(
    base: Compared, first: BenchRecord, last: BenchRecord, criteria: Criteria
) -> Compared:
    """A predicted time across chips, as shares of the bound."""
    before, after = base.before or math.nan, base.after or math.nan
    shares = (first.floor_seconds or 0.0) / before, (last.floor_seconds or 0.0) / after
    ratio = shares[1] / shares[0]
    verdict = FigureVerdict.SAME
    if abs(ratio - 1) >= criteria.minimum:
        verdict = FigureVerdict.BETTER if ratio > 1 else FigureVerdict.WORSE
    return replace(
        base,
        verdict=verdict,
        before=shares[0],
        after=shares[1],
        ratio=ratio,
        low=ratio,
        high=ratio,
        reasons=("exact",),
    )


def _judge(
    base: Compared, estimate: Difference, p: float, across: bool, criteria: Criteria
) -> Compared:
    """The verdict on a noisy figure, its p value adjusted for all of them."""
    ratio, low, high = estimate.ratio, estimate.low, estimate.high
    before, after = base.before, base.after
    if across:  # of shares, which are the larger the shorter the time
        ratio, low, high = 1 / ratio, 1 / high, 1 / low
        before, after = None, None
    codes = [*base.reasons, *estimate.reasons]
    significant, counts = p < criteria.alpha, abs(ratio - 1) >= criteria.minimum
    if significant and counts and abs(math.log(ratio)) > estimate.doubt:
        better = (ratio > 1) == across
        names = (
            (FigureVerdict.BETTER, FigureVerdict.WORSE)
            if across
            else (FigureVerdict.FASTER, FigureVerdict.SLOWER)
        )
        verdict = names[0] if better else names[1]
    elif significant and counts:
        verdict = FigureVerdict.AMBIGUOUS
        codes.append("doubt")
    else:
        codes.append("below-effect" if significant else "not-significant")
        narrow = low > 1 - criteria.equivalent and high < 1 + criteria.equivalent
        verdict = FigureVerdict.SAME if narrow else FigureVerdict.AMBIGUOUS
        if not narrow:
            codes.append("wide-interval")
    return replace(
        base,
        verdict=verdict,
        before=before,
        after=after,
        ratio=ratio,
        low=low,
        high=high,
        p=estimate.p,
        adjusted=p,
        reasons=tuple(dict.fromkeys(codes)),
    )


def _notes(before: Runs, after: Runs, across: bool) -> tuple[str, ...]:
    """Differences between the environments of both sides, for the reader to judge."""
    notes = []
    if across:
        notes.append(
            "the runs are of different chips: shares of the bound are compared, not seconds"
        )
    for name in ("driver", "runtime", "triton", "llvm", "torch", "wavecast", "host"):
        sides = [
            {getattr(record.environment, name) for records in runs.values() for record in records}
            for runs in (before, after)
        ]
        if sides[0] != sides[1]:
            old, new = (", ".join(sorted(filter(None, side))) or "not known" for side in sides)
            notes.append(f"{name}: {old} → {new}")
    for runs in (before, after):
        dirty = {
            record.environment.commit
            for records in runs.values()
            for record in records
            if record.environment.dirty
        }
        if dirty:
            notes.append(f"measured with uncommitted changes: {', '.join(sorted(dirty))[:60]}")
    return tuple(notes)


__all__ = ["REASONS", "Criteria", "Runs", "compare"]
