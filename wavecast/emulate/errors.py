"""What can go wrong while code is translated or runs."""

from __future__ import annotations

from wavecast.errors import WavecastError
from wavecast.isa.instruction import Instruction
from wavecast.isa.program import Program


class Unsupported(WavecastError):
    """An instruction, or a form of one, that cannot be executed yet."""

    placed = False
    """Whether the message names the instruction."""

    def at(self, program: Program, instruction: Instruction) -> Unsupported:
        """The same, naming kernel, instruction, and source line."""
        if self.placed:
            return self
        where = f" at {instruction.location}" if instruction.location else ""
        found = Unsupported(
            f"{program.name}: cannot execute {instruction.decoded.text!r}{where}: {self.message}"
        )
        found.placed = True
        return found


class ExecutionError(WavecastError):
    """A launch broke off: a wild address, an endless loop, a deadlock."""
