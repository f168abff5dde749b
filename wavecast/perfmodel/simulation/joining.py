"""Which memory instructions become one, and the requests of those that stay."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from typing import Any, Final

import numpy as np

from wavecast.isa.program import Program
from wavecast.perfmodel.streams import REQUEST, SERIAL, Streams

Array = np.ndarray[Any, Any]

_SUMS: Final = np.flatnonzero(np.arange(REQUEST) != SERIAL)
WIDEST: Final = 16.0
"""Bytes per lane of the widest memory instruction."""


def merge_into_leaders(streams: Streams, of_row: Array, rows: Array, leader: Array) -> Streams:
    """The streams with `rows` (of instructions `of_row`) in which the rows of those with a `leader`
    are added to its rows."""
    followers = np.flatnonzero(leader >= 0)
    for index in followers:
        mine, first = np.flatnonzero(of_row == index), np.flatnonzero(of_row == leader[index])
        if len(mine) == len(first):
            rows[np.ix_(first, _SUMS)] += rows[np.ix_(mine, _SUMS)]
    stays = ~np.isin(of_row, followers)
    before = np.concatenate([[0], np.cumsum(stays)])
    return replace(
        streams,
        rows=np.ascontiguousarray(rows[stays], np.float32).reshape(-1, REQUEST),
        rows_start=before[streams.rows_start],
    )


def leaders(program: Program, kinds: Array, widths: Array, selection: Array) -> Array:
    """Per instruction the one that moves its bytes, -1 where it does so itself (i64[n]): the first
    of those of a block and kind that fit one of `WIDEST` bytes per lane. `widths` are bytes per
    lane, 0 where there is no access."""
    starts = [block.start for block in program.blocks]
    leader = np.full(len(selection), -1)
    open_: dict[tuple[int, int], tuple[int, float]] = {}
    for index in np.flatnonzero(selection & (widths > 0)):
        key = bisect_right(starts, int(index)), int(kinds[index])
        first, total = open_.get(key, (-1, WIDEST))
        width = float(widths[index])
        if total + width <= WIDEST:
            leader[index] = first
            open_[key] = first, total + width
        else:
            open_[key] = int(index), width
    return leader


__all__ = ["leaders", "merge_into_leaders"]
