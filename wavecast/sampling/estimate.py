"""The time of a launch, quickly: from its code where that says enough, else from a sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wavecast import analyze
from wavecast.analyze.result import CodeAnalysis
from wavecast.arch import Device
from wavecast.compile.codeobject import Launch
from wavecast.compile.parsing import parse_kernel
from wavecast.emulate.errors import ExecutionError, Unsupported
from wavecast.emulate.launch import AddressRange
from wavecast.errors import MissingFact, Unpredictable
from wavecast.perfmodel.predict import predict
from wavecast.perfmodel.prediction import Prediction
from wavecast.perfmodel.static import profile_of_code
from wavecast.sampling.executed import profile_of_sample


@dataclass(frozen=True, slots=True)
class Resources:
    """What a kernel's code takes. `registers` and `spills` are vector registers per lane,
    `lds_bytes` those of a workgroup, `waves` how many are resident per SIMD; `matrix` says whether
    there are matrix instructions."""

    registers: int
    spills: int
    lds_bytes: int
    waves: float
    matrix: bool


@dataclass(frozen=True, slots=True)
class CodeEstimate:
    """A prediction, or why there is none, and the resources of the code."""

    resources: Resources
    prediction: Prediction | None
    why_not: str = ""


def estimate(launch: Launch, ranges: Sequence[AddressRange], device: Device) -> CodeEstimate:
    """Predict an AMD launch on a device from its code and trip counts. Where these depend on data,
    predict it from an executed sample over the host memory `ranges`, which stays as it is.

    Raises InputError for code that cannot be read, UsageError for a device that does not run it.
    """
    kernel = parse_kernel(launch.code)
    analysis = analyze.analyze(launch.code, device, kernel.program, kernel.descriptor, launch)
    resources = _resources(analysis)
    try:
        profile = profile_of_code(launch, analysis, kernel, device)
        return CodeEstimate(resources, predict(profile, device))
    except MissingFact as error:
        return CodeEstimate(resources, None, error.message)
    except Unpredictable as error:
        unknown = error.message
    sampled = simulate(launch, ranges, device)
    if isinstance(sampled, Prediction):
        return CodeEstimate(resources, sampled)
    return CodeEstimate(resources, None, f"{unknown}; {sampled}")


def simulate(launch: Launch, ranges: Sequence[AddressRange], device: Device) -> Prediction | str:
    """The prediction from an executed sample, or the reason why there is none.

    Raises UsageError for a device that does not run the code.
    """
    try:
        return predict(profile_of_sample(launch, ranges, device), device)
    except (ExecutionError, Unsupported, Unpredictable, MissingFact) as error:
        return error.message


def _resources(analysis: CodeAnalysis) -> Resources:
    registers = analysis.registers
    return Resources(
        registers.vgpr + registers.agpr,
        registers.spilled_vgpr,
        analysis.lds_bytes,
        analysis.occupancy.resident_waves,
        bool(analysis.matrix_kinds),
    )


__all__ = ["CodeEstimate", "Resources", "estimate", "simulate"]
