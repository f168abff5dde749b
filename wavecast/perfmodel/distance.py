"""How far a prediction is from what was measured.

Measurements are grouped by kind of kernel, chip, library and dtype, with the ranges of a few sizes
(`MeasuredRange`). A prediction belongs to one of a few distance classes, and the residuals of its
class give its interval (`intervals`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache, cached_property
from itertools import pairwise
from typing import Final

from wavecast import arch
from wavecast.arch import Device
from wavecast.errors import MissingFact
from wavecast.perfmodel.bounds import Work
from wavecast.perfmodel.chip import matrix_rate

MARGIN: Final = 1.01
"""Factor by which a size may be outside of the measured range: what rounding changes."""


class DistanceClass(Enum):
    """What separates a prediction from the nearest measurements, from the nearest to the farthest;
    the value is how reports name it."""

    MEASURED = "measured"
    SIZES = "other sizes or dtype"
    LIBRARY = "library not measured"
    CHIP = "chip not measured"
    TARGET = "target not measured"
    FAR = "chip and library not measured"


WIDER: Final[Mapping[DistanceClass, DistanceClass | None]] = {
    DistanceClass.MEASURED: DistanceClass.SIZES,
    DistanceClass.SIZES: DistanceClass.LIBRARY,
    DistanceClass.LIBRARY: DistanceClass.CHIP,
    DistanceClass.CHIP: DistanceClass.TARGET,
    DistanceClass.TARGET: DistanceClass.FAR,
    DistanceClass.FAR: None,
}
"""The class whose residuals a class takes when it has too few."""

PRODUCTS: Final = ("gemm", "conv", "attention", "moe", "moe kernel")
"""Families that multiply matrices."""
RELATED: Final[Mapping[str, tuple[str, ...]]] = {
    "matrix kernels": PRODUCTS,
    "products without matrix units": PRODUCTS,
    "memory-bound kernels": ("elementwise", "norm", "softmax", "reduction"),
}
"""Families with the same limits: on a chip that was not measured they err for the same reasons (the
rate of its matrix units, or of its vector units where it has no others, the bandwidth of its
memory)."""


@dataclass(frozen=True, slots=True)
class PredictionSubject:
    """What a prediction is of, in the terms that measurements are grouped by.

    `family` is the class of ops (`gemm`, `kernel`), `library` the library that is asked for or the
    source of the code ("": the best library), `dtype` that of the operands, "" where the family has
    none. `sizes` are a few positive sizes by name: FLOPs, bytes.
    """

    family: str
    library: str = ""
    dtype: str = ""
    sizes: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MeasuredRange:
    """`n` measured problems of a family on a device, with a library and a dtype. `sizes` has the
    smallest and the largest value of each size and of each ratio of two sizes."""

    family: str
    device: str
    library: str
    dtype: str
    n: int
    sizes: Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Distance:
    """Whether measurements share the kind of kernel, the chip, the library, the dtype and the sizes
    of a prediction: of the same `family`; of it on a chip of the same compiler `target`; on the
    same `chip`; of it with the same `library`, on that chip if the chip was measured; of these with
    the same `dtype`; of these with `sizes` on both sides of the prediction's."""

    family: bool
    target: bool
    chip: bool
    library: bool
    dtype: bool
    sizes: bool

    @property
    def distance_class(self) -> DistanceClass:
        """The class that residuals are collected by."""
        if not self.family or not (self.chip or self.library):
            return DistanceClass.FAR
        if not self.target:
            return DistanceClass.TARGET
        if not self.chip:
            return DistanceClass.CHIP
        if not self.library:
            return DistanceClass.LIBRARY
        near = self.dtype and self.sizes
        return DistanceClass.MEASURED if near else DistanceClass.SIZES


def related_families(family: str, device: Device) -> tuple[str, ...]:
    """The family and the name in `RELATED` of those with its limits on a device, the narrower
    first. Products without matrix units have other limits than the family elsewhere."""
    if family in PRODUCTS and not _has_matrix_units(device):
        return ("products without matrix units",)
    group = next((name for name, families in RELATED.items() if family in families), "")
    return (family, group) if group else (family,)


class Measured:
    """Everything that was measured, to find how far a prediction is from it."""

    def __init__(self, ranges: Iterable[MeasuredRange]) -> None:
        self.ranges: Sequence[MeasuredRange] = tuple(ranges)

    @cached_property
    def _by_family(self) -> dict[str, list[MeasuredRange]]:
        by_family: dict[str, list[MeasuredRange]] = {}
        for measurement in self.ranges:
            by_family.setdefault(measurement.family, []).append(measurement)
        return by_family

    def distance(
        self, subject: PredictionSubject, device: str, target: str | None = None
    ) -> Distance:
        """The distance of a prediction of `subject` on a device (its id). A device that a file of
        the user adds is known by its target only."""
        target = target or _target(device)
        family = self._by_family.get(subject.family, [])
        on_chip = [measurement for measurement in family if measurement.device == device]
        near = [
            measurement
            for measurement in on_chip or family
            if measurement.library == subject.library
        ]
        same = [measurement for measurement in near if measurement.dtype == subject.dtype]
        return Distance(
            family=bool(family),
            target=any(_target(measurement.device) == target for measurement in family),
            chip=bool(on_chip),
            library=bool(near),
            dtype=bool(same),
            sizes=_within(features(subject.sizes), near),
        )


def sizes_of(work: Work) -> dict[str, float]:
    """The sizes of an op: FLOPs and bytes, those that are known and not zero."""
    flops = sum(work.flops.values()) if work.flops else 0.0
    sizes = {"FLOPs": flops, "bytes": work.bytes or 0.0}
    return {name: size for name, size in sizes.items() if size > 0}


def features(sizes: Mapping[str, float]) -> dict[str, float]:
    """The sizes, and the ratios of those that follow each other: `FLOPs per bytes`."""
    names = list(sizes)
    ratios = {f"{name} per {other}": sizes[name] / sizes[other] for name, other in pairwise(names)}
    return {**sizes, **ratios}


@cache
def _target(device: str) -> str:
    return arch.load(device).target


def _has_matrix_units(device: Device) -> bool:
    try:
        matrix_rate(device, "fp16")
    except MissingFact:
        return False
    return True


def _within(sizes: Mapping[str, float], ranges: Iterable[MeasuredRange]) -> bool:
    """Whether every feature is within what all of the ranges span."""
    spans: dict[str, tuple[float, float]] = {}
    for measurement in ranges:
        for name, (low, high) in measurement.sizes.items():
            span = spans.get(name, (math.inf, -math.inf))
            spans[name] = min(span[0], low), max(span[1], high)
    return bool(spans) and all(
        name in spans and spans[name][0] / MARGIN <= value <= spans[name][1] * MARGIN
        for name, value in sizes.items()
    )


__all__ = [
    "PRODUCTS",
    "RELATED",
    "WIDER",
    "Distance",
    "DistanceClass",
    "Measured",
    "MeasuredRange",
    "PredictionSubject",
    "features",
    "related_families",
    "sizes_of",
]
