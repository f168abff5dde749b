"""Positions of LLVM IR in the machine code of the same compilation."""

from __future__ import annotations

from wavecast.compile.llvm_ir import Position, position_of, without_columns
from wavecast.isa.instruction import SourceLocation
from wavecast.isa.program import Program


def instructions_at(program: Program, position: Position) -> tuple[list[int], list[int]]:
    """The instructions at a position of the source, and the others on its lines."""
    exact, near = [], []
    lines = without_columns(position)
    for instruction in program.instructions:
        if instruction.location is None:
            continue
        at = position_of(instruction.location)
        if at == position:
            exact.append(instruction.index)
        elif without_columns(at) == lines:
            near.append(instruction.index)
    return exact, near


def location_of(program: Program, position: Position, source: str) -> SourceLocation:
    """The line of a position itself, not of the call it is inlined at. `source` is the file of the
    kernel."""
    name, line, column = position[0]
    for instruction in program.instructions:
        location = instruction.location
        while location is not None:
            if location.file.rsplit("/", 1)[-1] == name:
                return SourceLocation(location.file, line, column)
            location = location.inlined_at
    return SourceLocation(source if source.endswith(name) else name, line, column)


__all__ = ["instructions_at", "location_of"]
