"""A loop bound by exponentials, logarithms, reciprocals or square roots."""

from __future__ import annotations

from collections.abc import Iterator

from wavecast.rules.changes import free, simulated_fix
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.loops import hot_loop_analyses, of_class
from wavecast.rules.wording import at_line, count

NAME = "transcendental-bound-loop"

SHARE = 0.5
"""Share of the binding pipe's cycles that transcendental instructions must take."""


def _check(subject: RuleInput) -> Iterator[Finding]:
    if not subject.code.is_amd:
        return
    each = subject.device.cost("trans").issue_cycles
    for loop in hot_loop_analyses(subject):
        number = loop.instructions.get("trans", 0)
        binding = loop.cycles.get(loop.limiter, 0.0)
        trans_cycles = number * each * loop.waves_per_simd
        if loop.limiter not in ("valu", "trans") or trans_cycles < SHARE * binding:
            continue
        advice = (
            "Fold constants so that exp becomes one exp2 (multiply the scale by log2(e) outside "
            "the loop), divide once by multiplying with a reciprocal, drop recomputed terms, or "
            "evaluate part of them as polynomials on the vector pipe."
        )
        yield Finding(
            rule=NAME,
            severity="note",
            message=f"transcendental instructions bind the loop{at_line(loop.location)}",
            evidence=f"{count(number, 'instruction')} per iteration take {trans_cycles:,.0f} of "
            "the "
            f"{binding:,.0f} cycles of the busiest pipe, {each:g} each",
            advice=advice,
            location=loop.location,
            fixes=(simulated_fix(advice, free, of_class(subject.program, "trans")),),
        )


RULE = Rule(
    name=NAME,
    severity="note",
    title="Transcendental instructions bind a loop",
    explanation=f"""\
exp2, log2, reciprocal, square root and sine run at a quarter of the vector rate or less. On CDNA
they occupy the vector pipe, on RDNA a separate pipe. They can bound softmax-like loops while every
other pipe is partly idle.

Fires for AMD targets when the vector or transcendental pipe binds a loop and
transcendental instructions take at least {SHARE:.0%} of its cycles.""",
    check=_check,
)
