"""Which instructions must keep their order because of memory, and what must be complete before
them. Addresses are not compared: two accesses of one memory keep their order unless both read."""

from __future__ import annotations

from enum import Enum
from typing import Final

from wavecast.analyze.sync.outstanding import OutstandingFlow, OutstandingState
from wavecast.isa.instruction import Decoded
from wavecast.isa.opcode import MemoryKind, OpcodeFlag, Role, Space

GLOBAL, LDS, SCRATCH = 1, 2, 4
MEMORIES: Final = GLOBAL | LDS | SCRATCH
_FENCES: Final = frozenset({Role.BARRIER, Role.MESSAGE, Role.CACHE})
_SPACES: Final = {
    Space.GLOBAL: GLOBAL,
    Space.BUFFER: GLOBAL,
    Space.SCALAR: GLOBAL,
    Space.FLAT: MEMORIES,
    Space.SCRATCH: SCRATCH,
    Space.LDS: LDS,
}
_COHERENT: Final = frozenset({"glc", "dlc", "sc0", "sc1", "scope"})
"""Modifiers with which loads see what other waves have stored: these keep their order."""


class Completion(Enum):
    """Which earlier operations must be complete before an instruction if they are so in the
    compiler's order."""

    NONE = "none"
    LDS_FILLED = "loads to LDS"
    STORES = "stores, atomics and loads to LDS"
    ALL = "all operations"


def accesses(decoded: Decoded) -> tuple[int, int]:
    """The memories an instruction reads, and those it writes; a barrier, a message and cache
    control count as writes of all."""
    if is_fence(decoded):
        return 0, MEMORIES
    memory = decoded.memory
    if memory is None or memory.kind is MemoryKind.PERMUTE:
        return 0, 0
    space = _SPACES[memory.space]
    if memory.kind is MemoryKind.LOAD:
        return (0, space) if _COHERENT & decoded.modifiers.keys() else (space, 0)
    if memory.kind is MemoryKind.LOAD_TO_LDS:
        return GLOBAL, LDS
    if memory.kind is MemoryKind.STORE_FROM_LDS:
        return LDS, GLOBAL
    return 0, space


def is_fence(decoded: Decoded) -> bool:
    """Whether no access of memory may pass an instruction."""
    row = decoded.opcode
    return row.role in _FENCES or OpcodeFlag.BARRIER_QUERY in row.flags


def completion(decoded: Decoded) -> Completion:
    """What an instruction needs complete. A store or an atomic of global memory may release what
    was stored before, so it needs everything."""
    if is_fence(decoded):
        return Completion.ALL
    memory = decoded.memory
    if memory is None or memory.kind is MemoryKind.PERMUTE:
        return Completion.NONE
    stores = memory.kind is not MemoryKind.LOAD
    if memory.space is Space.LDS:
        return Completion.ALL if memory.kind is MemoryKind.ATOMIC else Completion.LDS_FILLED
    if memory.space is Space.FLAT:
        return Completion.ALL
    if memory.kind is MemoryKind.LOAD_TO_LDS:
        return Completion.STORES
    return Completion.ALL if stores and memory.space is not Space.SCRATCH else Completion.STORES


def concerns(requirement: Completion, operation: Decoded) -> bool:
    """Whether `operation` is among those that must be complete."""
    if requirement is Completion.ALL:
        return True
    memory = operation.memory
    if memory is None or requirement is Completion.NONE:
        return False
    if requirement is Completion.STORES:
        return memory.kind not in (MemoryKind.LOAD, MemoryKind.PERMUTE)
    return memory.kind is MemoryKind.LOAD_TO_LDS


def outstanding_before(flow: OutstandingFlow) -> dict[int, frozenset[int]]:
    """Instruction that needs something complete -> operations that may not be complete before it.
    Blocks that no path reaches are left out."""
    instructions = flow.program.instructions
    outstanding_ops: dict[int, frozenset[int]] = {}
    for block in flow.program.blocks:
        entry = flow.entries[block.index]
        if entry is None:
            continue
        state = OutstandingState(entry)
        steps = iter(flow.steps[block.index])
        step = next(steps, None)
        for index in range(block.start, block.stop):
            if completion(instructions[index].decoded) is not Completion.NONE:
                outstanding_ops[index] = frozenset(op for queue in state.scores for op in queue)
            if step is not None and step.index == index:
                flow.apply(state, step)
                step = next(steps, None)
    return outstanding_ops


__all__ = [
    "Completion",
    "accesses",
    "completion",
    "concerns",
    "is_fence",
    "outstanding_before",
]
