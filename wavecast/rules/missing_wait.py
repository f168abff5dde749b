"""Registers used before the memory operation that fills them is waited for."""

from __future__ import annotations

from collections.abc import Iterator

from wavecast.analyze.sync import missing_waits
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.violations import findings

NAME = "missing-wait"


def _check(subject: RuleInput) -> Iterator[Finding]:
    program = subject.program
    if not subject.code.is_amd:  # the hardware of SASS waits by scoreboards
        return
    advice = "or a stronger wait before it, on every path that leads there"
    yield from findings(program, NAME, missing_waits(program), advice)


RULE = Rule(
    name=NAME,
    severity="error",
    title="A register used before its load has arrived",
    explanation="""\
Memory instructions are asynchronous: the wave continues, and a counter per kind of operation has
the number of outstanding ones. Only a wait (`s_waitcnt`, `s_wait_loadcnt` …) blocks the wave until
the counter is low enough. Without it the register has the old or the new value, depending on
timing. Compilers insert these waits; handwritten and inline assembly must do so too.

Fires when on some path an instruction reads or overwrites a register that an outstanding load
still writes. Operations of one kind complete in order, so a wait may leave later ones outstanding;
scalar loads, and flat accesses on CDNA, complete in any order and need a wait for zero.""",
    check=_check,
)
