"""Reports of check mode by their likely cause: one missing barrier shows at many instructions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wavecast.emulate.reports import Kind, Report
from wavecast.report.kit import units

if TYPE_CHECKING:
    from wavecast.isa.instruction import SourceLocation

_SEVERITY = {"error": 0, "warning": 1, "note": 2}
_RACES = frozenset(
    {Kind.LDS_RACE, Kind.GLOBAL_RACE, Kind.WORKGROUP_RACE, Kind.GPU_RACE, Kind.LAUNCH_RACE}
)
_SAME = {
    Kind.NOT_A_NUMBER: Kind.INFINITY,
    Kind.GLOBAL_RACE: Kind.WORKGROUP_RACE,
    Kind.EXITED_WAVE: Kind.PARTIAL_BARRIER,
}
"""Kinds that one mistake makes at the same lines."""
_UPDATES = frozenset({Kind.LOST_UPDATE, Kind.LANE_RACE})
"""Lanes of a wave that store to the same address."""
_OF_UPDATES = _RACES | {Kind.REPLICATED_READ}
"""What a lost update is between other waves."""
_Line = tuple[str, int]


@dataclass(frozen=True, slots=True)
class ReportGroup:
    """Reports with the same likely cause: `first` names it best, `others` follow from it."""

    first: Report
    others: tuple[Report, ...] = ()

    @property
    def more(self) -> str:
        """`+4 with the same cause: 3 lds-race, 1 uninitialised-lds`; "" for a single report."""
        if not self.others:
            return ""
        kinds = Counter(report.kind.rule for report in self.others)
        counts = ", ".join(f"{units.count(number)} {kind}" for kind, number in kinds.items())
        return f"+{units.count(len(self.others))} with the same cause: {counts}"


def sort_reports(reports: Sequence[Report]) -> list[Report]:
    """Errors first, then by kernel and location."""
    return sorted(reports, key=lambda r: (_SEVERITY[r.severity], r.kernel, r.target, r.instruction))


def groups(reports: Sequence[Report]) -> list[ReportGroup]:
    """Reports of one kind between the same two source lines together, the most severe groups first.

    A race between two lines has both orders: a read after a write is the cause that a missing
    barrier has, the write after the read its echo, so that comes later. In LDS all races with one
    line's stores are together: a barrier behind them orders every read. Waves of a workgroup and
    workgroups that race between two lines are one mistake, which orders neither. Races between the
    lines of an update that is lost, or at a store of which lanes race, belong to it: one atomic
    operation mends them. A barrier that
    lanes or waves do not reach is one, at its line. An infinity makes NaNs in what its line
    computes with it, so both are together. Reads of LDS that nothing has written belong to the race
    at their line: the barrier that orders it orders them. Reports without a line are alone.
    """
    members_by_key: dict[object, list[Report]] = {}
    for report in sort_reports(reports):
        members_by_key.setdefault(_key(report), []).append(report)
    _adopt_unwritten(members_by_key)
    _adopt_updates(members_by_key)
    report_groups = []
    for members in members_by_key.values():
        first, *others = sorted(members, key=_likelihood)
        report_groups.append(ReportGroup(first, tuple(others)))
    # stable: groups of a severity stay in the order of their kernels and instructions
    return sorted(
        report_groups, key=lambda group: (_SEVERITY[group.first.severity], _echo(group.first))
    )


def _key(report: Report) -> object:
    here, there = _line(report.location), _line(report.other_location)
    if here is None:
        return report
    lines: object = here, there
    if report.kind is Kind.LDS_RACE and there:
        lines = here if _echo(report) else there
    elif report.kind in _RACES and there:
        lines = frozenset((here, there))
    elif report.kind is Kind.EXITED_WAVE:
        lines = here, None
    whole = (report.kernel, report.target, report.gpu, report.other_kernel)
    return _SAME.get(report.kind, report.kind), report.severity, lines, whole


def _adopt_unwritten(members_by_key: dict[object, list[Report]]) -> None:
    """Move reads of unwritten LDS to the race of the same line, and kernel."""
    races = {
        (report.kernel, report.target, _line(report.location)): members
        for members in members_by_key.values()
        for report in members
        if report.kind is Kind.LDS_RACE and report.location is not None and not _echo(report)
    }
    for key, members in list(members_by_key.items()):
        first = members[0]
        if first.kind is not Kind.UNINITIALISED_LDS:
            continue
        race = races.get((first.kernel, first.target, _line(first.location)))
        if race is not None:
            race += members
            del members_by_key[key]


def _adopt_updates(members_by_key: dict[object, list[Report]]) -> None:
    """Move races between the lines of an update that is lost, or of a store of which lanes race, to
    it, in its kernel: the other waves do the same."""
    updates = {
        (report.kernel, report.target, line): members
        for members in members_by_key.values()
        for report in members
        if report.kind in _UPDATES
        for line in (_line(report.location),)
    }
    for key, members in list(members_by_key.items()):
        first = members[0]
        lines = {line for line in _lines(first) if line is not None}
        for line in sorted(lines) if first.kind in _OF_UPDATES else ():
            update = updates.get((first.kernel, first.target, line))
            if update is not None and lines <= _lines(update[0]):
                update += members
                del members_by_key[key]
                break


def _lines(report: Report) -> set[_Line | None]:
    return {_line(report.location), _line(report.other_location)}


def _likelihood(report: Report) -> tuple[int, bool, bool, int]:
    rank = 0 if report.kind in _UPDATES else 1 if report.kind in _RACES else 2
    return rank, _echo(report), report.kind is Kind.GLOBAL_RACE, report.instruction


def _echo(report: Report) -> bool:
    """Whether a race is a write after something that came earlier."""
    return report.kind in _RACES and report.message.startswith("overwrites")


def _line(location: SourceLocation | None) -> _Line | None:
    if location is None or not location.outermost.line:
        return None
    return location.outermost.file, location.outermost.line


__all__ = ["ReportGroup", "groups", "sort_reports"]
