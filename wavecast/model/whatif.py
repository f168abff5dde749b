"""What each change would bring: the launch simulated again with one thing different."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from wavecast.model.chip import Chip
from wavecast.model.cu import code as c
from wavecast.model.cu.code import Code
from wavecast.model.cu.streams import Streams
from wavecast.model.launch import Grid, Launched, Timing, Traffic, timing
from wavecast.model.prediction import WhatIf

Array = np.ndarray[Any, Any]
Change = tuple[str, Callable[[], Timing]]
"""What is different, and the launch simulated with it."""

PLENTY: Final = 1e6
"""Bytes per clock of a resource made free."""
LEAST: Final = 0.005
"""Gains below this part of the time are not told."""


class Changes:
    """A launch that can be simulated again."""

    def __init__(self, launched: Launched) -> None:
        self.launched = launched

    def all(self, now: Timing) -> tuple[WhatIf, ...]:
        """Every change that would make a difference, the largest gain first.

        What is made free never costs time: where the simulation is slower without it, its waves
        met in a worse order, and the change is left out.
        """
        free = (told for told in self._told(now, self._freed()) if told.gain > 0)
        told = (*free, *self._told(now, self._chosen()))
        return tuple(sorted(told, key=lambda entry: -entry.gain))

    def _told(self, now: Timing, changes: Iterable[Change]) -> Iterator[WhatIf]:
        for change, again in changes:
            seconds = again().seconds
            gain = 1 - seconds / now.seconds
            if abs(gain) >= LEAST:
                yield WhatIf(change, seconds, gain)

    def free(self, chosen: Array) -> Timing:
        """With instructions (bool[n]) that take an issue slot and nothing else."""
        code = self.launched.code
        return self._with(
            code=replace(
                code,
                issue=_where(chosen, self._slot(), code.issue),
                latency=_where(chosen, self._slot(), code.latency),
                chained=_where(chosen, self._slot(), code.chained),
                lds_bytes=_where(chosen, 0.0, code.lds_bytes),
            ),
            streams=self._rows(chosen, 0.0),
        )

    def contiguous(self, chosen: Array) -> Timing:
        """With the lanes of memory instructions (bool[n]) following one another, and LDS accesses
        without bank conflicts."""
        return self._with(streams=self._rows(chosen, None))

    def without_waits(self, chosen: Array) -> Timing:
        """Without the waits of instructions (bool[n])."""
        code = self.launched.code
        waits = np.where(chosen[:, None], np.int8(-1), code.waits)
        return self._with(code=replace(code, waits=waits))

    def resident(self, workgroups: int) -> Timing:
        """With as many workgroups on a unit at once."""
        return self._with(grid=replace(self.launched.grid, resident=workgroups))

    def on(self, chip: Chip) -> Timing:
        """The same code on another chip of its target."""
        before = self.launched
        units = _units(before.grid, before.chip, chip)
        grid = replace(before.grid, units=units, dies=chip.dies)
        return timing(replace(before, chip=chip, grid=grid))

    def at(self, clock: float) -> Timing:
        """At a clock in Hz."""
        return timing(self.launched, clock=clock)

    def _freed(self) -> Iterator[Change]:
        """Resources that cost nothing."""
        now = self.launched
        yield "matrix pipes free", partial(self._with, code=self._issue_free(c.MATRIX))
        yield "vector pipes free", partial(self._with, code=self._issue_free(c.VALU))
        in_lds = now.code.category == c.CATEGORIES.index("lds")
        yield "LDS without bank conflicts", partial(self.contiguous, in_lds)
        in_cache = now.code.category == c.CATEGORIES.index("vmem")
        yield "global accesses all contiguous", partial(self.contiguous, in_cache)
        yield "LDS free", partial(timing, now, lds_rate=1e-6, latency_lds=1.0)
        yield "address path free", partial(timing, now, tag=1e-6)
        no_l2 = replace(now, traffic=self._traffic("l2"))
        yield "L2 bandwidth free", partial(timing, no_l2, l2=PLENTY)
        no_memory = replace(now, traffic=self._traffic("mall", "hbm"))
        yield "memory bandwidth free", partial(timing, no_memory, mall=PLENTY, hbm=PLENTY)
        near = dict.fromkeys(_LATENCIES, now.chip.latency["l1"] * now.chip.clock)
        yield "memory as near as the L1", partial(timing, now, **near)
        yield "barriers free", partial(self._with, code=self._without_barriers())

    def _chosen(self) -> Iterator[Change]:
        """Other occupancies and the peak clock."""
        now = self.launched
        for word, number in (("more", now.grid.resident + 1), ("fewer", now.grid.resident - 1)):
            if number >= 1:
                yield f"one workgroup {word} per unit ({number})", partial(self.resident, number)
        peak = now.chip.clock
        yield f"at the peak clock ({peak / 1e9:.2f} GHz)", partial(self.at, peak)

    def _with(self, **fields: Any) -> Timing:
        return timing(replace(self.launched, **fields))

    def _slot(self) -> float:
        return 1.0 if self.launched.chip.lanes == 32 else 4.0

    def _rows(self, chosen: Array, factor: float | None) -> Streams:
        """The requests of some instructions times a factor; None: at most those of lanes that
        follow one another."""
        streams, code = self.launched.streams, self.launched.code
        of_row = streams.steps[code.places[streams.steps] > 0]
        part = chosen[of_row]
        rows = streams.rows.copy()
        if factor is None:
            rows[part] = np.minimum(rows[part], code.contiguous[of_row[part]])
        else:
            rows[part] *= np.float32(factor)
        return replace(streams, rows=rows)

    def _issue_free(self, pipe: int) -> Code:
        quick = np.where(
            self.launched.code.pipe == pipe, np.float32(1e-3), self.launched.code.issue
        )
        latency = np.where(
            self.launched.code.pipe == pipe, np.float32(4.0), self.launched.code.latency
        )
        chained = np.where(
            self.launched.code.pipe == pipe, np.float32(4.0), self.launched.code.chained
        )
        return replace(
            self.launched.code,
            issue=quick.astype(np.float32),
            latency=latency.astype(np.float32),
            chained=chained.astype(np.float32),
        )

    def _without_barriers(self) -> Code:
        pipe = np.where(
            self.launched.code.pipe == c.BARRIER, np.int8(c.NO_UNIT), self.launched.code.pipe
        )
        return replace(self.launched.code, pipe=pipe.astype(np.int8))

    def _traffic(self, *free: str) -> Traffic | None:
        return (
            replace(self.launched.traffic, **dict.fromkeys(free, 0.0))
            if self.launched.traffic
            else None
        )


def _where(chosen: Array, value: float, otherwise: Array) -> Array:
    return np.where(chosen, np.float32(value), otherwise).astype(np.float32)


_LATENCIES: Final = ("latency_l2", "latency_mall", "latency_hbm")


def _units(grid: Grid, before: Chip, after: Chip) -> int:
    """Units of another chip; a unit of the grid may be several of its compute units (WGP)."""
    return after.units // max(1, before.units // grid.units)


__all__ = ["Changes"]
