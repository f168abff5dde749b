"""The predicted effect of what findings advise, and the findings in the order of it.

Every fix that a rule offers is predicted: the kernel is compiled again and explained as it was, or
the launch is simulated without what was found. Of several fixes the best one is advised; a finding
whose fixes save nothing gives no advice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from msgspec import structs

from wavecast.arch import Device
from wavecast.errors import Unpredictable, WavecastError
from wavecast.perfmodel.launches import LaunchChanges, changes_of
from wavecast.perfmodel.prediction import Prediction
from wavecast.perfmodel.profile import LaunchProfile
from wavecast.pipeline.explain.reading import ReadLaunch
from wavecast.pipeline.explain.recompiled_times import (
    LaunchWork,
    recompiled_time,
    resources,
    work_of,
)
from wavecast.pipeline.explain.recompiling import recompile
from wavecast.rules import RULES
from wavecast.rules.finding import Finding
from wavecast.rules.fix import Fix, Outcome, Recompiled, ResourceUse, Simulated
from wavecast.rules.merging import RANK, join_findings

Array = np.ndarray[Any, Any]

LEAST: Final = 0.01
"""A fix that saves less than this part of the time is not advised."""
MOST_COMPILED: Final = 4
"""Recompilations of one launch; fixes beyond them are not predicted."""
MOST_WITH_WHAT_IF: Final = 16
"""The same where the user asks for what-ifs."""
ALIKE: Final = 1.25
"""Two kernels do the same work if neither computes or stores this much more: what tiles at the
edges add."""


@dataclass(slots=True)
class Fixing:
    """Predicts fixes of one launch on one device.

    `profile` is what its `prediction` is from; at most `most` kernels are compiled.
    """

    read: ReadLaunch
    device: Device
    profile: LaunchProfile
    prediction: Prediction
    mall_resident: Mapping[str, float] = field(default_factory=dict)
    most: int = MOST_COMPILED
    _compiled: dict[object, Outcome | None] = field(default_factory=dict)
    _changes: LaunchChanges | None = None

    @property
    def seconds(self) -> float:
        """The predicted time of the launch as it is."""
        return self.prediction.seconds

    def outcome(self, fix: Fix) -> Outcome | None:
        """The predicted effect of a fix; None where it cannot be predicted."""
        change = fix.change
        effect = self._simulate(change) if isinstance(change, Simulated) else self._again(change)
        if effect is not None and fix.at_best:
            effect = structs.replace(effect, at_best=True)
        saved = self.seconds - effect.seconds if effect is not None else 0.0
        if effect is None or not fix.once_seconds or saved <= 0:
            return effect
        return structs.replace(effect, break_even=math.ceil(fix.once_seconds / saved))

    def _simulate(self, change: Simulated) -> Outcome | None:
        if self._changes is None:
            self._changes = changes_of(self.profile, self.device)
        mask = np.zeros(len(self.profile.program.instructions), bool)
        mask[list(change.instructions)] = True
        try:
            seconds = change.run(self._changes, mask).seconds
        except (ValueError, Unpredictable):  # needs a profile from code, or its warps deadlock
            return None
        return simulated_outcome(seconds, self.prediction, resources(self.read.analysis))

    def _again(self, change: Recompiled) -> Outcome | None:
        key = change.key
        if key not in self._compiled:
            if len(self._compiled) >= self.most:
                return None
            self._compiled[key] = self._compiled_again(change)
        return self._compiled[key]

    def _compiled_again(self, change: Recompiled) -> Outcome | None:
        try:
            again = recompile(self.read.launch, change, self.device)
        except WavecastError:
            return None
        time = recompiled_time(again, self.device, self.mall_resident)
        if time is None or (change.same_work and not _alike(work_of(self.read), time.work)):
            return None
        before = resources(self.read.analysis)
        return Outcome(
            time.seconds, time.low, time.high, "recompiled", before, after=time.resources
        )


def simulated_outcome(seconds: float, now: Prediction, before: ResourceUse) -> Outcome:
    """The outcome of a simulated change, whose interval is as wide as that of the time `now`."""
    low, high = (seconds * end / now.seconds for end in (now.low, now.high))
    return Outcome(seconds, low, high, "simulated", before)


def _alike(first: LaunchWork, other: LaunchWork) -> bool:
    """Whether two kernels compute as many products, and store as many bytes."""
    return all(
        max(before, after) <= ALIKE * min(before, after)
        for before, after in ((first.flops, other.flops), (first.stored, other.stored))
    )


def with_outcomes(findings: Sequence[Finding], fixing: Fixing) -> tuple[Finding, ...]:
    """The findings with the outcomes of their fixes, those that save most first.

    A note whose fixes save nothing is left out; a warning whose fixes save nothing becomes a note
    without advice.
    """
    priced = [_with_outcome(finding, fixing) for finding in findings]
    return tuple(_unequal(sort_findings(finding for finding in priced if finding is not None)))


def _with_outcome(finding: Finding, fixing: Fixing) -> Finding | None:
    outcomes = [(outcome, fix) for fix in finding.fixes if (outcome := fixing.outcome(fix))]
    if not outcomes:
        return finding
    reached = [pair for pair in outcomes if not pair[0].at_best]
    outcomes = reached or outcomes
    least = min(outcome.seconds for outcome, _ in outcomes)
    # of fixes that save about as much, the one the rule prefers
    enough = least + LEAST * fixing.seconds
    outcome, fix = next(pair for pair in outcomes if pair[0].seconds <= enough)
    saved = 1 - outcome.seconds / fixing.seconds
    if saved >= LEAST:
        warning = _worse(outcomes, fixing.seconds)
        advice = f"{fix.advice} {warning}".rstrip()
        return replace(finding, advice=advice, time_saved=saved, outcome=outcome, fixes=(fix,))
    if finding.severity == "note":
        return None
    return replace(finding, severity="note", advice="", time_saved=0.0)


def _worse(outcomes: Sequence[tuple[Outcome, Fix]], seconds: float) -> str:
    """A warning of the fixes that would cost time, with the reason where it is occupancy."""
    warnings = []
    for outcome, fix in outcomes:
        lost = outcome.seconds / seconds - 1
        if lost < LEAST or not fix.name:
            continue
        before, after = outcome.before, outcome.after
        why = ""
        if after is not None and after.workgroups < before.workgroups:
            why = f": {after.workgroups} instead of {before.workgroups} workgroups fit a unit"
        warnings.append(f"Not {fix.name}, which takes {lost:.0%} more time{why}.")
    return " ".join(dict.fromkeys(warnings))


def sort_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Errors, then by the time that fixes save, then by severity; equal ones as they were."""
    return sorted(
        findings,
        key=lambda f: (f.severity != "error", -(f.time_saved or 0.0), RANK[f.severity]),
    )


def _unequal(findings: Iterable[Finding]) -> list[Finding]:
    """Findings that the same recompiled kernel fixes as one, at the lines of all: that of the rule
    that comes first in the registry."""
    groups: dict[object, list[Finding]] = {}
    for number, finding in enumerate(findings):
        change = finding.fixes[0].change if finding.outcome is not None else None
        key = change.key if isinstance(change, Recompiled) else number
        groups.setdefault(key, []).append(finding)
    rank = {name: number for number, name in enumerate(RULES)}
    return [join_findings(sorted(group, key=lambda f: rank[f.rule])) for group in groups.values()]


__all__ = [
    "LEAST",
    "MOST_COMPILED",
    "MOST_WITH_WHAT_IF",
    "Fixing",
    "resources",
    "simulated_outcome",
    "sort_findings",
    "with_outcomes",
]
