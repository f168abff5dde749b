"""What putting a finding right would bring: the launch simulated without what its rule found.

One table, rule -> simulation. A gain is what the change would bring at most: the best code would
still do some of the work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from wavecast.isa.opcode import Space
from wavecast.isa.program import Program
from wavecast.model.launch import Launched, Timing
from wavecast.model.prediction import Prediction
from wavecast.model.whatif import Changes
from wavecast.rules.finding import Finding

Array = np.ndarray[Any, Any]
Simulation = Callable[[Changes, Array], Timing]

LEAST: Final = 0.005
"""Gains below this part of the time are 0."""


def _one_more(changes: Changes, chosen: Array) -> Timing:
    del chosen
    return changes.resident(changes.launched.grid.resident + 1)


def _no_spills(changes: Changes, chosen: Array) -> Timing:
    """Without scratch, and without the lanes of VGPRs that SGPRs spill to."""
    del chosen
    program = changes.launched.code.program
    return changes.free(_in_scratch(program) | _of_class(program, "valu_lane"))


def _no_copies(changes: Changes, chosen: Array) -> Timing:
    return changes.free(chosen & _of_class(changes.launched.code.program, "accvgpr"))


def _no_transcendentals(changes: Changes, chosen: Array) -> Timing:
    del chosen
    return changes.free(_of_class(changes.launched.code.program, "trans"))


GAINS: Final[Mapping[str, Simulation]] = {
    "lds-bank-conflicts": Changes.contiguous,
    "uncoalesced-global": Changes.contiguous,
    "full-wait-in-loop": Changes.without_waits,
    "register-spills": _no_spills,
    "accumulator-copies": _no_copies,
    "division-in-loop": Changes.free,
    "transcendental-bound-loop": _no_transcendentals,
    "occupancy-one-step-away": _one_more,
}
"""Rule -> the launch without what it found at the instructions chosen."""


def with_gains(
    findings: Sequence[Finding], launched: Launched, prediction: Prediction
) -> tuple[Finding, ...]:
    """The findings with the gains that simulations give them."""
    changes = Changes(launched)
    found = []
    for finding in findings:
        simulation = GAINS.get(finding.rule)
        if simulation is None:
            found.append(finding)
            continue
        chosen = _chosen(finding, launched.code.program)
        gain = 1 - simulation(changes, chosen).seconds / prediction.seconds
        found.append(replace(finding, gain=gain if gain >= LEAST else 0.0))
    return tuple(found)


def _chosen(finding: Finding, program: Program) -> Array:
    """The instructions a finding is about: its own, those of its line, or all."""
    chosen = np.zeros(len(program.instructions), bool)
    if finding.instruction is not None:
        chosen[finding.instruction] = True
        return chosen
    if finding.location is not None:
        place = finding.location.outermost
        for instruction in program.instructions:
            if instruction.location is not None:
                outer = instruction.location.outermost
                chosen[instruction.index] = (outer.file, outer.line) == (place.file, place.line)
    return chosen if chosen.any() else ~chosen


def _in_scratch(program: Program) -> Array:
    return np.array(
        [i.memory is not None and i.memory.space is Space.SCRATCH for i in program.instructions]
    )


def _of_class(program: Program, name: str) -> Array:
    return np.array([i.opcode.cost_class.startswith(name) for i in program.instructions])


__all__ = ["GAINS", "with_gains"]
