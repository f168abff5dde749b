"""What HIP source calls its accesses of global memory, from LLVM IR: plain, volatile or atomic.

The machine code of a volatile access is that of a relaxed atomic one of system scope, and on some
targets atomic stores look like plain ones.
"""

from __future__ import annotations

import re
from enum import IntEnum

from wavecast.compile.llvm_ir import IrFunction, Position, kinds_of, module_lines, position_of
from wavecast.isa.instruction import Instruction
from wavecast.isa.opcode import MemoryKind, Space

_ACCESS = re.compile(r"^(?:load|store) (?P<atomic>atomic )?(?P<volatile>volatile )?")
_NARROW = re.compile(r'syncscope\("(?:workgroup|wavefront|singlethread)')
_OTHER_SPACE = re.compile(r"\bptr addrspace\([2-9]\) ")


class SourceAccess(IntEnum):
    """What all accesses at a position of the source are. The values are words of native code."""

    UNKNOWN = 0
    VOLATILE = 1
    ATOMIC = 2
    """An atomic access of agent or system scope."""
    PLAIN = 3


class SourceAccesses:
    """The accesses of one kernel of a module (`lds_arrays.PASS` has printed `text`)."""

    def __init__(self, text: str, kernel: str) -> None:
        self._accesses: dict[tuple[MemoryKind, Position], SourceAccess] = {}
        for what, position in IrFunction(module_lines(text), kernel).located_instructions():
            match = _ACCESS.match(what)
            if match is None or _OTHER_SPACE.search(what):
                continue
            (kind,) = kinds_of(what)
            access = _access(match, what)
            before = self._accesses.get((kind, position), access)
            self._accesses[kind, position] = access if access is before else SourceAccess.UNKNOWN

    def of(self, instruction: Instruction) -> SourceAccess:
        """What all accesses of the IR at an instruction's location are."""
        memory, location = instruction.memory, instruction.location
        if memory is None or location is None or memory.space not in (Space.GLOBAL, Space.FLAT):
            return SourceAccess.UNKNOWN
        return self._accesses.get((memory.kind, position_of(location)), SourceAccess.UNKNOWN)


def _access(match: re.Match[str], what: str) -> SourceAccess:
    if match["atomic"]:
        return SourceAccess.UNKNOWN if _NARROW.search(what) else SourceAccess.ATOMIC
    return SourceAccess.VOLATILE if match["volatile"] else SourceAccess.PLAIN


__all__ = ["SourceAccess", "SourceAccesses"]
