"""From the demand of a tile kernel to its time, over configurations.

Of W workgroups on U compute units the busiest unit gets ⌈W/U⌉; the last, incomplete round runs
faster than a full one, for memory and power are less loaded:

    rounds = w + tail · (⌈w⌉ - w),   w = max(W/U, 1)

A unit works (with a workgroup or two on a CU its pipes do not overlap fully: `serial` of what the
others take adds to the busiest), waits for memory (half hidden behind work) and stores results:

    work  = rounds · (max + serial · (Σ - max)) clocks of its pipes / clock
    unit  = √(work² + wait²) + rounds · stored elements / (store_rate · clock)

(with asynchronous copies (work⁴ + wait⁴)^¼)

Memory moves the launch's bytes meanwhile; the shorter of the two is not hidden entirely:

    seconds = call + max(unit, memory) + exposed · min(unit, memory) + combining partial sums

The clock is what the power limit allows at the activity that follows (`power`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.demand import Amount, WorkgroupDemand
from wavecast.perfmodel.power import sustained_clock

Array = np.ndarray[Any, Any]

COEFFICIENTS = (
    *("call", "tail", "exposed", "filled", "vector_clocks", "l2_rate"),
    *("store_rate", "hbm_share", "fabric", "combine_call", "combine_rate", "power"),
)
"""Keys of `known`; `coefficients/gemm.toml` has their meanings."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Seconds each resource alone needs, the seconds of the launch and its clock in Hz, over
    configurations."""

    parts: Mapping[str, Amount]
    seconds: Array
    clock: Amount

    def best(self) -> int:
        """The number of the fastest configuration of one problem."""
        return int(np.argmin(self.seconds))

    def at(self, number: int) -> dict[str, float]:
        """The seconds per resource of one configuration."""
        whole = self.seconds.shape
        return {n: float(np.broadcast_to(p, whole).flat[number]) for n, p in self.parts.items()}

    def clock_at(self, number: int) -> float:
        """The clock of one configuration."""
        return float(np.broadcast_to(self.clock, self.seconds.shape).flat[number])


def solve(demand: WorkgroupDemand, chip: Chip, constants: Mapping[str, float]) -> Bounds:
    """The time of a launch. Raises MissingFact where the chip lacks a number that matters."""
    per_unit = np.asarray(demand.workgroups, float) / chip.units
    rounds = _rounds(per_unit, constants["tail"])
    resident_rounds = _rounds(per_unit / demand.resident, constants["tail"])
    pipes = {
        "matrix": demand.matrix / constants["filled"],
        "vector": demand.vector * constants["vector_clocks"],
        "LDS": demand.lds / (chip.lds_rate * demand.lds_rate),
        "L2": demand.l2 / constants["l2_rate"],
    }
    longest = reduce(np.maximum, pipes.values())
    issue = longest + demand.serial * (sum(pipes.values()) - longest)
    work = rounds * issue
    wait = resident_rounds * demand.latency
    store = rounds * demand.stored / constants["store_rate"]
    transfer = (demand.read + demand.written) / (chip.hbm_peak * constants["hbm_share"])
    memory = transfer + demand.refetched / (constants["fabric"] * chip.dies)
    combine = demand.combining * constants["combine_call"] + demand.combined / (
        constants["combine_rate"] * chip.hbm_peak
    )
    exposed = constants["exposed"]

    def seconds(clock: Amount) -> tuple[Amount, Amount]:
        unit = _overlap_waits(work / clock, wait, demand.asynchronous) + store / clock
        overlapped = np.maximum(unit, memory) + exposed * np.minimum(unit, memory)
        return unit, overlapped + combine + constants["call"]

    clock: Amount = chip.clock
    _, total = seconds(clock)
    if demand.dtype:
        busy = demand.workgroups * demand.matrix / chip.units
        for _ in range(2):
            activity = np.minimum(busy / clock / total, 1.0) * constants["power"]
            clock = sustained_clock(chip, demand.dtype, activity)
            _, total = seconds(clock)
    parts = {name: rounds * amount / clock for name, amount in pipes.items()}
    parts |= {
        "latency": wait,
        "store": store / clock,
        "memory": memory,
        "launch": constants["call"],
    }
    parts["combine"] = combine
    return Bounds(parts, np.asarray(total), clock)


def _overlap_waits(work: Amount, wait: Amount, asynchronous: Amount) -> Amount:
    """Seconds of work and waits that hide each other."""
    both = np.hypot(work, wait)
    if not np.any(asynchronous):
        return both
    return np.where(asynchronous, np.sqrt(np.hypot(work * work, wait * wait)), both)


def _rounds(per_unit: Array, tail: float) -> Array:
    """Rounds of workgroups a unit works, the last counted in part."""
    full = np.maximum(per_unit, 1.0)
    return full + tail * (np.ceil(per_unit) - full)


__all__ = ["COEFFICIENTS", "Bounds", "solve"]
