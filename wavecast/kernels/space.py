"""Which configurations a Triton kernel can run in, and the order to try them in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from wavecast.arch import Device
from wavecast.errors import MissingFact
from wavecast.kernels.configuration import Configuration
from wavecast.kernels.spec import AMD_ONLY, Problem, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """The configurations of `kernel` (the name of its Triton function).

    `axes(problem, device)` are the values per name; `fits(problem, settings, device)` refuses
    combinations that cannot run (LDS, matrix shapes) or make no sense; `seconds(problem, settings,
    device)` is the predicted time that ranks the rest, by formula, without compiling.

    Problems whose sizes in `classes` round up to the same power of two share a configuration, and
    sizes in `ignored` do not matter.
    """

    kernel: str
    axes: Callable[[Problem, Device], Mapping[str, Sequence[Any]]]
    seconds: Callable[[Problem, Settings, Device], float]
    fits: Callable[[Problem, Settings, Device], bool] = field(default=lambda *_: True)
    classes: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.kernel

    def key(self, problem: Problem) -> tuple[tuple[str, Any], ...]:
        """The class of a problem: what all that share a configuration have in common."""
        return tuple(
            (name, 1 << max(0, value - 1).bit_length() if name in self.classes else value)
            for name, value in sorted(problem.items())
            if name not in self.ignored
        )

    def ranked(self, problem: Problem, device: Device) -> tuple[Configuration, ...]:
        """All configurations for a problem, the fastest by prediction first.

        Where the device lacks a number the formula needs, they stay in the order of the axes.
        """
        axes = self.axes(problem, device)
        if not device.target.startswith("gfx"):
            axes = {name: values for name, values in axes.items() if name not in AMD_ONLY}
        settings = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
        fitting = [one for one in settings if self.fits(problem, one, device)]
        try:
            times = [self.seconds(problem, one, device) for one in fitting]
        except MissingFact:
            return tuple(map(Configuration.of, fitting))
        order = sorted(range(len(fitting)), key=times.__getitem__)
        return tuple(Configuration.of(fitting[place]) for place in order)


__all__ = ["AMD_ONLY", "Problem", "Settings", "Space"]
