"""Demands on a GPU, and how they add up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from wavecast.arch import Device


class Demand(ABC):
    """What one launch in one configuration needs. `a + b` is one launch after the other and
    `a.slow_down(f)` the same demand at `f` times its seconds."""

    @abstractmethod
    def seconds(self, device: Device, num_warps: int) -> float:
        """Time of the launch in seconds, with `num_warps` waves per workgroup. Raises MissingFact
        where the device lacks a number that the formula needs."""

    def __add__(self, other: Demand) -> Demand:
        return Sum((self, other))

    def slow_down(self, factor: float) -> Demand:
        """The same demand with its time multiplied by `factor`."""
        return Slowed(self, factor)


@dataclass(frozen=True, slots=True)
class Sum(Demand):
    """Launches or phases one after the other."""

    parts: tuple[Demand, ...]

    def seconds(self, device: Device, num_warps: int) -> float:
        return sum(part.seconds(device, num_warps) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Slowed(Demand):
    """A demand whose time is multiplied by `factor`."""

    demand: Demand
    factor: float

    def seconds(self, device: Device, num_warps: int) -> float:
        return self.factor * self.demand.seconds(device, num_warps)


@dataclass(frozen=True, slots=True)
class Constant(Demand):
    """A time that does not depend on the device: `value` seconds of latency, or an order of
    preference where configurations need no model."""

    value: float

    def seconds(self, device: Device, num_warps: int) -> float:  # noqa: ARG002
        return self.value


__all__ = ["Constant", "Demand", "Slowed", "Sum"]
