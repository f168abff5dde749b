"""One explanation as the JSON document's `kernels[]` entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wavecast.report import prediction, summary, words
from wavecast.report.entry_values import number, plain
from wavecast.report.pressure import downsample

if TYPE_CHECKING:
    from wavecast.analyze.result import (
        CodeAnalysis,
        LineCost,
        LoopAnalysis,
        MemoryInstruction,
        NextStep,
        Occupancy,
        Pressure,
        Wait,
    )
    from wavecast.compile.codeobject import Argument, CodeObject, Launch, Parameter
    from wavecast.isa.instruction import SourceLocation
    from wavecast.model.bounds import Ceiling, Roofline
    from wavecast.pipeline.result import Explanation
    from wavecast.rules.finding import Finding

PRESSURE_POINTS = 512
"""Most points of a pressure curve in the document."""


def kernel_entry(explanation: Explanation, label: str) -> dict[str, Any]:
    """Everything known about one kernel on one device."""
    analysis, device = explanation.analysis, explanation.device
    registers = analysis.registers
    return {
        "kernel": explanation.code.kernel,
        "label": label,
        "arch": device.target,
        "device": device.name,
        "device_id": device.id,
        "vendor": device.vendor,
        "headline": words.headline(explanation),
        "code": _code(explanation.code),
        "launch": _launch(explanation.launch),
        "registers": {
            "vgpr": registers.vgpr,
            "agpr": registers.agpr,
            "sgpr": registers.sgpr,
            "spilled": registers.spilled,
            "spilled_vgpr": registers.spilled_vgpr,
            "spilled_sgpr": registers.spilled_sgpr,
            "scratch_bytes": registers.scratch_bytes,
        },
        "lds_bytes": analysis.lds_bytes,
        "occupancy": _occupancy(analysis.occupancy),
        "instructions": _numbers(analysis.instructions),
        "blocks": analysis.blocks,
        "matrix": _matrix(analysis),
        "loops": [_loop(loop) for loop in analysis.loops],
        "memory": [_memory(access) for access in analysis.memory],
        "waits": [_wait(wait) for wait in analysis.waits],
        "pressure": _pressure(analysis.pressure),
        "lines": [_line(cost) for cost in analysis.lines],
        "roofline": _roofline(explanation.roofline),
        "prediction": prediction.entry(explanation.predicted.prediction),
        "prediction_why_not": explanation.predicted.why_not,
        "findings": [_finding(f) for f in summary.sorted_findings(explanation.findings)],
        "not_modelled": list(analysis.not_modelled),
        "extra": plain(analysis.extra),
    }


def _numbers(values: Mapping[str, float] | None) -> dict[str, Any] | None:
    if values is None:
        return None
    return {name: number(value) for name, value in values.items()}


def _location(location: SourceLocation | None) -> dict[str, Any] | None:
    if location is None:
        return None
    return {
        "file": location.file,
        "line": location.line,
        "column": location.column,
        "inlined_at": _location(location.inlined_at),
    }


def _code(code: CodeObject) -> dict[str, Any]:
    return {
        "origin": code.origin,
        "source": code.source,
        "source_line": code.source_line,
        "compiler": code.compiler,
        "digest": code.digest,
        "workgroup_size": code.workgroup_size,
        "options": plain(code.options),
        "parameters": [_parameter(parameter) for parameter in code.parameters],
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "type": parameter.type,
        "offset": parameter.offset,
        "size": parameter.size,
        "constant": plain(parameter.constant),
        "attributes": list(parameter.attributes),
    }


def _launch(launch: Launch | None) -> dict[str, Any] | None:
    if launch is None:
        return None
    return {
        "grid": list(launch.grid),
        "block": list(launch.block),
        "dynamic_lds": launch.dynamic_lds,
        "count": launch.count,
        "configuration": launch.configuration,
        "arguments": [_argument(argument) for argument in launch.arguments],
    }


def _argument(argument: Argument) -> dict[str, Any]:
    return {
        "name": argument.name,
        "kind": argument.kind,
        "dtype": argument.dtype,
        "shape": list(argument.shape),
        "strides": list(argument.strides),
        "bytes": argument.bytes,
        "value": plain(argument.value),
    }


def _occupancy(occupancy: Occupancy) -> dict[str, Any]:
    step = occupancy.next
    return {
        "waves_per_simd": occupancy.waves_per_simd,
        "max_waves_per_simd": occupancy.max_waves_per_simd,
        "resident_waves": number(occupancy.resident_waves),
        "waves_per_workgroup": occupancy.waves_per_workgroup,
        "workgroups": occupancy.workgroups,
        "limiter": occupancy.limiter,
        "limits": _numbers(occupancy.limits),
        "next": None if step is None else {**_step(step), "also": [_step(s) for s in step.also]},
        "fits": occupancy.fits,
    }


def _step(step: NextStep) -> dict[str, Any]:
    return {
        "resource": step.resource,
        "delta": step.delta,
        "target": step.target,
        "waves_per_simd": step.waves_per_simd,
    }


def _matrix(analysis: CodeAnalysis) -> dict[str, Any]:
    return {
        "kinds": _numbers(analysis.matrix_kinds),
        "flops_static": _numbers(analysis.matrix_flops_static),
        "flops_executed": _numbers(analysis.executed_flops),
    }


def _loop(loop: LoopAnalysis) -> dict[str, Any]:
    return {
        "index": loop.index,
        "line": summary.line_of(loop.location),
        "location": _location(loop.location),
        "depth": loop.depth,
        "blocks": loop.blocks,
        "instructions": _numbers(loop.instructions),
        "cycles": _numbers(loop.cycles),
        "limiter": loop.limiter,
        "waves_per_simd": loop.waves_per_simd,
        "critical_path": number(loop.critical_path),
        "trip_count": number(loop.trip_count),
        "trip_note": loop.trip_note,
        "flops": _numbers(loop.flops),
        "matrix_density": number(loop.matrix_density),
        "bytes_global": loop.bytes_global,
        "bytes_lds": loop.bytes_lds,
        "waits_full": loop.waits_full,
        "barriers": loop.barriers,
        "includes_inner": loop.includes_inner,
    }


def _memory(access: MemoryInstruction) -> dict[str, Any]:
    return {
        "index": access.index,
        "line": summary.line_of(access.location),
        "mnemonic": access.mnemonic,
        "space": access.space,
        "kind": access.kind,
        "bytes_per_lane": access.bytes_per_lane,
        "argument": access.argument,
        "pattern": access.pattern,
        "stride": access.stride,
        "lines": access.lines,
        "transactions_ideal": access.transactions_ideal,
        "conflict_ways": number(access.conflict_ways),
        "loop": access.loop,
    }


def _wait(wait: Wait) -> dict[str, Any]:
    return {
        "index": wait.index,
        "line": summary.line_of(wait.location),
        "counters": _numbers(wait.counters),
        "full": wait.full,
        "loop": wait.loop,
    }


def _pressure(pressure: Pressure | None) -> dict[str, Any] | None:
    if pressure is None:
        return None
    return {
        "instructions": len(pressure.vgpr),
        "points": [list(point) for point in downsample(pressure, PRESSURE_POINTS)],
        "peak": {
            "index": pressure.peak_index,
            "vgpr": pressure.peak_vgpr,
            "location": _location(pressure.peak_location),
        },
    }


def _line(cost: LineCost) -> dict[str, Any]:
    return {
        "file": cost.file,
        "line": cost.line,
        "instructions": _numbers(cost.instructions),
        "cycles": _numbers(cost.cycles),
    }


def _ceiling(ceiling: Ceiling | None) -> dict[str, Any] | None:
    if ceiling is None:
        return None
    return {
        "name": ceiling.name,
        "rate": number(ceiling.rate),
        "status": ceiling.status,
        "source": ceiling.source,
    }


def _roofline(roofline: Roofline) -> dict[str, Any]:
    work = roofline.work
    return {
        "flops": None if work.flops is None else number(sum(work.flops.values())),
        "bytes": number(work.bytes),
        "intensity": number(roofline.intensity),
        "floor_seconds": number(roofline.floor_seconds),
        "bound": roofline.bound,
        "dtype": roofline.dtype,
        "flops_by_dtype": _numbers(work.flops),
        "flops_source": work.flops_source,
        "bytes_read": number(work.bytes_read),
        "bytes_written": number(work.bytes_written),
        "bytes_source": work.bytes_source,
        "ridge": number(roofline.ridge),
        "ridge_sustained": number(roofline.ridge_sustained),
        "compute_seconds": number(roofline.compute_seconds),
        "memory_seconds": number(roofline.memory_seconds),
        "sustained_seconds": number(roofline.sustained_seconds),
        "ceilings": {
            "compute": _ceiling(roofline.compute),
            "memory": _ceiling(roofline.memory),
            "compute_sustained": _ceiling(roofline.compute_sustained),
            "memory_sustained": _ceiling(roofline.memory_sustained),
        },
        "note": roofline.note,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "message": finding.message,
        "evidence": finding.evidence,
        "advice": finding.advice,
        "gain": number(finding.gain),
        "line": summary.line_of(finding.location),
        "location": _location(finding.location),
        "instruction": finding.instruction,
    }
