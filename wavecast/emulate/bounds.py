"""Which memory each access may touch: that of the pointers its address is made from.

An address beyond the end of one tensor may lie in another one, where plain execution accepts it.
Addresses are traced to kernel arguments in the code (`analyze.values.roots`); an access whose
address comes from memory, or cannot be traced, may touch everything. Which array of LDS an access
is made for is known where LLVM IR is (`compile.lds_arrays`), or for Gluon where its allocations are
(`compile.shared_allocations`), and so are private arrays in scratch (`compile.private_arrays`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from wavecast.analyze.values.pointers import Pointers
from wavecast.analyze.values.roots import roots
from wavecast.analyze.values.slices import slices
from wavecast.compile.array_accesses import ArrayBytes
from wavecast.compile.codeobject import CodeObject
from wavecast.compile.lds_arrays import LdsAccesses
from wavecast.compile.private_arrays import PrivateAccesses
from wavecast.compile.shared_allocations import SharedAccesses, is_gluon
from wavecast.compile.source_accesses import SourceAccess, SourceAccesses
from wavecast.emulate.scratch_accesses import may_access_scratch
from wavecast.emulate.tensors import AddressInterval, LaunchTensor
from wavecast.emulate.written_bytes import FollowedBytes
from wavecast.isa.opcode import MemoryEffect, MemoryKind, Space
from wavecast.isa.program import Kernel

_STORING = frozenset({MemoryKind.STORE, MemoryKind.ATOMIC, MemoryKind.STORE_FROM_LDS})
_GLOBAL = frozenset({Space.GLOBAL, Space.BUFFER, Space.FLAT, Space.SCALAR})
_ONES = (1 << 64) - 1
ROW_WORDS: Final = 6
"""64-bit words per instruction: the first address an access may touch, the one after the last, a
list of intervals (address; 0: the one interval is all), bytes of what is written at once, what the
source calls the access (`SourceAccess`), and what leads from a byte to the one that says whether it
has been written (`written_bytes.py`; 0: that is not followed)."""
SOURCE: Final = 4
WRITTEN: Final = 5
"""The last two of these words."""
_NARROW: Final = 2
"""Bytes of the values that cannot be told from the pattern."""
_NOWHERE = (1, 0)
_HALF_FLOATS = frozenset({"float16", "bfloat16"})


def sources(kernel: Kernel, code: CodeObject) -> dict[int, tuple[str, ...]]:
    """Memory instruction -> the pointer arguments its address comes from (none: not known)."""
    descriptor = kernel.descriptor
    parts = slices(kernel.program, descriptor)
    return roots(kernel.program, descriptor, parts, Pointers(code, descriptor, members=True))


def arrays_of(kernel: Kernel, code: CodeObject) -> dict[int, tuple[AddressInterval, ...]]:
    """Instruction that accesses LDS or scratch -> the bytes of the arrays its address is made from
    (none: not known)."""
    if is_gluon(code):
        shared = SharedAccesses(code)
        allocations = {i.index: shared.of(i) for i in kernel.program.instructions}
        return _intervals_of(allocations)
    text, frame = code.stages.get("llir", ""), code.stages.get("frame", "")
    if code.origin != "hip" or not isinstance(text, str) or not isinstance(frame, str):
        return {}
    lds = LdsAccesses(text, kernel.name)
    private = PrivateAccesses(text, frame, kernel.name)
    arrays = {
        i.index: private.of(i) if may_access_scratch(kernel, i.decoded) else lds.of(i)
        for i in kernel.program.instructions
    }
    return _intervals_of(arrays)


def _intervals_of(
    arrays: Mapping[int, Sequence[ArrayBytes]],
) -> dict[int, tuple[AddressInterval, ...]]:
    return {
        index: tuple((array.first, array.end) for array in candidates)
        for index, candidates in arrays.items()
        if candidates
    }


def source_accesses(kernel: Kernel, code: CodeObject) -> dict[int, SourceAccess]:
    """What the source calls the accesses of instructions, where LLVM IR is known."""
    text = code.stages.get("llir", "")
    if code.origin != "hip" or not isinstance(text, str):
        return {}
    accesses = SourceAccesses(text, kernel.name)
    every = {i.index: accesses.of(i) for i in kernel.program.instructions}
    return {index: access for index, access in every.items() if access is not SourceAccess.UNKNOWN}


class AccessBounds:
    """The memory every instruction of a launch may touch, for native code.

    `known` are the arguments addresses come from (`sources`). Arguments that point into no range
    (null, or memory reached another way) allow nothing more; without any other all is allowed.
    `arrays` are those of LDS and scratch (`arrays_of`), `called` is what the source calls accesses.
    """

    def __init__(
        self,
        kernel: Kernel,
        tensors: Sequence[LaunchTensor],
        arguments: Mapping[int, tuple[str, ...]],
        arrays: Mapping[int, Sequence[AddressInterval]],
        accesses: Mapping[int, SourceAccess],
    ) -> None:
        by_name: dict[str, list[LaunchTensor]] = {}
        for tensor in tensors:
            by_name.setdefault(tensor.name, []).append(tensor)
        rows = np.zeros((len(kernel.program.instructions), ROW_WORDS), np.uint64)
        rows[:] = (0, _ONES, 0, 4, 0, 0)
        self._lists: dict[tuple[AddressInterval, ...], np.ndarray] = {}
        self._allowed: dict[int, list[AddressInterval]] = {}
        for index, names in arguments.items():
            memory = kernel.program.instructions[index].memory
            owners = [tensor for name in names for tensor in by_name.get(name, ())]
            if memory is None or memory.space not in _GLOBAL or not owners:
                continue
            self._allowed[index] = intervals = _intervals(owners, _uses_whole_dwords(memory))
            halves = all(tensor.dtype in _HALF_FLOATS for tensor in owners)
            rows[index] = (*self._row(intervals), 2 if halves else 4, 0, 0)
        for index, array_intervals in arrays.items():
            rows[index, :3] = self._row(_coalesce(array_intervals))
        rows[list(accesses), SOURCE] = list(accesses.values())
        self.rows = rows

    def _row(self, intervals: list[AddressInterval]) -> tuple[int, int, int]:
        """The first three words of a row."""
        if len(intervals) == 1:
            return (*intervals[0], 0)
        return (*_NOWHERE, self._list(intervals))

    def _list(self, intervals: list[AddressInterval]) -> int:
        """The address of a list of intervals: their number, then first and end of each."""
        key = tuple(intervals)
        if key not in self._lists:
            numbers = [len(intervals), *(number for pair in intervals for number in pair)]
            self._lists[key] = np.array(numbers, np.uint64)
        return self._lists[key].ctypes.data

    def allows(self, index: int, address: int) -> bool:
        """Whether an instruction may touch an address; True where that is not known."""
        intervals = self._allowed.get(index)
        return intervals is None or any(first <= address < end for first, end in intervals)

    def follow(self, kernel: Kernel, memory: FollowedBytes) -> bool:
        """Let accesses of some memory mark or read which bytes have been written. False where
        a store may reach it that does not mark them, or something else has written to it. Of
        memory that is not typed only single elements are read: loads of at most two bytes, and
        scalar ones."""
        reaching: list[int] = []
        loads = False
        for instruction in kernel.program.instructions:
            if instruction.memory is None or instruction.memory.space not in _GLOBAL:
                continue
            intervals = self._allowed.get(instruction.index)
            if intervals is not None and len(intervals) == 1:
                ((first, end),) = intervals
                last = memory.last_dword if _uses_whole_dwords(instruction.memory) else memory.end
                if memory.first <= first and end <= last:
                    storing = instruction.memory.kind in _STORING
                    if memory.typed or storing or _is_element(instruction.memory):
                        reaching.append(instruction.index)
                        loads |= not storing
                    continue
            overlaps = intervals is None or any(
                first < memory.end and memory.first < end for first, end in intervals
            )
            if overlaps and instruction.memory.kind in _STORING:
                return False
        if loads and not memory.typed and not memory.consistent():
            return False
        self.rows[reaching, WRITTEN] = memory.delta & _ONES
        return True

    def stored_ranges(self, kernel: Kernel, ranges: Sequence[AddressInterval]) -> set[int]:
        """The numbers of the ranges that stores and atomics of the program may touch."""
        storing = [
            instruction.index
            for instruction in kernel.program.instructions
            if (memory := instruction.memory) is not None
            and memory.kind in _STORING
            and memory.space in _GLOBAL
        ]
        return self.accessed_ranges(storing, ranges)

    def accessed_ranges(
        self, accesses: Iterable[int], ranges: Sequence[AddressInterval]
    ) -> set[int]:
        """The numbers of the ranges that some instructions may touch."""
        numbers: set[int] = set()
        for index in accesses:
            intervals = self._allowed.get(index)
            if intervals is None:
                return set(range(len(ranges)))
            numbers |= {
                number
                for number, (first, end) in enumerate(ranges)
                if any(first < stop and start < end for start, stop in intervals)
            }
        return numbers


def _is_element(memory: MemoryEffect) -> bool:
    """Whether a load reads no padding of a structure, or all of a dword must be unwritten."""
    return memory.bytes <= _NARROW or memory.space is Space.SCALAR


def _uses_whole_dwords(memory: MemoryEffect) -> bool:
    """Whether compilers let an access reach the whole dwords its elements lie in: atomics of 16
    bits are made from those of 32, and scalar loads are widened."""
    return memory.kind is MemoryKind.ATOMIC or memory.space is Space.SCALAR


def _intervals(owners: Iterable[LaunchTensor], rounded: bool) -> list[AddressInterval]:
    """The memory of tensors as sorted intervals that neither touch nor overlap."""
    pairs = [(tensor.first, tensor.end) for tensor in owners]
    if rounded:
        pairs = [(first & ~3, end + 3 & ~3) for first, end in pairs]
    return _coalesce(pairs)


def _coalesce(pairs: Iterable[AddressInterval]) -> list[AddressInterval]:
    """Intervals sorted, those that touch or overlap as one."""
    merged: list[AddressInterval] = []
    for first, end in sorted(pairs):
        if merged and first <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((first, end))
    return merged


__all__ = [
    "ROW_WORDS",
    "SOURCE",
    "WRITTEN",
    "AccessBounds",
    "arrays_of",
    "source_accesses",
    "sources",
]
