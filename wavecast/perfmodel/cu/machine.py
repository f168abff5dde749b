"""One compute unit of a chip in a launch, as the numbers the simulator runs on."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from wavecast.perfmodel import coefficients
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.memory import mall_bandwidth

DIE: Final = 40
"""Compute units of the dies whose pace of starts is known (XCDs: four shader engines of ten).
Larger dies are taken to start as many more workgroups at once as they are larger."""


@dataclass(frozen=True, slots=True)
class ComputeUnit:
    """A compute unit (a WGP on RDNA) that shares its chip with others like it.

    Clocks of `clock` Hz. `period` is the clocks between two issue slots of a SIMD; `shared_slot`:
    one instruction of any category per slot (RDNA) instead of one of each (CDNA). `tag` is the
    clocks of a lookup in the vector L1. Rates are bytes per clock: `returned` between the vector L1
    and registers, `lds_port` of a pair of SIMDs, `lds_bytes` of the whole LDS, `l2`, `mall`, `hbm`
    this unit's share (`mall` is infinite on a chip without one), `l2_stores` that of stores.
    `evicted` is the part of its stores that the L2 does not keep until the launch ends. Latencies
    in clocks. `queue_lds` and `queue_vmem` are the clocks of work an LDS or address queue takes
    before the SIMD stalls; `branch` clocks to the instruction after a taken branch; `dispatch`
    clocks between the starts of two workgroups on a die, at least `dispatch_wave` per wave; `fetch`
    bytes of code per clock. `lds_pass` is what a clock of one LDS takes of this unit, which has one
    per compute unit; `lds_rate` scales the work of LDS requests.
    """

    clock: float
    simds: int
    period: int
    shared_slot: bool
    lds_port: float
    tag: float
    returned: float
    l2: float
    l2_stores: float
    mall: float
    hbm: float
    scalar: float
    latency_lds: float
    latency_store: float
    latency_scalar: float
    latency_l1: float
    latency_l2: float
    latency_mall: float
    latency_hbm: float
    queue_lds: float
    queue_vmem: float
    barrier: float
    branch: float
    dispatch: float
    dispatch_wave: float
    fetch: float
    lds_bytes: float
    lds_pass: float
    lds_rate: float = 1.0
    evicted: float = 1.0

    @staticmethod
    def of(chip: Chip, *, simds: int, active: int, clock: float | None = None) -> ComputeUnit:
        """The unit of a chip whose `active` units share the memory evenly."""
        device = chip.device
        frequency = chip.clock if clock is None else clock
        # a WGP has the caches, the LDS halves and the paths of two compute units
        cus = max(1.0, simds / chip.simds)
        per_unit = chip.coefficient("kernel", "unit_l2_bytes") * cus
        per_die = chip.units / chip.dies
        misses = chip.coefficient("kernel", "unit_misses") * cus

        def share(rate: float | None, level: str) -> float:
            """Bytes per clock: an even share, no more than the path takes and than bytes in flight
            over the latency allow."""
            most = min(per_unit, misses / (chip.latency[level] * frequency))
            return most if rate is None else min(most, rate / active / frequency)

        # less than a pointer chase measures, which has arithmetic in it
        l2_clocks = chip.latency["l2"] * chip.clock * chip.coefficient("kernel", "wait_l2")
        l2 = share(_l2_rate(chip), "l2")
        cached = mall_bandwidth(chip) if chip.mall_bandwidth else chip.hbm
        return ComputeUnit(
            clock=frequency,
            simds=simds,
            period=device.issue_period,
            shared_slot=device.issue_period == 1,
            lds_port=chip.coefficient("kernel", "lds_port"),
            tag=chip.coefficient("kernel", "tag") / cus,
            returned=chip.coefficient("kernel", "returned") * cus,
            l2=l2,
            l2_stores=l2 * chip.coefficient("kernel", "l2_stores"),
            mall=share(cached, "mall") if chip.mall_bytes else math.inf,
            hbm=share(chip.hbm, "hbm"),
            scalar=chip.coefficient("kernel", "scalar"),
            latency_lds=chip.latency["lds"] * chip.clock,
            latency_store=l2_clocks * chip.coefficient("kernel", "store_latency"),
            latency_scalar=chip.latency["scalar"] * chip.clock,
            latency_l1=chip.latency["l1"] * chip.clock,
            latency_l2=l2_clocks,
            latency_mall=chip.latency["mall"] * frequency,
            latency_hbm=chip.latency["hbm"] * frequency,
            queue_lds=chip.coefficient("kernel", "queue_lds"),
            queue_vmem=chip.coefficient("kernel", "queue_vmem"),
            barrier=chip.coefficient("kernel", "barrier"),
            branch=chip.coefficient("kernel", "branch"),
            dispatch=chip.coefficient("kernel", "dispatch") * min(1.0, DIE / per_die),
            dispatch_wave=chip.coefficient("kernel", "dispatch_wave"),
            fetch=chip.coefficient("kernel", "fetch") * cus,
            lds_bytes=chip.lds_rate * cus,
            lds_pass=1.0 / cus,
        )

    def with_(self, **changes: float) -> ComputeUnit:
        """The same unit with some numbers changed."""
        return replace(self, **changes)


def _l2_rate(chip: Chip) -> float | None:
    """Bytes per second of the L2 while every unit asks."""
    per_unit = coefficients.coefficient("kernel", "unit_l2_share")
    if per_unit.scope(chip.device) is None:
        return chip.l2_bandwidth
    return per_unit.of(chip.device) * chip.units * chip.clock


__all__ = ["ComputeUnit"]
