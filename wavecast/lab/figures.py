"""The figures of one version of a kernel on a device: what its code takes, and its time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import structs

from wavecast.analyze.sync import unfinished_stores
from wavecast.arch import Device
from wavecast.compile import digest
from wavecast.compile.codeobject import Launch
from wavecast.emulate.check.static import static_reports
from wavecast.isa.program import Kernel, Program
from wavecast.json_objects import Count, JsonObject, NonNegative, checked_object, doc
from wavecast.perfmodel.prediction import Prediction
from wavecast.pipeline.explain.prediction import predict_launch
from wavecast.pipeline.explain.reading import ReadLaunch, read_launch


class CodeFigures(JsonObject):
    """What one version of a kernel takes on a device."""

    digest: Annotated[str, doc("names the instructions")]
    instructions: Count
    vgprs: Annotated[Count, doc("per lane")]
    agprs: Annotated[Count, doc("per lane")]
    sgprs: Annotated[Count, doc("per wave")]
    spills: Annotated[Count, doc("VGPRs spilled per lane")]
    scratch_bytes: Annotated[Count, doc("per lane")]
    lds_bytes: Annotated[Count, doc("per workgroup")]
    peak: Annotated[Count, doc("most vector registers live at once")]
    waves: Annotated[NonNegative, doc("resident per SIMD")]
    waits: Annotated[Count, doc("wait instructions")]
    full_waits: Annotated[Count, doc("waits for every operation of a counter")]
    loop_cycles: Annotated[
        NonNegative, doc("cycles of an iteration on its busiest pipe, all innermost loops")
    ]
    seconds: Annotated[NonNegative | None, doc("predicted")] = None
    low: Annotated[NonNegative | None, doc("lower end of the 80 % interval")] = None
    high: Annotated[NonNegative | None, doc("upper end of the interval")] = None
    limiter: str = ""
    fidelity: Annotated[str, doc("static or executed")] = ""
    reason: Annotated[str, doc("why there is no time")] = ""
    faults: Annotated[tuple[str, ...], doc("waits and wait states that are missing")] = ()

    def with_time(self, prediction: Prediction) -> CodeFigures:
        """The same with the time of a prediction."""
        return structs.replace(
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
        return structs.asdict(self)

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> CodeFigures:
        """The figures that `to_json` was called on. Raises TypeError, ValueError."""
        return checked_object(CodeFigures, document)


def figures_of(launch: Launch, device: Device, *, predicted: bool = True) -> CodeFigures:
    """The figures of a launch's code. Its time is predicted from the code.

    Raises WavecastError where the code cannot be read.
    """
    read = read_launch(launch, device)
    figures = figures_of_code(read)
    return with_predicted_time(figures, read, device) if predicted else figures


def with_predicted_time(figures: CodeFigures, read: ReadLaunch, device: Device) -> CodeFigures:
    """Figures of code with the time that is predicted from it, or with why there is none; as they
    are for a launch whose grid nobody stated."""
    if not all(read.launch.grid):
        return figures
    answer = predict_launch(read.launch, read.analysis, read.kernel, device)
    if answer.prediction is None:
        return structs.replace(figures, reason=answer.why_not)
    return figures.with_time(answer.prediction)


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
    messages = [f"{report.kind.rule}: {report.text}" for report in static_reports(kernel)]
    instructions = kernel.program.instructions
    for barrier in unfinished_stores(kernel.program):
        messages.append(f"lost wait before a barrier: {instructions[barrier].decoded.text}")
    return tuple(messages)


__all__ = ["CodeFigures", "faults", "figures_of", "figures_of_code", "with_predicted_time"]
