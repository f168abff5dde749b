"""Findings that one change answers, as one: their messages, evidence and lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from wavecast.isa.instruction import SourceLocation
from wavecast.rules.finding import Finding, Severity
from wavecast.rules.wording import join_names, lines

MOST_SHOWN: Final = 2
"""Messages of merged findings that are shown in full."""

RANK: Final[dict[Severity, int]] = {"error": 0, "warning": 1, "note": 2}
"""Severities, the gravest first."""


def join_findings(group: Sequence[Finding]) -> Finding:
    """Findings with the same advice as one, at all their lines, with the gravest severity.

    The message is that of the rule of the first, said once of everything it holds for; what other
    rules found is in the evidence. `fixes` are those of the first.
    """
    first = group[0]
    if len(group) == 1:
        return first
    same_rule = [finding for finding in group if finding.rule == first.rule]
    others = [finding for finding in group if finding.rule != first.rule]
    evidence = _evidence(same_rule)
    if others:
        evidence = f"{evidence}; also: {message(others)}"
    return replace(
        first,
        severity=min(group, key=lambda finding: RANK[finding.severity]).severity,
        message=message(same_rule),
        evidence=evidence,
        locations=tuple(location for finding in group for location in _locations(finding)),
        covers=frozenset().union(*(finding.covers for finding in group)),
    )


def message(group: Sequence[Finding]) -> str:
    """`loads of r and y and stores of z move 2 bytes per lane`: what holds for several things is
    said once. The first two of different messages, and how many more there are."""
    abouts_by_message: dict[str, dict[str, None]] = {}
    for finding in group:
        rest = finding.message.removeprefix(finding.about)
        abouts_by_message.setdefault(rest, {})[finding.about] = None
    return _first([f"{_things(abouts)}{rest}" for rest, abouts in abouts_by_message.items()])


def _things(abouts: Iterable[str]) -> str:
    """`loads of r and y and stores of z` for `loads of r`, `stores of z` and `loads of y`."""
    kinds: dict[str, list[str]] = {}
    for about in abouts:
        kind, _, name = about.partition(" of ")
        kinds.setdefault(kind, []).append(name)
    return join_names(
        f"{kind} of {join_names(names)}" if any(names) else kind for kind, names in kinds.items()
    )


def _evidence(group: Sequence[Finding]) -> str:
    """Different evidence with the lines it is from."""
    by_evidence: dict[str, list[SourceLocation]] = {}
    for finding in group:
        by_evidence.setdefault(finding.evidence, []).extend(_locations(finding))
    if len(by_evidence) == 1:
        return group[0].evidence
    return _first(
        [
            f"{at}: {text}" if (at := lines(locations)) else text
            for text, locations in by_evidence.items()
        ]
    )


def _locations(finding: Finding) -> list[SourceLocation]:
    return [
        location for location in finding.locations or (finding.location,) if location is not None
    ]


def _first(texts: Sequence[str]) -> str:
    text = "; ".join(texts[:MOST_SHOWN])
    more = len(texts) - MOST_SHOWN
    return f"{text}; and {more} more" if more > 0 else text


__all__ = ["RANK", "join_findings", "message"]
