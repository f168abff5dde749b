"""The time of every kernel of a graph on a device."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from wavecast.arch import Device
from wavecast.errors import MissingFact, Unpredictable, UsageError
from wavecast.systems.graph import Node
from wavecast.systems.pricing import Priced, Prices
from wavecast.systems.sources.kernels import CallKernel
from wavecast.systems.sources.part import KernelPart, SameBytes


@dataclass(frozen=True, slots=True)
class CallTime:
    """A kernel with its time in seconds: `priced` has the interval and the assumed library."""

    kernel: CallKernel
    priced: Priced

    @property
    def seconds(self) -> float:
        return self.priced.seconds


@dataclass
class GraphPrices:
    """Times on one device; equal operations are predicted once.

    `substituted` has the reasons for which other kernels were priced than those of a call, with
    the operators; `by_bytes` and `bounded` the operators that no predictor knows.
    """

    device: Device
    substituted: dict[str, set[str]] = field(default_factory=dict)
    by_bytes: set[str] = field(default_factory=set)
    bounded: dict[str, str] = field(default_factory=dict)
    _prices: Prices = field(init=False)

    def __post_init__(self) -> None:
        self._prices = Prices(self.device)

    def of(self, kernels: Iterable[CallKernel]) -> list[CallTime]:
        """Their times. Raises MissingFact where not even a bound is known."""
        times: list[CallTime] = []
        for kernel in kernels:
            for part in self._parts(kernel):
                call_kernel = CallKernel(
                    part, kernel.call, kernel.operator, kernel.module, kernel.phase
                )
                priced = self._prices.of(Node(part.name, kernel.module, part.op))
                if priced.bounded:
                    self.bounded[kernel.operator] = priced.bounded
                elif isinstance(part.op, SameBytes) and kernel.operator != "fused":
                    self.by_bytes.add(kernel.operator)
                times.append(CallTime(call_kernel, priced))
        return times

    def _parts(self, kernel: CallKernel) -> tuple[KernelPart, ...]:
        part = kernel.part
        if not part.instead:
            return (part,)
        try:
            part.op.predict(self.device)
        except (MissingFact, Unpredictable, UsageError):
            self.substituted.setdefault(part.why, set()).add(kernel.operator)
            return part.instead
        return (part,)


__all__ = ["CallTime", "GraphPrices"]
