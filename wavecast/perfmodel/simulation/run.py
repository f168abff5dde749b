"""What waves executed, as the compiled loops read it, and what a simulated unit did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wavecast.perfmodel.simulation.causes import BUSY, CAUSES
from wavecast.perfmodel.streams import Streams

Array = np.ndarray[Any, Any]


class Executed(NamedTuple):
    """What waves executed: the fields of `Streams` by their names."""

    waves: int
    steps: Array
    weights: Array
    start: Array
    rows: Array
    rows_start: Array

    @classmethod
    def of(cls, streams: Streams) -> Executed:
        """The arrays of recorded workgroups."""
        return cls(*(getattr(streams, name) for name in cls._fields))


class StallCounts(NamedTuple):
    """Wave clocks by instruction and cause (`stalls`), executions by instruction, clocks of work by
    resource; and the sum of all wave clocks without weights (one number)."""

    stalls: Array
    counts: Array
    busy: Array
    plain: Array

    @classmethod
    def empty(cls, instructions: int) -> StallCounts:
        """Nothing charged."""
        return cls(
            stalls=np.zeros((instructions, len(CAUSES))),
            counts=np.zeros(instructions),
            busy=np.zeros(len(BUSY)),
            plain=np.zeros(1),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What a compute unit did, in clocks.

    `clocks` is the time until its last workgroup ended, as if loops had run in full; `finish`
    (f64[n]) when each did. `stalls` (f64[instructions, causes]) are wave-clocks charged to an
    instruction and a cause of `CAUSES`, `counts` executions per instruction; `busy` the clocks of
    work of each of `BUSY`, over all SIMDs. `events` are the first issues (time, SIMD, wave slot,
    instruction, clocks), where asked for. `stretch` is the full time over the simulated one.
    """

    clocks: float
    finish: Array
    stalls: Array
    counts: Array
    busy: dict[str, float]
    events: Array
    stretch: float

    @staticmethod
    def of(finish: Array, account: StallCounts, events: Array) -> Run:
        """The run whose workgroups ended at clocks `finish` of the simulation."""
        plain = float(account.plain[0])
        stretch = float(account.stalls.sum()) / plain if plain else 1.0
        return Run(
            clocks=float(finish.max(initial=0.0)) * stretch,
            finish=finish * stretch,
            stalls=account.stalls,
            counts=account.counts,
            busy=dict(zip(BUSY, account.busy.tolist(), strict=True)),
            events=events,
            stretch=stretch,
        )


__all__ = ["Executed", "Run", "StallCounts"]
