"""Roofline: the least time a launch can take on a device, from its work alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Work:
    """Useful work of a launch: FLOPs by input dtype, least bytes read and written.

    `flops_source` and `bytes_source` say where the figures come from: `given`, `derived from …`,
    or why they are unknown (then the figure is None).
    """

    flops: Mapping[str, float] | None
    bytes_read: float | None
    bytes_written: float | None
    flops_source: str
    bytes_source: str
    bytes_at_most: bool = False
    """Data decides how much of some tensor is touched, and all of it is counted."""

    @property
    def bytes(self) -> float | None:
        if self.bytes_read is None or self.bytes_written is None:
            return None
        return self.bytes_read + self.bytes_written


@dataclass(frozen=True, slots=True)
class MemoryFloor:
    """The least seconds that moving the bytes of an operation takes, where its kernels stream
    faster than `chips.hbm_fraction` says, or caches have some of its operands: at datasheet peaks,
    and at the rates that its kernels sustain."""

    peak_seconds: float
    sustained_seconds: float


@dataclass(frozen=True, slots=True)
class Ceiling:
    """One rate of the device: FLOP/s of a dtype or byte/s of memory, with its origin."""

    name: str
    rate: float
    status: str
    source: str


@dataclass(frozen=True, slots=True)
class Roofline:
    """The least time of a launch, and its intensity against the roof.

    `intensity` is FLOP per byte; `ridge` the intensity where compute and memory roofs meet;
    `floor_seconds` uses datasheet peaks, `sustained_seconds` sustained ones, None where computing
    binds and its rate was never measured. `bound` is `memory`, `compute`, or `unknown` with `note`
    saying why.
    """

    work: Work
    dtype: str
    compute: Ceiling | None
    memory: Ceiling | None
    compute_sustained: Ceiling | None
    memory_sustained: Ceiling | None
    intensity: float | None
    ridge: float | None
    ridge_sustained: float | None
    compute_seconds: float | None
    memory_seconds: float | None
    floor_seconds: float | None
    sustained_seconds: float | None
    bound: str
    note: str = ""
