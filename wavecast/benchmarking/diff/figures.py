"""The numbers of an explained kernel that are compared: KPIs, resources, instruction mix."""

from __future__ import annotations

from collections.abc import Mapping

from wavecast.benchmarking.code import code_figures
from wavecast.benchmarking.diff.result import Delta
from wavecast.benchmarking.kpis import KPIS, Kpi
from wavecast.errors import UnknownName
from wavecast.pipeline.explain.result import Explanation

COMPARED = (
    *("predicted_seconds", "vgprs", "sgprs", "spills", "scratch_bytes", "waves", "lds_bytes"),
    *("code_instructions", "findings"),
)
"""The KPIs a comparison of code has; others need a GPU or the emulator."""


def compared_kpi(name: str) -> Kpi:
    """One of `COMPARED`. Raises UnknownName."""
    if name not in COMPARED:
        raise UnknownName("KPI of a diff", name, COMPARED)
    return KPIS[name]


def figures(explanation: Explanation) -> dict[str, float]:
    """The KPIs of a kernel, without those that are not known for it."""
    prediction = explanation.predicted.prediction
    predicted = {"predicted_seconds": prediction.seconds} if prediction else {}
    return {**predicted, **code_figures(explanation)}


def resources(explanation: Explanation) -> dict[str, float]:
    """What the code occupies, in registers, bytes, and waves per SIMD."""
    analysis, registers = explanation.analysis, explanation.analysis.registers
    return {
        "VGPR": registers.vgpr,
        "AGPR": registers.agpr,
        "SGPR": registers.sgpr,
        "spilled VGPR": registers.spilled_vgpr,
        "spilled SGPR": registers.spilled_sgpr,
        "scratch bytes": registers.scratch_bytes,
        "LDS bytes": analysis.lds_bytes,
        "waves/SIMD": analysis.occupancy.waves_per_simd,
    }


def deltas(before: Mapping[str, float], after: Mapping[str, float]) -> tuple[Delta, ...]:
    """Every name of either side, in order."""
    names = dict.fromkeys([*before, *after])
    return tuple(Delta(name, before.get(name), after.get(name)) for name in names)


def counts(before: Mapping[str, int], after: Mapping[str, int]) -> tuple[Delta, ...]:
    """The same of counts, where a missing name is 0."""
    names = dict.fromkeys([*before, *after])
    return tuple(Delta(name, before.get(name, 0), after.get(name, 0)) for name in names)


def is_worse(kpi: Kpi, before: float, after: float, minimum: float = 0.0) -> bool:
    """Whether a KPI changed for the worse by more than `minimum` of what it was. From zero any
    change is one."""
    loss = after - before if kpi.better == "lower" else before - after
    return loss > minimum * abs(before)


__all__ = ["COMPARED", "compared_kpi", "counts", "deltas", "figures", "is_worse", "resources"]
