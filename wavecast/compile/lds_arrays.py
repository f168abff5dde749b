"""The LDS arrays that the accesses of a HIP kernel are made for, from LLVM IR.

Machine code has one block of LDS. LLVM puts the arrays of a kernel into one structure
(`amdgpu-lower-module-lds`) and keeps the field that each address is made from. The IR behind that
pass is the `llir` stage of a HIP kernel. An access of the machine code belongs to those of the IR
that have its source location, column included.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from wavecast.compile.irtypes import TypeTable
from wavecast.compile.llvm_ir import (
    IrFunction,
    Position,
    kinds_of,
    position_of,
    without_columns,
)
from wavecast.errors import ParseError
from wavecast.isa.instruction import Instruction
from wavecast.isa.opcode import MemoryKind, Space

PASS: Final = "amdgpu-lower-module-lds"
"""LLVM's pass whose output is read."""
LDS_BYTES: Final = 1 << 31
"""The end of arrays whose size the launch chooses: beyond all LDS."""

_BANNER: Final = "*** IR Dump After "
_STRUCT = re.compile(
    r'^@("?)(?P<name>[^"\s]+)\1 = .*\baddrspace\(3\) global (?P<type>%\S+) .*'
    r"!absolute_symbol !(?P<at>\d+)"
)
_DYNAMIC = re.compile(r'^@("?)(?P<name>[^"\s]+)\1 = .*\baddrspace\(3\) global \[0 x [^]]+\]')
_RANGE = re.compile(r"^!(\d+) = !\{i32 (\d+), i32 \d+\}")
_POINTER = re.compile(r"\bptr addrspace\(3\) ")
_CONSTANT = "getelementptr "
_FIELD = re.compile(
    r'^getelementptr [a-z ]*\((?P<type>%[^,]+), ptr addrspace\(3\) @"?(?P<name>[^",]+)"?, i32 0, '
    r"i32 (?P<field>\d+)\)$"
)
_COPIES = ("freeze ", "bitcast ", "select ", "phi ")


@dataclass(frozen=True, slots=True, order=True)
class LdsArray:
    """LDS bytes from `first` to before `end`."""

    first: int
    end: int


class LdsAccesses:
    """Which arrays the LDS accesses of a kernel may touch.

    `text` is the module as LLVM prints it behind `PASS`; a module without the kernel, or without
    locations, knows nothing.
    """

    def __init__(self, text: str, kernel: str) -> None:
        lines = text.split("\n")
        self._arrays = _arrays(lines, kernel)
        self._by_column: dict[tuple[MemoryKind, Position], set[LdsArray] | None] = {}
        self._by_line: dict[tuple[MemoryKind, Position], set[LdsArray] | None] = {}
        if self._arrays:
            function = IrFunction(lines, kernel)
            roots = _Roots(function, self._arrays)
            for what, position in function.located():
                self._note(what, roots, position)

    def of(self, instruction: Instruction) -> tuple[LdsArray, ...]:
        """The arrays an instruction may touch, by their first byte; none where it is not known."""
        memory, location = instruction.memory, instruction.location
        if memory is None or memory.space is not Space.LDS or location is None:
            return ()
        position = position_of(location)
        if all(column for _, _, column in position):
            found = self._by_column.get((memory.kind, position))
        else:  # of merged accesses
            found = self._by_line.get((memory.kind, without_columns(position)))
        return tuple(sorted(found)) if found else ()

    def _note(self, what: str, roots: _Roots, position: Position) -> None:
        """Add an access of the IR; what passes pointers on is none."""
        operands = list(_operands(what))
        if not operands or what.startswith((*_COPIES, _CONSTANT)):
            return
        touched: set[LdsArray] | None = set()
        for operand in operands:
            found = roots.of(operand)
            touched = None if touched is None or found is None else touched | found
        for kind in kinds_of(what):
            for known, key in (
                (self._by_column, position),
                (self._by_line, without_columns(position)),
            ):
                before = known.get((kind, key), set())
                both = None if before is None or touched is None else before | touched
                known[kind, key] = both


class _Roots:
    """The arrays that the pointers of a function are made from."""

    def __init__(self, function: IrFunction, arrays: Mapping[tuple[str, int], LdsArray]) -> None:
        self.definitions, self.arrays = function.definitions, arrays

    def of(self, pointer: str) -> set[LdsArray] | None:
        """None where one of them is not known."""
        found: set[LdsArray] = set()
        work, seen = [pointer], {pointer}
        while work:
            operand = work.pop()
            if not operand.startswith("%"):
                array = self._constant(operand)
                if array is None:
                    return None
                found.add(array)
                continue
            what = self.definitions.get(operand, "")
            if what.startswith(_CONSTANT):
                sources = list(_operands(what))[:1]
            elif what.startswith("phi ptr addrspace(3)"):
                sources = re.findall(r"\[ (.+?), %\S+ \]", what)
            elif what.startswith(_COPIES):
                sources = list(_operands(what))
            else:
                return None
            if not sources:
                return None
            work += [source for source in sources if source not in seen]
            seen |= set(sources)
        return found

    def _constant(self, text: str) -> LdsArray | None:
        """The array of a constant address: a field of a structure, with an offset or without."""
        while (field := _FIELD.match(text)) is None and text.startswith(_CONSTANT):
            text = next(_operands(text), "")
        if field is not None:
            return self.arrays.get((field["name"], int(field["field"])))
        return self.arrays.get((text.removeprefix("@").strip('"'), 0))


def _arrays(lines: Sequence[str], kernel: str) -> dict[tuple[str, int], LdsArray]:
    """(symbol, field) -> array, of the structures that the kernel uses and of dynamic LDS; none
    where a structure has a type of unknown size."""
    types = TypeTable(lines)
    ranges = {m[1]: int(m[2]) for line in lines if (m := _RANGE.match(line)) is not None}
    found: dict[tuple[str, int], LdsArray] = {}
    for line in lines:
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
            found[structure["name"], number] = LdsArray(first + offset, first + offset + size)
    end = max((array.end for array in found.values()), default=0)
    for line in lines:
        dynamic = _DYNAMIC.match(line)
        if dynamic is not None:
            found[dynamic["name"], 0] = LdsArray(end, LDS_BYTES)
    return found


def _operands(text: str) -> Iterator[str]:
    """The LDS pointers among the operands of an instruction: `%12`, `@name`, or a constant
    expression."""
    at = 0
    while (found := _POINTER.search(text, at)) is not None:
        start = end = found.end()
        while text.startswith(("nonnull ", "noundef ", "align "), start):
            start = end = text.index(" ", start) + 1
        depth = 0
        while end < len(text) and (depth or text[end] not in ",)] "):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            if text.startswith(_CONSTANT, end):  # words of a constant stay together
                end = text.index("(", end)
                continue
            end += 1
        operand = text[start:end]
        if operand:
            yield operand
        at = max(end, found.end())


def dumped(log: str) -> str:
    """The module that the compiler printed behind `PASS`, "" if it printed none."""
    at = log.find(_BANNER)
    if at < 0 or PASS not in log[at : log.find("\n", at)]:
        return ""
    module = log[log.find("\n", at) + 1 :]
    return module.split(_BANNER, 1)[0]


__all__ = ["LDS_BYTES", "PASS", "LdsAccesses", "LdsArray", "dumped"]
