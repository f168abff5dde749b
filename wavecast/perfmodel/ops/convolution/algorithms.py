"""The convolution algorithms of libraries, by name; they use the fastest that applies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wavecast.arch import Device
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.ops.convolution import direct, gemm, implicit_gemm, winograd
from wavecast.perfmodel.ops.convolution.geometry import ConvolutionBatch
from wavecast.perfmodel.ops.convolution.timing import Coefficients, Timing


@dataclass(frozen=True, slots=True)
class Algorithm:
    """Whether a chip has it for a kind of problem, and its time (infinite if not)."""

    applies: Callable[[ConvolutionBatch, Device], bool]
    time: Callable[[ConvolutionBatch, Chip, Coefficients], Timing]


ALGORITHMS: dict[str, Algorithm] = {
    "implicit GEMM": Algorithm(implicit_gemm.applies, implicit_gemm.implicit_gemm),
    "GEMM": Algorithm(gemm.applies, gemm.gemm),
    "Winograd": Algorithm(winograd.applies, winograd.winograd),
    "direct": Algorithm(direct.applies, direct.direct),
    "naive": Algorithm(direct.anything, direct.naive),
}


def timings(geometry: ConvolutionBatch, chip: Chip, constants: Coefficients) -> dict[str, Timing]:
    """The time of every algorithm the chip has for these problems."""
    return {
        name: algorithm.time(geometry, chip, constants)
        for name, algorithm in ALGORITHMS.items()
        if algorithm.applies(geometry, chip.device)
    }


__all__ = ["ALGORITHMS", "Algorithm", "timings"]
