"""Loops whose waves wait for each other at barriers more than they work."""

from __future__ import annotations

from collections.abc import Iterator

from wavecast.isa.opcode import Role
from wavecast.isa.program import Loop
from wavecast.isa.waits import awaits, is_named
from wavecast.rules.changes import simulated_fix, without, without_barriers
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.fix import Fix
from wavecast.rules.loops import loop_analysis, loop_instructions
from wavecast.rules.wording import at_line, count, lines

NAME = "barrier-heavy-loop"

INSTRUCTIONS = 48
"""Instructions per barrier of a loop below which the rule speaks."""

STEPS = 4
"""Barriers per iteration from which on a loop is taken for a reduction by steps."""


def _check(subject: RuleInput) -> Iterator[Finding]:
    program = subject.program
    if subject.analysis.occupancy.waves_per_workgroup < 2:
        return
    for loop in program.loops:
        if any(_barriers(subject, inner) for inner in program.loops if inner.parent == loop.index):
            continue
        barriers = _barriers(subject, loop)
        body = loop_instructions(program, loop)
        analysis = loop_analysis(subject, loop)
        works = analysis is not None and analysis.matrix_density > 0
        if not barriers or works or len(body) > INSTRUCTIONS * len(barriers):
            continue
        where = [program.instructions[index].location for index in barriers]
        yield Finding(
            rule=NAME,
            severity="note",
            message=f"{count(len(barriers), 'barrier')} for {len(body)} instructions in the loop"
            + at_line(loop.location),
            evidence=f"barriers at {lines(where)}; {_members(subject, barriers)} meet at each, "
            "and wait for the slowest and for its memory",
            advice=_advice(barriers),
            location=next((location for location in where if location), loop.location),
            locations=tuple(location for location in where if location is not None),
            instruction=barriers[0],
            fixes=(_fix(barriers, [item.index for item in body]),),
        )


def _members(subject: RuleInput, barriers: list[int]) -> str:
    """Which waves meet at barriers of a loop."""
    instructions = subject.program.instructions
    of_all = f"the {subject.analysis.occupancy.waves_per_workgroup} waves of a workgroup"
    named = [is_named(instructions[index]) for index in barriers]
    if all(named):
        return "the waves that have joined a named barrier"
    return f"{of_all}, or those that have joined a named one," if any(named) else of_all


def _advice(barriers: list[int]) -> str:
    if len(barriers) >= STEPS:
        return (
            "Add up in registers and reduce once after the loop; or reduce within a wave by "
            "shuffles, which need no barrier, and meet once for the results of the waves."
        )
    return (
        "Do more between barriers: give a workgroup a deeper tile, or use two buffers alternately "
        "so that one barrier per step is enough."
    )


def _fix(barriers: list[int], body: list[int]) -> Fix:
    if len(barriers) >= STEPS:
        between = [index for index in body if barriers[0] <= index <= barriers[-1]]
        return simulated_fix(_advice(barriers), without, between)
    return simulated_fix(_advice(barriers), without_barriers, barriers)


def _barriers(subject: RuleInput, loop: Loop) -> list[int]:
    """The barriers of a loop, inner loops included, at which waves wait."""
    return [
        item.index
        for item in loop_instructions(subject.program, loop)
        if item.opcode.role is Role.BARRIER and awaits(item.opcode)
    ]


RULE = Rule(
    name=NAME,
    severity="note",
    title="Barriers bind a loop",
    explanation=f"""\
At a barrier every wave of a workgroup waits for the slowest. A loop that does little between two
barriers (a tree reduction in LDS, a stencil of one point per thread) spends its time waiting,
and the other workgroups of the unit cannot always fill it.

Fires for loops without matrix instructions and with fewer than {INSTRUCTIONS} instructions per
barrier, in workgroups of several waves, where the simulation without the barriers is faster.""",
    check=_check,
)
