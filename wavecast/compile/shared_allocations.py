"""The shared allocations that the LDS accesses of a Gluon kernel are made for, from TTGIR.

A Gluon kernel allocates shared memory itself and chooses the buffer of an allocation by an index
that nothing checks. Stage `ALLOCATED` is its TTGIR with the offset of every allocation. An access
of the machine code belongs to the operations that have its source location (`array_accesses`).
"""

from __future__ import annotations

import math
import re
from typing import Final

from wavecast.compile.array_accesses import ArrayBytes, LocatedAccesses
from wavecast.compile.codeobject import CodeObject
from wavecast.compile.llvm_ir import position_of
from wavecast.compile.ttgir import Operation, parse, tensors
from wavecast.dtypes import Spelling, is_dtype, lookup
from wavecast.isa.instruction import Instruction
from wavecast.isa.opcode import MemoryKind, Space

ALLOCATED: Final = "allocated"
"""The stage: TTGIR behind Triton's pass that allocates shared memory."""

_ALLOCATION: Final = "ttg.local_alloc"
_VIEWS: Final = frozenset(
    {
        "ttg.memdesc_index",
        "ttg.memdesc_reinterpret",
        "ttg.memdesc_reshape",
        "ttg.memdesc_subslice",
        "ttg.memdesc_trans",
    }
)
_FREES: Final = "ttg.local_dealloc"
_KINDS: Final = {
    "amdg.local_load_packed_transposed": MemoryKind.LOAD,
    "ttg.local_gather": MemoryKind.LOAD,
    "ttg.local_load": MemoryKind.LOAD,
    "ttg.local_scatter": MemoryKind.STORE,
    "ttg.local_store": MemoryKind.STORE,
}
"""Operation -> what it becomes. Others that use shared memory may become anything."""
_EVERY: Final = (MemoryKind.LOAD, MemoryKind.STORE, MemoryKind.ATOMIC)
_OFFSET = re.compile(r"\ballocation\.offset = (\d+) : i32")
_TOTAL = re.compile(r"\bttg\.shared = (\d+) : i32")
_DESCRIPTOR: Final = "!ttg.memdesc<"
_DENSE: Final = ("#ttg.swizzled_shared<", "#ttg.amd_rotating_shared<", "#ttg.nvmma_shared<")
"""Layouts without padding: an allocation has the bytes of its elements."""
_CALL: Final = "tt.call"


def is_gluon(code: CodeObject) -> bool:
    """Whether the source of a kernel allocates shared memory: Gluon has TTGIR without TTIR."""
    return (
        code.origin == "triton"
        and code.is_amd
        and "ttgir" in code.stages
        and "ttir" not in code.stages
    )


class SharedAccesses:
    """Which allocations the LDS accesses of a kernel may touch. A kernel without the stage, or one
    that calls functions, knows nothing."""

    def __init__(self, code: CodeObject) -> None:
        text = str(code.stages.get(ALLOCATED, ""))
        self._accesses = LocatedAccesses()
        self._module = parse(text, tuple(code.moved_files.items()))
        total = _TOTAL.search(text)
        if total is None or next(self._module.operations_named(_CALL), None) is not None:
            return
        self._total = int(total[1])
        self._allocations: dict[str, ArrayBytes] = {}
        for operation in self._module.operations:
            self._add(operation)

    def of(self, instruction: Instruction) -> tuple[ArrayBytes, ...]:
        """The allocations an instruction may touch, by their first byte; none where it is not
        known."""
        memory = instruction.memory
        if memory is None or memory.space is not Space.LDS:
            return ()
        return self._accesses.of(instruction)

    def _add(self, operation: Operation) -> None:
        operation_name, text = operation.name, operation.text
        if operation_name in _VIEWS:
            source = self._allocations.get(next(iter(operation.operands), ""))
            if source is not None:
                self._allocations[operation.results[0]] = source
        elif operation_name == _ALLOCATION:
            allocation = self._allocation(operation)
            if allocation is not None:
                self._allocations[operation.results[0]] = allocation
            if operation.operands:
                self._note(operation, (MemoryKind.STORE,), {allocation})
        elif operation_name != _FREES and (_DESCRIPTOR in text or _OFFSET.search(text)):
            allocations = {self._allocations.get(name) for name in operation.operands} - {None}
            is_exact = len(allocations) == text.count(_DESCRIPTOR) == 1 and not _OFFSET.search(text)
            kind = _KINDS.get(operation_name)
            self._note(
                operation, _EVERY if kind is None else (kind,), allocations if is_exact else {None}
            )

    def _note(
        self,
        operation: Operation,
        kinds: tuple[MemoryKind, ...],
        allocations: set[ArrayBytes | None],
    ) -> None:
        if operation.location is None:
            return
        arrays = {array for array in allocations if array is not None}
        position = position_of(operation.location)
        self._accesses.note(kinds, position, None if None in allocations else arrays)

    def _allocation(self, operation: Operation) -> ArrayBytes | None:
        """The bytes of an allocation. One with a layout that pads ends with shared memory."""
        offset = _OFFSET.search(operation.text)
        tensor_types = tensors(operation.text)
        if offset is None or not tensor_types:
            return None
        first, tensor = int(offset[1]), tensor_types[-1]
        alias = tensor.layout.partition(",")[0]
        if not self._module.layouts.get(alias, alias).startswith(_DENSE):
            return ArrayBytes(first, self._total)
        if not is_dtype(tensor.element, Spelling.MLIR):
            return None
        bits = lookup(tensor.element, Spelling.MLIR).bits
        return ArrayBytes(first, first + math.prod(tensor.shape) * bits // 8)


__all__ = ["ALLOCATED", "SharedAccesses", "is_gluon"]
