"""A profile of SASS whose warps run a loop fewer times."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from wavecast.perfmodel.profile import LaunchProfile
from wavecast.perfmodel.simulation.changes import select_steps
from wavecast.perfmodel.sm import code as c
from wavecast.perfmodel.sm.code import SmCode
from wavecast.perfmodel.streams import L2, TAGS, Streams

Array = np.ndarray[Any, Any]


def with_fewer_repeats(
    profile: LaunchProfile, code: SmCode, loop: int, divisor: float
) -> LaunchProfile:
    """The profile in which a loop (its index) runs the first 1/divisor of its iterations, and at
    least one. Bytes of the whole launch stay."""
    program, streams = code.program, profile.streams
    body = np.zeros(len(code.slots), bool)
    for block in program.loops[loop].blocks:
        body[program.blocks[block].start : program.blocks[block].stop] = True
    header = program.blocks[program.loops[loop].header].start
    stays, weights = np.ones(len(streams.steps), bool), streams.weights.copy()
    for first, stop in zip(streams.start[:-1].tolist(), streams.start[1:].tolist(), strict=True):
        steps = streams.steps[first:stop]
        for begin, end in _runs(body[steps]):
            entries = begin + np.flatnonzero(steps[begin:end] == header)
            if len(entries) == 0:
                continue
            target_weight = float(weights[first + entries].sum()) / divisor
            number = max(1, -(-len(entries) // int(divisor)))
            cut = int(entries[number]) if number < len(entries) else end
            stays[first + cut : first + end] = False
            span = slice(first + begin, first + cut)
            weights[span] *= max(1.0, target_weight) / float(
                weights[first + entries[:number]].sum()
            )
    shorter = select_steps(replace(streams, weights=weights), code.slots, stays)
    return replace(profile, streams=replace(shorter, rows=renumber_phases(code, shorter)))


def renumber_phases(code: SmCode, streams: Streams) -> Array:
    """The rows of streams in which each wait for a memory barrier is for the phase of its number
    among those of its warp."""
    rows = streams.rows.copy()
    for warp in range(len(streams.start) - 1):
        warp_steps = streams.steps[streams.start[warp] : streams.start[warp + 1]]
        kinds = code.kind[warp_steps[code.slots[warp_steps] > 0]]
        count: dict[int, int] = {}
        for row in (streams.rows_start[warp] + np.flatnonzero(kinds == c.PHASE_WAIT)).tolist():
            barrier = int(rows[row, TAGS])
            count[barrier] = count.get(barrier, 0) + 1
            rows[row, L2] = count[barrier]
    return rows


def _runs(flags: Array) -> list[tuple[int, int]]:
    """The runs of True in the steps of a warp, `[start, stop)`."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(np.int8), [0]])))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


__all__ = ["renumber_phases", "with_fewer_repeats"]
