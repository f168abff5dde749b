"""A launch whose work is divided in another way: more workgroups, fewer iterations, wider lanes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from wavecast.analyze.result import CodeAnalysis
from wavecast.model.cu import code as c
from wavecast.model.cu.streams import SERIAL
from wavecast.model.profile import ProfileSource
from wavecast.model.simulation import LaunchTiming, Simulation
from wavecast.model.static import with_fewer_iterations

Array = np.ndarray[Any, Any]


def split_loop(
    simulation: Simulation,
    analysis: CodeAnalysis,
    loop: int,
    parts: int,
    result_bytes: float,
    *,
    added: bool = True,
) -> LaunchTiming:
    """With the iterations of a loop divided among `parts` times as many workgroups, and (`added`) a
    second kernel that adds their results, `result_bytes` in all.

    Raises ValueError for a profile of executed samples, whose iterations are recorded ones.
    """
    profile = simulation.profile
    if profile.source is not ProfileSource.CODE:
        raise ValueError("iterations of an executed sample cannot be divided")
    placement = replace(profile.placement, workgroups=profile.placement.workgroups * parts)
    shorter = with_fewer_iterations(profile, analysis, simulation.code, loop, parts)
    timing = replace(simulation, profile=replace(shorter, placement=placement)).run()
    if not added:
        return timing
    adding = simulation.chip.launch + (parts + 1) * result_bytes / simulation.chip.hbm
    return replace(timing, seconds=timing.seconds + adding)


def finer(simulation: Simulation, parts: int) -> LaunchTiming:
    """With workgroups of 1/parts of the work each: the busiest unit has less in the last round."""
    timing, placement = simulation.run(), simulation.profile.placement
    now = placement.most_per_unit
    then = replace(placement, workgroups=placement.workgroups * parts).most_per_unit / parts
    work = (timing.seconds - timing.launch) * then / now
    return replace(timing, seconds=timing.launch + work)


def wider_lanes(
    simulation: Simulation, chosen: Array, factor: int, analysis: CodeAnalysis, loop: int | None
) -> LaunchTiming:
    """With lanes that move `factor` times the bytes with each of the memory instructions chosen
    (bool[n]) and compute as much more on them, in 1/factor of the iterations of their `loop` (its
    index), or of the workgroups where they are in none.

    Raises ValueError for a loop of a profile of executed samples.
    """
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
    part = chosen[streams.steps[code.slots[streams.steps] > 0]]
    rows[part, :SERIAL] *= factor
    computes = (code.pipe == c.VALU) | (code.pipe == c.TRANS)
    computes &= np.arange(len(chosen)) > int(np.flatnonzero(chosen)[0])
    issue = np.where(computes, code.issue * factor, code.issue).astype(np.float32)
    wide = replace(profile, streams=replace(streams, rows=rows))
    return replace(simulation, code=replace(code, issue=issue), profile=wide).run()


__all__ = ["finer", "split_loop", "wider_lanes"]
