"""Operators of the kernel library on GPUs that are not there: what they launch, in which
configuration, what that takes and how long."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from wavecast import model
from wavecast.arch import Device
from wavecast.errors import WavecastError
from wavecast.kernels import choice
from wavecast.kernels.operator import Operator, Sizes
from wavecast.model.bounds import Roofline
from wavecast.pipeline.steps import Given, explain_launch


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """One kernel of an operator. `registers` and `spills` are vector registers per lane, `waves`
    those resident per SIMD; `configuration` says how it was launched and `source` who chose that
    (`table`, `formula`, or "" for a kernel without choice). Seconds are None where `why_not` says
    why there is no prediction."""

    kernel: str
    configuration: str
    source: str
    registers: int
    spills: int
    lds_bytes: int
    waves: float
    seconds: float | None
    low: float | None
    high: float | None
    limiter: str
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Surveyed:
    """One call on one device. `failure` says why nothing is known of it."""

    operator: str
    sizes: Sizes
    device: Device
    kernels: tuple[KernelFacts, ...] = ()
    bound: Roofline | None = None
    failure: str = ""

    @property
    def seconds(self) -> float | None:
        """Predicted seconds of all kernels, one after the other; None where one is not known."""
        times = [kernel.seconds for kernel in self.kernels]
        if not times or None in times:
            return None
        return sum(time for time in times if time is not None)

    @property
    def floor(self) -> float | None:
        """Seconds the useful work needs at sustained rates, or at the datasheet's."""
        if self.bound is None:
            return None
        return self.bound.sustained_seconds or self.bound.floor_seconds

    @property
    def share(self) -> float | None:
        """The floor as a share of the predicted time."""
        seconds, floor = self.seconds, self.floor
        return floor / seconds if seconds and floor else None

    @property
    def spills(self) -> int:
        """The most registers a kernel spills."""
        return max((kernel.spills for kernel in self.kernels), default=0)


def survey(
    operators: Iterable[Operator], devices: Sequence[Device], *, small: bool = False
) -> Iterator[Surveyed]:
    """Every operator on the shapes it is judged on (`small`: its test cases), device by device."""
    for operator in operators:
        for sizes in operator.cases if small else operator.shapes:
            for device in devices:
                if not operator.targets or device.target in operator.targets:
                    yield surveyed(operator, sizes, device)


def surveyed(operator: Operator, sizes: Sizes, device: Device) -> Surveyed:
    """What one call launches on a device, compiled for it but not run."""
    from wavecast.integrations.triton import capture
    from wavecast.kernels.inputs import Make

    bound = model.roofline(operator.work(**sizes), device)
    try:
        with capture(device) as launches, choice.watched() as decisions:
            operator.call(**operator.inputs(Make(values=False), **sizes))
        flops = operator.work(**sizes).flops
        given = Given(flops_hint=dict(flops or {}))
        explained = [explain_launch(launch, device, given) for launch in launches]
    except WavecastError as error:
        return Surveyed(operator.name, sizes, device, (), bound, str(error))
    by_kernel = {decision.space.kernel: decision for decision in decisions}
    kernels = []
    for explanation in explained:
        decision = by_kernel.get(explanation.code.kernel)
        registers, found = explanation.analysis.registers, explanation.predicted.prediction
        kernels.append(
            KernelFacts(
                explanation.code.kernel,
                str(decision.configuration) if decision else "",
                decision.source if decision else "",
                registers.vgpr + registers.agpr,
                registers.spilled_vgpr,
                explanation.analysis.lds_bytes,
                explanation.analysis.occupancy.resident_waves,
                found.seconds if found else None,
                found.low if found else None,
                found.high if found else None,
                found.limiter if found else "",
                "" if found else explanation.predicted.why_not,
            )
        )
    return Surveyed(operator.name, sizes, device, tuple(kernels), bound)


__all__ = ["KernelFacts", "Surveyed", "survey", "surveyed"]
