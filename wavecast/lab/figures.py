"""The figures of one version of a kernel on a device: what its code takes, and its time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from wavecast.analyze.sync import unfinished_stores
from wavecast.arch import Device
from wavecast.compile import digest
from wavecast.compile.codeobject import Launch
from wavecast.emulate.check.static import static_reports
from wavecast.isa.program import Kernel, Program
from wavecast.perfmodel.prediction import Prediction
from wavecast.pipeline.prediction import predict_launch
from wavecast.pipeline.reading import ReadLaunch, read_launch


@dataclass(frozen=True, slots=True)
class CodeFigures:
    """What one version of a kernel takes on a device.

    `vgprs`, `agprs` and `spills` are registers per lane, `sgprs` per wave, `peak` the most vector
    registers live at once, `waves` those resident per SIMD, `waits` the wait instructions and
    `full_waits` those that wait for every operation of a counter. `loop_cycles` is the sum over the
    innermost loops of the cycles of an iteration on its busiest pipe. `digest` names the
    instructions. `seconds` is None where `reason` says why; `fidelity` is that of the prediction.
    """

    digest: str
    instructions: int
    vgprs: int
    agprs: int
    sgprs: int
    spills: int
    scratch_bytes: int
    lds_bytes: int
    peak: int
    waves: float
    waits: int
    full_waits: int
    loop_cycles: float
    seconds: float | None = None
    low: float | None = None
    high: float | None = None
    limiter: str = ""
    fidelity: str = ""
    reason: str = ""
    faults: tuple[str, ...] = ()
    """What static checks find in the code: waits and wait states that are missing."""

    def timed(self, prediction: Prediction) -> CodeFigures:
        """The same with the time of a prediction."""
        return replace(
            self,
            seconds=prediction.seconds,
            low=prediction.low,
            high=prediction.high,
            limiter=prediction.limiter,
            fidelity=prediction.fidelity,
            reason="",
        )

    def to_json(self) -> dict[str, Any]:
        """The figures as JSON values."""
        return asdict(self)

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> CodeFigures:
        """The figures that `to_json` was called on. Raises TypeError."""
        return CodeFigures(**{**document, "faults": tuple(document["faults"])})


def figures_of(launch: Launch, device: Device, *, predicted: bool = True) -> CodeFigures:
    """The figures of a launch's code. Its time is predicted from the code.

    Raises WavecastError where the code cannot be read.
    """
    read = read_launch(launch, device)
    found = figures_of_code(read)
    return timed(found, read, device) if predicted else found


def timed(found: CodeFigures, read: ReadLaunch, device: Device) -> CodeFigures:
    """Figures of code with the time that is predicted from it, or with why there is none; as they
    are for a launch whose grid nobody stated."""
    if not all(read.launch.grid):
        return found
    answer = predict_launch(read.launch, read.analysis, read.kernel, device)
    if answer.prediction is None:
        return replace(found, reason=answer.why_not)
    return found.timed(answer.prediction)


def figures_of_code(read: ReadLaunch) -> CodeFigures:
    """The figures of code that is read, without a time."""
    analysis = read.analysis
    registers, pressure = analysis.registers, analysis.pressure
    return CodeFigures(
        digest=digest.digest([item.decoded.text for item in read.program.instructions]),
        instructions=len(read.program.instructions),
        vgprs=registers.vgpr,
        agprs=registers.agpr,
        sgprs=registers.sgpr,
        spills=registers.spilled,
        scratch_bytes=registers.scratch_bytes,
        lds_bytes=analysis.lds_bytes,
        peak=pressure.peak_vgpr if pressure is not None else 0,
        waves=round(analysis.occupancy.resident_waves, 2),
        waits=len(analysis.waits),
        full_waits=sum(wait.full for wait in analysis.waits),
        loop_cycles=sum(
            max(loop.cycles.values(), default=0.0)
            for loop in analysis.loops
            if not read.program.loops[loop.index].children
        ),
        faults=faults(read.kernel),
    )


def faults(kernel: Kernel | Program) -> tuple[str, ...]:
    """What static checks find in AMD code, one line each."""
    if isinstance(kernel, Program):
        return ()
    found = [f"{report.kind.rule}: {report.text}" for report in static_reports(kernel)]
    instructions = kernel.program.instructions
    for barrier in unfinished_stores(kernel.program):
        found.append(f"lost wait before a barrier: {instructions[barrier].decoded.text}")
    return tuple(found)


__all__ = ["CodeFigures", "faults", "figures_of", "figures_of_code", "timed"]
