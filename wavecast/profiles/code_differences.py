"""Why a counter and its prediction differ, in one sentence per figure.

Every sentence is from the code, the launch or the other figures; where they explain nothing, it
says what the prediction assumes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from wavecast.perfmodel.notes import Note
from wavecast.pipeline.explain.result import Explanation
from wavecast.profiles.code_figures import hit_alone
from wavecast.profiles.counters import (
    CLOCK,
    CONFLICTS,
    L2_HIT,
    OCCUPANCY,
    READ,
    VECTOR,
    WRITTEN,
    CounterUnit,
    known_figures,
)
from wavecast.wording import count

_SHARE: Final = 0.1
"""Difference of two shares that is explained."""
_RATIO: Final = 1.1
"""Ratio of two amounts that is explained."""
_TAIL: Final = 4
"""Rounds of workgroups below which the last one shows in the mean occupancy."""
_BUILD: Final = "another build ran"


@dataclass(frozen=True, slots=True)
class FigureDifference:
    """A figure by counters and as predicted, and what else is known about the launch.

    `other_build` says that registers or LDS of the profile are not those of the code; `measured`
    has all figures of the counters.
    """

    measured: float
    predicted: float
    explanation: Explanation
    other_build: bool
    figures: Mapping[str, float]

    @property
    def notes(self) -> Sequence[Note]:
        """What the profile of the prediction assumes."""
        profile = self.explanation.predicted.profile
        return profile.notes if profile else ()


def difference(
    name: str,
    measured: float,
    predicted: float,
    explanation: Explanation,
    builds: Sequence[str],
    figures: Mapping[str, float],
) -> str:
    """What explains the difference of a figure; empty where there is none to explain."""
    unit = next(figure.unit for figure in known_figures() if figure.name == name)
    if name not in _REASONS or not _differ(unit, measured, predicted):
        return ""
    gap = FigureDifference(measured, predicted, explanation, bool(builds), figures)
    return _REASONS[name](gap)


def _differ(unit: CounterUnit, measured: float, predicted: float) -> bool:
    if unit is CounterUnit.SHARE:
        return abs(measured - predicted) > _SHARE
    return max(measured, predicted) > _RATIO * min(measured, predicted)


def _l2_hit(gap: FigureDifference) -> str:
    if gap.measured > gap.predicted:
        if Note.UNKNOWN_REUSE in gap.notes:
            return "the code does not tell which workgroups share data; --arg gives its arguments"
        return "data of an earlier launch is still in the L2, or more workgroups share than assumed"
    alone = hit_alone(gap.explanation)
    if alone is not None and abs(gap.measured - alone) < abs(gap.measured - gap.predicted):
        return (
            f"workgroup order: without what other workgroups fetch the L2 hits {alone:.0%}; "
            "workgroups that share data do not run together"
        )
    return "workgroups that share data run at other times or on other dies than assumed"


def _read(gap: FigureDifference) -> str:
    if gap.measured < gap.predicted:
        return "data of an earlier launch is still in the L2"
    hit = gap.figures.get(L2_HIT)
    reason = f"the L2 hits {hit:.0%}: " if hit is not None else ""
    return f"{reason}what is fetched is fetched again, or lines are read in part"


def _explain_writes(gap: FigureDifference) -> str:
    if gap.measured < gap.predicted:
        return "part of what is written stays in the L2 until after the launch"
    return "lines are written in part, so that they move more than once"


def _conflicts(gap: FigureDifference) -> str:
    unknown = sum(
        1
        for access in gap.explanation.analysis.memory
        if access.space == "lds" and access.conflict_ways is None
    )
    if unknown:
        accesses = count(unknown, "LDS access", "LDS accesses")
        return f"the code does not determine the addresses of {accesses}"
    if gap.other_build:
        return _BUILD
    return "the addresses that ran are not those of the code with these arguments"


def _vector(gap: FigureDifference) -> str:
    if gap.other_build:
        return _BUILD
    unknown = gap.explanation.analysis.unknown_counts
    if unknown:
        return f"how often it executes depends on data: {next(iter(unknown.values()))}"
    few = "fewer" if gap.measured < gap.predicted else "more"
    return f"waves execute {few}: branches that lanes do not take, or other arguments"


def _occupancy(gap: FigureDifference) -> str:
    profile = gap.explanation.predicted.profile
    if gap.measured > gap.predicted or profile is None:
        return _BUILD if gap.other_build else "the launch is not the one of the profile"
    placement = profile.placement
    rounds = placement.workgroups / (placement.units * placement.resident)
    if rounds < _TAIL:
        return (
            f"{placement.workgroups:,} workgroups are {rounds:.1f} rounds of what fits the device: "
            "units idle in the last one"
        )
    return "waves end sooner than new ones start"


def _clock(gap: FigureDifference) -> str:
    if gap.measured > gap.predicted:
        return "the chip is above the clock it is assumed to sustain"
    return "the power limit, a fixed clock (ncu fixes it), or other work on the chip"


_REASONS: Final[Mapping[str, Callable[[FigureDifference], str]]] = {
    L2_HIT: _l2_hit,
    READ: _read,
    WRITTEN: _explain_writes,
    CONFLICTS: _conflicts,
    VECTOR: _vector,
    OCCUPANCY: _occupancy,
    CLOCK: _clock,
}

__all__ = ["FigureDifference", "difference"]
