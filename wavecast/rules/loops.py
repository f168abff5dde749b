"""Which loops of a program matter to the rules, and their instructions."""

from __future__ import annotations

from wavecast.analyze.result import LoopAnalysis, MemoryInstruction
from wavecast.analyze.weights import weights
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


HOT = 0.1
"""Share of a kernel's cycles from which on code around an inner loop matters, and code in none."""


def body_instructions(program: Program, loop: Loop) -> list[Instruction]:
    """The instructions of a loop that are in no inner loop, in the order of the text."""
    return [
        instruction
        for block in sorted(loop.blocks)
        if program.innermost_loop[block] == loop.index
        for instruction in program.block_instructions(block)
    ]


def hot_loops(subject: RuleInput) -> tuple[Loop, ...]:
    """Loops that compute or move data in their own body, which is in no inner loop, in the order
    of the program: innermost ones, and others whose body takes at least `HOT` of the cycles.

    Loops that only spin on an atomic, or hold nothing but scalar code, are left out: their
    iteration count says nothing about the kernel's time. So are loops the launch does not enter,
    such as the remainder of an unrolled one.
    """
    loop_weights = weights(subject.analysis)
    return tuple(
        loop
        for loop in subject.program.loops
        if (not loop.children or loop_weights.share(loop.index) >= HOT)
        and _works(subject, loop)
        and not _is_skipped(subject, loop)
    )


def straight_matters(subject: RuleInput) -> bool:
    """Whether code in no loop takes a share of the cycles that matters."""
    return weights(subject.analysis).share(None) >= HOT


def _is_skipped(subject: RuleInput, loop: Loop) -> bool:
    analysis = loop_analysis(subject, loop)
    return analysis is not None and analysis.trip_count == 0


def _works(subject: RuleInput, loop: Loop) -> bool:
    analysis = body_analysis(subject, loop)
    if analysis is not None and analysis.matrix_density > 0:
        return True
    vector = 0
    for instruction in body_instructions(subject.program, loop):
        memory = instruction.memory
        if memory is not None and memory.kind is not MemoryKind.ATOMIC:
            return True
        vector += memory is None and instruction.opcode.is_vector
    return vector >= WORKING_VECTOR


def loop_analysis(subject: RuleInput, loop: Loop) -> LoopAnalysis | None:
    """What the analysis says about a loop of the program."""
    for analysis in subject.analysis.loops:
        if analysis.index == loop.index:
            return analysis
    return None


def body_analysis(subject: RuleInput, loop: Loop) -> LoopAnalysis | None:
    """The same of a loop without its inner loops."""
    analysis = loop_analysis(subject, loop)
    return None if analysis is None else analysis.body


def pipe_share(subject: RuleInput, loop: Loop, pipe: str) -> float:
    """Cycles a pipe needs in the body of a loop as a share of those of its busiest pipe, 0 when
    unknown."""
    analysis = body_analysis(subject, loop)
    if analysis is None or not any(analysis.cycles.values()):
        return 0.0
    return analysis.cycles.get(pipe, 0.0) / max(analysis.cycles.values())


def of_class(program: Program, name: str) -> list[int]:
    """Indices of the instructions whose cost class begins with a name."""
    instructions = program.instructions
    return [item.index for item in instructions if item.opcode.cost_class.startswith(name)]


def hot_loop_analyses(subject: RuleInput) -> tuple[LoopAnalysis, ...]:
    """The analyses of the bodies of the hot loops."""
    analyses = (body_analysis(subject, loop) for loop in hot_loops(subject))
    return tuple(analysis for analysis in analyses if analysis is not None)


def matters(subject: RuleInput, instruction: MemoryInstruction) -> bool:
    """Whether an access is part of the kernel's steady state: in a loop, or code in no loop takes
    time, or no access is in a loop."""
    if instruction.loop is not None or straight_matters(subject):
        return True
    return not any(
        other.loop is not None and other.space in GLOBAL_SPACES for other in subject.analysis.memory
    )
