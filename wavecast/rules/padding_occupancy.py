"""Padding of a shared array that leaves room for fewer workgroups."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wavecast.isa.instruction import SourceLocation
from wavecast.perfmodel.launches import LaunchChanges
from wavecast.perfmodel.simulation.timing import LaunchTiming
from wavecast.rules.changes import simulated_fix
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.fix import Array, Fix
from wavecast.rules.hip_source import SharedArray, shared_arrays
from wavecast.rules.rates import placement
from wavecast.rules.wording import count, size

NAME = "padding-costs-occupancy"

LARGEST_PADDING = 0.25
"""What is added to a row counts as padding up to this part of the row."""

_PADDED = re.compile(r"(?P<row>\w+)\s*\+\s*\w+")


def costly_padding(subject: RuleInput) -> Iterator[tuple[SharedArray, float, int]]:
    """Padded arrays without whose padding more workgroups fit, the LDS bytes of a workgroup then,
    and how many fit."""
    analysis, text = subject.analysis, subject.code.source_text
    if subject.code.origin != "hip" or not analysis.lds_bytes:
        return
    for array in shared_arrays(text):
        ratio = _row_share(text, array)
        if ratio is not None:
            without = analysis.lds_bytes * ratio
            fitting = _fitting(subject, without)
            if fitting > analysis.occupancy.workgroups:
                yield array, without, fitting


def _check(subject: RuleInput) -> Iterator[Finding]:
    analysis, text = subject.analysis, subject.code.source_text
    now = analysis.occupancy.workgroups
    for array, without, then in costly_padding(subject):
        line = text.count("\n", 0, array.start) + 1
        advice = (
            f"XOR the column with the row number (swizzle) on both the store and the load of "
            f"{array.name} instead of padding its rows: {then} instead of {now} workgroups fit "
            "a unit."
        )
        yield Finding(
            rule=NAME,
            severity="warning",
            message=f"the padding of {array.name} leaves room for {count(now, 'workgroup')} "
            f"instead of {then}",
            evidence=f"a workgroup takes {size(analysis.lds_bytes)} of LDS, {size(without)} "
            f"without the padding; a unit has {size(placement(subject).lds_bytes)}",
            advice=advice,
            location=SourceLocation(subject.code.source, line),
            fixes=(_fix(advice, then),),
        )


def _fix(advice: str, workgroups: int) -> Fix:
    def resident(changes: LaunchChanges, mask: Array) -> LaunchTiming:
        del mask
        return changes.resident(workgroups)

    return simulated_fix(advice, resident)


def _row_share(text: str, array: SharedArray) -> float | None:
    """A row without its padding as a part of the row; None for a row that is not padded."""
    match = _PADDED.fullmatch(text[array.start : array.end].strip())
    if match is None:
        return None
    parts = [part.strip() for part in text[array.start : array.end].split("+")]
    if not all(part.isdigit() for part in parts):
        return None
    row, padding = (int(part) for part in parts)
    if not row or padding > LARGEST_PADDING * row:
        return None
    return row / (row + padding)


def _fitting(subject: RuleInput, lds_bytes: float) -> int:
    """Workgroups that fit a unit with this much LDS each, if nothing else limits them more."""
    limits, occupancy = placement(subject), subject.analysis.occupancy
    granule = max(1, limits.lds_granule)
    footprint = -(-int(lds_bytes) // granule) * granule + limits.lds_reserved_per_workgroup
    waves = max(1, occupancy.waves_per_workgroup)
    others = [limit for name, limit in occupancy.limits.items() if name != "lds"]
    most = min(others, default=limits.max_waves_per_simd) * limits.simds // waves
    return min(limits.lds_bytes // max(1, footprint), max(1, most))


RULE = Rule(
    name=NAME,
    severity="warning",
    title="Padding that costs occupancy",
    explanation=f"""\
A padded row removes bank conflicts and costs LDS. Where the array fills a large part of a unit's
LDS, the few bytes push out a whole workgroup, whose waves would hide latency.

Fires for `__shared__` arrays of HIP whose last dimension is written as a sum, a number of at most
{LARGEST_PADDING:.0%} of the row added to it, if more workgroups fit a unit without it. The fix,
swizzling, is simulated with as many workgroups.""",
    check=_check,
)
