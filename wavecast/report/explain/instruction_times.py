"""The instructions a predicted launch spends most time at, and what its waves wait for there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from wavecast.perfmodel.launches import launch_timing
from wavecast.perfmodel.simulation.causes import CAUSES

if TYPE_CHECKING:
    from wavecast.isa.instruction import SourceLocation
    from wavecast.pipeline.explain.result import Explanation

ROWS: Final = 25
"""Instructions that are shown."""
_SHOWN_CAUSES: Final = 3


@dataclass(frozen=True, slots=True)
class InstructionTime:
    """One instruction: its part of the predicted `seconds`, the largest causes with their parts of
    that, and how often a wave executes it (None where that is not known)."""

    index: int
    text: str
    location: SourceLocation | None
    seconds: float
    causes: tuple[tuple[str, float], ...]
    executed: float | None


def instruction_times(explanation: Explanation) -> tuple[InstructionTime, ...]:
    """The instructions with the most time, () for a launch that is not predicted."""
    profile = explanation.predicted.profile
    if profile is None:
        return ()
    timing = launch_timing(profile, explanation.device)
    program, stalls = profile.program, np.asarray(timing.unit.stalls)
    clocks = stalls.sum(axis=1)
    work = (timing.seconds - timing.launch) / (float(clocks.sum()) or 1.0)
    executed = explanation.analysis.executed
    blocks = {
        index: executed[block.index] if block.index < len(executed) else None
        for block in program.blocks
        for index in range(block.start, block.stop)
    }
    times = []
    for index in np.argsort(-clocks, kind="stable")[:ROWS].tolist():
        if not clocks[index]:
            break
        row = stalls[index]
        largest = np.argsort(-row, kind="stable")[:_SHOWN_CAUSES].tolist()
        causes = tuple((CAUSES[c], float(row[c] / clocks[index])) for c in largest if row[c])
        instruction = program.instructions[index]
        times.append(
            InstructionTime(
                index,
                instruction.decoded.text,
                instruction.location,
                float(work * clocks[index]),
                causes,
                blocks.get(index),
            )
        )
    return tuple(times)


__all__ = ["InstructionTime", "instruction_times"]
