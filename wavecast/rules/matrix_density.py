"""A matrix loop whose matrix pipe is idle most of the time, by the code alone."""

from __future__ import annotations

from collections.abc import Iterator

from wavecast.analyze.result import LoopAnalysis
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.loops import hot_loop_analyses
from wavecast.rules.wording import at_line, join_names

NAME = "low-matrix-density"

BUSY = 0.5
"""Share of the binding pipe's cycles the matrix pipe must reach for the rule to stay silent."""

POOR = 1 / 3
"""Share below which the finding is a `warning`."""

_ADVICE = {
    "valu": "Move elementwise work out of the loop: convert or scale operands once before it or in "
    "the epilogue, keep offsets as increments, and enlarge the tile so that one address serves "
    "more.",
    "trans": "Compute fewer exponentials per product: use exp2 with the factor folded into the "
    "scale, or a larger head dimension or tile per exponential.",
    "salu": "Simplify the loop's scalar control: fewer pointers to advance, constants instead of "
    "run-time strides.",
    "lds": "Read less LDS per product: larger tiles per wave (fewer warps or a larger BLOCK_M/N), "
    "wider reads (K-contiguous operands), or operands kept in registers.",
    "vmem": "Load less per product: larger tiles, wider accesses (16 bytes per lane).",
    "smem": "Load scalars before the loop or several iterations at once.",
    "branch": "Remove branches from the loop: masks, conditionals on the lane, unrolled tails.",
    "issue": "Use fewer, larger instructions: bigger matrix instructions (matrix_instr_nonkdim), "
    "wider loads, packed arithmetic.",
}


def _check(subject: RuleInput) -> Iterator[Finding]:
    for loop in hot_loop_analyses(subject):
        matrix = loop.cycles.get("matrix", 0.0)
        binding = loop.cycles.get(loop.limiter, 0.0)
        if not matrix or loop.limiter == "matrix" or matrix >= BUSY * binding:
            continue
        yield Finding(
            rule=NAME,
            severity="warning" if matrix < POOR * binding else "note",
            message=f"the matrix pipe can be busy at most {100 * matrix / binding:.0f}% of the "
            "loop" + at_line(loop.location),
            evidence=f"per iteration and SIMD: {_pipes(loop)}",
            advice=_ADVICE[_culprit(loop)],
            location=loop.location,
        )


def _culprit(loop: LoopAnalysis) -> str:
    """The pipe to relieve: behind a full issue port, one that takes most of the slots itself."""
    if loop.limiter != "issue":
        return loop.limiter
    others = {pipe: cycles for pipe, cycles in loop.cycles.items() if pipe in _ADVICE}
    others.pop("issue", None)
    busiest = max(others, key=lambda pipe: others[pipe], default="issue")
    return busiest if others.get(busiest, 0) >= BUSY * loop.cycles["issue"] else "issue"


def _pipes(loop: LoopAnalysis) -> str:
    ranked = sorted(loop.cycles.items(), key=lambda item: -item[1])
    pipes = [item for item in ranked if item[1] > 0][:4]
    if "matrix" not in dict(pipes):
        pipes[-1] = ("matrix", loop.cycles["matrix"])
    return join_names(f"{pipe} {cycles:,.0f} cycles" for pipe, cycles in pipes)


RULE = Rule(
    name=NAME,
    severity="warning",
    title="Another pipe binds a matrix loop",
    explanation=f"""\
Matrix instructions run in parallel with vector, LDS and memory instructions of the same and other
waves, so a loop takes at least as long as its busiest pipe. If that is not the matrix pipe, no
occupancy reaches the matrix peak.

Fires when the matrix cycles of a loop are below {BUSY:.0%} of those of the binding
pipe.""",
    check=_check,
)
