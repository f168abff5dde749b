"""Time to move bytes between compute units and memory, by level of the hierarchy.

A launch that reads and writes `Traffic` needs, at each level, the bytes that reach it over the
bandwidth of that level; levels work at the same time (`overlapped`). A level gets the bytes that
miss the one before it. A footprint streamed again and again through a cache that replaces
lines at random keeps the fraction h of it with

    h = exp(-(1 - h) · footprint / capacity)                      (h = 1 while it fits)

since a line survives a pass in which (1 - h) · footprint bytes replace others with that
probability; a least-recently-used cache would keep nothing beyond its capacity.

Bandwidth needs concurrency: with `in_flight` bytes outstanding over the whole chip no more than
in_flight / latency moves (Little's law), with the latency of the level every byte comes from.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from wavecast.perfmodel import coefficients
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.demand import Amount

FAMILY = "memory"


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes a launch moves, all of them numbers or arrays that broadcast.

    `read` and `written` pass through the L2 of the chip; `footprint` is how many of them are
    distinct (0: all of them). `streams` is the number of tensors read or written at once. `warm`
    says that the data was touched just before, by the kernel that made it or an equal launch;
    otherwise nothing of it is in a cache, and only what exceeds the footprint can hit. `shared`
    says that this launch is one among the kernels of a program: more than the footprint was touched
    since (`reuse_distance`), and of what another kernel wrote the L2 of several dies has nothing.
    """

    read: Amount
    written: Amount
    footprint: Amount = 0.0
    streams: Amount = 2.0
    warm: bool = True
    shared: bool = False

    @property
    def moved(self) -> Amount:
        """Bytes read and written."""
        return self.read + self.written


def transfer(chip: Chip, traffic: Traffic, in_flight: Amount | None = None) -> dict[str, Amount]:
    """Seconds per level: `L2`, `memory-side cache`, `HBM`, and `latency` with `in_flight`.

    Levels the chip does not have, or whose bandwidth nobody published, are absent.
    """
    constants = coefficients.values(FAMILY, chip.device)
    parts: dict[str, Amount] = {}
    footprint = np.where(np.asarray(traffic.footprint) > 0, traffic.footprint, traffic.moved)
    share = constants["cache_share"] / (constants["reuse_distance"] if traffic.shared else 1.0)
    missing: Amount = traffic.moved
    nearest = "l2"
    waits: Amount = missing * chip.latency[nearest]
    if chip.l2_bandwidth and chip.l2_bytes:
        parts["L2"] = missing / (chip.l2_bandwidth * constants["l2_fraction"])
        warm = traffic.warm and not (traffic.shared and chip.dies > 1)
        missing = missing * (1 - _hits(traffic, footprint, chip.l2_bytes * share, warm=warm))
    if chip.mall_bytes and chip.mall_bandwidth:
        parts["memory-side cache"] = missing / mall_bandwidth(chip)
        waits = waits + missing * (chip.latency["mall"] - chip.latency[nearest])
        nearest = "mall"
        hits = _hits(traffic, footprint, chip.mall_bytes * share, warm=traffic.warm)
        missing = missing * (1 - hits)
    parts["HBM"] = missing / hbm_bandwidth(chip, traffic.streams)
    if in_flight is not None:
        waits = waits + missing * (chip.latency["hbm"] - chip.latency[nearest])
        parts["latency"] = waits / in_flight
    return parts


def seconds(chip: Chip, traffic: Traffic, in_flight: Amount | None = None) -> Amount:
    """Seconds all levels together need for a transfer."""
    exponent = chip.coefficient(FAMILY, "overlap")
    return overlap_time(transfer(chip, traffic, in_flight).values(), exponent)


def hbm_bandwidth(chip: Chip, streams: Amount = 2.0) -> Amount:
    """Sustained byte/s of the memory; every tensor beyond two costs row-buffer locality."""
    return chip.hbm * (1 - chip.coefficient(FAMILY, "stream_loss") * (streams - 2.0))


def mall_bandwidth(chip: Chip) -> float:
    """Sustained byte/s between compute dies and the memory-side cache of a chip that has one."""
    assert chip.mall_bandwidth is not None
    if chip.dies == 1:
        return chip.mall_bandwidth
    return min(chip.mall_bandwidth, chip.dies * chip.coefficient(FAMILY, "die_bandwidth"))


def overlap_time(parts: Iterable[Amount], exponent: float) -> Amount:
    """Seconds of parts that work at once: (Σ part^p)^(1/p)."""
    parts = list(parts)
    longest = np.maximum(np.asarray(_largest(parts), float), 1e-30)
    return longest * sum((part / longest) ** exponent for part in parts) ** (1 / exponent)


def residency(footprint: Amount, capacity: Amount) -> Amount:
    """Fraction of a footprint, streamed repeatedly, that is resident in a cache of a capacity."""
    pressure, resident = _residency_table()
    return np.interp(footprint / np.maximum(np.asarray(capacity, float), 1.0), pressure, resident)


def _hits(traffic: Traffic, footprint: Amount, capacity: float, *, warm: bool) -> Amount:
    """Fraction of the bytes that hit in a cache: a cold footprint misses once."""
    resident = residency(footprint, capacity)
    if warm:
        return resident
    return resident * (1 - np.minimum(1.0, footprint / np.maximum(traffic.moved, 1e-30)))


def _largest(parts: list[Amount]) -> Amount:
    largest = parts[0]
    for part in parts[1:]:
        largest = np.maximum(largest, part)
    return largest


@cache
def _residency_table() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Solutions of h = exp(-(1 - h)·x), x = ln(1/h) / (1 - h), for h from 1 down to 0."""
    steep, flat = np.linspace(1 - 1e-4, 1e-3, 2000), np.geomspace(1e-3, 1e-30, 400)
    resident = np.concatenate([steep, flat[1:]])
    pressure = np.log(1 / resident) / (1 - resident)
    return np.concatenate([[0.0, 1.0], pressure]), np.concatenate([[1.0, 1.0], resident])


__all__ = [
    "Traffic",
    "hbm_bandwidth",
    "mall_bandwidth",
    "overlap_time",
    "residency",
    "seconds",
    "transfer",
]
