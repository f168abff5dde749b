"""The speedup of each change to an NVIDIA launch: simulated with one thing different."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from wavecast.model.cu.streams import HBM, L2, PASSES, TAGS
from wavecast.model.prediction import WhatIf
from wavecast.model.simulation import LaunchTiming
from wavecast.model.sm import code as c
from wavecast.model.sm.code import SmCode
from wavecast.model.sm.simulation import SmSimulation
from wavecast.model.whatif import LEAST, PLENTY, Change

Array = np.ndarray[Any, Any]

LINE: Final = 128.0
WARP: Final = 32
_VECTOR_PIPES: Final = (c.FMA, c.ALU, c.HALF, c.FP64, c.UNIFORM)
_MATRIX_PIPES: Final = (c.MATRIX, c.WARPGROUP, c.TCGEN)


class SmChanges:
    """Simulations of one launch, each with one thing different from `simulation`."""

    def __init__(self, simulation: SmSimulation) -> None:
        self.simulation = simulation

    def all(self, now: LaunchTiming) -> tuple[WhatIf, ...]:
        """Every change that makes a difference to the time `now`, the largest speedup first."""
        found = []
        for change, again in self._changes():
            seconds = again().seconds
            speedup = 1 - seconds / now.seconds
            of_setting = change.startswith(("one workgroup", "at the peak"))
            if speedup >= LEAST or (of_setting and speedup <= -LEAST):
                found.append(WhatIf(change, seconds, speedup))
        return tuple(sorted(found, key=lambda entry: -entry.time_saved))

    def contiguous(self, chosen: Array) -> LaunchTiming:
        """With contiguous lanes in memory instructions (bool[n]), and shared-memory accesses
        without bank conflicts."""
        streams, code = self.simulation.profile.streams, self.simulation.code
        of_row = streams.steps[code.slots[streams.steps] > 0]
        widths = np.array([i.memory.bytes if i.memory else 0 for i in code.program.instructions])
        least = np.maximum(1.0, widths * WARP / LINE)[of_row]
        part, rows = chosen[of_row], streams.rows.copy()
        for column in (TAGS, PASSES):
            rows[part, column] = np.minimum(rows[part, column], least[part])
        for column in (L2, HBM):
            rows[part, column] = np.minimum(rows[part, column], least[part] * LINE)
        return self._simulated(streams=replace(streams, rows=rows))

    def resident(self, workgroups: int) -> LaunchTiming:
        """With that many workgroups resident on an SM."""
        placement = self.simulation.profile.placement
        return self._simulated(placement=replace(placement, resident=workgroups))

    def at(self, clock: float) -> LaunchTiming:
        """At a clock in Hz."""
        return self.simulation.run(clock=clock)

    def _changes(self) -> Iterator[Change]:
        now, chip, code = self.simulation, self.simulation.chip, self.simulation.code
        yield "matrix pipes free", partial(self._simulated, self._issue_free(_MATRIX_PIPES))
        yield "vector pipes free", partial(self._simulated, self._issue_free(_VECTOR_PIPES))
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
        kinds = np.where(code.kind == c.BARRIER, c.PLAIN, code.kind).astype(np.int32)
        yield "barriers free", partial(self._simulated, replace(code, kind=kinds))
        resident, peak = now.profile.placement.resident, chip.clock
        for word, number in (("more", resident + 1), ("fewer", resident - 1)):
            if number >= 1:
                yield f"one workgroup {word} per unit ({number})", partial(self.resident, number)
        yield f"at the peak clock ({peak / 1e9:.2f} GHz)", partial(self.at, peak)

    def _simulated(self, code: SmCode | None = None, **fields: Any) -> LaunchTiming:
        now = self.simulation
        changed = replace(now, code=code or now.code, profile=replace(now.profile, **fields))
        return changed.run()

    def _without_traffic(self, level: str) -> SmSimulation:
        profile = self.simulation.profile
        traffic = replace(profile.traffic, **{level: 0.0}) if profile.traffic else None
        return replace(self.simulation, profile=replace(profile, traffic=traffic))

    def _issue_free(self, pipes: tuple[int, ...]) -> SmCode:
        code = self.simulation.code
        chosen = np.isin(code.pipe, pipes)
        return replace(
            code,
            issue=np.where(chosen, 1e-3, code.issue).astype(np.float32),
            stall=np.where(chosen, 1, code.stall).astype(np.int32),
        )


__all__ = ["SmChanges"]
