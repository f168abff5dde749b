"""Copies between accumulation and ordinary registers in a hot loop."""

from __future__ import annotations

from collections.abc import Iterator

from wavecast.rules.changes import free, simulated_fix
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.loops import body_instructions, hot_loops
from wavecast.rules.settings import more_warps
from wavecast.rules.wording import at_line, lines

NAME = "accumulator-copies"

COPIES = 8
"""Copies per iteration from which on the rule speaks."""

SHARE = 0.05
"""Least share of the loop's instructions."""


def _check(subject: RuleInput) -> Iterator[Finding]:
    program = subject.program
    for loop in hot_loops(subject):
        body = body_instructions(program, loop)
        copies = [item for item in body if item.opcode.cost_class == "accvgpr"]
        if len(copies) < max(COPIES, SHARE * len(body)):
            continue
        registers = subject.analysis.registers
        advice = (
            "Lower the register need so that accumulators and operands fit the ordinary VGPRs: a "
            "smaller tile, or more warps where a wave may hold more. Values that vector "
            "instructions touch every iteration (a rescaled accumulator) cost two copies each "
            "while they live in AGPRs."
        )
        yield Finding(
            rule=NAME,
            severity="warning",
            message=f"{len(copies)} copies to or from accumulation registers per iteration of the "
            f"loop{at_line(loop.location)}",
            evidence=f"{len(copies)} of {len(body):,} instructions, at "
            f"{lines(item.location for item in copies)}; the kernel uses "
            f"{registers.vgpr} VGPRs and {registers.agpr} AGPRs",
            advice=advice,
            fixes=(*more_warps(subject), simulated_fix(advice, free, (i.index for i in copies))),
            location=copies[0].location or loop.location,
            instruction=copies[0].index,
        )


RULE = Rule(
    name=NAME,
    severity="warning",
    title="AGPR copies in a hot loop",
    explanation=f"""\
On CDNA half of a wave's registers are accumulation registers. Matrix instructions use them
freely, vector instructions cannot: a value kept there is copied out and back around every vector
instruction. The compiler does so when the 256 ordinary VGPRs are full.

Fires from {COPIES} copies and {SHARE:.0%} of the instructions of a loop, inner loops not
counted.""",
    check=_check,
)
