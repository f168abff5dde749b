"""Branches on the lane mask inside a hot loop."""

from __future__ import annotations

from collections.abc import Iterator

from wavecast.isa.instruction import Instruction
from wavecast.isa.opcode import Control, MemoryKind
from wavecast.isa.program import Loop, Program
from wavecast.isa.registers import EXEC
from wavecast.rules.finding import Finding, Rule, RuleInput
from wavecast.rules.loops import GLOBAL_SPACES, body_analysis, hot_loops
from wavecast.rules.wording import at_line, count, lines

NAME = "divergence-in-hot-loop"

BRANCHES = 4
"""Branches on EXEC per iteration from which on the rule speaks."""

_MOVES = frozenset({MemoryKind.LOAD, MemoryKind.STORE, MemoryKind.LOAD_TO_LDS})


def _check(subject: RuleInput) -> Iterator[Finding]:
    program = subject.program
    for loop in hot_loops(subject):
        branches = _branches(program, loop)
        if len(branches) < BRANCHES:
            continue
        guarding = [branch for branch in branches if _guards_memory(program, branch)]
        yield _finding(subject, loop, branches, guarding)


def _branches(program: Program, loop: Loop) -> list[Instruction]:
    """Conditional branches on EXEC in the loop that stay in it: not its exit, not its back edge,
    and none that decides whether an inner loop is entered or follows one."""
    branches = []
    inner = {n for n in loop.blocks if program.innermost_loop[n] != loop.index}
    around = {n for n in loop.blocks if inner.intersection(program.blocks[n].successors)}
    around |= {after for n in inner for after in program.blocks[n].successors}
    for index in loop.blocks:
        block = program.blocks[index]
        if {index, *block.successors} & (inner | around):
            continue
        last = program.instructions[block.stop - 1]
        if last.opcode.control is not Control.CONDITIONAL or not last.reads & EXEC:
            continue
        if loop.header in block.successors or not loop.blocks.issuperset(block.successors):
            continue
        branches.append(last)
    return sorted(branches, key=lambda instruction: instruction.index)


def _guards_memory(program: Program, branch: Instruction) -> bool:
    """Whether one side of the branch is a block that moves data to or from global memory."""
    block = next(b for b in program.blocks if b.stop - 1 == branch.index)
    return any(
        instruction.memory is not None
        and instruction.memory.kind in _MOVES
        and instruction.memory.space.value in GLOBAL_SPACES
        for successor in block.successors
        for instruction in program.block_instructions(successor)
    )


def _finding(
    subject: RuleInput, loop: Loop, branches: list[Instruction], guarding: list[Instruction]
) -> Finding:
    analysis = body_analysis(subject, loop)
    total = sum(analysis.instructions.values()) if analysis is not None else 0
    share = f" of {total:,} instructions" if total else ""
    masked = len(guarding) > len(branches) // 2
    advice = (
        "They guard masked global accesses. Drop the mask where the size divides the block (a "
        "constexpr EVEN_K), peel the last iteration off, or let the accesses become buffer "
        "instructions, which need no branch (see no-buffer-loads)."
        if masked
        else "Make per-lane conditions selects (tl.where, a ternary), hoist those that do not "
        "change in the loop, or split the loop where the condition changes."
    )
    return Finding(
        rule=NAME,
        severity="warning",
        message=f"{count(len(branches), 'branch', 'branches')} on the lane mask in the loop"
        + at_line(loop.location),
        evidence=f"{len(branches)} branches{share} per iteration, {len(guarding)} around global "
        f"accesses, at {lines(branch.location for branch in branches)}; they also keep "
        "the compiler from moving instructions across",
        advice=advice,
        location=branches[0].location or loop.location,
        instruction=branches[0].index,
    )


RULE = Rule(
    name=NAME,
    severity="warning",
    title="Divergent branches in a hot loop",
    explanation=f"""\
A condition that differs between lanes is a change of EXEC and, where the compiler expects whole
waves to skip it, a branch. Each cuts the loop body into blocks the scheduler cannot mix: loads
are issued one by one instead of together, and matrix instructions wait behind them. Masked loads
without buffer instructions are the usual source in Triton.

Fires from {BRANCHES} branches on EXEC per iteration of a loop, its own exit and inner loops
not counted.""",
    check=_check,
)
