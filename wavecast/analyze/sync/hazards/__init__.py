"""Pairs of instructions the hardware does not keep apart by itself."""

from __future__ import annotations

from wavecast.analyze.sync.hazards import cdna, rdna, scalar_reads
from wavecast.analyze.sync.hazards.code import Code
from wavecast.analyze.sync.violation import Violation
from wavecast.errors import MissingFact
from wavecast.isa.collector import no_collections
from wavecast.isa.program import Program
from wavecast.isa.targets import TARGET_SETS, isa_target


@no_collections()
def hazards(program: Program) -> tuple[Violation, ...]:
    """Instructions that come too soon after one they depend on, in program order.

    Raises MissingFact for gfx1250, whose rules for matrix and vector instructions that run beside
    each other are not written down here.
    """
    target = isa_target(program.target)
    if target in TARGET_SETS["gfx1250"]:
        raise MissingFact(f"the hazards of {target} are not written down")
    code = Code(program)
    found = list(cdna.check(code) if target in TARGET_SETS["gfx9"] else rdna.check(code))
    if target in scalar_reads.TARGETS:
        found += scalar_reads.check(code)
    return tuple(sorted(found, key=_place))


def _place(violation: Violation) -> int:
    return violation.instruction


__all__ = ["hazards"]
