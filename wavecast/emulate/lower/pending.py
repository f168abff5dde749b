"""Instructions whose code is not emitted yet: a run of lane-wise ones, and matrix instructions."""

from __future__ import annotations

from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.emulate.lower.matrix import MatrixGroup
from wavecast.emulate.lower.run import LaneRun
from wavecast.isa.instruction import Decoded, Instruction
from wavecast.isa.registers import EXEC


class PendingInstructions:
    """The pending instructions of the block that is being lowered."""

    def __init__(self, emitter: WaveEmitter) -> None:
        self._emitter = emitter
        self._run: LaneRun | None = None
        self.products = MatrixGroup(emitter)

    def flush(self) -> None:
        """Emit the run."""
        if self._run is not None:
            run, self._run = self._run, None
            run.emit()

    def settle(self) -> None:
        """Emit everything."""
        self.flush()
        self.products.close()

    def flush_masks(self, registers: int) -> None:
        """Emit the run if it writes a lane mask to one of the scalar registers (a bit each)."""
        if self._run is not None and self._run.masks & registers:
            self.flush()

    def flush_before(self, decoded: Decoded) -> None:
        """Emit the run if a scalar instruction must wait for it."""
        if self._run is not None and self._run.blocks(decoded):
            self.flush()

    def flush_rows(self, decoded: Decoded) -> None:
        """Emit what writes the vector registers an instruction reads."""
        self.flush()
        self.products.before(decoded)

    def add(self, instruction: Instruction) -> None:
        """Add a lane-wise instruction to the run, or to a new one."""
        if self._run is not None and not self._run.accepts(instruction.decoded):
            self.flush()
        if self._run is None:
            self._run = LaneRun(self._emitter)
        self._run.add(instruction)
        if instruction.decoded.writes & EXEC:
            self.flush()


__all__ = ["PendingInstructions"]
