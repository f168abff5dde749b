"""What the compiler schedules in SASS: the control bits of every 128-bit instruction.

Bits 105 to 108 are the stall count, 109 yield, 110 to 112 the scoreboard that falls when the result
is there, 113 to 115 the one that falls when the operands are read (7: none), 116 to 121 the
scoreboards the instruction waits for, 122 to 125 the operands kept for reuse. The positions were
verified by comparing `nvdisasm -hex` of dependent and independent chains on sm_80, sm_90, sm_100.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from wavecast.compile.codeobject import CodeObject
from wavecast.errors import Unpredictable
from wavecast.isa import elf
from wavecast.isa.program import Program

BYTES: Final = 16
"""Bytes of an instruction, on every target since sm_70."""
NONE: Final = 7
"""The number that names no scoreboard."""
_SHIFT: Final = 105 - 64


@dataclass(frozen=True, slots=True)
class ControlBits:
    """The schedule of one instruction: clocks to the warp's next issue (`stall`), whether another
    warp goes first (`yields`), scoreboards that fall with the result (`written`) and the operands
    (`read`), None for none, those waited for (`waits`), and operands kept (`reuse`, a bit each)."""

    stall: int
    yields: bool
    written: int | None
    read: int | None
    waits: frozenset[int]
    reuse: int


@lru_cache(maxsize=1 << 14)
def decode(word: int) -> ControlBits:
    """The control bits of the upper 64 bits of an instruction."""
    bits = word >> _SHIFT
    written, read = bits >> 5 & 7, bits >> 8 & 7
    waits = bits >> 11 & 63
    return ControlBits(
        stall=bits & 15,
        yields=not bits >> 4 & 1,
        written=None if written == NONE else written,
        read=None if read == NONE else read,
        waits=frozenset(number for number in range(6) if waits >> number & 1),
        reuse=bits >> 17 & 15,
    )


def controls(code: CodeObject, program: Program) -> tuple[ControlBits, ...]:
    """The schedule of every instruction of a kernel, from its cubin.

    Raises Unpredictable for a listing without a cubin, or one that does not match it.
    """
    data = code.stages.get("cubin")
    if not isinstance(data, bytes):
        raise Unpredictable("a SASS listing has no control bits (give the cubin)")
    section = elf.read(data).section(f".text.{code.kernel}")
    text = section.data if section is not None else b""
    if len(program.instructions) * BYTES > len(text):
        raise Unpredictable(f"the cubin has {len(text) // BYTES} instructions of {code.kernel}")
    return tuple(
        decode(int.from_bytes(text[at * BYTES + 8 : at * BYTES + 16], "little"))
        for at in range(len(program.instructions))
    )


__all__ = ["BYTES", "ControlBits", "controls", "decode"]
