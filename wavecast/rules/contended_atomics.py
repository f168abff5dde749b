"""Atomics of many threads to few addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from wavecast.errors import Unpredictable
from wavecast.perfmodel.atomics import (
    addresses,
    busiest,
    executions_of,
    is_global_atomic,
    operations,
)
from wavecast.perfmodel.footprint import element_bytes
from wavecast.perfmodel.launches import LaunchChanges
from wavecast.perfmodel.placement import LaunchPlacement
from wavecast.perfmodel.simulation.timing import LaunchTiming
from wavecast.rules.accesses import AccessGroup, group
from wavecast.rules.changes import Change, simulated_fix
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.fix import Array, Fix
from wavecast.rules.wording import count, size

NAME = "contended-atomics"

PER_ADDRESS = 1024
"""Atomics of a launch for each address from which on the rule speaks."""

BANKS = 32
"""Banks of LDS and shared memory that atomics are served by, one of each at a time."""


def _check(subject: RuleInput) -> Iterator[Finding]:
    placement = _placement(subject)
    if placement is None or subject.launch is None:
        return
    sizes = {item.name: element_bytes(item) for item in subject.launch.arguments if item.bytes}
    executions = executions_of(subject.program, subject.analysis)
    loops = {loop.index for loop in subject.analysis.loops if loop.trip_count is None}
    for access_group in group(subject.analysis.memory, is_global_atomic):
        spanned = sizes.get(access_group.first.argument)
        missing = [item for item in access_group.instructions if item.index not in executions]
        if not spanned or any(item.loop not in loops for item in missing):
            continue
        # of a loop whose trip count depends on data: one iteration of one wave
        once = 1 / placement.waves
        times = {**executions, **dict.fromkeys((item.index for item in missing), once)}
        number = operations(access_group.instructions, times, placement)
        shared = addresses(access_group.first, spanned)
        if number < PER_ADDRESS * shared:
            continue
        exact = not missing
        fixes = tuple(_fixes(access_group, number / shared, shared, placement, times, exact=exact))
        if fixes:
            yield _finding(access_group, number, shared, placement, fixes, exact=exact)


def _placement(subject: RuleInput) -> LaunchPlacement | None:
    """Where the workgroups of the launch run; None where they do not."""
    if subject.launch is None:
        return None
    occupancy, device = subject.analysis.occupancy, subject.device
    try:
        return LaunchPlacement.of(subject.launch, occupancy, device, device.wave_lanes)
    except Unpredictable:
        return None


def _finding(
    access_group: AccessGroup,
    number: float,
    shared: int,
    placement: LaunchPlacement,
    fixes: tuple[Fix, ...],
    *,
    exact: bool,
) -> Finding:
    name, each = access_group.first.argument, number / shared
    least = "" if exact else "at least "
    return Finding(
        rule=NAME,
        severity="warning",
        message=f"{least}{number:,.0f} atomics share "
        f"{count(shared, 'address', 'addresses')} of {name}",
        evidence=f"{access_group.mnemonics}; each address takes {least}{each:,.0f} of them, one "
        "after the "
        f"other, {each / placement.workgroups:,.3g} of every workgroup"
        + ("" if exact else " and iteration of a loop whose trip count depends on data")
        + f"; {name} has {size(shared * access_group.first.bytes_per_lane)}",
        advice=fixes[0].advice,
        location=access_group.location,
        instruction=access_group.first.index,
        fixes=fixes,
        covers=frozenset(item.index for item in access_group.instructions),
    )


def _fixes(
    access_group: AccessGroup,
    each: float,
    shared: int,
    placement: LaunchPlacement,
    times: Mapping[int, float],
    *,
    exact: bool,
) -> Iterator[Fix]:
    """One atomic per workgroup and address; and so with no more workgroups than fit the device.
    Nothing where a launch that fits the device has no more than that already."""
    wave = operations(access_group.instructions, times, placement)
    wave /= (
        placement.workgroups
        * placement.waves
        * sum(times[i.index] for i in access_group.instructions)
    )
    passes = busiest(wave, min(shared, BANKS)) if shared > 1 else 1.0
    slots = placement.units * placement.resident
    in_lds = "by LDS atomics" if shared > 1 else "by a reduction (tl.sum, or shuffles and then LDS)"
    reduce = f"Add up within the workgroup first ({in_lds}), and update memory once per workgroup"
    steps = []
    if each > placement.workgroups or not exact:
        steps.append((f"{reduce} and address.", placement.workgroups))
    if slots < placement.workgroups:
        steps.append(
            (
                f"{reduce} and address, with {slots:,} workgroups (as many as fit the device) that "
                "loop over the data.",
                slots,
            )
        )
    for advice, updates in steps:
        yield simulated_fix(
            advice, _reduce_in_lds(passes, updates), (i.index for i in access_group.instructions)
        )


def _reduce_in_lds(passes: float, updates: float) -> Change:
    def change(changes: LaunchChanges, mask: Array) -> LaunchTiming:
        return changes.atomics_in_lds(mask, passes, updates)

    return change


RULE = Rule(
    name=NAME,
    severity="warning",
    title="Atomics under contention",
    explanation=f"""\
Atomics to one address are served one after the other by one channel of the L2, whatever the device
has of them. Thousands of threads that count into a few addresses wait for each other.

Fires for global atomics of which a launch makes at least {PER_ADDRESS:,} for each address of the
tensor they update; of a loop whose trip count depends on data, one iteration of one wave counts.
The fix is simulated with the atomics in LDS, and one per workgroup and address in memory. Which
lanes meet depends on the data: the addresses count as hit equally often.""",
    check=_check,
)
