"""Edges that an operation cannot reach, because the same comparison branched the other way before.

Code that loads ahead under a condition often tests the condition again, with the same registers, to
skip the wait: `s_cmp_eq_u32 s5, 1` around the load and once more around the loop that waits.
"""

from __future__ import annotations

from dataclasses import dataclass

from wavecast.isa.instruction import Decoded
from wavecast.isa.opcode import SCALAR_FORMS, Control
from wavecast.isa.program import Block, Program
from wavecast.isa.registers import SCC


@dataclass(frozen=True, slots=True)
class _Test:
    """A comparison of scalar registers and the branch right behind it."""

    compare: Decoded
    branch: str
    taken: int
    passed: int


def excluded_blocks(program: Program) -> dict[tuple[int, int], frozenset[int]]:
    """Edge (block, successor) -> blocks whose operations are not outstanding along it.

    A block qualifies that only one outcome of a comparison leads to: the other outcome of the same
    comparison contradicts it where no path between the two writes the registers compared.
    """
    tests = {block.index: test for block in program.blocks if (test := _test(program, block))}
    sites: dict[tuple[Decoded, str], list[int]] = {}
    for index, test in tests.items():
        sites.setdefault((test.compare, test.branch), []).append(index)
    by_edge: dict[tuple[int, int], set[int]] = {}
    for index, test in tests.items():
        others = sites[test.compare, test.branch]
        if len(others) < 2:
            continue
        for guarded, was_taken in ((test.taken, True), (test.passed, False)):
            if program.blocks[guarded].predecessors != (index,):
                continue
            unchanged, changed = _reachable_blocks(program, guarded, test.compare.reads)
            for other in others:
                if other in unchanged and other not in changed:
                    again = tests[other]
                    edge = (other, again.passed if was_taken else again.taken)
                    by_edge.setdefault(edge, set()).add(guarded)
    return {edge: frozenset(blocks) for edge, blocks in by_edge.items()}


def _test(program: Program, block: Block) -> _Test | None:
    if block.stop - block.start < 2 or len(set(block.successors)) != 2:
        return None
    compare, branch = (item.decoded for item in program.instructions[block.stop - 2 : block.stop])
    if branch.opcode.control is not Control.CONDITIONAL or not branch.reads & SCC:
        return None
    if compare.opcode.form not in SCALAR_FORMS or compare.writes != SCC or compare.reads & SCC:
        return None
    fall_through = [
        index for index in block.successors if program.blocks[index].start == block.stop
    ]
    if len(fall_through) != 1:
        return None
    (target,) = set(block.successors) - set(fall_through)
    return _Test(compare, branch.mnemonic, target, fall_through[0])


def _reachable_blocks(program: Program, first: int, registers: int) -> tuple[set[int], set[int]]:
    """Blocks at whose end `registers` are as they were at the start of block `first` on some path,
    and those at whose end they may not be. Paths that come back to `first` are not followed: its
    operations are issued again there."""
    reach: tuple[set[int], set[int]] = (set(), set())
    pending = [(first, False)]
    while pending:
        index, changed = pending.pop()
        block = program.blocks[index]
        changed = changed or any(
            item.decoded.writes & registers
            or item.decoded.opcode.control in (Control.CALL, Control.INDIRECT)
            for item in program.instructions[block.start : block.stop]
        )
        if index not in reach[changed]:
            reach[changed].add(index)
            pending += [(other, changed) for other in block.successors if other != first]
    return reach


__all__ = ["excluded_blocks"]
