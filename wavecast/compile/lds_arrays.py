"""The LDS arrays that the accesses of a HIP kernel are made for, from LLVM IR.

Machine code has one block of LDS. LLVM puts the arrays of a kernel into one structure
(`amdgpu-lower-module-lds`) and keeps the field that each address is made from. The IR behind that
pass is the `llir` stage of a HIP kernel (`array_accesses`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from wavecast.compile.array_accesses import (
    CONSTANT,
    UNLIMITED,
    ArrayAccesses,
    ArrayBytes,
    operands,
)
from wavecast.compile.irtypes import TypeTable
from wavecast.compile.llvm_ir import IrFunction, module_lines
from wavecast.errors import ParseError
from wavecast.isa.instruction import Instruction
from wavecast.isa.opcode import Space

PASS: Final = "amdgpu-lower-module-lds"
"""LLVM's pass whose output is read."""
SPACE: Final = 3
"""The address space of LDS."""

_BANNER: Final = "*** IR Dump After "
_STRUCT = re.compile(
    r'^@("?)(?P<name>[^"\s]+)\1 = .*\baddrspace\(3\) global (?P<type>%\S+) .*'
    r"!absolute_symbol !(?P<at>\d+)"
)
_DYNAMIC = re.compile(r'^@("?)(?P<name>[^"\s]+)\1 = .*\baddrspace\(3\) global \[0 x [^]]+\]')
_RANGE = re.compile(r"^!(\d+) = !\{i32 (\d+), i32 \d+\}")
_FIELD = re.compile(
    r'^getelementptr [a-z ]*\((?P<type>%[^,]+), ptr addrspace\(3\) @"?(?P<name>[^",]+)"?, i32 0, '
    r"i32 (?P<field>\d+)\)$"
)


class LdsAccesses:
    """Which arrays the LDS accesses of a kernel may touch.

    `text` is the module as LLVM prints it behind `PASS`; a module without the kernel, or without
    locations, knows nothing.
    """

    def __init__(self, text: str, kernel: str) -> None:
        lines = module_lines(text)
        self._arrays = _arrays(lines, kernel)
        self._accesses: ArrayAccesses | None = None
        if self._arrays:
            self._accesses = ArrayAccesses(IrFunction(lines, kernel), SPACE, self._array)

    def of(self, instruction: Instruction) -> tuple[ArrayBytes, ...]:
        """The arrays an instruction may touch, by their first byte; none where it is not known."""
        memory = instruction.memory
        if self._accesses is None or memory is None or memory.space is not Space.LDS:
            return ()
        return self._accesses.of(instruction)

    def _array(self, text: str) -> ArrayBytes | None:
        """The array of a constant address: a field of a structure, with an offset or without."""
        while (field := _FIELD.match(text)) is None and text.startswith(CONSTANT):
            text = next(operands(text, SPACE), "")
        if field is not None:
            return self._arrays.get((field["name"], int(field["field"])))
        if not text.startswith("@"):
            return None
        return self._arrays.get((text.removeprefix("@").strip('"'), 0))


def _arrays(lines: Sequence[str], kernel: str) -> dict[tuple[str, int], ArrayBytes]:
    """(symbol, field) -> array, of the structures that the kernel uses and of dynamic LDS; none
    where a structure has a type of unknown size."""
    types = TypeTable(lines)
    metadata = (_RANGE.match(line) for line in lines if line.startswith("!"))
    ranges = {m[1]: int(m[2]) for m in metadata if m is not None}
    variables = [line for line in lines if line.startswith("@")]
    arrays: dict[tuple[str, int], ArrayBytes] = {}
    for line in variables:
        structure = _STRUCT.match(line)
        if structure is None or structure["at"] not in ranges:
            continue
        if structure["name"] not in (f"llvm.amdgcn.kernel.{kernel}.lds", "llvm.amdgcn.module.lds"):
            continue
        first = ranges[structure["at"]]
        try:
            fields = types.fields(structure["type"])
        except ParseError:
            return {}
        for number, (offset, size) in enumerate(fields):
            arrays[structure["name"], number] = ArrayBytes(first + offset, first + offset + size)
    end = max((array.end for array in arrays.values()), default=0)
    for line in variables:
        dynamic = _DYNAMIC.match(line)
        if dynamic is not None:
            arrays[dynamic["name"], 0] = ArrayBytes(end, UNLIMITED)
    return arrays


def extract_module(log: str) -> str:
    """The module that the compiler printed behind `PASS`, "" if it printed none."""
    at = log.find(_BANNER)
    if at < 0 or PASS not in log[at : log.find("\n", at)]:
        return ""
    module = log[log.find("\n", at) + 1 :]
    return module.split(_BANNER, 1)[0]


__all__ = ["PASS", "SPACE", "LdsAccesses", "extract_module"]
