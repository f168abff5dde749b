"""What would order the accesses of races between workgroups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wavecast.compile.source_accesses import SourceAccess
from wavecast.emulate.check.clocks.atomicity import ATOMIC
from wavecast.emulate.check.clocks.missing_order import (
    MIXED,
    VOLATILE,
    Lack,
    RaceSide,
    Unordered,
    explanation,
)
from wavecast.emulate.check.gpus.order import CheckedLaunch, GpuOrder
from wavecast.emulate.check.log import CheckRecord
from wavecast.emulate.reports import Kind


@dataclass(frozen=True, slots=True)
class RaceExplanations:
    """Explains the races of one launch: `side` are its accesses, `called` is what the source calls
    them, `unordered` what is missing by two instructions and the launch of the other one. With
    several GPUs it is `checked` of `gpus`."""

    side: RaceSide
    called: Mapping[int, SourceAccess]
    unordered: Mapping[tuple[int, int, int], Unordered]
    gpus: GpuOrder | None
    checked: CheckedLaunch | None

    def by_access(self, entries: Sequence[CheckRecord]) -> dict[tuple[int, int, int], str]:
        """An explanation per race, by instructions and the launch of the other one."""
        triples = {
            (entry.instruction, entry.other - 1, entry.launch)
            for entry in entries
            if entry.kind is Kind.WORKGROUP_RACE and entry.other
        }
        nothing, explanations = Unordered(Lack.NOTHING_SHARED), {}
        for access, other, launch in triples:
            here = self.gpus is None or (self.checked is not None and launch == self.checked.number)
            theirs = self.side if here or self.gpus is None else self.gpus.launch(launch).side
            lack = self.unordered.get((access, other, launch), nothing)
            volatile = self._volatile(access, other) if here else ""
            explanations[access, other, launch] = volatile or explanation(
                self.side, theirs, lack, access, other
            )
        return explanations

    def _volatile(self, access: int, other: int) -> str:
        """What is missing where two accesses look atomic, and one or both are volatile."""
        atomicity = self.side.accesses.atomicity
        volatile = [self.called.get(n) is SourceAccess.VOLATILE for n in (access, other)]
        atomic = [atomicity.get(n) in ATOMIC for n in (access, other)]
        if all(volatile):
            return VOLATILE
        return MIXED if any(volatile) and all(atomic) else ""


__all__ = ["RaceExplanations"]
