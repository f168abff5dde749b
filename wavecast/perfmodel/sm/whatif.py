"""The speedup of each change to an NVIDIA launch: simulated with one thing different."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from wavecast.perfmodel.prediction import WhatIf
from wavecast.perfmodel.simulation.changes import LEAST, PLENTY, Change, requesting, select_steps
from wavecast.perfmodel.simulation.timing import LaunchTiming
from wavecast.perfmodel.sm import code as c
from wavecast.perfmodel.sm.code import SmCode
from wavecast.perfmodel.sm.joining import contiguous_rows, join_accesses, without_work
from wavecast.perfmodel.sm.simulation import SmSimulation
from wavecast.perfmodel.streams import PASSES

Array = np.ndarray[Any, Any]

_VECTOR_PIPES: Final = (c.FMA, c.ALU, c.HALF, c.FP64, c.UNIFORM)
_MATRIX_PIPES: Final = (c.MATRIX, c.WARPGROUP, c.TCGEN)


class SmChanges:
    """Simulations of one launch, each with one thing different from `simulation`."""

    def __init__(self, simulation: SmSimulation) -> None:
        self.simulation = simulation

    def all(self, now: LaunchTiming) -> tuple[WhatIf, ...]:
        """Every change that makes a difference to the time `now`, the largest speedup first."""
        changes = []
        for change, again in self._changes():
            seconds = again().seconds
            speedup = 1 - seconds / now.seconds
            of_setting = change.startswith(("one workgroup", "at the peak"))
            if speedup >= LEAST or (of_setting and speedup <= -LEAST):
                changes.append(WhatIf(change, seconds, speedup))
        return tuple(sorted(changes, key=lambda entry: -entry.time_saved))

    def free(self, selection: Array) -> LaunchTiming:
        """With instructions (bool[n]) that take an issue slot and nothing else."""
        code, streams = self.simulation.code, self.simulation.profile.streams
        rows = streams.rows.copy()
        rows[selection[streams.steps[code.slots[streams.steps] > 0]]] = 0.0
        asking = self._requesting(rows)
        return replace(asking, code=without_work(code, selection & ~_synchronises(code))).run()

    def contiguous(self, selection: Array) -> LaunchTiming:
        """With contiguous lanes in memory instructions (bool[n]), and shared-memory accesses
        without bank conflicts."""
        return self.with_contiguous(selection).run()

    def with_contiguous(self, selection: Array) -> SmSimulation:
        """The simulation of `contiguous`."""
        return self._requesting(contiguous_rows(self.simulation, selection))

    def widen(self, selection: Array) -> LaunchTiming:
        """With memory instructions (bool[n]) joined into wide, contiguous ones."""
        wide = self.with_contiguous(selection)
        code, streams = join_accesses(self.simulation, selection)
        return replace(wide, code=code, profile=replace(wide.profile, streams=streams)).run()

    def later_waits(self, selection: Array, iterations: int) -> LaunchTiming:
        """Raises ValueError: a scoreboard does not count the loads of an iteration."""
        del selection, iterations
        raise ValueError("SASS waits by scoreboards")

    def without(self, selection: Array) -> LaunchTiming:
        """Without instructions (bool[n]), which warps pass over."""
        code, streams = self.simulation.code, self.simulation.profile.streams
        return self._simulate(streams=select_steps(streams, code.slots, ~selection[streams.steps]))

    def without_barriers(self, selection: Array) -> LaunchTiming:
        """Without the barriers among instructions (bool[n])."""
        code = self.simulation.code
        barriers = selection & (code.kind == c.BARRIER)
        return self._simulate(replace(code, kind=np.where(barriers, c.PLAIN, code.kind)))

    def atomics_in_lds(
        self, selection: Array, passes: float, global_atomics: float
    ) -> LaunchTiming:
        """With global atomics (bool[n]) of shared memory, each of `passes` passes through its
        banks, and `global_atomics` atomics at the address of memory with the most of them."""
        code, streams = self.simulation.code, self.simulation.profile.streams
        rows = streams.rows.copy()
        part = selection[streams.steps[code.slots[streams.steps] > 0]]
        rows[part] = 0.0
        rows[part, PASSES] = passes
        asking = self._requesting(rows)
        kinds = np.where(selection, c.SHARED, code.kind).astype(code.kind.dtype)
        traffic = asking.profile.traffic
        traffic = replace(traffic, atomics=global_atomics) if traffic is not None else None
        profile = replace(asking.profile, traffic=traffic)
        return replace(asking, code=replace(code, kind=kinds), profile=profile).run()

    def resident(self, workgroups: int) -> LaunchTiming:
        """With that many workgroups resident on an SM."""
        placement = self.simulation.profile.placement
        return self._simulate(placement=replace(placement, resident=workgroups))

    def at(self, clock: float) -> LaunchTiming:
        """At a clock in Hz."""
        return self.simulation.run(clock=clock)

    def _changes(self) -> Iterator[Change]:
        now, chip, code = self.simulation, self.simulation.chip, self.simulation.code
        yield "matrix pipes free", partial(self._simulate, self._issue_free(_MATRIX_PIPES))
        yield "vector pipes free", partial(self._simulate, self._issue_free(_VECTOR_PIPES))
        shared = code.kind == c.SHARED
        yield "LDS without bank conflicts", partial(self.contiguous, shared)
        in_global = np.isin(code.kind, (c.LOAD, c.STORE, c.ATOMIC, c.TO_SHARED))
        yield "global accesses all contiguous", partial(self.contiguous, in_global)
        yield "LDS free", partial(now.run, lds_rate=1e-6, latency_lds=1.0)
        yield "address path free", partial(now.run, tag=1e-6)
        no_l2 = self._without_traffic("l2")
        yield "L2 bandwidth free", partial(no_l2.run, l2=PLENTY)
        no_memory = self._without_traffic("hbm")
        yield "memory bandwidth free", partial(no_memory.run, hbm=PLENTY)
        near = chip.latency["l1"] * chip.clock
        yield "memory as near as the L1", partial(now.run, latency_l2=near, latency_hbm=near)
        yield "barriers free", partial(self.without_barriers, np.ones(len(code.kind), bool))
        resident, peak = now.profile.placement.resident, chip.clock
        for word, number in (("more", resident + 1), ("fewer", resident - 1)):
            if number >= 1:
                yield f"one workgroup {word} per unit ({number})", partial(self.resident, number)
        yield f"at the peak clock ({peak / 1e9:.2f} GHz)", partial(self.at, peak)

    def _requesting(self, rows: Array) -> SmSimulation:
        """The simulation with other requests (as `Streams.rows`)."""
        now, code = self.simulation, self.simulation.code
        return replace(now, profile=requesting(now.profile, rows, code.slots, code.kind == c.STORE))

    def _simulate(self, code: SmCode | None = None, **fields: Any) -> LaunchTiming:
        now = self.simulation
        changed = replace(now, code=code or now.code, profile=replace(now.profile, **fields))
        return changed.run()

    def _without_traffic(self, level: str) -> SmSimulation:
        profile = self.simulation.profile
        traffic = replace(profile.traffic, **{level: 0.0}) if profile.traffic else None
        return replace(self.simulation, profile=replace(profile, traffic=traffic))

    def _issue_free(self, pipes: tuple[int, ...]) -> SmCode:
        code = self.simulation.code
        selection = np.isin(code.pipe, pipes)
        return replace(
            code,
            issue=np.where(selection, 1e-3, code.issue).astype(np.float32),
            stall=np.where(selection, 1, code.stall).astype(np.int32),
        )


def _synchronises(code: SmCode) -> Array:
    """Instructions (bool[n]) that warps wait for each other by."""
    return np.isin(code.kind, (c.BARRIER, c.ARRIVAL, c.PHASE_WAIT, c.COMMIT, c.TMA))


__all__ = ["SmChanges"]
