"""What Triton's intermediate representation (TTIR) shows and machine code does not.

Lanes that a load masks off without `other` are undefined; the AMD backend gives them 0. They may be
copied, computed with and masked again; a reduction, a product or a store that includes them uses
them. A bitcast between 8-bit floats of two variants takes the bytes for another format.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from wavecast.compile.codeobject import CodeObject
from wavecast.compile.ttgir import IrModule, Operation, parse, tensors
from wavecast.dtypes import Spelling, is_dtype, lookup
from wavecast.emulate.reports import Kind, Report
from wavecast.isa.instruction import SourceLocation
from wavecast.isa.opcode import OpcodeFlag
from wavecast.isa.program import Program

_AXIS = re.compile(r"axis = (\d+)")
_ELEMENT = re.compile(r"(?:x|<|^)(f8\w+)")
_KEEPS_SHAPE = ("arith.", "math.", "tt.bitcast", "tt.fp_to_fp", "tt.broadcast", "tt.addptr")
_REDUCTIONS = frozenset({"tt.reduce", "tt.scan"})


@dataclass(frozen=True, slots=True)
class _Undefined:
    """A tensor with undefined elements: their load, and the axes its mask varies on."""

    load: Operation
    axes: frozenset[int]


def intermediate_reports(code: CodeObject) -> list[Report]:
    """The reports of a kernel that Triton compiled; none of others."""
    text = code.stages.get("ttir", "")
    if code.origin != "triton" or not isinstance(text, str) or not text:
        return []
    module = parse(text, tuple(code.moved_files.items()))
    reports = [
        _report(code, Kind.FP8_FORMAT, operation, message)
        for operation in module.operations
        if (message := _bitcast_message(operation))
    ]
    return reports + _masked_loads(code, module)


def at_narrowed_divisions(
    reports: list[Report], program: Program, code: CodeObject
) -> list[Report]:
    """The reports with Triton's divisions of 16 bits at their own line."""

    def is_division(report: Report) -> bool:
        flags = program.instructions[report.instruction].opcode.flags
        return OpcodeFlag.DIVISION_END in flags

    if not any(is_division(report) for report in reports):
        return reports
    lines = _narrowed_divisions(code)
    return [
        replace(report, location=lines.get(report.location, report.location))
        if report.location and is_division(report)
        else report
        for report in reports
    ]


def _narrowed_divisions(code: CodeObject) -> dict[SourceLocation, SourceLocation]:
    """Where divisions are whose only result is converted to fewer bits, by the location of the
    conversion: LLVM makes one division of both, with that location."""
    text = code.stages.get("ttir", "")
    if code.origin != "triton" or not isinstance(text, str) or not text:
        return {}
    module = parse(text, tuple(code.moved_files.items()))
    divisions: dict[str, SourceLocation | None] = {}
    by_location: dict[SourceLocation, set[SourceLocation | None]] = {}
    for operation in module.operations:
        if operation.name == "arith.divf":
            divisions.update(dict.fromkeys(operation.results, _valid_location(operation.location)))
        elif operation.name == "arith.truncf" and operation.location is not None:
            sources = {divisions.get(name) for name in operation.operands}
            by_location.setdefault(operation.location, set()).update(sources)
    return {
        location: source
        for location, sources in by_location.items()
        if len(sources) == 1 and (source := next(iter(sources))) is not None
    }


def _bitcast_message(operation: Operation) -> str:
    """What a bitcast of 8-bit floats does, "" for other operations."""
    if operation.name != "tt.bitcast":
        return ""
    elements = _ELEMENT.findall(operation.text)
    dtypes = [lookup(e, Spelling.MLIR) for e in elements if is_dtype(e, Spelling.MLIR)]
    if len(dtypes) != 2 or dtypes[0].generic != dtypes[1].generic or dtypes[0] == dtypes[1]:
        return ""
    source, result = (dtype.name for dtype in dtypes)
    return (
        f"takes the bytes of {source} for {result}: values differ by a factor of two; convert with "
        ".to() without bitcast, or pass a tensor of that dtype"
    )


def _masked_loads(code: CodeObject, module: IrModule) -> list[Report]:
    axes = _varying(module)
    undefined: dict[str, _Undefined] = {}
    reported: dict[int, Report] = {}
    for operation in module.operations:
        operands = operation.operands
        if operation.name == "tt.load" and len(operands) == 2:
            for name in operation.results:
                varying = axes.get(operands[1], frozenset())
                undefined[name] = _Undefined(operation, varying)
            continue
        inputs = [undefined[name] for name in operands if name in undefined]
        if not inputs:
            continue
        harmed = _undefined_operand(operation, inputs, undefined)
        if harmed is not None:
            report = _masked_report(code, harmed.load, operation)
            reported.setdefault(harmed.load.index, report)
            continue
        result = _propagate_undefined(operation, inputs)
        if result is not None:
            undefined.update(dict.fromkeys(operation.results, result))
    return list(reported.values())


def _undefined_operand(
    operation: Operation, inputs: list[_Undefined], undefined: Mapping[str, _Undefined]
) -> _Undefined | None:
    """The undefined tensor whose masked elements an operation uses."""
    if operation.name in _REDUCTIONS:
        match = _AXIS.search(operation.text) or _AXIS.search(operation.closing)
        axis = int(match[1]) if match else 0
        return next((tensor for tensor in inputs if axis in tensor.axes), None)
    if operation.name == "tt.dot":
        for name, axis in zip(operation.operands, (1, 0), strict=False):
            tensor = undefined.get(name)
            if tensor is not None and axis in tensor.axes:
                return tensor
    if operation.name == "tt.store" and len(operation.operands) == 2:
        value = undefined.get(operation.operands[1])
        return value if value is not None and value.axes else None
    return None


def _propagate_undefined(operation: Operation, inputs: list[_Undefined]) -> _Undefined | None:
    """The result of an operation on undefined tensors; None where nothing is known of it."""
    first = inputs[0]
    if operation.name == "arith.select":
        return None
    if operation.name.startswith(_KEEPS_SHAPE):
        return first
    if operation.name == "tt.expand_dims":
        match = _AXIS.search(operation.text)
        at = int(match[1]) if match else 0
        return _Undefined(first.load, frozenset(axis + (axis >= at) for axis in first.axes))
    if operation.name == "tt.reshape":
        source, result = (tensor.shape for tensor in tensors(operation.text))
        if first.axes >= {axis for axis, size in enumerate(source) if size > 1}:
            return _Undefined(first.load, frozenset(range(len(result))))
    return None


def _varying(module: IrModule) -> dict[str, frozenset[int]]:
    """The axes on which elements of a value may differ, for values that are not scalar."""
    by_value: dict[str, frozenset[int]] = {}
    for operation in module.operations:
        shapes = tensors(operation.text)
        if not shapes or not operation.results:
            continue
        shape = shapes[-1].shape
        longer = frozenset(axis for axis, size in enumerate(shape) if size > 1)
        operand_axes = [by_value[name] for name in operation.operands if name in by_value]
        axes = longer
        if operation.name == "tt.splat":
            axes = frozenset()
        elif operation.name == "tt.expand_dims" and operand_axes:
            match = _AXIS.search(operation.text)
            at = int(match[1]) if match else 0
            axes = frozenset(axis + (axis >= at) for axis in operand_axes[0])
        elif operation.name.startswith(_KEEPS_SHAPE) and operand_axes:
            axes = frozenset().union(*operand_axes)
        elif operation.name == "arith.constant":
            axes = frozenset()
        by_value.update(dict.fromkeys(operation.results, axes))
    return by_value


def _masked_report(code: CodeObject, load: Operation, user: Operation) -> Report:
    message = "has a mask and no other, and the elements it masks off are used; give other="
    return _report(code, Kind.MASKED_ELEMENT, load, message, user)


def _report(
    code: CodeObject, kind: Kind, operation: Operation, message: str, other: Operation | None = None
) -> Report:
    return Report(
        kind=kind,
        kernel=code.kernel,
        target=code.target,
        message=message,
        instruction=0,
        text=operation.text.strip(),
        location=_valid_location(operation.location),
        other=0 if other is not None else None,
        other_text=other.text.strip() if other is not None else "",
        other_location=_valid_location(other.location) if other is not None else None,
    )


def _valid_location(location: SourceLocation | None) -> SourceLocation | None:
    return location if location is not None and location.line else None


__all__ = ["at_narrowed_divisions", "intermediate_reports"]
