"""Bank conflicts of one LDS access: in which groups lanes are served, and over how many banks.

Lanes of a group are served together: in one pass when no bank is asked for two different dwords,
otherwise in as many passes as the busiest bank has different dwords. Atomics on one dword do not
share a pass: a bank has one atomic unit (AMD CDNA3 instruction set architecture guide, "Local data
share": 32 banks, 32 integer atomic units). Groups and banks are

- *measured*: gfx950 `b64`/`b96`/`b128` reads and `b64` writes (HipKittens, SQ_LDS_BANK_CONFLICT);
- *documented*: `b128` reads and writes of gfx90a and gfx942 (AMD ROCm blog on LDS bank conflicts,
  25 July 2025);
- *derived* for everything else: consecutive lanes, as many as the banks can serve at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from wavecast.isa.targets import isa_target


@dataclass(frozen=True, slots=True)
class Phases:
    """Groups of lanes served together over `banks` banks of 4 bytes, and how that is known."""

    groups: tuple[tuple[int, ...], ...]
    banks: int
    status: str


def _ranges(*spans: tuple[int, int]) -> tuple[int, ...]:
    return tuple(lane for first, last in spans for lane in range(first, last + 1))


def _both_halves(groups: Iterable[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    """The groups of lanes 0 to 31, then the same of lanes 32 to 63."""
    lower = tuple(groups)
    return lower + tuple(tuple(lane + 32 for lane in group) for group in lower)


_EIGHT_LANES = _both_halves(
    (
        _ranges((0, 3), (20, 23)),
        _ranges((4, 7), (16, 19)),
        _ranges((8, 11), (28, 31)),
        _ranges((12, 15), (24, 27)),
    )
)
_SIXTEEN_LANES = _both_halves(
    (_ranges((0, 3), (12, 15), (20, 27)), _ranges((4, 11), (16, 19), (28, 31)))
)

_KNOWN: dict[tuple[str, int, bool], Phases] = {
    ("gfx90a", 16, False): Phases(_EIGHT_LANES, 32, "documented"),
    ("gfx942", 16, False): Phases(_EIGHT_LANES, 32, "documented"),
    ("gfx950", 16, False): Phases(_SIXTEEN_LANES, 64, "measured"),
    ("gfx950", 12, False): Phases(_EIGHT_LANES, 32, "measured"),
    ("gfx950", 8, False): Phases(_both_halves((_ranges((0, 31)),)), 64, "measured"),
}
"""(target, bytes per lane, is a write) -> phases."""


@cache
def phases(target: str, width: int, write: bool, lanes: int, banks: int) -> Phases:
    """The phases of an access of `width` bytes per lane.

    `banks` is the device's number of banks, used where nothing better is known of this access.
    """
    known = _KNOWN.get((isa_target(target), width, write))
    if known is not None and lanes == 64:
        return known
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

    `addresses` holds a byte address per lane, None for inactive lanes; `width` bytes are accessed
    from each. `serial` accesses (atomics) of one dword take turns. None when no lane is active.
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
    return max((len(asked) for asked in by_bank.values()), default=0)
