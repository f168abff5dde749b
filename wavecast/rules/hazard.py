"""Instructions the hardware does not keep apart by itself."""

from __future__ import annotations

from collections.abc import Iterator

from wavecast.analyze.sync import hazards
from wavecast.isa.targets import isa_target
from wavecast.rules.finding import Finding, Rule, Subject
from wavecast.rules.violations import findings

NAME = "hazard"

_NOT_WRITTEN_DOWN = frozenset({"gfx1250"})


def _check(subject: Subject) -> Iterator[Finding]:
    program = subject.program
    if program is None or isa_target(program.target) in _NOT_WRITTEN_DOWN:
        return
    yield from findings(subject, program, NAME, hazards(program), "between the two")


RULE = Rule(
    name=NAME,
    severity="error",
    title="Too few wait states between two instructions",
    explanation="""\
Some results reach a register later than the next instruction reads it, and the hardware does not
check: on CDNA those of matrix instructions, of vector instructions in SGPRs, EXEC or VCC, and of
transcendentals; on RDNA 3 transcendentals, on RDNA 4 scalar registers that vector instructions
have read before. Software keeps the two apart: `s_nop`, `v_nop`, `s_waitcnt_depctr`, `s_wait_alu`
or other instructions. Compilers do; assembly written or changed by hand must do it itself.

Fires when on some path the room between two such instructions is smaller than LLVM leaves. The
count is of wait states: one per instruction, N + 1 for `s_nop N`. Not checked: gfx1250, and what
waves of 64 lanes need on RDNA 3.""",
    check=_check,
)
