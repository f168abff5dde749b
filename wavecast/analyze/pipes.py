"""Cycles a stretch of code takes on every pipe of one SIMD with all its resident waves.

Pipes work concurrently, so the largest figure is the least time the stretch can take; it is
reached when enough independent instructions are in flight. Per pipe:

- `matrix`, `valu`, `trans`, `salu`, `smem`, `branch`: issue cycles of each instruction, times
  waves; a VOPD pair counts once.
- `lds`, `vmem`: the address part on the SIMD, or the data part on the path all SIMDs of the
  compute unit share, whichever is longer per instruction.
- `issue`: issue slots, never fewer than one wave takes alone with its no-ops. Where a SIMD is
  served every few clocks (CDNA: every 4th, one instruction per category {vector, scalar, LDS,
  vector memory, branch} and at most one per wave), those of the fullest category over all waves;
  elsewhere (RDNA, NVIDIA) one instruction per clock of any wave.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from wavecast.analyze.charges import Charge
from wavecast.analyze.mix import counts_by_class
from wavecast.analyze.result import Occupancy
from wavecast.arch import PIPES, Device


@dataclass(frozen=True, slots=True)
class Residency:
    """What shares the pipes: `waves` per busy SIMD, `simds` busy ones of the compute unit,
    and `period`, the clocks between two issue slots of a SIMD."""

    waves: float
    simds: float
    period: int


def residency(device: Device, occupied: Occupancy) -> Residency:
    """The waves of whole workgroups that share a compute unit; of one where none fits.

    When fewer waves than SIMDs are resident, some SIMDs idle.
    """
    simds = device.simds_per_cu
    average = occupied.resident_waves or occupied.waves_per_workgroup / simds
    waves = max(1.0, average)
    return Residency(waves, average * simds / waves, device.issue_period)


@dataclass(slots=True)
class Tally:
    """Instructions of some code by charge, and cycles its memory accesses take beyond them.

    `extra` corrects a pipe for accesses whose pattern is known: cycles of one wave on the shared
    data path, on top of those of a contiguous, conflict-free access.
    """

    charges: dict[Charge, float] = field(default_factory=dict)
    extra: dict[str, float] = field(default_factory=dict)

    def count(self, charge: Charge, times: float) -> None:
        """Count one charge in, `times` over."""
        self.charges[charge] = self.charges.get(charge, 0) + times

    def take(self, pipe: str, cycles: float) -> None:
        """Add cycles to the shared data path of a pipe."""
        self.extra[pipe] = self.extra.get(pipe, 0.0) + cycles

    def add(self, other: Tally, times: float = 1) -> None:
        """Count another tally in, `times` over."""
        for charge, number in other.charges.items():
            self.count(charge, number * times)
        for pipe, cycles in other.extra.items():
            self.take(pipe, cycles * times)

    def classes(self) -> dict[str, int]:
        """Instructions by class, in display order."""
        totals = _sum_by_name((charge.klass, count) for charge, count in self.charges.items())
        return counts_by_class((name, round(count)) for name, count in totals.items())

    def matrix_flops(self) -> dict[str, float]:
        """Matrix operations of one wave by input dtype."""
        return _sum_by_name((c.matrix_dtype, c.matrix_flops * n) for c, n in self.charges.items())

    def vector_flops(self) -> dict[str, float]:
        """Useful vector operations of one wave by dtype, all lanes active."""
        return _sum_by_name((c.vector_dtype, c.vector_flops * n) for c, n in self.charges.items())

    def matrix_kinds(self) -> dict[str, int]:
        """Matrix instructions by mnemonic."""
        kinds = _sum_by_name(
            (c.mnemonic, n) for c, n in self.charges.items() if c.klass == "matrix"
        )
        return {name: round(count) for name, count in kinds.items()}

    def matrix_density(self) -> float:
        """Matrix instructions as a share of all."""
        total = sum(self.charges.values())
        matrix = sum(count for charge, count in self.charges.items() if charge.klass == "matrix")
        return matrix / total if total else 0.0

    def bytes_global(self) -> int:
        """Bytes one wave moves to or from global memory."""
        return round(sum(charge.bytes_global * n for charge, n in self.charges.items()))

    def bytes_lds(self) -> int:
        """Bytes one wave moves to or from LDS."""
        return round(sum(charge.bytes_lds * n for charge, n in self.charges.items()))

    def barriers(self) -> int:
        return round(sum(count for charge, count in self.charges.items() if charge.barrier))

    def cycles(self, residency: Residency) -> dict[str, float]:
        """Cycles by pipe, in the order of `arch.PIPES`; pipes that are not used are 0."""
        waves, simds = residency.waves, residency.simds
        totals: dict[str, float] = dict.fromkeys(PIPES, 0.0)
        units: dict[tuple[str, str], float] = {}
        for charge, count in self.charges.items():
            if charge.pipe:
                key = charge.pipe, charge.unit
                shared = (charge.shared_cycles or 0.0) * simds
                units[key] = units.get(key, 0.0) + count * waves * max(charge.cycles, shared)
        for (pipe, _), cycles in units.items():
            totals[pipe] = max(totals[pipe], cycles)
        for pipe, cycles in self.extra.items():
            totals[pipe] += cycles * waves * simds
        totals["issue"] = self._issue(residency)
        return totals

    def _issue(self, residency: Residency) -> float:
        by_category: dict[str, float] = {}
        idle = 0.0
        for charge, count in self.charges.items():
            category = charge.category
            by_category[category] = by_category.get(category, 0.0) + count * charge.slots
            idle += count * charge.idle
        total = sum(by_category.values())
        by_category.pop("", None)
        fullest = max(by_category.values(), default=0.0) if residency.period > 1 else total
        return residency.period * max(fullest * residency.waves, total + idle)


def tally(charges: Iterable[Charge]) -> Tally:
    """The tally of some instructions."""
    return Tally(dict(Counter(charges)))


def limiter(cycles: Mapping[str, float]) -> str:
    """The pipe with the most cycles, "" when there are none."""
    pipe = max(cycles, key=cycles.__getitem__, default="")
    return pipe if pipe and cycles[pipe] > 0 else ""


def _sum_by_name(items: Iterable[tuple[str, float]]) -> dict[str, float]:
    totals: dict[str, float] = {}
    for name, value in items:
        if name and value:
            totals[name] = totals.get(name, 0) + value
    return totals
