"""A launch with fewer workgroups than the device has compute units."""

from __future__ import annotations

import math
from collections.abc import Iterator

from wavecast.perfmodel.launches import LaunchChanges
from wavecast.perfmodel.reshaping import split_loop
from wavecast.perfmodel.simulation.timing import LaunchTiming
from wavecast.rules.changes import simulated_fix
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.fix import Array, Fix
from wavecast.rules.rates import placement
from wavecast.rules.tiles import other_blocks
from wavecast.rules.wording import at_line

NAME = "grid-too-small"

ENOUGH = 0.75
"""Workgroups per unit from which on the rule stays silent."""


def _check(subject: RuleInput) -> Iterator[Finding]:
    limits = placement(subject)
    if subject.launch is None or limits.units is None:
        return
    workgroups = math.prod(subject.launch.grid)
    if workgroups >= ENOUGH * limits.units:
        return
    loops = any(loop.matrix_density > 0 for loop in subject.analysis.loops)
    split = (
        "Split the K loop over several workgroups (split-K or stream-K), or use smaller tiles."
        if loops
        else "Use smaller blocks, split rows over workgroups, or fuse or batch small launches."
    )
    yield Finding(
        rule=NAME,
        severity="warning" if 2 * workgroups <= limits.units else "note",
        message=f"{workgroups} workgroups cannot fill {limits.units} {limits.unit}s",
        evidence=f"the grid is {'×'.join(map(str, subject.launch.grid))}; at most "
        f"{100 * workgroups / limits.units:.0f}% of {subject.device.name} has work",
        advice=split,
        location=subject.kernel_location,
        fixes=tuple(_fixes(subject, workgroups, limits.units, split)),
    )


def _fixes(subject: RuleInput, workgroups: int, units: int, advice: str) -> Iterator[Fix]:
    """Smaller tiles; and the iterations of the outermost loop with the most divided among
    workgroups that fill the device, and their results added by a second kernel."""
    yield from other_blocks(subject, smaller=True, why=", so that the grid has more workgroups")
    loops = [
        loop
        for loop in subject.analysis.loops
        if loop.depth == 1 and loop.trip_count is not None and loop.trip_count >= 2
    ]
    if not loops:
        return
    analysis, loop = subject.analysis, max(loops, key=lambda candidate: candidate.trip_count or 0.0)
    parts = 1 << min(int(math.log2(units / workgroups)), int(math.log2(loop.trip_count or 2.0)))
    if parts < 2:
        return
    stored = sum(written for _, written in analysis.requested_bytes.values())

    def split(changes: LaunchChanges, mask: Array) -> LaunchTiming:
        del mask
        return split_loop(changes.simulation, analysis, loop.index, parts, stored)

    text = f"{advice} Simulated: the loop{at_line(loop.location)} split over {parts} workgroups."
    yield simulated_fix(text, split)


RULE = Rule(
    name=NAME,
    severity="warning",
    title="Too few workgroups for the device",
    explanation=f"""\
A workgroup stays on one compute unit (a WGP on RDNA, an SM on NVIDIA). With fewer workgroups
than units, the rest of the device idles and neither peak compute nor, usually, peak bandwidth is
reached, whatever the code of one workgroup does.

Fires when the launch's grid has fewer workgroups than {ENOUGH:.0%} of the device's units;
`warning` below half.""",
    check=_check,
)
