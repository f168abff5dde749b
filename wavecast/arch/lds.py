"""Which lanes of a wave the LDS serves together, where that is known: `lds_phases.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from wavecast.arch import pattern_table

_FILE = Path(__file__).with_name("lds_phases.toml")
_COLUMNS = {"targets", "bytes_per_lane", "accesses", "banks", "groups", "status", "source"}

WAVE = 64
"""Lanes of the waves that the table describes."""


@dataclass(frozen=True, slots=True)
class Phases:
    """Groups of lanes served together over `banks` banks of 4 bytes, and the status of this fact
    (`quantity.STATUSES`)."""

    groups: tuple[tuple[int, ...], ...]
    banks: int
    status: str


def lds_phases(target: str, bytes_per_lane: int, *, write: bool) -> Phases | None:
    """The phases of an access of `WAVE` lanes, None where the table has none. `target` is a member
    of `isa.targets.TARGETS`."""
    return _table().get((target, bytes_per_lane, "write" if write else "read"))


@cache
def _table() -> Mapping[tuple[str, int, str], Phases]:
    """Raises ValueError for a row that is incomplete or has an unknown status or source."""
    import tomllib

    table = {}
    for row in tomllib.loads(_FILE.read_text(encoding="utf-8"))["phases"]:
        if set(row) != _COLUMNS:
            raise ValueError(f"{_FILE.name}: a row has other columns than {sorted(_COLUMNS)}")
        pattern_table.check(_FILE.name, row)
        lower = [_lanes(group) for group in row["groups"]]
        upper = [tuple(lane + WAVE // 2 for lane in group) for group in lower]
        phases = Phases((*lower, *upper), row["banks"], row["status"])
        for target in row["targets"]:
            for access in row["accesses"]:
                table[target, row["bytes_per_lane"], access] = phases
    return table


def _lanes(ranges: str) -> tuple[int, ...]:
    """`0-3 20-23` as lanes."""
    bounds = ((int(bound) for bound in text.split("-")) for text in ranges.split())
    return tuple(lane for first, last in bounds for lane in range(first, last + 1))


__all__ = ["WAVE", "Phases", "lds_phases"]
