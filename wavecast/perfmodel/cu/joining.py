"""Memory instructions joined into wider ones: the launch simulated with one for several."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from wavecast.perfmodel.cu import code as c
from wavecast.perfmodel.cu.code import Code
from wavecast.perfmodel.cu.simulation import Simulation
from wavecast.perfmodel.simulation.joining import leaders, merge_into_leaders
from wavecast.perfmodel.streams import L2, TAGS, Streams

Array = np.ndarray[Any, Any]


def join_accesses(simulation: Simulation, selection: Array) -> tuple[Code, Streams]:
    """Code and streams in which the memory instructions chosen (bool[n]) of a block are as few as
    move the same bytes with `WIDEST` per lane, contiguous over the lanes. The first of those that
    become one asks for the bytes of all; the others take an issue slot."""
    code, streams = simulation.code, simulation.profile.streams
    profile = simulation.profile
    per_lane = code.contiguous[:, L2] / profile.placement.wave_lanes
    leader = leaders(profile.program, code.kind, per_lane, selection)
    of_row = streams.steps[code.slots[streams.steps] > 0]
    rows = streams.rows.copy()
    part = selection[of_row]
    rows[part] = np.minimum(rows[part], code.contiguous[of_row[part]])
    rows[part, TAGS] = rows[part, L2] / c.LINE
    return _without(code, leader >= 0), merge_into_leaders(streams, of_row, rows, leader)


def _without(code: Code, free: Array) -> Code:
    """The code with memory instructions (bool[n]) that ask for nothing."""

    def where(values: Array, other: float) -> Array:
        return np.where(free, other, values).astype(values.dtype)

    return replace(
        code,
        pipe=where(code.pipe, c.NO_UNIT),
        category=where(code.category, 0),
        slots=where(code.slots, 0),
        counters=np.where(free[:, None], -1, code.counters).astype(code.counters.dtype),
    )


__all__ = ["join_accesses"]
