"""From the sectors that sampled workgroups touch to the bytes each level moves.

What a workgroup touches again it finds in the L1, if that holds what the resident workgroups
touch, or in the L2. What several workgroups touch comes from memory once, while the L2 holds it:
the share of addresses that differ between workgroups is counted over many of them, and no array is
larger than its tensor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.memory import residency

Array = np.ndarray[Any, Any]

SECTOR: Final = 32.0
"""Bytes that the L2 and memory move at a time."""


@dataclass(frozen=True, slots=True)
class LaunchArrays:
    """The arrays of a launch: the first address of each and the one after its last (u64[n])."""

    first: Array
    end: Array

    def of(self, addresses: Array) -> Array:
        """The number of the array of each address (i64), n for none."""
        number = len(self.first)
        indices = np.full(addresses.shape, number, np.int64)
        for at in range(number):
            indices[(addresses >= self.first[at]) & (addresses < self.end[at])] = at
        return indices

    @property
    def sizes(self) -> Array:
        """Bytes of the arrays (f64), and infinitely many of what is in none."""
        return np.append((self.end - self.first).astype(float), np.inf)


@dataclass(frozen=True, slots=True, eq=False)
class Touched:
    """What the sampled workgroups touch. Per request: its workgroup, instruction, array (i64), and
    sectors that are new to the workgroup and those it touched before (f64)."""

    workgroup: Array
    instruction: Array
    array: Array
    fresh: Array
    again: Array

    @staticmethod
    def of(
        workgroup: Array,
        instruction: Array,
        array: Array,
        sectors: Array,
        start: Array,
        stores: Array,
    ) -> Touched:
        """Requests in the order of execution; those of request n are `sectors[start[n]:start[n +
        1]]`. What is read and what is written (`stores`, bool) are counted apart."""
        counts = np.diff(start)
        owner = np.repeat(np.arange(len(counts)), counts)
        group = (2 * workgroup + stores)[owner].astype(np.uint64)
        keys = np.stack([group, sectors], axis=1)
        order = np.lexsort((np.arange(len(owner)), keys[:, 1], keys[:, 0]))
        ordered = keys[order]
        new = np.ones(len(owner), bool)
        if len(owner):
            new[order[1:]] = (ordered[1:] != ordered[:-1]).any(axis=1)
        fresh = np.bincount(owner, new, len(counts))
        return Touched(workgroup, instruction, array, fresh, counts - fresh)


@dataclass(frozen=True, slots=True, eq=False)
class LevelShares:
    """Of every request, the sectors that leave the L1 (`l2`) and of these the ones that come from
    memory (`hbm`), f64 each; `launch` are the bytes of the whole launch at L2 and memory."""

    l2: Array
    hbm: Array
    launch: tuple[float, float]


def shares(
    sector_records: Touched,
    chip: Chip,
    arrays: LaunchArrays,
    *,
    stores: Array,
    bypass: Array,
    distinct: Array,
    workgroups: int,
    at_once: int,
    resident: int,
    l1_bytes: float,
) -> LevelShares:
    """The levels of requests.

    `stores` and `bypass` (bool, per request) say which write and which do not look in the L1.
    `distinct` (f64 per instruction) is the share of its addresses that differ between workgroups;
    `at_once` of the `workgroups` run at once, `resident` of them on one SM.
    """
    sampled = max(1, len(np.unique(sector_records.workgroup)))
    sizes = arrays.sizes
    usable = chip.l2_bytes * chip.coefficient("sm", "l2_usable")
    workgroup_bytes = sector_records.fresh[~stores].sum() * SECTOR / sampled
    in_l1 = float(
        workgroup_bytes * resident <= l1_bytes
    )  # the L1 replaces in order: a stream leaves nothing
    in_l2 = float(np.asarray(residency(workgroup_bytes * at_once, usable)))
    hits = np.where(stores | bypass, 0.0, in_l1)
    l2 = sector_records.fresh + sector_records.again * (1 - hits)
    apart = distinct[sector_records.instruction]
    loads = ~stores
    fresh = sector_records.fresh * SECTOR * workgroups / sampled
    count = len(sizes)
    distinct_bytes = np.bincount(sector_records.array[loads], (fresh * apart)[loads], count)
    array_footprint = np.minimum(distinct_bytes, sizes)
    request_bytes = np.bincount(sector_records.array[loads], fresh[loads], count)
    footprint = float(array_footprint.sum())
    hit_share = float(np.asarray(residency(footprint, usable)))
    from_memory = array_footprint + (distinct_bytes - array_footprint) * (1 - hit_share)
    of_array = np.divide(from_memory, request_bytes, out=np.ones(count), where=request_bytes > 0)
    part = np.where(stores, 1.0, np.minimum(1.0, of_array[sector_records.array]))
    hbm = sector_records.fresh * part + sector_records.again * (1 - hits) * (1 - in_l2)
    written = np.bincount(sector_records.array[stores], fresh[stores], count)
    once = np.divide(np.minimum(written, sizes), written, out=np.ones(count), where=written > 0)
    hbm = np.where(stores, sector_records.fresh * once[sector_records.array], hbm)
    scale = SECTOR * workgroups / sampled
    return LevelShares(l2, np.minimum(hbm, l2), (l2.sum() * scale, hbm.sum() * scale))


__all__ = ["LaunchArrays", "LevelShares", "Touched", "shares"]
