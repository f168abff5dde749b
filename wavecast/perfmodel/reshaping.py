"""A launch whose work is divided in another way: more workgroups, fewer iterations, wider lanes."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from wavecast.analyze.result import CodeAnalysis
from wavecast.perfmodel.cu import code as c
from wavecast.perfmodel.cu.simulation import Simulation
from wavecast.perfmodel.profile import ProfileSource
from wavecast.perfmodel.simulation.changes import select_steps
from wavecast.perfmodel.simulation.timing import LaunchTiming
from wavecast.perfmodel.sm import code as sm
from wavecast.perfmodel.sm.repeats import renumber_phases, with_fewer_repeats
from wavecast.perfmodel.sm.simulation import SmSimulation
from wavecast.perfmodel.static import with_fewer_iterations
from wavecast.perfmodel.streams import SERIAL

Array = np.ndarray[Any, Any]


def split_loop(
    simulation: Simulation | SmSimulation,
    analysis: CodeAnalysis,
    loop: int,
    parts: int,
    result_bytes: float,
    *,
    has_addition: bool = True,
) -> LaunchTiming:
    """With the iterations of a loop divided among `parts` times as many workgroups, and
    (`has_addition`) a second kernel that adds their results, `result_bytes` in all.

    Raises ValueError for a profile of executed samples, whose iterations are recorded ones.
    """
    profile = simulation.profile
    if profile.source is not ProfileSource.CODE:
        raise ValueError("iterations of an executed sample cannot be divided")
    placement = replace(profile.placement, workgroups=profile.placement.workgroups * parts)
    if isinstance(simulation, SmSimulation):
        shorter = with_fewer_repeats(profile, simulation.code, loop, parts)
    else:
        shorter = with_fewer_iterations(profile, analysis, simulation.code, loop, parts)
    timing = replace(simulation, profile=replace(shorter, placement=placement)).run()
    if not has_addition:
        return timing
    adding = simulation.chip.launch + (parts + 1) * result_bytes / simulation.chip.hbm
    return replace(timing, seconds=timing.seconds + adding)


def finer(simulation: Simulation | SmSimulation, parts: int) -> LaunchTiming:
    """With workgroups of 1/parts of the work each: the busiest unit has less in the last round."""
    timing, placement = simulation.run(), simulation.profile.placement
    now = placement.most_per_unit
    then = replace(placement, workgroups=placement.workgroups * parts).most_per_unit / parts
    work = (timing.seconds - timing.launch) * then / now
    return replace(timing, seconds=timing.launch + work)


def coarser(simulation: Simulation | SmSimulation, parts: int) -> LaunchTiming:
    """With 1/parts of the workgroups, each of which does the work of `parts`, one after the other:
    what its waves execute up to their first access to memory is common to all."""
    profile, code = simulation.profile, simulation.code
    streams = profile.streams
    longer = replace(
        streams,
        steps=_repeat(streams.steps, streams.start, parts),
        weights=_repeat(streams.weights, streams.start, parts),
        start=streams.start * parts,
        rows=_repeat(streams.rows, streams.rows_start, parts),
        rows_start=streams.rows_start * parts,
    )
    if isinstance(simulation, SmSimulation):
        accesses = simulation.code.kind != sm.PLAIN
    else:
        accesses = simulation.code.pipe == c.VMEM
    stays = np.concatenate(
        [
            np.concatenate([np.ones(high - low, bool), *[late] * (parts - 1)])
            for low, high in pairwise(streams.start.tolist())
            for late in [np.cumsum(accesses[streams.steps[low:high]]) > 0]
        ]
    )
    longer = select_steps(longer, code.slots, stays)
    if isinstance(simulation, SmSimulation):
        longer = replace(longer, rows=renumber_phases(simulation.code, longer))
    workgroups = max(1, math.ceil(profile.placement.workgroups / parts))
    placement = replace(profile.placement, workgroups=workgroups)
    return replace(simulation, profile=replace(profile, streams=longer, placement=placement)).run()


def _repeat(values: Array, start: Array, times: int) -> Array:
    """The values of every wave `times` times, one after the other."""
    parts = [values[low:high] for low, high in pairwise(start.tolist()) for _ in range(times)]
    return np.concatenate(parts)


def wider_lanes(
    simulation: Simulation | SmSimulation,
    selection: Array,
    factor: int,
    analysis: CodeAnalysis,
    loop: int | None,
) -> LaunchTiming:
    """With lanes that move `factor` times the bytes with each of the memory instructions chosen
    (bool[n]) and compute as much more on them, in 1/factor of the iterations of their `loop` (its
    index), or of the workgroups where they are in none.

    Raises ValueError for a loop of a profile of executed samples, and for SASS.
    """
    if isinstance(simulation, SmSimulation):
        raise ValueError("lanes of SASS are not made wider")
    code, profile = simulation.code, simulation.profile
    if loop is None:
        fewer = max(1, math.ceil(profile.placement.workgroups / factor))
        profile = replace(profile, placement=replace(profile.placement, workgroups=fewer))
    elif profile.source is ProfileSource.CODE:
        profile = with_fewer_iterations(profile, analysis, code, loop, factor)
    else:
        raise ValueError("iterations of an executed sample cannot be divided")
    streams = profile.streams
    rows = streams.rows.copy()
    part = selection[streams.steps[code.slots[streams.steps] > 0]]
    rows[part, :SERIAL] *= factor
    computes = (code.pipe == c.VALU) | (code.pipe == c.TRANS)
    computes &= np.arange(len(selection)) > int(np.flatnonzero(selection)[0])
    issue = np.where(computes, code.issue * factor, code.issue).astype(np.float32)
    wide = replace(profile, streams=replace(streams, rows=rows))
    return replace(simulation, code=replace(code, issue=issue), profile=wide).run()


__all__ = ["coarser", "finer", "split_loop", "wider_lanes"]
