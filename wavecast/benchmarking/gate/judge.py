"""Measurements against a baseline, and the baseline that follows from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from wavecast.benchmarking.gate.baseline import Baseline, BaselineEntry, Key
from wavecast.benchmarking.gate.guards import NOWHERE, Guard, family
from wavecast.benchmarking.gate.measuring import Taken
from wavecast.benchmarking.gate.thresholds import passes, worse
from wavecast.benchmarking.gate.verdict import BREAKING, GateVerdict, Judged, Status
from wavecast.benchmarking.kpis import KPIS, Kpi
from wavecast.benchmarking.measure.sampling import half_width
from wavecast.benchmarking.records import BenchRecord, Figure

Scope = Callable[[Key], bool]
"""Whether an entry of the baseline was to be measured."""

_ORDER: Final = (*BREAKING, Status.WARN, Status.NEW, Status.BETTER, Status.SAME)


@dataclass(frozen=True, slots=True)
class _New:
    """A record the baseline has no entry of."""

    key: Key
    entry: BaselineEntry


def everything(_: Key) -> bool:
    """The scope of a gate over all of its settings."""
    return True


def scope_of(guards: Sequence[Guard]) -> Scope:
    """The scope of a gate over some guards only: entries of their families on their devices."""
    families = {(family(guard.kind, guard.name), device) for guard in guards for device in guard.devices}  # noqa: E501  # fmt: skip

    def judges(key: Key) -> bool:
        kind, name = key[0].split(" ")[:2]
        return (family(kind, name), key[1]) in families

    return judges


def judge(
    baseline: Baseline,
    measurements: Sequence[Taken],
    scope: Scope = everything,
    *,
    strict: bool = False,
) -> GateVerdict:
    """What is worse, wrong, gone, new or better than the baseline."""
    judgements: list[Judged] = []
    new: list[_New] = []
    measured: set[Key] = set()
    failed: set[tuple[tuple[str, str], str]] = set()
    for measurement in measurements:
        for record in measurement.records:
            key = (record.subject.key, measurement.device)
            measured.add(key)
            before = baseline.entries.get(key)
            if before is None and not record.refused:
                new.append(_New(key, BaselineEntry.of(record, measurement.codes.get(key[0], ""))))
            judgements += _demote_to_warnings(
                list(_record(before, record, measurement)), record, measurement.guard
            )
        if measurement.failed:
            label = f"{measurement.guard.kind} {measurement.guard.line}"
            failure = Judged(
                label, measurement.device, "", Status.FAILED, reason=measurement.failed
            )
            judgements.append(replace(failure, location=measurement.failed_at))
            failed.add((family(measurement.guard.kind, measurement.guard.name), measurement.device))
    missing = [key for key in baseline.entries if scope(key) and key not in measured]
    for key in missing:
        kind, name = key[0].split(" ")[:2]
        if (family(kind, name), key[1]) not in failed:  # its failure is judged already
            judgements.append(
                Judged(key[0], key[1], "", Status.GONE, reason=_missing_reason(key, baseline, new))
            )
    judgements.sort(key=lambda judgement: _ORDER.index(judgement.status))
    return GateVerdict(tuple(judgements), strict, _notes(baseline, measurements))


def update_baseline(
    baseline: Baseline, measurements: Sequence[Taken], scope: Scope = everything
) -> Baseline:
    """The baseline with what was measured. Entries of what failed, or is wrong, stay as they were;
    others of the scope that were not measured are dropped."""
    keep = {
        (family(measurement.guard.kind, measurement.guard.name), measurement.device)
        for measurement in measurements
        if measurement.failed
    }
    entries: dict[Key, BaselineEntry] = {}
    wrong = {
        (record.subject.key, measurement.device)
        for measurement in measurements
        for record in measurement.records
        if record.refused
    }
    for key, entry in baseline.entries.items():
        kind, name = key[0].split(" ")[:2]
        if not scope(key) or key in wrong or (family(kind, name), key[1]) in keep:
            entries[key] = entry
    for measurement in measurements:
        for record in measurement.records:
            if not record.refused:
                subject = record.subject.key
                entries[subject, measurement.device] = BaselineEntry.of(
                    record, measurement.codes.get(subject, "")
                )
    return Baseline(entries)


def _record(
    before: BaselineEntry | None, record: BenchRecord, measurement: Taken
) -> Iterator[Judged]:
    subject, device = record.subject.key, measurement.device
    location, code = measurement.locations.get(subject, NOWHERE), measurement.codes.get(subject, "")
    if record.refused:
        yield Judged(subject, device, "", Status.WRONG, reason=record.refused, location=location)
        return
    if before is None:
        reason = "not in the baseline"
        yield Judged(subject, device, "", Status.NEW, reason=reason, location=location)
    after = {name: figure.value for name, figure in record.figures.items()}
    comparable = before is None or before.timing == record.conditions.timing
    if not comparable:
        assert before is not None
        timing = f"times are {record.conditions.timing}, the baseline's {before.timing}"
        yield Judged(subject, device, "", Status.WRONG, reason=timing, location=location)
    for name, kpi in KPIS.items():
        threshold = measurement.guard.thresholds.of(name)
        if threshold is None or (kpi.unit == "s" and not comparable):
            continue
        old = before.figures.get(name) if before else None
        value = after.get(name)
        if value is None:
            if old is not None:
                why = f"no longer had: {'; '.join(record.notes) or 'nobody says why'}"
                yield Judged(subject, device, name, Status.LOST, old, None, None, why, location)
            continue
        limit = threshold.worst_allowed(kpi, old)
        status = Status.SAME
        reason = ""
        if not passes(kpi, _surely(kpi, record.figures[name]), limit):
            status = Status.WORSE
            reason = _why(kpi, old, value, threshold.limit, record, before, code)
        elif before is None:
            continue  # the subject is new and judged as such
        elif old is None:
            status = Status.NEW
            reason = "the baseline does not have the figure"
        elif worse(kpi, old, value) < 0:
            status = Status.BETTER
        yield Judged(subject, device, name, status, old, value, limit, reason, location)


def _demote_to_warnings(judged: list[Judged], record: BenchRecord, guard: Guard) -> list[Judged]:
    """What is worse, as a warning where it only explains a time and the time is better; a `limit`
    of the settings stays one."""
    times = [judgement for judgement in judged if judgement.kpi and KPIS[judgement.kpi].unit == "s"]
    improved = any(
        judgement.status is Status.BETTER
        and _surely_better(judgement, record.figures[judgement.kpi])
        for judgement in times
    )
    if not improved or any(judgement.status in BREAKING for judgement in times):
        return judged
    return [
        replace(judgement, status=Status.WARN, reason=f"{judgement.reason}; the time is better")
        if judgement.status is Status.WORSE and _only_explains(judgement, guard)
        else judgement
        for judgement in judged
    ]


def _surely_better(judgement: Judged, figure: Figure) -> bool:
    """Whether a figure is better; a noisy one by the upper end of the 95 % interval of its
    median."""
    if not KPIS[judgement.kpi].noisy or not figure.samples:
        return True
    width = half_width(figure.samples)
    return judgement.before is not None and figure.value * (1 + width) < judgement.before


def _only_explains(judgement: Judged, guard: Guard) -> bool:
    kpi, threshold = KPIS[judgement.kpi], guard.thresholds.of(judgement.kpi)
    assert threshold is not None
    assert judgement.after is not None
    return kpi.secondary and passes(kpi, judgement.after, threshold.limit)


def _surely(kpi: Kpi, figure: Figure) -> float:
    """The value that is compared with a limit: of a noisy figure the lower end of the 95 % interval
    of its median, so that noise alone does not break a gate."""
    if not kpi.noisy:
        return figure.value
    width = half_width(figure.samples) if figure.samples else 0.0
    return figure.value * (1 - width) if math.isfinite(width) else figure.value


def _why(
    kpi: Kpi,
    old: float | None,
    value: float,
    limit: float | None,
    record: BenchRecord,
    before: BaselineEntry | None,
    code: str,
) -> str:
    """One line: what the figure is, by how much it changed, and what else is known of why."""
    parts = [kpi.meaning]
    if limit is not None and not passes(kpi, value, limit):
        parts.append("beyond its limit")
    elif old:
        parts.append(f"{value / old - 1:+.1%}")
    compiler = f"Triton {record.environment.triton}"
    if before is not None and before.compiler and before.compiler != compiler:
        parts.append(f"compiled with {compiler}, the baseline with {before.compiler}")
    elif before is not None and before.code and before.code == code:
        parts.append("the machine code is that of the baseline")
    if kpi.name == "check_reports":
        parts += [note for note in record.notes if note.startswith("check: ")][:2]
    return "; ".join(parts)


def _missing_reason(key: Key, baseline: Baseline, new: Sequence[_New]) -> str:
    """The likely reason why an entry of the baseline has no measurement."""
    old = baseline.entries[key]
    here = [candidate for candidate in new if candidate.key[1] == key[1]]
    same_code = [candidate for candidate in here if old.code and candidate.entry.code == old.code]
    same_figures = [
        candidate for candidate in here if dict(candidate.entry.figures) == dict(old.figures)
    ]
    hint = "if the change is intended: --update"
    if same_code:
        return f"renamed? {same_code[0].key[0]} has the same machine code; {hint}"
    if same_figures:
        return f"renamed? {same_figures[0].key[0]} has the same figures; {hint}"
    return f"in the baseline, and no longer measured; {hint}"


def _notes(baseline: Baseline, measurements: Sequence[Taken]) -> tuple[str, ...]:
    records: Mapping[Key, BenchRecord] = {
        (record.subject.key, measurement.device): record
        for measurement in measurements
        for record in measurement.records
    }
    changed = {
        f"compiled with Triton {record.environment.triton}, the baseline with {entry.compiler}"
        for key, record in records.items()
        if (entry := baseline.entries.get(key)) is not None
        and entry.compiler
        and entry.compiler != f"Triton {record.environment.triton}"
    }
    executed = {note for record in records.values() for note in record.notes if note.startswith("not executed")}  # noqa: E501  # fmt: skip
    return (*sorted(changed), *sorted(executed))


__all__ = ["Scope", "everything", "judge", "scope_of", "update_baseline"]
