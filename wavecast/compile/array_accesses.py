"""The arrays of one address space that the accesses of a kernel are made for, from LLVM IR.

Machine code has one block of LDS, and one of scratch per lane. LLVM IR keeps the array that each
address is made from. An access of the machine code belongs to those of the IR that have its source
location, column included.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from wavecast.compile.llvm_ir import (
    IrFunction,
    Position,
    kinds_of,
    position_of,
    without_columns,
)
from wavecast.isa.instruction import Instruction
from wavecast.isa.opcode import MemoryKind

UNLIMITED: Final = 1 << 31
"""The end of arrays whose size the launch chooses: beyond all LDS and scratch."""
CONSTANT: Final = "getelementptr "
_COPIES = ("freeze ", "bitcast ", "select ", "phi ")
_NO_ACCESSES = (*_COPIES, CONSTANT, "call void @llvm.lifetime.")


@dataclass(frozen=True, slots=True, order=True)
class ArrayBytes:
    """Bytes of an array, from `first` to before `end`, counted from the start of its memory."""

    first: int
    end: int


class LocatedAccesses:
    """Which arrays the accesses at a source location may touch."""

    def __init__(self) -> None:
        self._by_column: dict[tuple[MemoryKind, Position], set[ArrayBytes] | None] = {}
        self._by_line: dict[tuple[MemoryKind, Position], set[ArrayBytes] | None] = {}

    def note(
        self, kinds: Iterable[MemoryKind], position: Position, arrays: set[ArrayBytes] | None
    ) -> None:
        """Add an access that becomes one of `kinds` and touches some arrays, None for any."""
        for kind in kinds:
            for accesses, key in (
                (self._by_column, position),
                (self._by_line, without_columns(position)),
            ):
                before = accesses.get((kind, key), set())
                both = None if before is None or arrays is None else before | arrays
                accesses[kind, key] = both

    def of(self, instruction: Instruction) -> tuple[ArrayBytes, ...]:
        """The arrays an instruction may touch, by their first byte; none where it is not known."""
        memory, location = instruction.memory, instruction.location
        if memory is None or location is None:
            return ()
        position = position_of(location)
        if all(column for _, _, column in position):
            arrays = self._by_column.get((memory.kind, position))
        else:  # of merged accesses
            arrays = self._by_line.get((memory.kind, without_columns(position)))
        return tuple(sorted(arrays)) if arrays else ()


class ArrayAccesses(LocatedAccesses):
    """Which arrays of an address space the accesses of a function may touch.

    `variable` gives the array of a name or a constant address (`%4`, `@name`, `getelementptr …`),
    None where it is not known.
    """

    def __init__(
        self, function: IrFunction, space: int, variable: Callable[[str], ArrayBytes | None]
    ) -> None:
        super().__init__()
        roots = _Roots(function.definitions, space, variable)
        for what, position in function.located_instructions():
            self._add(what, roots, position)

    def _add(self, what: str, roots: _Roots, position: Position) -> None:
        """Add an access of the IR; what passes pointers on is none."""
        pointers = list(operands(what, roots.space))
        if not pointers or what.startswith(_NO_ACCESSES):
            return
        arrays: set[ArrayBytes] | None = set()
        for operand in pointers:
            pointer_arrays = roots.of(operand)
            arrays = None if arrays is None or pointer_arrays is None else arrays | pointer_arrays
        self.note(kinds_of(what), position, arrays)


class _Roots:
    """The arrays that the pointers of a function are made from."""

    def __init__(
        self,
        definitions: Mapping[str, str],
        space: int,
        variable: Callable[[str], ArrayBytes | None],
    ) -> None:
        self.definitions, self.space, self.variable = definitions, space, variable

    def of(self, pointer: str) -> set[ArrayBytes] | None:
        """None where one of them is not known."""
        arrays: set[ArrayBytes] = set()
        work, visited_pointers = [pointer], {pointer}
        while work:
            operand = work.pop()
            array = self.variable(operand)
            if array is not None:
                arrays.add(array)
                continue
            what = self.definitions.get(operand, "")
            if what.startswith(CONSTANT):
                sources = list(operands(what, self.space))[:1]
            elif what.startswith(f"phi ptr addrspace({self.space})"):
                sources = re.findall(r"\[ (.+?), %\S+ \]", what)
            elif what.startswith(_COPIES):
                sources = list(operands(what, self.space))
            else:
                return None
            if not sources:
                return None
            work += [source for source in sources if source not in visited_pointers]
            visited_pointers |= set(sources)
        return arrays


def operands(text: str, space: int) -> Iterator[str]:
    """The pointers of an address space among the operands of an instruction: `%12`, `@name`, or a
    constant expression."""
    pointer, at = f"ptr addrspace({space}) ", 0
    while (position := text.find(pointer, at)) >= 0:
        start = end = position + len(pointer)
        while text.startswith(("nonnull ", "noundef ", "align "), start):
            start = end = text.index(" ", start) + 1
        depth = 0
        while end < len(text) and (depth or text[end] not in ",)] "):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            if text.startswith(CONSTANT, end):  # words of a constant stay together
                end = text.index("(", end)
                continue
            end += 1
        operand = text[start:end]
        if operand:
            yield operand
        at = max(end, position + len(pointer))


__all__ = ["CONSTANT", "UNLIMITED", "ArrayAccesses", "ArrayBytes", "LocatedAccesses", "operands"]
