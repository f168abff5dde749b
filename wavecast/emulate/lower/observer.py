"""What a mode adds to the native code of a kernel: sanitizers and traces watch through this.

Methods emit code at the builder's position, ahead of what they are told about; without observers no
code is emitted. Results of lane-wise instructions that wait in a run (`run.py`) are not in their
rows yet when `before` is called for a later instruction of the run, nor are those of matrix
instructions that wait (`matrix.py`); an observer that needs them calls `emitter.settle()`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wavecast.emulate.lower.emitter import WaveEmitter
from wavecast.isa.instruction import Instruction
from wavecast.isa.program import Block

if TYPE_CHECKING:
    from wavecast.emulate.lower.access import AccessTarget, MemoryAccess


class Observer:
    """Watches nothing; modes override what they need."""

    def enter(self, emitter: WaveEmitter) -> None:
        """In the function's entry, after scalar registers are loaded: at the start of a wave and
        each time it resumes."""

    def block(self, emitter: WaveEmitter, block: Block) -> None:
        """At the start of a basic block."""

    def before(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        """Ahead of every instruction, in program order."""

    def after(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        """After every instruction that continues with the next."""

    def access(
        self,
        emitter: WaveEmitter,
        instruction: Instruction,
        access: MemoryAccess,
        target: AccessTarget,
        rows: Any,
    ) -> None:
        """Ahead of an access of vector memory or LDS. `rows` is a pointer to the data registers;
        for a load to LDS the offset in LDS as a pointer."""

    def scalar_address(self, emitter: WaveEmitter, instruction: Instruction, address: Any) -> None:
        """Ahead of `scalar_access`: the address (i64) whose low two bits the hardware ignores."""

    def scalar_access(
        self, emitter: WaveEmitter, instruction: Instruction, address: Any, size: int
    ) -> None:
        """Ahead of an access of scalar memory at `address` (i64), `size` in bytes."""

    def branch(self, emitter: WaveEmitter, instruction: Instruction, condition: Any) -> None:
        """Ahead of a conditional branch; `condition` is its condition (i1)."""

    def leave(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        """Ahead of a barrier, where the wave stops to be resumed, and of the end of the program."""


class Observers(Observer):
    """Several observers, each told everything in order."""

    def __init__(self, observers: tuple[Observer, ...]) -> None:
        self.observers = observers

    def enter(self, emitter: WaveEmitter) -> None:
        for observer in self.observers:
            observer.enter(emitter)

    def block(self, emitter: WaveEmitter, block: Block) -> None:
        for observer in self.observers:
            observer.block(emitter, block)

    def before(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        for observer in self.observers:
            observer.before(emitter, instruction)

    def after(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        for observer in self.observers:
            observer.after(emitter, instruction)

    def access(
        self,
        emitter: WaveEmitter,
        instruction: Instruction,
        access: MemoryAccess,
        target: AccessTarget,
        rows: Any,
    ) -> None:
        for observer in self.observers:
            observer.access(emitter, instruction, access, target, rows)

    def scalar_address(self, emitter: WaveEmitter, instruction: Instruction, address: Any) -> None:
        for observer in self.observers:
            observer.scalar_address(emitter, instruction, address)

    def scalar_access(
        self, emitter: WaveEmitter, instruction: Instruction, address: Any, size: int
    ) -> None:
        for observer in self.observers:
            observer.scalar_access(emitter, instruction, address, size)

    def branch(self, emitter: WaveEmitter, instruction: Instruction, condition: Any) -> None:
        for observer in self.observers:
            observer.branch(emitter, instruction, condition)

    def leave(self, emitter: WaveEmitter, instruction: Instruction) -> None:
        for observer in self.observers:
            observer.leave(emitter, instruction)


__all__ = ["Observer", "Observers"]
