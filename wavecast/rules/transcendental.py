"""A loop bound by exponentials, logarithms, reciprocals or square roots."""

from __future__ import annotations

from collections.abc import Iterator

from wavecast.rules.finding import Finding, Rule, Subject
from wavecast.rules.loops import hot_loop_analyses
from wavecast.rules.wording import at_line, count

NAME = "transcendental-bound-loop"

MARGIN = 1.2
"""How much more than any other pipe the transcendental one must need."""


def _check(subject: Subject) -> Iterator[Finding]:
    for loop in hot_loop_analyses(subject):
        trans = loop.cycles.get("trans", 0.0)
        others = max((c for pipe, c in loop.cycles.items() if pipe != "trans"), default=0.0)
        if loop.limiter != "trans" or trans < MARGIN * others:
            continue
        number = loop.instructions.get("trans", 0)
        yield Finding(
            rule=NAME,
            severity="note",
            message=f"transcendental instructions bind the loop{at_line(loop.location)}",
            evidence=f"{count(number, 'instruction')} per iteration take {trans:,.0f} cycles per "
            f"SIMD, the next pipe {others:,.0f}",
            advice="Fold constants so that exp becomes one exp2 (multiply the scale by log2(e) "
            "outside the loop), divide once by multiplying with a reciprocal, drop "
            "recomputed terms, or evaluate part of them as polynomials on the vector "
            "pipe.",
            location=loop.location,
        )


RULE = Rule(
    name=NAME,
    severity="note",
    title="Transcendental instructions bind a loop",
    explanation=f"""\
exp2, log2, reciprocal, square root and sine run at a quarter of the vector rate (an eighth and
less on some targets). Softmax-like loops can be bound by them while every other pipe has room.

Fires when the transcendental pipe needs at least {MARGIN:g} times the cycles of any other.""",
    check=_check,
)
