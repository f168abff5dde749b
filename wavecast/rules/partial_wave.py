"""A grid that leaves most of the device idle in its last round of workgroups."""

from __future__ import annotations

import math
from collections.abc import Iterator

from wavecast.perfmodel.launches import LaunchChanges
from wavecast.perfmodel.reshaping import finer
from wavecast.perfmodel.simulation.timing import LaunchTiming
from wavecast.rules.changes import simulated_fix
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.fix import Array, Fix
from wavecast.rules.rates import placement
from wavecast.rules.tiles import other_blocks
from wavecast.rules.wording import count

NAME = "partial-last-wave"

EFFICIENT = 0.8
"""Share of the occupied rounds that must hold work for the rule to stay silent."""


def _check(subject: RuleInput) -> Iterator[Finding]:
    limits, occupancy = placement(subject), subject.analysis.occupancy
    if subject.launch is None or limits.units is None or not occupancy.workgroups:
        return
    if not any(loop.matrix_density > 0 for loop in subject.analysis.loops):
        return
    workgroups = math.prod(subject.launch.grid)
    slots = limits.units * occupancy.workgroups
    rounds = workgroups / slots
    efficiency = rounds / math.ceil(rounds)
    if rounds <= 1 or efficiency >= EFFICIENT:
        return
    last = workgroups - math.floor(rounds) * slots
    advice = (
        f"Choose tiles so that the grid is just below a multiple of {slots:,} (half the tile in "
        "one dimension), or make the kernel persistent: one workgroup per slot that loops over "
        "tiles, with split-K for the remainder."
    )
    yield Finding(
        rule=NAME,
        severity="note",
        message=f"the last round of workgroups uses {100 * last / slots:.0f}% of the device",
        evidence=f"{workgroups:,} workgroups on {slots:,} slots ({limits.units} {limits.unit}s x "
        f"{occupancy.workgroups}): {count(math.ceil(rounds), 'round')}, of which "
        f"{rounds:.2f} hold work, {100 * efficiency:.0f}%",
        advice=advice,
        location=subject.kernel_location,
        fixes=_fixes(subject, advice),
    )


def _fixes(subject: RuleInput, advice: str) -> tuple[Fix, ...]:
    """Smaller tiles compiled; simulated where the kernel does not show them."""
    smaller = tuple(other_blocks(subject, smaller=True, why=", for finer rounds"))
    return smaller or (simulated_fix(advice, _half_tiles),)


def _half_tiles(changes: LaunchChanges, mask: Array) -> LaunchTiming:
    del mask
    return finer(changes.simulation, 2)


RULE = Rule(
    name=NAME,
    severity="note",
    title="The last round of workgroups is mostly empty",
    explanation=f"""\
Workgroups run in rounds of as many as fit the device. When all take about the same time, a last
round that is nearly empty costs as much as a full one.

Fires for kernels with matrix instructions in a loop when less than {EFFICIENT:.0%} of the
slots of all rounds hold work. Other kernels are bound by memory, which a half-empty round can
still saturate.""",
    check=_check,
)
