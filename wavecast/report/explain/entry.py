"""One explanation as the JSON document's `kernels[]` entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wavecast.documents.kernel import (
    PRESSURE_POINTS,
    ArgumentJson,
    CeilingJson,
    CeilingsJson,
    CodeJson,
    FindingJson,
    KernelJson,
    LaunchJson,
    LineCostJson,
    LocationJson,
    LoopJson,
    MatrixJson,
    MemoryInstructionJson,
    NextStepJson,
    OccupancyJson,
    ParameterJson,
    PressureJson,
    PressurePeakJson,
    RegistersJson,
    RooflineJson,
    StepJson,
    WaitJson,
)
from wavecast.json_objects import plain
from wavecast.report.explain import prediction, summary, words
from wavecast.report.explain.pressure import downsample
from wavecast.report.kit import locations

if TYPE_CHECKING:
    from wavecast.analyze.result import CodeAnalysis, NextStep, Occupancy, Pressure
    from wavecast.compile.codeobject import CodeObject, Launch
    from wavecast.isa.instruction import SourceLocation
    from wavecast.perfmodel.bounds import Ceiling, Roofline
    from wavecast.pipeline.explain.result import Explanation


def kernel_entry(explanation: Explanation, label: str) -> KernelJson:
    """Everything known about one kernel on one device."""
    analysis, device = explanation.analysis, explanation.device
    return KernelJson.of(
        analysis,
        kernel=explanation.code.kernel,
        label=label,
        arch=device.target,
        device=device.name,
        device_id=device.id,
        vendor=device.vendor,
        headline=words.headline(explanation),
        code=_code(explanation.code),
        launch=_launch(explanation.launch),
        registers=RegistersJson.of(analysis.registers),
        occupancy=_occupancy(analysis.occupancy),
        matrix=_matrix(analysis),
        loops=[LoopJson.of(loop, **_location(loop.location)) for loop in analysis.loops],
        memory=[
            MemoryInstructionJson.of(access, line=summary.line_of(access.location))
            for access in analysis.memory
        ],
        waits=[WaitJson.of(wait, line=summary.line_of(wait.location)) for wait in analysis.waits],
        pressure=_pressure(analysis.pressure),
        lines=[LineCostJson.of(cost) for cost in analysis.lines],
        roofline=_roofline(explanation.roofline),
        prediction=prediction.entry(explanation.predicted.prediction),
        prediction_why_not=explanation.predicted.why_not,
        findings=[
            FindingJson.of(
                finding,
                outcome=finding.outcome,
                lines=summary.lines_of(finding),
                **_location(finding.location),
            )
            for finding in summary.sorted_findings(explanation.findings)
        ],
        extra=plain(analysis.extra),
    )


def _location(location: SourceLocation | None) -> dict[str, int | LocationJson | None]:
    """The fields `line` and `location`."""
    return {"line": summary.line_of(location), "location": locations.location(location)}


def _code(code: CodeObject) -> CodeJson:
    return CodeJson.of(
        code,
        options=plain(code.options),
        parameters=[
            ParameterJson.of(parameter, constant=plain(parameter.constant))
            for parameter in code.parameters
        ],
    )


def _launch(launch: Launch | None) -> LaunchJson | None:
    if launch is None:
        return None
    return LaunchJson.of(
        launch,
        arguments=[
            ArgumentJson.of(argument, value=plain(argument.value))
            for argument in (*launch.arguments, *launch.members)
        ],
    )


def _occupancy(occupancy: Occupancy) -> OccupancyJson:
    return OccupancyJson.of(occupancy, next=_next_step(occupancy.next))


def _next_step(step: NextStep | None) -> NextStepJson | None:
    if step is None:
        return None
    return NextStepJson.of(step, also=[StepJson.of(other) for other in step.also])


def _matrix(analysis: CodeAnalysis) -> MatrixJson:
    return MatrixJson(
        kinds=dict(analysis.matrix_kinds),
        flops_static=dict(analysis.matrix_flops_static),
        flops_executed=None if analysis.executed_flops is None else dict(analysis.executed_flops),
    )


def _pressure(pressure: Pressure | None) -> PressureJson | None:
    if pressure is None:
        return None
    return PressureJson(
        instructions=len(pressure.vgpr),
        points=[list(point) for point in downsample(pressure, PRESSURE_POINTS)],
        peak=PressurePeakJson(
            index=pressure.peak_index,
            vgpr=pressure.peak_vgpr,
            location=locations.location(pressure.peak_location),
        ),
    )


def _ceiling(ceiling: Ceiling | None) -> CeilingJson | None:
    return None if ceiling is None else CeilingJson.of(ceiling)


def _roofline(roofline: Roofline) -> RooflineJson:
    work = roofline.work
    return RooflineJson.of(
        roofline,
        flops=None if work.flops is None else sum(work.flops.values()),
        bytes=work.bytes,
        flops_by_dtype=work.flops,
        flops_source=work.flops_source,
        bytes_read=work.bytes_read,
        bytes_written=work.bytes_written,
        bytes_source=work.bytes_source,
        ceilings=CeilingsJson(
            compute=_ceiling(roofline.compute),
            memory=_ceiling(roofline.memory),
            compute_sustained=_ceiling(roofline.compute_sustained),
            memory_sustained=_ceiling(roofline.memory_sustained),
        ),
    )
