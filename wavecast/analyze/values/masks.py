"""Where EXEC may hold fewer lanes than the wave started with.

Forward data flow over the scalar instructions that touch EXEC or the copies saved of it, evaluated
with the rows' own semantics: all that is tracked is which registers hold all ones.
"""

from __future__ import annotations

from wavecast.analyze.values.domain import WaveOps
from wavecast.analyze.values.execute import Step, compile_step
from wavecast.analyze.values.scratch import SLOT_BASE
from wavecast.analyze.values.state import EXEC_LOW, Registers
from wavecast.isa.defuse import bits_of
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
        self.exec_bits = EXEC if lanes == 64 else EXEC & (1 << EXEC_LOW)
        self.tracked = self._tracked()
        self.positions = bits_of(self.tracked)
        self.state = Registers(WaveOps(lanes), SLOT_BASE)
        self.steps: list[list[tuple[int, int, Step | None]]] = [
            self._steps(block.start, block.stop, lanes) for block in program.blocks
        ]

    def _tracked(self) -> int:
        """EXEC, VCC and every scalar register an instruction that touches EXEC writes or reads."""
        tracked = EXEC | VCC
        for instruction in self.program.instructions:
            decoded = instruction.decoded
            if decoded.opcode.form in SCALAR_FORMS and (decoded.writes | decoded.reads) & EXEC:
                tracked |= (decoded.writes | decoded.reads) & SGPRS
        return tracked

    def _steps(self, start: int, stop: int, lanes: int) -> list[tuple[int, int, Step | None]]:
        """Instructions that write tracked registers: index, what they write, their effect."""
        found = []
        for index in range(start, stop):
            decoded = self.program.instructions[index].decoded
            writes = decoded.writes & self.tracked
            if not writes:
                continue
            touches = decoded.writes & EXEC or decoded.reads & self.tracked
            scalar = decoded.opcode.form in SCALAR_FORMS and touches
            found.append((index, writes, compile_step(decoded, lanes) if scalar else None))
        return found

    def run(self) -> bytearray:
        blocks = self.program.blocks
        entering: list[int | None] = [None] * len(blocks)
        entering[0] = self.exec_bits
        pending = list(self.program.reverse_postorder)
        while pending:
            index = pending.pop(0)
            known = entering[index]
            if known is None:
                continue
            leaving = self._through(index, known, None)
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

    def _through(self, block: int, known: int, partial: bytearray | None) -> int:
        """The registers that hold all ones after a block, from those that do before it."""
        place = self.program.blocks[block]
        here = place.start
        for index, writes, step in self.steps[block]:
            if partial is not None and known & self.exec_bits != self.exec_bits:
                partial[here : index + 1] = b"\1" * (index + 1 - here)
            here = index + 1
            known = self._after(known, writes, step, index)
        if partial is not None and known & self.exec_bits != self.exec_bits:
            partial[here : place.stop] = b"\1" * (place.stop - here)
        return known

    def _after(self, known: int, writes: int, step: Step | None, index: int) -> int:
        if step is None:
            return known & ~writes
        values = self.state.values
        for position in self.positions:
            values[position] = _ONES if known >> position & 1 else _UNKNOWN
        step(self.state, index)
        for position in bits_of(writes):
            if values[position] == _ONES:
                known |= 1 << position
            else:
                known &= ~(1 << position)
        return known
