"""The KPIs that the code of an explained kernel has without running."""

from __future__ import annotations

from wavecast.pipeline.explain.result import Explanation


def code_figures(explanation: Explanation) -> dict[str, float]:
    """What the code takes and what was found in it, by name of the KPI (`kpis.KPIS`); without those
    not known for it."""
    analysis, registers = explanation.analysis, explanation.analysis.registers
    values = {
        "vgprs": registers.vgpr + registers.agpr,
        "sgprs": registers.sgpr,
        "spills": registers.spilled,
        "scratch_bytes": registers.scratch_bytes,
        "waves": analysis.occupancy.resident_waves,
        "lds_bytes": analysis.lds_bytes,
        "code_instructions": sum(analysis.instructions.values()),
        "findings": sum(finding.severity != "note" for finding in explanation.findings),
    }
    return {name: float(value) for name, value in values.items() if value is not None}


__all__ = ["code_figures"]
