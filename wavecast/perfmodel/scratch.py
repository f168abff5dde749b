"""Scratch memory in the caches: spilled registers and private arrays.

The lanes of a wave lie side by side in scratch memory, and the waves that run at once go through
theirs again and again. What of it exceeds a cache comes from beyond; stores pass the vector L1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wavecast.isa.opcode import MemoryKind, Space
from wavecast.isa.program import Program
from wavecast.perfmodel import streams as request
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.memory import residency
from wavecast.perfmodel.placement import LaunchPlacement

Array = np.ndarray[Any, Any]


def scratch_requests(
    program: Program, chip: Chip, placement: LaunchPlacement, bytes_per_lane: int
) -> Array:
    """Requests of one execution of each instruction that accesses scratch memory
    (f32[instructions, REQUEST], columns as in `streams`), 0 for others. `bytes_per_lane` is how
    much scratch memory a lane has."""
    facts, usable = chip.device.facts, chip.coefficient("memory", "cache_share")
    of_workgroup = placement.waves * placement.wave_lanes * bytes_per_lane
    of_unit = len(placement.first_round_of_unit()) * of_workgroup
    of_die = len(placement.first_round_of_die()) * of_workgroup
    caches = 2 if placement.unit == "WGP" else 1
    beyond_l1 = 1 - float(residency(of_unit, caches * facts.integer("l1v_size", "B")))
    beyond_l2 = 1 - float(residency(of_die, usable * chip.l2_slice))
    beyond_mall = 1 - float(residency(of_die * placement.dies, usable * chip.mall_bytes))
    rows = np.zeros((len(program.instructions), request.REQUEST), np.float32)
    for instruction in program.instructions:
        memory = instruction.decoded.memory
        if memory is None or memory.space is not Space.SCRATCH:
            continue
        moved = memory.bytes * placement.wave_lanes
        passed = moved * (beyond_l1 if memory.kind is MemoryKind.LOAD else 1.0)
        row = rows[instruction.index]
        row[request.TAGS] = moved / facts.number("l1v_line")
        row[request.L2] = passed
        row[request.MALL] = passed * beyond_l2
        row[request.HBM] = passed * beyond_l2 * beyond_mall
    return rows


__all__ = ["scratch_requests"]
