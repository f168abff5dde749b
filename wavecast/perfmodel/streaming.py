"""Kernels that stream tensors: memory traffic, a little arithmetic, workgroups that come and go.

    seconds = chain + (memory^p + issue^p)^(1/p)

`chain` is what one workgroup waits for that nothing hides, memory the time of its levels together
(`memory`), and issue that of the compute unit that gets the most workgroups.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.demand import Amount
from wavecast.perfmodel.memory import Traffic, overlap_time, transfer


@dataclass(frozen=True, slots=True)
class Streaming:
    """One launch. `issue` is clocks of a whole compute unit per workgroup, `chain` clocks once,
    `overlap` the exponent p. `threads` are those of a workgroup: as many workgroups as wave slots
    allow have all their bytes on the way at once, of each thread at most `outstanding`, and `step`
    clocks pass between its loads. `drain` is how many workgroups' time the last ones of a unit
    lose, when too few are left to fill its pipes."""

    traffic: Traffic
    workgroups: Amount
    issue: Amount
    overlap: float
    chain: Amount = 0.0
    threads: int = 256
    drain: float = 0.0
    outstanding: float = math.inf
    step: float = 0.0


def lanes(chip: Chip) -> float:
    """Lanes a compute unit executes per clock."""
    per_simd = chip.device.get("lanes_per_simd")
    if isinstance(per_simd, (int, float)):
        return chip.simds * float(per_simd)
    return chip.vector_flops / 2


def resident(chip: Chip, threads: int) -> int:
    """Workgroups of a size that run on a unit at once, by its wave slots.

    Every kernel here is small enough in registers for eight waves per SIMD.
    """
    threads_at_once = chip.device.get("max_threads_per_sm")
    if isinstance(threads_at_once, (int, float)):
        return max(1, int(threads_at_once) // threads)
    slots = chip.simds * min(8, chip.device.facts.integer("max_waves_per_simd"))
    return max(1, slots // math.ceil(threads / chip.lanes))


def kernel_parts(chip: Chip, launch: Streaming) -> dict[str, Amount]:
    """Seconds per resource: the levels of `memory.transfer`, `vector` and `chain`."""
    rounds = np.ceil(np.asarray(launch.workgroups, float) / chip.units)
    running = np.minimum(launch.workgroups, chip.units * resident(chip, launch.threads))
    moved = launch.traffic.moved
    in_flight = np.minimum(
        moved * running / launch.workgroups, running * launch.threads * launch.outstanding
    )
    parts = transfer(chip, launch.traffic, in_flight)
    parts["latency"] = parts["latency"] + moved / in_flight * launch.step / chip.clock
    drained_rounds = rounds + launch.drain * (1 - 1 / np.maximum(rounds, 1))
    parts["vector"] = drained_rounds * launch.issue / chip.clock
    parts["chain"] = launch.chain / chip.clock
    return parts


def kernel_seconds(chip: Chip, parts: Mapping[str, Amount], overlap: float) -> Amount:
    """Seconds of a kernel from its parts."""
    levels = [part for name, part in parts.items() if name not in ("chain", "vector")]
    moving = overlap_time(levels, chip.coefficient("memory", "overlap"))
    return parts["chain"] + overlap_time([moving, parts["vector"]], overlap)


__all__ = ["Streaming", "kernel_parts", "kernel_seconds", "lanes", "resident"]
