"""Where EXEC may hold fewer lanes than the wave started with.

Forward data flow over the scalar instructions that touch EXEC or the copies saved of it, evaluated
with the rows' own semantics: all that is tracked is which registers hold all ones.
"""

from __future__ import annotations

from functools import lru_cache

from wavecast.analyze.values.domain import WaveOps
from wavecast.analyze.values.execute import compile_step
from wavecast.analyze.values.scratch import SLOT_BASE
from wavecast.analyze.values.state import EXEC_LOW, RegisterState
from wavecast.isa.defuse import bits_of
from wavecast.isa.instruction import Decoded
from wavecast.isa.opcode import SCALAR_FORMS
from wavecast.isa.program import Program
from wavecast.isa.registers import EXEC, SGPRS, VCC
from wavecast.isa.semantics.integers import Unknown

_ONES = 0xFFFFFFFF
_UNKNOWN = Unknown(0, "mask")


def partial_lanes(program: Program, lanes: int) -> bytearray:
    """Per instruction, 1 where lanes of the wave may be switched off."""
    return _Masks(program, lanes).run()


class _Masks:
    def __init__(self, program: Program, lanes: int) -> None:
        self.program = program
        self.lanes = lanes
        self.exec_bits = EXEC if lanes == 64 else EXEC & (1 << EXEC_LOW)
        self.tracked = self._tracked_registers()
        self.steps = [self._steps(block.start, block.stop) for block in program.blocks]

    def _tracked_registers(self) -> int:
        """EXEC, VCC and every scalar register an instruction that touches EXEC writes or reads."""
        tracked = EXEC | VCC
        for instruction in self.program.instructions:
            decoded = instruction.decoded
            if decoded.opcode.form in SCALAR_FORMS:
                registers = decoded.writes | decoded.reads
                if registers & EXEC:
                    tracked |= registers & SGPRS
        return tracked

    def _steps(self, start: int, stop: int) -> list[tuple[int, int, Decoded | None]]:
        """Instructions that write tracked registers: index, what they write, and the instruction
        where its effect matters (what others write is not all ones)."""
        steps: list[tuple[int, int, Decoded | None]] = []
        instructions, tracked = self.program.instructions, self.tracked
        for index in range(start, stop):
            decoded = instructions[index].decoded
            writes = decoded.writes & tracked
            if not writes:
                continue
            touches = decoded.writes & EXEC or decoded.reads & tracked
            scalar = decoded.opcode.form in SCALAR_FORMS and touches
            steps.append((index, writes, decoded if scalar else None))
        return steps

    def run(self) -> bytearray:
        blocks = self.program.blocks
        entering: list[int | None] = [None] * len(blocks)
        entering[0] = self.exec_bits
        pending = list(self.program.reverse_postorder)
        while pending:
            index = pending.pop(0)
            ones = entering[index]
            if ones is None:
                continue
            leaving = self._through(index, ones, None)
            for successor in blocks[index].successors:
                before = entering[successor]
                joined = leaving if before is None else before & leaving
                if joined != before:
                    entering[successor] = joined
                    if successor not in pending:
                        pending.append(successor)
        partial = bytearray(len(self.program.instructions))
        for block in blocks:
            self._through(block.index, entering[block.index] or 0, partial)
        return partial

    def _through(self, block: int, ones: int, partial: bytearray | None) -> int:
        """The registers that hold all ones after a block, from those that do before it."""
        span = self.program.blocks[block]
        here = span.start
        for index, writes, decoded in self.steps[block]:
            if partial is not None and ones & self.exec_bits != self.exec_bits:
                partial[here : index + 1] = b"\1" * (index + 1 - here)
            here = index + 1
            if decoded is not None:
                operand_ones = ones & (decoded.reads | decoded.writes)
                ones = ones & ~writes | _all_ones(decoded, self.lanes, operand_ones) & writes
            else:
                ones &= ~writes
        if partial is not None and ones & self.exec_bits != self.exec_bits:
            partial[here : span.stop] = b"\1" * (span.stop - here)
        return ones


@lru_cache(maxsize=1 << 14)
def _all_ones(decoded: Decoded, lanes: int, ones: int) -> int:
    """The registers an instruction writes all ones to, where `ones` hold all ones before it."""
    state = RegisterState(WaveOps(lanes), SLOT_BASE)
    values = state.values
    for position in bits_of(decoded.reads | decoded.writes):
        values[position] = _ONES if ones >> position & 1 else _UNKNOWN
    compile_step(decoded, lanes)(state, 0)
    return sum(1 << position for position in bits_of(decoded.writes) if values[position] == _ONES)
