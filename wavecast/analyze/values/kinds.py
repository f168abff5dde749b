"""Kinds of values of a wave: what is known of one register in every lane.

| value | meaning |
|---|---|
| `int` | known, the same in every lane |
| `Unknown` | not known, the same in every lane |
| `numpy` array | known, one element per lane |
| `LaneOffsets` | an unknown that all lanes share, plus a known offset per lane |
| `Scattered` | not known, any value in any lane |
| `LaneScalars` | a register used as storage for scalars, lane by lane |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from wavecast.isa.semantics.integers import Unknown
from wavecast.isa.semantics.lanes import constant


@dataclass(frozen=True, slots=True, eq=False)
class LaneOffsets:
    """`base` plus `offsets[lane]`; offsets are bit patterns as wide as the value."""

    base: Unknown
    offsets: np.ndarray


@dataclass(frozen=True, slots=True)
class Scattered:
    """A value of which nothing is known. `origin` is what made it so (see `Unknown.origin`)."""

    origin: object = None


UNWRITTEN: Final = Scattered("a register nothing has written")
"""What registers hold before the code writes them."""


@dataclass(frozen=True, slots=True, eq=False)
class LaneScalars:
    """Scalars written to single lanes; lanes that were never written hold `rest`."""

    lanes: dict[int, Any]
    rest: Any


Value = Any
"""One of the kinds of the module's table."""


def origin_of(value: Value) -> object:
    """What made a value unknown; None for a known one."""
    if isinstance(value, (Unknown, Scattered)):
        return value.origin
    if isinstance(value, LaneOffsets):
        return value.base.origin
    return None


def is_known(value: Value) -> bool:
    """True for `int` and arrays."""
    return isinstance(value, (int, np.ndarray))


def signed_offsets(value: LaneOffsets) -> np.ndarray:
    """The offsets as int64."""
    kind = np.int32 if value.offsets.dtype == np.uint32 else np.int64
    return value.offsets.view(kind).astype(np.int64)


def array_of(value: int | np.ndarray, bits: int) -> np.ndarray:
    """A known value as an array."""
    return constant(value, bits) if isinstance(value, int) else value
