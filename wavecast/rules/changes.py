"""Changes of a simulated launch that several rules advise."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from wavecast.perfmodel.launches import LaunchChanges
from wavecast.perfmodel.simulation.timing import LaunchTiming
from wavecast.rules.fix import Array, Fix, Simulated

Change = Callable[[LaunchChanges, Array], LaunchTiming]


def free(changes: LaunchChanges, mask: Array) -> LaunchTiming:
    """Without the cost of instructions but their issue slots."""
    return changes.free(mask)


def contiguous(changes: LaunchChanges, mask: Array) -> LaunchTiming:
    """With contiguous lanes, and LDS accesses without conflicts."""
    return changes.contiguous(mask)


def widen_accesses(changes: LaunchChanges, mask: Array) -> LaunchTiming:
    """With accesses joined into wide ones."""
    return changes.widen(mask)


def prefetch_loads(changes: LaunchChanges, mask: Array) -> LaunchTiming:
    """With waits for the loads of the iteration before."""
    return changes.later_waits(mask, 1)


def unroll_loads(changes: LaunchChanges, mask: Array) -> LaunchTiming:
    """With the loads of four iterations outstanding."""
    return changes.later_waits(mask, 3)


def without(changes: LaunchChanges, mask: Array) -> LaunchTiming:
    """Without instructions."""
    return changes.without(mask)


def without_barriers(changes: LaunchChanges, mask: Array) -> LaunchTiming:
    """Without barriers."""
    return changes.without_barriers(mask)


def one_more_resident(changes: LaunchChanges, mask: Array) -> LaunchTiming:
    """With one more workgroup resident per unit."""
    del mask
    return changes.resident(changes.simulation.profile.placement.resident + 1)


def simulated_fix(
    advice: str, change: Change, instructions: Iterable[int] = (), name: str = ""
) -> Fix:
    """A fix that is simulated for some instructions."""
    return Fix(advice, Simulated(frozenset(instructions), change), name)


NOTHING: Final = frozenset[int]()

__all__ = [
    "NOTHING",
    "contiguous",
    "free",
    "one_more_resident",
    "prefetch_loads",
    "simulated_fix",
    "unroll_loads",
    "widen_accesses",
    "without",
    "without_barriers",
]
