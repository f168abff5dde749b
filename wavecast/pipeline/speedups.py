"""The speedup of fixing each finding: the launch simulated without what its rule found.

One table, rule -> simulation. A speedup is an upper bound: the best code would still do some of the
work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from wavecast.arch import Device
from wavecast.isa.opcode import Space
from wavecast.isa.program import Program
from wavecast.model.prediction import Prediction
from wavecast.model.profile import LaunchProfile
from wavecast.model.simulation import LaunchTiming, Simulation
from wavecast.model.whatif import Changes
from wavecast.rules.finding import Finding

Array = np.ndarray[Any, Any]
Change = Callable[[Changes, Array], LaunchTiming]

LEAST: Final = 0.005
"""Speedups below this part of the time are 0."""


def _one_more(changes: Changes, chosen: Array) -> LaunchTiming:
    del chosen
    return changes.resident(changes.simulation.profile.placement.resident + 1)


def _no_spills(changes: Changes, chosen: Array) -> LaunchTiming:
    """Without scratch, and without the lanes of VGPRs that SGPRs spill to."""
    del chosen
    program = changes.simulation.profile.program
    return changes.free(_in_scratch(program) | _of_class(program, "valu_lane"))


def _no_copies(changes: Changes, chosen: Array) -> LaunchTiming:
    return changes.free(chosen & _of_class(changes.simulation.profile.program, "accvgpr"))


def _no_transcendentals(changes: Changes, chosen: Array) -> LaunchTiming:
    del chosen
    return changes.free(_of_class(changes.simulation.profile.program, "trans"))


SPEEDUPS: Final[Mapping[str, Change]] = {
    "lds-bank-conflicts": Changes.contiguous,
    "uncoalesced-global": Changes.contiguous,
    "full-wait-in-loop": Changes.without_waits,
    "register-spills": _no_spills,
    "accumulator-copies": _no_copies,
    "division-in-loop": Changes.free,
    "transcendental-bound-loop": _no_transcendentals,
    "occupancy-one-step-away": _one_more,
}
"""Rule -> the launch simulated without what it found at some instructions (bool[n])."""


def with_speedups(
    findings: Sequence[Finding], profile: LaunchProfile, device: Device, prediction: Prediction
) -> tuple[Finding, ...]:
    """The findings with the speedups that simulations give them (`Finding.time_saved`).

    `prediction` is that of the profile on the device. Raises as `Simulation.of`.
    """
    changes = Changes(Simulation.of(profile, device))
    found = []
    for finding in findings:
        change = SPEEDUPS.get(finding.rule)
        if change is None:
            found.append(finding)
            continue
        chosen = _chosen(finding, profile.program)
        speedup = 1 - change(changes, chosen).seconds / prediction.seconds
        found.append(replace(finding, time_saved=speedup if speedup >= LEAST else 0.0))
    return tuple(found)


def _chosen(finding: Finding, program: Program) -> Array:
    """The instructions (bool[n]) of a finding: its own, those of its line, or all."""
    chosen = np.zeros(len(program.instructions), bool)
    if finding.instruction is not None:
        chosen[finding.instruction] = True
        return chosen
    if finding.location is not None:
        line = finding.location.outermost
        for instruction in program.instructions:
            if instruction.location is not None:
                outer = instruction.location.outermost
                chosen[instruction.index] = (outer.file, outer.line) == (line.file, line.line)
    return chosen if chosen.any() else ~chosen


def _in_scratch(program: Program) -> Array:
    return np.array(
        [i.memory is not None and i.memory.space is Space.SCRATCH for i in program.instructions]
    )


def _of_class(program: Program, name: str) -> Array:
    return np.array([i.opcode.cost_class.startswith(name) for i in program.instructions])


__all__ = ["SPEEDUPS", "with_speedups"]
