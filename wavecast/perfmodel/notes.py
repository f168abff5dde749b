"""What a launch profile assumes or leaves out.

Code that decides compares `Note` members; `text` makes the words that reports show.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final


class Note(Enum):
    """An assumption or a gap of a profile or of the simulation."""

    WAVES_ALIKE = auto()
    """Counts are an average over sampled waves, used for every wave."""
    UNKNOWN_ADDRESSES = auto()
    """Lanes of some accesses count as contiguous."""
    UNKNOWN_REUSE = auto()
    """What workgroups share of a tensor is an estimate; an executed sample measures it."""
    PARTIAL_UNIT = auto()
    """Not all workgroups of the first round of a compute unit were executed."""
    UNEVEN_WORKGROUPS = auto()
    """Workgroups of the sample execute different numbers of instructions."""
    UNKNOWN_BRANCHES = auto()
    """Forward branches that depend on data count as not taken."""
    UNKNOWN_GUARDS = auto()
    """Accesses whose predicate depends on data count as executed by all lanes."""
    TLB = auto()
    L2_CHANNELS = auto()
    COLD_INSTRUCTION_CACHE = auto()


NOT_SIMULATED: Final = (Note.TLB, Note.L2_CHANNELS, Note.COLD_INSTRUCTION_CACHE)
"""What no simulation of a launch contains."""

_TEXTS: Final[Mapping[Note, str]] = {
    Note.WAVES_ALIKE: "every wave counts as the average of the sampled waves",
    Note.UNKNOWN_ADDRESSES: "addresses that could not be followed count as contiguous",
    Note.UNKNOWN_REUSE: (
        "the code does not determine the addresses of workgroups: each is assumed to take a random "
        "part of a tensor; an executed sample has the addresses"
    ),
    Note.UNKNOWN_BRANCHES: "forward branches that depend on data count as not taken",
    Note.UNKNOWN_GUARDS: "accesses under predicates that depend on data count as executed",
    Note.PARTIAL_UNIT: "{executed} of the {first_round} workgroups of a compute unit were executed",
    Note.UNEVEN_WORKGROUPS: "workgroups execute {variation:.0%} more or less than each other",
    Note.TLB: "address translation (TLB) misses",
    Note.L2_CHANNELS: "contention between units for one L2 channel",
    Note.COLD_INSTRUCTION_CACHE: "instruction cache misses of code that runs once",
}


def text(note: Note, figures: Mapping[str, float] | None = None) -> str:
    """A note in words. Notes on samples take `figures` by name: fields of `SampleCoverage`."""
    return _TEXTS[note].format(**(figures or {}))


__all__ = ["NOT_SIMULATED", "Note", "text"]
