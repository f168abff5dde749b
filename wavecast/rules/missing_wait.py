"""Registers used before the memory operation that fills them is waited for."""

from __future__ import annotations

from collections.abc import Iterator

from wavecast.analyze.sync import missing_waits
from wavecast.rules.finding import Finding, Rule, Subject
from wavecast.rules.violations import findings

NAME = "missing-wait"


def _check(subject: Subject) -> Iterator[Finding]:
    program = subject.program
    if program is None:
        return
    advice = "or a stronger wait before it, on every path that leads there"
    yield from findings(subject, program, NAME, missing_waits(program), advice)


RULE = Rule(
    name=NAME,
    severity="error",
    title="A register used before its load has arrived",
    explanation="""\
Memory instructions run on while the wave goes on; a counter per kind says how many are not done,
and only a wait (`s_waitcnt`, `s_wait_loadcnt` …) makes the wave stand still until few enough are.
Without it the register holds the old value or the new one, as timing has it. Compilers insert
these waits; assembly written or changed by hand, and inline assembly, must have its own.

Fires when on some path an instruction reads or overwrites a register that an outstanding load
still writes. Operations of one kind complete in order, so a wait may leave the later ones open;
scalar loads, and flat accesses on CDNA, complete in any order and need a wait for zero.""",
    check=_check,
)
