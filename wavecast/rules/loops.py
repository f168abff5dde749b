"""Which loops of a program matter to the rules, and their instructions."""

from __future__ import annotations

from wavecast.analyze.result import LoopAnalysis, MemoryInstruction
from wavecast.isa.instruction import Instruction
from wavecast.isa.opcode import MemoryKind
from wavecast.isa.program import Loop, Program
from wavecast.rules.finding import RuleInput

GLOBAL_SPACES = frozenset({"global", "buffer", "flat"})
"""Spaces of `MemoryInstruction` that are device memory reached through the vector cache."""


WORKING_VECTOR = 8
"""Vector instructions of a loop without loads or stores from which on it computes something."""


def loop_instructions(program: Program, loop: Loop) -> list[Instruction]:
    """The instructions of a loop, inner loops included, in the order of the text."""
    return [
        instruction
        for block in sorted(loop.blocks)
        for instruction in program.block_instructions(block)
    ]


def hot_loops(subject: RuleInput) -> tuple[Loop, ...]:
    """Innermost loops that compute or move data, in the order of the program.

    Loops that only spin on an atomic, or hold nothing but scalar code, are left out: their
    iteration count says nothing about the kernel's time. So are loops the launch does not enter,
    such as the remainder of an unrolled one.
    """
    return tuple(
        loop
        for loop in subject.program.loops
        if not loop.children and _works(subject, loop) and not _is_skipped(subject, loop)
    )


def _is_skipped(subject: RuleInput, loop: Loop) -> bool:
    analysis = loop_analysis(subject, loop)
    return analysis is not None and analysis.trip_count == 0


def _works(subject: RuleInput, loop: Loop) -> bool:
    analysis = loop_analysis(subject, loop)
    if analysis is not None and analysis.matrix_density > 0:
        return True
    vector = 0
    for instruction in loop_instructions(subject.program, loop):
        memory = instruction.memory
        if memory is not None and memory.kind is not MemoryKind.ATOMIC:
            return True
        vector += memory is None and instruction.opcode.is_vector
    return vector >= WORKING_VECTOR


def loop_analysis(subject: RuleInput, loop: Loop) -> LoopAnalysis | None:
    """What the analysis says about a loop of the program."""
    for found in subject.analysis.loops:
        if found.index == loop.index:
            return found
    return None


def pipe_share(subject: RuleInput, loop: Loop, pipe: str) -> float:
    """Cycles a pipe needs in a loop as a share of those of its busiest pipe, 0 when unknown."""
    analysis = loop_analysis(subject, loop)
    if analysis is None or not any(analysis.cycles.values()):
        return 0.0
    return analysis.cycles.get(pipe, 0.0) / max(analysis.cycles.values())


def of_class(program: Program, name: str) -> list[int]:
    """Indices of the instructions whose cost class begins with a name."""
    instructions = program.instructions
    return [item.index for item in instructions if item.opcode.cost_class.startswith(name)]


def hot_loop_analyses(subject: RuleInput) -> tuple[LoopAnalysis, ...]:
    """The analyses of the hot loops."""
    found = (loop_analysis(subject, loop) for loop in hot_loops(subject))
    return tuple(analysis for analysis in found if analysis is not None)


def matters(subject: RuleInput, instruction: MemoryInstruction) -> bool:
    """Whether an access is part of the kernel's steady state: in a loop, or there is no loop."""
    if instruction.loop is not None:
        return True
    return not any(
        other.loop is not None and other.space in GLOBAL_SPACES for other in subject.analysis.memory
    )
