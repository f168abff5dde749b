"""The figures that are compared, gated and plotted: name -> what it is and which way is better."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from wavecast.errors import UnknownName


@dataclass(frozen=True, slots=True)
class Kpi:
    """One figure. `better` is `lower` or `higher`; `noisy` ones are judged by statistics, others
    are exact: any change is one. `threshold` is the relative change for the worse a gate lets pass
    by default (0: none)."""

    name: str
    unit: str
    meaning: str
    better: Literal["lower", "higher"] = "lower"
    noisy: bool = False
    threshold: float = 0.0

    @property
    def secondary(self) -> bool:
        """Whether it explains a time, so that a better time outweighs it."""
        return self.name in _EXPLAINING


_EXPLAINING: Final = frozenset(
    {"vgprs", "sgprs", "waves", "lds_bytes", "code_instructions", "instructions",
     "matrix_instructions", "memory_instructions", "barriers", "global_bytes", "bank_conflicts"}
)  # fmt: skip
_ALL: Final = (
    Kpi("measured_seconds", "s", "device time on a GPU, median", noisy=True, threshold=0.03),
    Kpi("predicted_seconds", "s", "predicted device time", threshold=0.03),
    Kpi("vgprs", "", "vector registers per lane (registers per thread on NVIDIA)", threshold=0.1),
    Kpi("sgprs", "", "scalar registers per wave", threshold=0.25),
    Kpi("spills", "", "registers kept in memory"),
    Kpi("scratch_bytes", "B", "scratch memory per lane"),
    Kpi("waves", "", "waves resident per SIMD (warps per sub-partition)", better="higher"),
    Kpi("lds_bytes", "B", "LDS of a workgroup", threshold=0.1),
    Kpi("code_instructions", "", "instructions in the machine code", threshold=0.25),
    Kpi("instructions", "", "wave instructions executed", threshold=0.02),
    Kpi("matrix_instructions", "", "matrix instructions executed", threshold=0.02),
    Kpi("memory_instructions", "", "global memory instructions executed", threshold=0.02),
    Kpi("barriers", "", "barriers executed", threshold=0.02),
    Kpi("global_bytes", "B", "bytes lanes read and write in global memory", threshold=0.02),
    Kpi("bank_conflicts", "", "LDS passes beyond those without conflicts", threshold=0.02),
    Kpi("findings", "", "findings of rules, warnings and errors"),
    Kpi("check_reports", "", "errors that checks report (races, missing waits, bounds …)"),
    Kpi("numerical_error", "", "largest error, as a multiple of the tolerance", threshold=0.5),
)

KPIS: Final[Mapping[str, Kpi]] = {kpi.name: kpi for kpi in _ALL}


def kpi(name: str) -> Kpi:
    """A KPI by name. Raises UnknownName."""
    if name not in KPIS:
        raise UnknownName("KPI", name, KPIS)
    return KPIS[name]


__all__ = ["KPIS", "Kpi", "kpi"]
