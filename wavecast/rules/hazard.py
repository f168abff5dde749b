"""Instructions that need wait states between them, which the hardware does not insert."""

from __future__ import annotations

from collections.abc import Iterator

from wavecast.analyze.sync import hazards
from wavecast.errors import MissingFact
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.violations import findings

NAME = "hazard"


def _check(subject: RuleInput) -> Iterator[Finding]:
    program = subject.program
    if not subject.code.is_amd:  # the hardware of SASS waits by scoreboards
        return
    try:
        violations = hazards(program)
    except MissingFact:  # no source for the hazards of the target
        return
    yield from findings(program, NAME, violations, "between the two")


RULE = Rule(
    name=NAME,
    severity="error",
    title="Too few wait states between two instructions",
    explanation="""\
Some results are not in their register when the next instruction reads it, and the hardware does
not check: on CDNA the results of matrix instructions, of vector instructions that write SGPRs, EXEC
or VCC, and of transcendentals; on RDNA 3 those of transcendentals; on RDNA 4 scalar registers that
vector instructions have read before. Software must insert wait states: `s_nop`, `v_nop`,
`s_waitcnt_depctr`, `s_wait_alu` or other instructions. Compilers do; handwritten assembly must too.

Fires when a path has fewer wait states between two such instructions than LLVM inserts. Every
instruction is one wait state, `s_nop N` is N + 1. Not checked: gfx1250, and waves of 64 lanes on
RDNA 3.""",
    check=_check,
)
