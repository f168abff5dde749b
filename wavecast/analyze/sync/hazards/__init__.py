"""Pairs of instructions the hardware does not keep apart by itself."""

from __future__ import annotations

from wavecast.analyze.sync.hazards import cdna, rdna, scalar_reads
from wavecast.analyze.sync.hazards.code import HazardCode
from wavecast.analyze.sync.violation import Violation
from wavecast.arch import capabilities
from wavecast.errors import MissingFact
from wavecast.isa.collector import no_collections
from wavecast.isa.program import Program
from wavecast.isa.targets import isa_target


@no_collections()
def hazards(program: Program) -> tuple[Violation, ...]:
    """Instructions that come too soon after one they depend on, in program order.

    Raises MissingFact for a target whose hazards `arch.capabilities` does not list.
    """
    target = isa_target(program.target)
    kinds = capabilities(target).hazards
    if not kinds:
        raise MissingFact(f"the hazards of {target} are not known")
    code = HazardCode(program)
    violations = list(cdna.check(code) if "wait_states" in kinds else rdna.check(code))
    if "valu_read_sgpr" in kinds:
        violations += scalar_reads.check(code)
    return tuple(sorted(violations, key=_position))


def _position(violation: Violation) -> int:
    return violation.instruction


__all__ = ["hazards"]
