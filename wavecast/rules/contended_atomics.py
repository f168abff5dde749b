"""Atomics of many threads to few addresses."""

from __future__ import annotations

import math
from collections.abc import Iterator

from wavecast.rules.accesses import AccessGroup, group
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.loops import GLOBAL_SPACES
from wavecast.rules.wording import count, size

NAME = "contended-atomics"

PER_ADDRESS = 1024
"""Atomics of a launch for each address from which on the rule speaks."""

PER_WORKGROUP = 32
"""Atomics of a workgroup for each address from which on the rule speaks."""

ADDRESS_BYTES = 4
"""Bytes of an address: the smallest atomics are of 4 bytes."""


def _check(subject: RuleInput) -> Iterator[Finding]:
    sizes, launch = _sizes(subject), subject.launch
    workgroups = math.prod(launch.grid) if launch is not None else 1
    atomics = group(
        subject.analysis.memory,
        lambda item: item.kind == "atomic" and item.space in GLOBAL_SPACES,
    )
    for found in atomics:
        spanned = sizes.get(found.first.argument)
        number = _executed(subject, found)
        if not spanned or number is None:
            continue
        addresses = max(1, spanned // ADDRESS_BYTES)
        each = number / addresses / workgroups
        if number < PER_ADDRESS * addresses or each < PER_WORKGROUP:
            continue
        yield Finding(
            rule=NAME,
            severity="warning",
            message=f"{number:,.0f} atomics share {count(addresses, 'address', 'addresses')} of "
            f"{found.first.argument}",
            evidence=f"{found.mnemonics} by every lane; {found.first.argument} has "
            f"{size(spanned)}, so each address takes {number / addresses:,.0f} of them, one after "
            "the other",
            advice="Add up in registers and within the workgroup first (LDS atomics, or a "
            "reduction by shuffles where all lanes go to one address), and update memory once per "
            "workgroup and address.",
            location=found.location,
            instruction=found.first.index,
            covers=frozenset(item.index for item in found.instructions),
        )


def _sizes(subject: RuleInput) -> dict[str, int]:
    arguments = subject.launch.arguments if subject.launch is not None else ()
    return {item.name: item.bytes for item in arguments}


def _executed(subject: RuleInput, found: AccessGroup) -> float | None:
    """Atomics of the launch if every lane is on, None where a count is not known."""
    analysis, program, launch = subject.analysis, subject.program, subject.launch
    if program is None or launch is None:
        return None
    x, y, z = launch.grid
    waves = x * y * z * analysis.occupancy.waves_per_workgroup
    total = 0.0
    for item in found.instructions:
        block = next(b.index for b in program.blocks if b.start <= item.index < b.stop)
        times = analysis.executed[block] if block < len(analysis.executed) else None
        if times is None:
            return None
        total += times * waves * subject.device.wave_lanes
    return total


RULE = Rule(
    name=NAME,
    severity="warning",
    title="Atomics under contention",
    explanation=f"""\
Atomics to one address are served one after the other by one channel of the L2, whatever the device
has of them. Thousands of threads that count into a few addresses wait for each other.

Fires for global atomics of which a launch makes at least {PER_ADDRESS:,}, and a workgroup
{PER_WORKGROUP}, for each address of the tensor they update. What the contention costs depends on
the data, so the finding states no part of the time.""",
    check=_check,
)
