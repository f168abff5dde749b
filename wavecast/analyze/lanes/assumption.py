"""A site in a program that takes 32 lanes for granted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from wavecast.compile.llvm_ir import Position


class Assumption(Enum):
    """What a site in a program takes for granted."""

    VOTES = "votes"
    """A ballot of which only the lower half is read."""
    ALL_VOTES = "all votes"
    """A ballot that is compared with 32 ones."""
    GROUP_VOTES = "votes of a group"
    """Both groups of 32 lanes store what all 64 have voted."""
    MASK = "mask"
    """A mask of 32 lanes in 32 bits."""
    SHIFT = "shift"
    """A shift of 32 bits by the number of a lane."""
    REDUCTION = "reduction"
    """Shuffles that combine 32 lanes; the result of the other half is not used."""
    ROW = "row"
    """Shuffles that combine 32 lanes, in a kernel that divides its work among 64."""
    WINDOW = "window"
    """A scan of 64 lanes that ends after 32."""
    OTHER_HALF = "other half"
    """A shuffle within groups of 32, in which lanes take values of the other group."""
    LEADER = "leader"
    """A value that one lane of each group of 32 has, of which all 64 take that of the first."""
    SAME_ADDRESS = "same address"
    """The results of both halves are stored at one address."""


@dataclass(frozen=True, slots=True)
class LaneAssumption:
    """One site. `certain` is one that the code alone proves; others need an execution. The
    predicate of a ballot may be computed at another position, `of`. Sites of one `mistake`, such as
    the shuffles of a value and of its index, are reported once."""

    what: Assumption
    position: Position
    certain: bool = True
    of: Position = ()
    mistake: str = ""


def one_per_mistake(sites: Iterable[LaneAssumption]) -> Iterator[LaneAssumption]:
    """The first site of each line and of each mistake."""
    mistakes = set[tuple[Assumption, Position | str]]()
    for site in sites:
        keys = {(site.what, key) for key in (site.position[:1], site.mistake) if key}
        if not mistakes & keys:
            mistakes |= keys
            yield site


__all__ = ["Assumption", "LaneAssumption", "one_per_mistake"]
