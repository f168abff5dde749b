"""The accesses of global memory that HIP source calls volatile, from LLVM IR.

The machine code of a volatile access is that of a relaxed atomic one of system scope.
"""

from __future__ import annotations

import re

from wavecast.compile.llvm_ir import IrFunction, Position, kinds_of, position_of
from wavecast.isa.instruction import Instruction
from wavecast.isa.opcode import MemoryKind, Space

_ACCESS = re.compile(r"^(?:load|store) ")
_VOLATILE = re.compile(r"^(?:load|store) volatile ")
_OTHER_SPACE = re.compile(r"\bptr addrspace\([2-9]\) ")


class VolatileAccesses:
    """The volatile accesses of one kernel of a module (`lds_arrays.PASS` has printed `text`)."""

    def __init__(self, text: str, kernel: str) -> None:
        self._volatile: dict[tuple[MemoryKind, Position], bool] = {}
        if " volatile " not in text:
            return
        for what, position in IrFunction(text.split("\n"), kernel).located():
            if _ACCESS.match(what) and not _OTHER_SPACE.search(what):
                (kind,) = kinds_of(what)
                before = self._volatile.get((kind, position), True)
                self._volatile[kind, position] = before and bool(_VOLATILE.match(what))

    def has(self, instruction: Instruction) -> bool:
        """Whether all accesses of the IR at an instruction's location are volatile."""
        memory, location = instruction.memory, instruction.location
        if memory is None or location is None or memory.space not in (Space.GLOBAL, Space.FLAT):
            return False
        return self._volatile.get((memory.kind, position_of(location)), False)


__all__ = ["VolatileAccesses"]
