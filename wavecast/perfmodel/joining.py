"""Memory instructions joined into wider ones: the launch simulated with one for several."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from typing import Any, Final

import numpy as np

from wavecast.isa.program import Program
from wavecast.perfmodel.cu import code as c
from wavecast.perfmodel.cu.code import Code
from wavecast.perfmodel.cu.streams import L2, REQUEST, SERIAL, TAGS, Streams
from wavecast.perfmodel.simulation import Simulation

Array = np.ndarray[Any, Any]

WIDEST: Final = 16.0
"""Bytes per lane of the widest memory instruction."""


def joined(simulation: Simulation, chosen: Array) -> tuple[Code, Streams]:
    """Code and streams in which the memory instructions chosen (bool[n]) of a block are as few as
    move the same bytes with `WIDEST` per lane, contiguous over the lanes. The first of those that
    become one asks for the bytes of all; the others take an issue slot."""
    code, streams = simulation.code, simulation.profile.streams
    profile = simulation.profile
    per_lane = code.contiguous[:, L2] / profile.placement.wave_lanes
    leader = leaders(profile.program, code.kind, per_lane, chosen)
    of_row = streams.steps[code.slots[streams.steps] > 0]
    rows = streams.rows.copy()
    part = chosen[of_row]
    rows[part] = np.minimum(rows[part], code.contiguous[of_row[part]])
    rows[part, TAGS] = rows[part, L2] / c.LINE
    return _without(code, leader >= 0), led(streams, of_row, rows, leader)


def led(streams: Streams, of_row: Array, rows: Array, leader: Array) -> Streams:
    """The streams with `rows` (of instructions `of_row`) in which the rows of those with a `leader`
    are added to its rows."""
    gone = np.flatnonzero(leader >= 0)
    for index in gone:
        mine, first = np.flatnonzero(of_row == index), np.flatnonzero(of_row == leader[index])
        if len(mine) == len(first):
            rows[first, :SERIAL] += rows[mine, :SERIAL]
    stays = ~np.isin(of_row, gone)
    before = np.concatenate([[0], np.cumsum(stays)])
    return replace(
        streams,
        rows=np.ascontiguousarray(rows[stays], np.float32).reshape(-1, REQUEST),
        rows_start=before[streams.rows_start],
    )


def leaders(program: Program, kinds: Array, widths: Array, chosen: Array) -> Array:
    """Per instruction the one that moves its bytes, -1 where it does so itself (i64[n]): the first
    of those of a block and kind that fit one of `WIDEST` bytes per lane. `widths` are bytes per
    lane, 0 where there is no access."""
    starts = [block.start for block in program.blocks]
    leader = np.full(len(chosen), -1)
    open_: dict[tuple[int, int], tuple[int, float]] = {}
    for index in np.flatnonzero(chosen & (widths > 0)):
        key = bisect_right(starts, int(index)), int(kinds[index])
        first, moved = open_.get(key, (-1, WIDEST))
        width = float(widths[index])
        if moved + width <= WIDEST:
            leader[index] = first
            open_[key] = first, moved + width
        else:
            open_[key] = int(index), width
    return leader


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


__all__ = ["WIDEST", "joined", "leaders", "led"]
