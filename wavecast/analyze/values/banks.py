"""Bank conflicts of one LDS access: in which groups lanes are served, and over how many banks.

Lanes of a group are served together: in one pass when no bank is asked for two different dwords,
otherwise in as many passes as the busiest bank has different dwords. Atomics on one dword do not
share a pass: a bank has one atomic unit (AMD CDNA3 instruction set architecture guide, "Local data
share": 32 banks, 32 integer atomic units). `arch.lds` has the groups and banks that are measured or
documented. For other accesses they are derived: consecutive lanes, as many as the banks can serve
at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from wavecast.arch.lds import WAVE, Phases, lds_phases
from wavecast.isa.targets import isa_target


@cache
def phases(target: str, width: int, write: bool, lanes: int, banks: int) -> Phases:
    """The phases of an access of `width` bytes per lane.

    `banks` is the device's number of banks; accesses with known phases do not depend on it.
    """
    target_phases = lds_phases(isa_target(target), width, write=write)
    if target_phases is not None and lanes == WAVE:
        return target_phases
    # writes of gfx950 were measured on 32 banks (b64: four groups of 16 consecutive lanes)
    banks = 32 if write and banks > 32 else banks
    together = max(1, min(lanes, banks * 4 // max(width, 4), 32))
    groups = tuple(
        tuple(range(first, min(first + together, lanes))) for first in range(0, lanes, together)
    )
    return Phases(groups, banks, "derived")


def conflict_ways(
    addresses: Sequence[int | None], width: int, groups: Phases, *, serial: bool = False
) -> tuple[float, int] | None:
    """Passes over passes without conflicts, and the worst group's passes.

    `addresses` has a byte address per lane, None for inactive lanes; `width` bytes are accessed
    from each. `serial` accesses (atomics) of one dword need one pass each. None when no lane is
    active.
    """
    passes = served = worst = 0
    for group in groups.groups:
        busiest = _passes(addresses, group, width, groups.banks, serial)
        if busiest:
            served += 1
            passes += busiest
            worst = max(worst, busiest)
    return (passes / served, worst) if served else None


def _passes(
    addresses: Sequence[int | None], group: tuple[int, ...], width: int, banks: int, serial: bool
) -> int:
    by_bank: dict[int, set[tuple[int, int]]] = {}
    for lane in group:
        address = addresses[lane] if lane < len(addresses) else None
        if address is None:
            continue
        for dword in range(address // 4, (address + max(width, 1) + 3) // 4):
            by_bank.setdefault(dword % banks, set()).add((dword, lane if serial else 0))
    return max((len(requests) for requests in by_bank.values()), default=0)
