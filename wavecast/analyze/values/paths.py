"""Where control may go in a program, asked again and again by its walks."""

from __future__ import annotations

from dataclasses import dataclass

from wavecast.analyze.values.operands import special_position
from wavecast.isa import semantics
from wavecast.isa.opcode import Control
from wavecast.isa.program import Loop, Program
from wavecast.isa.registers import EXEC
from wavecast.isa.semantics.combine import Function


@dataclass(frozen=True, slots=True)
class Branch:
    """A conditional branch at the end of a block: the next block, the one it jumps to, and the
    position of the register it looks at (`flag` for one of a single bit)."""

    index: int
    follows: int
    jump: int
    position: int
    flag: bool
    on_exec: bool
    looks_at_exec: bool
    condition: Function | None
    """The row's meaning: whether the branch is taken."""


class Paths:
    """Branches and meeting places of one program, worked out when first needed."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._order = {block: n for n, block in enumerate(program.reverse_postorder)}
        self._branches: dict[int, Branch | None] = {}
        self._retries: dict[int, bool] = {}
        self._ends: dict[int, bool] = {}
        self._between: dict[tuple[int, int, int | None], tuple[int | None, frozenset[int]]] = {}

    def branch(self, block: int) -> Branch | None:
        """The conditional branch that ends a block; None where there is no choice."""
        if block not in self._branches:
            self._branches[block] = self._find_branch(block)
        return self._branches[block]

    def retries(self, loop: Loop) -> bool:
        """Whether a loop repeats a compare-and-swap until no other lane or wave has changed the
        value in between: its only atomic is one, and what that returns decides about the exit."""
        if loop.index not in self._retries:
            self._retries[loop.index] = self._is_retry(loop)
        return self._retries[loop.index]

    def _is_retry(self, loop: Loop) -> bool:
        program = self._program
        body = [item for block in sorted(loop.blocks) for item in program.block_instructions(block)]
        atomics = [item for item in body if item.opcode.memory_form.operation]
        if loop.children or len(atomics) != 1:
            return False
        if atomics[0].opcode.memory_form.operation != "cmpswap" or not atomics[0].writes:
            return False
        returned, before = atomics[0].writes, 0
        while returned != before:  # what was returned in one iteration is used in the next one too
            before = returned
            for item in body:
                if item.reads & returned & ~EXEC:
                    returned |= item.writes
        leaving = (
            program.instructions[program.blocks[block].stop - 1]
            for block in loop.blocks
            if any(after not in loop.blocks for after in program.blocks[block].successors)
        )
        return any(item.reads & returned for item in leaving)

    def _find_branch(self, index: int) -> Branch | None:
        block = self._program.blocks[index]
        decoded = self._program.instructions[block.stop - 1].decoded
        if decoded.opcode.control is not Control.CONDITIONAL or len(block.successors) < 2:
            return None
        name = decoded.opcode.implicit_reads[0]
        meaning = semantics.of(decoded.opcode)
        return Branch(
            block.stop - 1,
            index + 1,
            next(s for s in block.successors if s != index + 1),
            special_position(name),
            name == "scc",
            name == "exec",
            bool(decoded.reads & EXEC),
            meaning.function if meaning is not None else None,
        )

    def ends(self, block: int) -> bool:
        """The wave ends here, having done nothing else: an early return."""
        if block not in self._ends:
            span = self._program.blocks[block]
            instructions = self._program.instructions[span.start : span.stop]
            self._ends[block] = not span.successors and not any(
                i.decoded.memory is not None or i.opcode.matrix is not None for i in instructions
            )
        return self._ends[block]

    def between(self, a: int, b: int, loop: Loop | None) -> tuple[int | None, frozenset[int]]:
        """Where all paths meet again going forward, and the blocks before that.

        Several blocks may be reached from both sides and still be avoidable; the meeting place is
        the one no path goes around. Paths within a loop meet at its header at the latest.
        """
        key = a, b, None if loop is None else loop.index
        region = self._between.get(key)
        if region is None:
            merge, blocks = self._find_between(a, b, loop)
            region = self._between[key] = merge, frozenset(blocks)
        return region

    def _find_between(self, a: int, b: int, loop: Loop | None) -> tuple[int | None, set[int]]:
        header = loop.header if loop is not None else None
        if header in (a, b):
            return header, self._forward(b if a == header else a)
        pending, between, back = {a, b}, set[int](), False
        while len(pending) > 1 or (back and pending):
            block = min(pending, key=self._order.__getitem__)
            pending.remove(block)
            between.add(block)
            for successor in self._program.blocks[block].successors:
                if successor == header:
                    back = True
                elif self._order[successor] > self._order[block] and (
                    loop is None or successor in loop.blocks
                ):
                    pending.add(successor)
        return (pending.pop() if pending else header), between

    def _forward(self, start: int) -> set[int]:
        blocks = {start}
        stack = [start]
        while stack:
            block = stack.pop()
            for successor in self._program.blocks[block].successors:
                if successor not in blocks and self._order[successor] > self._order[block]:
                    blocks.add(successor)
                    stack.append(successor)
        return blocks
