"""Findings from instructions that may run too early."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wavecast.analyze.sync import Violation
from wavecast.isa.program import Program
from wavecast.rules.finding import Finding
from wavecast.rules.wording import count

_MOST = 10


def findings(
    program: Program, rule: str, violations: Sequence[Violation], advice: str
) -> Iterator[Finding]:
    """One finding per instruction that is not waited for, at its first early use; at most ten."""
    first: dict[int, Violation] = {}
    for violation in violations:
        first.setdefault(violation.cause, violation)
    for number, violation in enumerate(first.values(), 1):
        instruction = program.instructions[violation.instruction]
        cause = program.instructions[violation.cause]
        more = len(first) - _MOST if number == _MOST else 0
        yield Finding(
            rule=rule,
            severity="error",
            message=violation.statement,
            evidence=f"instruction {instruction.index}, assembly line {instruction.line}; the "
            f"other is instruction {cause.index}, line {cause.line}"
            + (
                f"; {count(more, 'more instruction')} without a wait are not listed" if more else ""
            ),
            advice=f"Put `{violation.remedy}` {advice}.",
            location=instruction.location,
            instruction=instruction.index,
        )
        if number == _MOST:
            return
