"""How unequally GPUs are loaded that divide the experts: from measured loads, or a power law."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from wavecast import files
from wavecast.errors import UsageError

_ORDERS: Final = 64
"""Random orders of the experts that a power law is averaged over."""


@dataclass(frozen=True, slots=True)
class ExpertLoad:
    """How often experts are chosen: `shares` of measured experts in their order, or the `exponent`
    of a power law, whose k-th most popular expert is chosen k ** -exponent times as often as the
    first (0: all equally)."""

    shares: tuple[float, ...] = ()
    exponent: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.exponent <= 10:
            raise UsageError(f"the exponent of the load of experts is {self.exponent}, not 0 to 10")
        if self.shares and (
            not all(math.isfinite(share) and share >= 0 for share in self.shares)
            or not sum(self.shares) > 0
        ):
            raise UsageError("loads of experts are numbers, not negative, and not all zero")

    def busiest(self, experts: int, ranks: int, redundant: int = 0) -> float:
        """Tokens of the busiest of `ranks` GPUs over the mean. Measured experts are divided in
        their order; those of a power law in random orders, whose mean counts. With `redundant`
        copies the most popular experts are copied, and all are placed where the load is least
        (DeepSeek's EPLB).

        Raises UsageError where the measured experts are not `experts`.
        """
        if ranks == 1:
            return 1.0
        if self.shares:
            if len(self.shares) != experts:
                raise UsageError(
                    f"the load has {len(self.shares)} experts, a layer of the model {experts}"
                )
            if redundant:
                return _balanced_imbalance(self.shares, ranks, redundant)
            return _busiest(self.shares, ranks)
        if redundant and self.exponent:
            return _balanced_imbalance(_power_law(experts, self.exponent), ranks, redundant)
        return _expected_imbalance(experts, ranks, self.exponent)

    def __str__(self) -> str:
        if self.shares:
            return f"measured load of {len(self.shares)} experts"
        return f"power law, exponent {self.exponent:g}" if self.exponent else "equal loads"


def read_expert_load(path: str | Path) -> ExpertLoad:
    """The loads of a file: a JSON list with a number per expert, or one list per layer, which are
    added up. Raises InputError for a file that cannot be read, UsageError for another content."""
    try:
        content = files.parse_json(files.read_text(path))
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: {error}") from None
    layers = (
        content
        if isinstance(content, list) and content and isinstance(content[0], list)
        else [content]
    )
    for layer in layers:
        if not isinstance(layer, list) or not layer or not all(map(_number, layer)):
            raise UsageError(f"{path} is not a list of numbers, one per expert, or one per layer")
        if len(layer) != len(layers[0]):
            raise UsageError(f"{path}: layers have {len(layers[0])} and {len(layer)} experts")
    return ExpertLoad(tuple(sum(map(float, column)) for column in zip(*layers, strict=True)))


def _number(value: object) -> bool:
    """Whether it is a number; an integer that float64 does not have is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return abs(value) <= sys.float_info.max
    return isinstance(value, float)


def _busiest(shares: Sequence[float], ranks: int) -> float:
    size = len(shares) // ranks
    sums = [sum(shares[rank * size : (rank + 1) * size]) for rank in range(ranks)]
    return max(sums) * ranks / sum(sums)


def _balanced_imbalance(shares: Sequence[float], ranks: int, redundant: int) -> float:
    """Tokens of the busiest GPU over the mean. Copies of an expert share its tokens; the next copy
    is of the expert whose copies have the most. The heaviest copies are given out first, each to
    the GPU with the fewest tokens of those with room for one more."""
    copies = [1] * len(shares)
    for _ in range(redundant):
        heaviest = max(range(len(shares)), key=lambda index: shares[index] / copies[index])
        copies[heaviest] += 1
    pieces = sorted(
        (share / count for share, count in zip(shares, copies, strict=True) for _ in range(count)),
        reverse=True,
    )
    most, sums, counts = len(pieces) // ranks, [0.0] * ranks, [0] * ranks
    for piece in pieces:
        free = (rank for rank in range(ranks) if counts[rank] < most)
        least = min(free, key=lambda rank: sums[rank])
        sums[least] += piece
        counts[least] += 1
    return max(sums) * ranks / sum(sums)


def _power_law(experts: int, exponent: float) -> list[float]:
    return [(index + 1) ** -exponent for index in range(experts)]


@cache
def _expected_imbalance(experts: int, ranks: int, exponent: float) -> float:
    if not exponent:
        return 1.0
    shares = _power_law(experts, exponent)
    orders = random.Random(0)
    total = 0.0
    for _ in range(_ORDERS):
        orders.shuffle(shares)
        total += _busiest(shares, ranks)
    return total / _ORDERS


__all__ = ["ExpertLoad", "read_expert_load"]
