"""Instructions as parsed: an opcode row, operands, modifiers and where they come from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from wavecast.isa.opcode import MemoryEffect, Opcode, OperandRole


class OperandClass(Enum):
    """What an operand's text turned out to be."""

    VGPR = "vgpr"
    AGPR = "agpr"
    SGPR = "sgpr"
    SPECIAL = "special"  # vcc, exec, m0, ttmp, null, scc …
    CONSTANT = "constant"  # an inline constant or a literal
    OFF = "off"
    LABEL = "label"
    EXPRESSION = "expression"  # hwreg(), sendmsg(), s_waitcnt counts, s_delay_alu hints


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand. `text` prints it back exactly; equal texts are the same object.

    `first` and `count` give the 32-bit registers of a VGPR, AGPR or SGPR operand; `bits` is that
    set over all classes (`wavecast.isa.registers`). `value` is the integer of a CONSTANT (floating
    point constants keep their bit pattern in `value` and their spelling in `text`). `half` is
    `l` or `h` for a 16-bit half of a VGPR. `negate`, `absolute`, and `sign_extend` are source
    modifiers.
    """

    kind: OperandClass
    text: str
    first: int = 0
    count: int = 0
    bits: int = 0
    value: int | None = None
    half: str = ""
    negate: bool = False
    absolute: bool = False
    sign_extend: bool = False


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A line of the kernel's source. `inlined_at` is the call site when the code was inlined."""

    file: str
    line: int
    column: int = 0
    inlined_at: SourceLocation | None = None

    @property
    def outermost(self) -> SourceLocation:
        """The call site in the kernel's own body."""
        location = self
        while location.inlined_at is not None:
            location = location.inlined_at
        return location

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(slots=True, eq=False)
class Decoded:
    """An instruction's text, understood. Equal texts in one target share one object.

    Immutable by convention: not a frozen class because building one is the parser's inner loop.
    `reads` and `writes` are register sets over all classes, implicit ones included; `kills` is
    the part of `writes` whose old value is gone afterwards (a write of a 16-bit half, or one that
    preserves lanes, kills nothing). `modifiers` maps a modifier's name to its printed value
    (`{"offset": "16"}`), flags to `""`. `encoding` is the suffix LLVM prints (`e32`, `e64_dpp`),
    which `mnemonic` includes. `roles` are the opcode's operand roles, one per operand printed.
    `memory` is the opcode's memory effect as this form of it has it (a buffer load with `lds` is
    a load to LDS).
    """

    text: str
    opcode: Opcode
    mnemonic: str
    encoding: str
    operands: tuple[Operand, ...]
    modifiers: dict[str, str]
    reads: int
    writes: int
    kills: int
    roles: tuple[OperandRole, ...] = ()
    memory: MemoryEffect | None = None
    second: Decoded | None = None
    """The Y half of a VOPD pair; `reads` and `writes` of the X half cover both."""


class Instruction:
    """One instruction of a program: what it is (`decoded`), its position and its source.

    Immutable by convention; a plain slotted class because a corpus holds hundreds of thousands.
    """

    __slots__ = ("decoded", "index", "line", "location")

    def __init__(
        self, decoded: Decoded, index: int, line: int, location: SourceLocation | None
    ) -> None:
        self.decoded = decoded
        self.index = index
        """Position in its function, from 0."""
        self.line = line
        """1-based line of the assembly text."""
        self.location = location

    @property
    def opcode(self) -> Opcode:
        return self.decoded.opcode

    @property
    def mnemonic(self) -> str:
        return self.decoded.mnemonic

    @property
    def operands(self) -> tuple[Operand, ...]:
        return self.decoded.operands

    @property
    def modifiers(self) -> dict[str, str]:
        return self.decoded.modifiers

    @property
    def reads(self) -> int:
        return self.decoded.reads

    @property
    def writes(self) -> int:
        return self.decoded.writes

    @property
    def memory(self) -> MemoryEffect | None:
        return self.decoded.memory

    @property
    def second(self) -> Decoded | None:
        return self.decoded.second

    def __repr__(self) -> str:
        return f"<{self.index}: {self.decoded.text}>"
