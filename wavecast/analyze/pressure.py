"""Register pressure: live registers before every instruction, and where the peak is."""

from __future__ import annotations

from wavecast.analyze.result import Pressure
from wavecast.isa.liveness import liveness
from wavecast.isa.program import Program
from wavecast.isa.registers import AGPR_BASE, AGPRS, SGPR_BASE, SGPRS, VGPRS

_AGPR_FIELD = AGPRS >> AGPR_BASE
_SGPR_FIELD = SGPRS >> SGPR_BASE


def pressure(program: Program) -> Pressure:
    """Live VGPRs, AGPRs and SGPRs before each instruction.

    The peak is where most vector registers, VGPRs and AGPRs together, are live; the first such
    instruction counts.
    """
    before = liveness(program).before
    vgpr = [(live & VGPRS).bit_count() for live in before]
    agpr = [(live >> AGPR_BASE & _AGPR_FIELD).bit_count() for live in before]
    sgpr = [(live >> SGPR_BASE & _SGPR_FIELD).bit_count() for live in before]
    totals = [v + a for v, a in zip(vgpr, agpr, strict=True)]
    peak = max(range(len(totals)), key=totals.__getitem__, default=0)
    return Pressure(
        vgpr=tuple(vgpr),
        agpr=tuple(agpr),
        sgpr=tuple(sgpr),
        peak_index=peak,
        peak_vgpr=totals[peak] if totals else 0,
        peak_location=program.instructions[peak].location if totals else None,
    )
