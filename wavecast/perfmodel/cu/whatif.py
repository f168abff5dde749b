"""The speedup of each change: the launch simulated again with one thing different."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from wavecast.isa.program import Program
from wavecast.perfmodel.cu import code as c
from wavecast.perfmodel.cu.code import Code
from wavecast.perfmodel.cu.joining import join_accesses
from wavecast.perfmodel.cu.simulation import Simulation
from wavecast.perfmodel.prediction import WhatIf
from wavecast.perfmodel.profile import LevelTraffic
from wavecast.perfmodel.simulation.changes import LEAST, PLENTY, Change, requesting, select_steps
from wavecast.perfmodel.simulation.timing import LaunchTiming
from wavecast.perfmodel.streams import PASSES, Streams

Array = np.ndarray[Any, Any]
FREE: Final = 1e-3
"""Clocks of what costs nothing."""
MOST_OUTSTANDING: Final = 63
"""Operations that a wait counter counts at most (the largest of any target's counters)."""


class Changes:
    """Simulations of one launch, each with one thing different from `simulation`."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation

    def all(self, now: LaunchTiming) -> tuple[WhatIf, ...]:
        """Every change that makes a difference to the time `now`, the largest speedup first.

        A resource made free never costs time: where the simulation without it is slower, its waves
        met in a worse order, and the change is left out.
        """
        free = (
            entry for entry in self._entries(now, self._free_resources()) if entry.time_saved > 0
        )
        entries = (*free, *self._entries(now, self._settings()))
        return tuple(sorted(entries, key=lambda entry: -entry.time_saved))

    def _entries(self, now: LaunchTiming, changes: Iterable[Change]) -> Iterator[WhatIf]:
        for change, again in changes:
            seconds = again().seconds
            speedup = 1 - seconds / now.seconds
            if abs(speedup) >= LEAST:
                yield WhatIf(change, seconds, speedup)

    def free(self, selection: Array) -> LaunchTiming:
        """With instructions (bool[n]) that take an issue slot and nothing else."""
        code, slot = self.simulation.code, self._slot()
        free = replace(
            code,
            issue=_where(selection, slot, code.issue),
            latency=_where(selection, slot, code.latency),
            chained=_where(selection, slot, code.chained),
            lds_bytes=_where(selection, 0.0, code.lds_bytes),
        )
        rows = self._scale_requests(selection, 0.0).rows
        return replace(self._requesting(rows), code=free).run()

    def contiguous(self, selection: Array) -> LaunchTiming:
        """With contiguous lanes in memory instructions (bool[n]), and LDS accesses without bank
        conflicts."""
        return self.with_contiguous(selection).run()

    def with_contiguous(self, selection: Array) -> Simulation:
        """The simulation of `contiguous`."""
        return self._requesting(self._contiguous_rows(selection))

    def widen(self, selection: Array) -> LaunchTiming:
        """With memory instructions (bool[n]) joined into wide, contiguous ones."""
        code, streams = join_accesses(self.simulation, selection)
        wide = self._requesting(self._contiguous_rows(selection))
        return replace(wide, code=code, profile=replace(wide.profile, streams=streams)).run()

    def _contiguous_rows(self, selection: Array) -> Array:
        """The requests of the streams, where those of instructions (bool[n]) are contiguous."""
        streams, code = self.simulation.profile.streams, self.simulation.code
        of_row = streams.steps[code.slots[streams.steps] > 0]
        part, rows = selection[of_row], streams.rows.copy()
        rows[part] = np.minimum(rows[part], code.contiguous[of_row[part]])
        return rows

    def _requesting(self, rows: Array) -> Simulation:
        """The simulation with other requests (as `Streams.rows`)."""
        now, code = self.simulation, self.simulation.code
        return replace(now, profile=requesting(now.profile, rows, code.slots, code.kind == c.STORE))

    def later_waits(self, selection: Array, iterations: int) -> LaunchTiming:
        """With waits (bool[n]) for the loads of earlier iterations only: what is issued in
        `iterations` of their innermost loop may be outstanding."""
        code = self.simulation.code
        waits = code.waits.copy()
        for index in np.flatnonzero(selection):
            body = _innermost(self.simulation.profile.program, int(index))
            for counter in np.flatnonzero(waits[index] >= 0):
                issued = int((code.counters[body] == counter).any(axis=1).sum())
                later = int(waits[index, counter]) + iterations * issued
                waits[index, counter] = min(MOST_OUTSTANDING, later)
        return self._simulate(replace(code, waits=waits))

    def without_barriers(self, selection: Array) -> LaunchTiming:
        """Without the barriers among instructions (bool[n])."""
        return self._with_changes(self._unmet(selection)).run()

    def without(self, selection: Array) -> LaunchTiming:
        """Without instructions (bool[n]), which waves pass over."""
        code, streams = self.simulation.code, self.simulation.profile.streams
        return self._simulate(streams=select_steps(streams, code.slots, ~selection[streams.steps]))

    def atomics_in_lds(
        self, selection: Array, passes: float, global_atomics: float
    ) -> LaunchTiming:
        """With global atomics (bool[n]) of LDS, each of `passes` passes through its banks, and
        `global_atomics` atomics at the address of memory with the most of them."""
        code, streams = self.simulation.code, self.simulation.profile.streams
        rows = streams.rows.copy()
        part = selection[streams.steps[code.slots[streams.steps] > 0]]
        rows[part] = 0.0
        rows[part, PASSES] = passes
        asking = self._requesting(rows)
        lds = replace(
            code,
            pipe=np.where(selection, np.int8(c.LDS), code.pipe).astype(np.int8),
            lds_bytes=_where(selection, code.moved, code.lds_bytes),
        )
        traffic = asking.profile.traffic
        traffic = replace(traffic, atomics=global_atomics) if traffic is not None else None
        return replace(asking, code=lds, profile=replace(asking.profile, traffic=traffic)).run()

    def _unmet(self, selection: Array) -> Code:
        code = self.simulation.code
        pipe = np.where(selection & (code.pipe == c.BARRIER), np.int8(c.NO_UNIT), code.pipe)
        return replace(code, pipe=pipe.astype(np.int8))

    def resident(self, workgroups: int) -> LaunchTiming:
        """With that many workgroups resident on a unit."""
        placement = self.simulation.profile.placement
        return self._simulate(placement=replace(placement, resident=workgroups))

    def at(self, clock: float) -> LaunchTiming:
        """At a clock in Hz."""
        return self.simulation.run(clock=clock)

    def _free_resources(self) -> Iterator[Change]:
        """Resources that cost nothing."""
        now, chip, code = self.simulation, self.simulation.chip, self.simulation.code
        yield "matrix pipes free", partial(self._simulate, self._issue_free(c.MATRIX))
        yield "vector pipes free", partial(self._simulate, self._issue_free(c.VALU))
        in_lds = code.category == c.CATEGORIES.index("lds")
        yield "LDS without bank conflicts", partial(self.contiguous, in_lds)
        in_cache = code.category == c.CATEGORIES.index("vmem")
        yield "global accesses all contiguous", partial(self.contiguous, in_cache)
        yield "LDS free", partial(now.run, lds_rate=1e-6, latency_lds=1.0)
        yield "address path free", partial(now.run, tag=1e-6, returned=PLENTY)
        no_l2 = self._with_changes(traffic=self._traffic("l2"))
        yield "L2 bandwidth free", partial(no_l2.run, l2=PLENTY)
        no_memory = self._with_changes(traffic=self._traffic("mall", "hbm", "updated"))
        yield "memory bandwidth free", partial(no_memory.run, mall=PLENTY, hbm=PLENTY)
        near = dict.fromkeys(_LATENCIES, chip.latency["l1"] * chip.clock)
        yield "memory as near as the L1", partial(now.run, **near)
        everywhere = np.ones(len(code.pipe), bool)
        yield "barriers free", partial(self.without_barriers, everywhere)

    def _settings(self) -> Iterator[Change]:
        """Other occupancies and the peak clock."""
        resident, peak = self.simulation.profile.placement.resident, self.simulation.chip.clock
        for word, number in (("more", resident + 1), ("fewer", resident - 1)):
            if number >= 1:
                yield f"one workgroup {word} per unit ({number})", partial(self.resident, number)
        yield f"at the peak clock ({peak / 1e9:.2f} GHz)", partial(self.at, peak)

    def _with_changes(self, code: Code | None = None, **fields: Any) -> Simulation:
        """The simulation with other instruction costs, or other fields of the profile."""
        now = self.simulation
        return replace(now, code=code or now.code, profile=replace(now.profile, **fields))

    def _simulate(self, code: Code | None = None, **fields: Any) -> LaunchTiming:
        return self._with_changes(code, **fields).run()

    def _slot(self) -> float:
        """Clocks of an issue slot."""
        return 1.0 if self.simulation.chip.lanes == 32 else 4.0

    def _scale_requests(self, selection: Array, factor: float) -> Streams:
        """The streams with the requests of some instructions (bool[n]) times a factor."""
        streams, code = self.simulation.profile.streams, self.simulation.code
        of_row = streams.steps[code.slots[streams.steps] > 0]
        rows = streams.rows.copy()
        rows[selection[of_row]] *= np.float32(factor)
        return replace(streams, rows=rows)

    def _issue_free(self, pipe: int) -> Code:
        code = self.simulation.code
        selection = code.pipe == pipe
        return replace(
            code,
            issue=_where(selection, FREE, code.issue),
            latency=_where(selection, 4.0, code.latency),
            chained=_where(selection, 4.0, code.chained),
        )

    def _traffic(self, *free: str) -> LevelTraffic | None:
        traffic = self.simulation.profile.traffic
        return replace(traffic, **dict.fromkeys(free, 0.0)) if traffic else None


def _innermost(program: Program, index: int) -> Array:
    """The instructions (i64[m]) of the innermost loop around one, none outside of loops."""
    loops = []
    for loop in program.loops:
        body = [
            number
            for block in sorted(loop.blocks)
            for number in range(program.blocks[block].start, program.blocks[block].stop)
        ]
        if index in body:
            loops.append(body)
    return np.array(min(loops, key=len, default=[]), np.int64)


def _where(selection: Array, value: float | Array, otherwise: Array) -> Array:
    return np.where(selection, value, otherwise).astype(np.float32)


_LATENCIES: Final = ("latency_l2", "latency_mall", "latency_hbm")

__all__ = ["Changes"]
