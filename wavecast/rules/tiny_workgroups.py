"""Workgroups so short that starting them takes longer than their work."""

from __future__ import annotations

import math
from collections.abc import Iterator

from wavecast.perfmodel.launches import LaunchChanges
from wavecast.perfmodel.reshaping import coarser
from wavecast.perfmodel.simulation.timing import LaunchTiming
from wavecast.rules.changes import simulated_fix
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.fix import Array
from wavecast.rules.rates import placement
from wavecast.rules.wording import count

NAME = "tiny-workgroups"

ROUNDS = 8
"""Rounds of workgroups from which on the rule speaks."""

SHORT = 600
"""Instructions of a wave up to which its workgroup is short."""

TOGETHER = 4
"""Workgroups whose work one does in the simulated fix."""


def _check(subject: RuleInput) -> Iterator[Finding]:
    limits, analysis, launch = placement(subject), subject.analysis, subject.launch
    slots = (limits.units or 0) * analysis.occupancy.workgroups
    if launch is None or not slots or not analysis.executed:
        return
    workgroups = math.prod(launch.grid)
    executed = _instructions_per_wave(subject)
    if workgroups < ROUNDS * slots or executed is None or executed > SHORT:
        return
    thing = "program" if subject.code.origin == "triton" else "workgroup"
    advice = (
        f"Let each {thing} do the work of {TOGETHER} (a larger block, several rows, or a loop), "
        f"and launch {count(-(-workgroups // TOGETHER), 'workgroup')}."
    )
    yield Finding(
        rule=NAME,
        severity="note",
        message=f"{count(workgroups, 'workgroup')} of {executed:,.0f} instructions per wave",
        evidence=f"{workgroups / slots:,.0f} rounds of the {slots:,} that fit the device; the "
        "dispatcher starts them one after the other, and each reads its arguments and computes its "
        "offsets again",
        advice=advice,
        location=subject.kernel_location,
        fixes=(simulated_fix(advice, _together),),
    )


def _instructions_per_wave(subject: RuleInput) -> float | None:
    """Instructions that a wave executes, None where a count is not known."""
    total = 0.0
    for block, times in zip(subject.program.blocks, subject.analysis.executed, strict=False):
        if times is None:
            return None
        total += times * (block.stop - block.start)
    return total


def _together(changes: LaunchChanges, mask: Array) -> LaunchTiming:
    del mask
    return coarser(changes.simulation, TOGETHER)


RULE = Rule(
    name=NAME,
    severity="note",
    title="Workgroups too short to be worth their start",
    explanation=f"""\
The dispatcher starts the workgroups of a die (of an NVIDIA GPU) one after the other, some clocks
apart. Hundreds of thousands of workgroups that each do a few dozen instructions wait for it, and
memory idles.

Fires for launches of at least {ROUNDS} rounds of workgroups whose waves execute at most {SHORT}
instructions. The fix is simulated with a {TOGETHER}th of the workgroups, each doing the work of
{TOGETHER} one after the other.""",
    check=_check,
)
