"""Memory instructions of SASS joined into wider ones: the launch simulated with one for several."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from wavecast.perfmodel.simulation.joining import leaders, merge_into_leaders
from wavecast.perfmodel.sm import code as c
from wavecast.perfmodel.sm.code import SmCode
from wavecast.perfmodel.sm.simulation import SmSimulation
from wavecast.perfmodel.streams import HBM, L2, PASSES, TAGS, Streams

Array = np.ndarray[Any, Any]

LINE: Final = 128.0
WARP: Final = 32


def contiguous_rows(simulation: SmSimulation, selection: Array) -> Array:
    """The requests of the streams, where those of instructions (bool[n]) have contiguous lanes and
    no bank conflicts."""
    streams, code = simulation.profile.streams, simulation.code
    of_row = streams.steps[code.slots[streams.steps] > 0]
    least = np.maximum(1.0, _widths(code) * WARP / LINE)[of_row]
    part, rows = selection[of_row], streams.rows.copy()
    for column in (TAGS, PASSES):
        rows[part, column] = np.minimum(rows[part, column], least[part])
    for column in (L2, HBM):
        rows[part, column] = np.minimum(rows[part, column], least[part] * LINE)
    return rows


def join_accesses(simulation: SmSimulation, selection: Array) -> tuple[SmCode, Streams]:
    """Code and streams in which the memory instructions chosen (bool[n]) of a block are as few as
    move the same bytes with `WIDEST` per lane. The first of those that become one asks for the
    bytes of all; the others take an issue slot."""
    code, streams = simulation.code, simulation.profile.streams
    leader = leaders(code.program, code.kind, _widths(code), selection)
    of_row = streams.steps[code.slots[streams.steps] > 0]
    rows = contiguous_rows(simulation, selection)
    part = selection[of_row]
    rows[part, TAGS] = _widths(code)[of_row[part]] * WARP / LINE
    free = leader >= 0
    changed = without_work(code, free)
    slots = np.where(free, 0, code.slots).astype(np.int32)
    return replace(changed, slots=slots), merge_into_leaders(streams, of_row, rows, leader)


def without_work(code: SmCode, selection: Array) -> SmCode:
    """The code with instructions (bool[n]) that take an issue slot and tell no scoreboard."""

    def where(values: Array, other: float) -> Array:
        return np.where(selection, other, values).astype(values.dtype)

    memory = selection & np.isin(code.kind, (c.LOAD, c.STORE, c.ATOMIC, c.SHARED, c.TO_SHARED))
    return replace(
        code,
        pipe=where(code.pipe, c.NO_UNIT),
        issue=where(code.issue, 0.0),
        stall=where(code.stall, 1),
        kind=np.where(memory, c.PLAIN, code.kind).astype(code.kind.dtype),
        written=where(code.written, -1),
        read=where(code.read, -1),
        lds_bytes=where(code.lds_bytes, 0.0),
    )


def _widths(code: SmCode) -> Array:
    """Bytes per lane of memory instructions, 0 of others (f64[n])."""
    return np.array([float(i.memory.bytes) if i.memory else 0.0 for i in code.program.instructions])


__all__ = ["contiguous_rows", "join_accesses", "without_work"]
