"""Which loads bring what which stores have written, while a launch runs.

Every byte of LDS, scratch and global memory has a mark of 16 bits: the dword of the store that has
written it, 0 for one whose value does not matter. A load notes the marks that it meets in a table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from wavecast.emulate import hostmemory
from wavecast.emulate.errors import Unsupported
from wavecast.emulate.lower import state
from wavecast.emulate.scratch_accesses import may_access_scratch
from wavecast.emulate.trace import layout
from wavecast.emulate.trace.value_flow import AccessDword, ValueFlow, access_dwords
from wavecast.isa.instruction import Decoded
from wavecast.isa.opcode import MemoryKind, Space
from wavecast.isa.program import Kernel
from wavecast.isa.semantics.open_behaviour import open_behaviour

LDS, SCRATCH, GLOBAL = "lds", "scratch", "global"
_REGIONS: Final = {
    Space.LDS: {LDS},
    Space.SCRATCH: {SCRATCH},
    Space.GLOBAL: {GLOBAL},
    Space.BUFFER: {GLOBAL},
    Space.SCALAR: {GLOBAL},
    Space.FLAT: {LDS, SCRATCH, GLOBAL},
}
_MOST_STORES: Final = (1 << 16) - 1

# words of a context's memory
TABLE: Final = 0  # pointer to a byte per mark and dword of a load
LOADS: Final = 1  # dwords of loads
LDS_MARKS: Final = 2  # pointers, 0 where a region is not followed
SCRATCH_MARKS: Final = 3
RANGES: Final = 4  # pointer: per range what leads from twice an address to its marks
OWNER: Final = 5  # workgroup + 1 whose marks those of LDS are
_WORDS: Final = 6


def _regions(kernel: Kernel, decoded: Decoded) -> tuple[set[str], set[str]]:
    """The regions that a memory instruction loads from and stores to."""
    memory = decoded.memory
    assert memory is not None
    regions = set(_REGIONS[memory.space])
    if may_access_scratch(kernel, decoded):
        regions.add(SCRATCH)
    if memory.kind is MemoryKind.LOAD_TO_LDS:
        return regions, {LDS}
    if memory.kind is MemoryKind.STORE_FROM_LDS:
        return {LDS}, regions
    loads = memory.kind in (MemoryKind.LOAD, MemoryKind.ATOMIC)
    stores = memory.kind in (MemoryKind.STORE, MemoryKind.ATOMIC)
    return regions if loads else set(), regions if stores else set()


class _PossibleLinks:
    """Loads that may bring what a store writes, by the regions of both; each is named once."""

    def __init__(self, kernel: Kernel) -> None:
        self._instructions = kernel.program.instructions
        self._kernel = kernel
        self._open: set[str] = set()
        self.loads_from: dict[str, list[AccessDword]] = defaultdict(list)
        self.stores: dict[int, None] = {}
        for instruction in self._instructions:
            memory = instruction.decoded.memory
            if memory is None or memory.kind is MemoryKind.PERMUTE:
                continue
            dwords = range(access_dwords(instruction.decoded))
            for region in _regions(kernel, instruction.decoded)[0]:
                self.loads_from[region] += [(instruction.index, dword) for dword in dwords]

    def loads(self, stored: AccessDword) -> Iterable[AccessDword]:
        self.stores[stored[0]] = None
        regions = _regions(self._kernel, self._instructions[stored[0]].decoded)[1]
        new = regions - self._open
        self._open |= new
        return [load for region in new for load in self.loads_from[region]]


@dataclass(frozen=True, slots=True)
class FlowPlan:
    """What is followed in the memory of one kernel. `stores` and `loads` are dwords of those
    instructions: the mark of a dword of a store is its position + 1. `regions` have marks."""

    stores: tuple[AccessDword, ...]
    loads: tuple[AccessDword, ...]
    regions: frozenset[str]

    @classmethod
    def of(cls, kernel: Kernel) -> FlowPlan:
        """The plan for values whose result documentation leaves open. Raises Unsupported for too
        many stores of them."""
        program = kernel.program
        origins = [i.index for i in program.instructions if open_behaviour(i) is not None]
        if not origins:
            return cls((), (), frozenset())
        links = _PossibleLinks(kernel)
        for _ in ValueFlow(program, lambda _: True, links).uses(origins):
            pass
        followed: set[str] = set()
        for index in links.stores:
            written = _regions(kernel, program.instructions[index].decoded)[1]
            followed |= {region for region in written if links.loads_from[region]}
        stores = [
            (index, dword)
            for index in sorted(links.stores)
            for dword in range(access_dwords(program.instructions[index].decoded))
        ]
        if len(stores) > _MOST_STORES:
            raise Unsupported(
                f"{program.name}: values in memory are followed from up to {_MOST_STORES:,} "
                f"stored dwords, not {len(stores):,}"
            )
        loads = sorted({load for region in followed for load in links.loads_from[region]})
        return cls(tuple(stores), tuple(loads), frozenset(followed))


class FlowMemory:
    """The marks of one launch, and the table of what its loads have met."""

    def __init__(
        self, plan: FlowPlan, ranges: Sequence[tuple[int, int]], scratch_bytes: int
    ) -> None:
        """`scratch_bytes` are those of a workgroup."""
        self._plan = plan
        self._scratch_bytes = scratch_bytes
        marks, loads = len(plan.stores) + 1, len(plan.loads)
        self._table = hostmemory.sparse_zeros(marks * loads, np.uint8)
        self._kept: list[np.ndarray] = []
        self._deltas = np.zeros(0, np.uint64)
        if GLOBAL in plan.regions:
            shadows = [hostmemory.sparse_zeros(end - first + 1, np.uint16) for first, end in ranges]
            self._kept += shadows
            deltas = [
                (shadow.ctypes.data - 2 * first) % (1 << 64)
                for shadow, (first, _) in zip(shadows, ranges, strict=True)
            ]
            self._deltas = np.array(deltas, np.uint64)

    def attach(self, context: np.ndarray) -> None:
        """Give a resident workgroup its marks."""
        words = hostmemory.zeros(_WORDS, np.uint64)
        words[TABLE], words[LOADS] = self._table.ctypes.data, len(self._plan.loads)
        self._kept.append(words)
        near = (
            (LDS, LDS_MARKS, int(context[state.LDS_BYTES])),
            (SCRATCH, SCRATCH_MARKS, self._scratch_bytes),
        )
        for region, word, size in near:
            if region in self._plan.regions:
                marks = hostmemory.zeros(size + 1, np.uint16)
                words[word] = marks.ctypes.data
                self._kept.append(marks)
        if len(self._deltas):
            words[RANGES] = self._deltas.ctypes.data
        context[layout.FLOW] = words.ctypes.data

    def links(self) -> frozenset[tuple[AccessDword, AccessDword]]:
        """The dwords of stores and of the loads that have brought them."""
        met = hostmemory.nonzero(self._table)
        pairs = (divmod(int(at), len(self._plan.loads)) for at in met)
        return frozenset(
            (self._plan.stores[mark - 1], self._plan.loads[number])
            for mark, number in pairs
            if mark
        )


__all__ = ["GLOBAL", "LDS", "SCRATCH", "FlowMemory", "FlowPlan"]
