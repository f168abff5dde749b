"""Which wait counters an instruction counts in until it has completed, and what it changes then.

Part of the opcode table, the other side of `isa/waits.py`. Sources: LLVM SIInsertWaitcnts.cpp (the
events of each counter, updateEventWaitcntAfter) and "User Guide for AMDGPU Backend", memory model
of each generation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from wavecast.isa.instruction import Decoded
from wavecast.isa.opcode import (
    VECTOR_MEMORY_FORMS,
    MemoryKind,
    Opcode,
    OpcodeFlag,
    Role,
    Space,
)
from wavecast.isa.registers import AGPRS, EXEC, SCC, VGPRS
from wavecast.isa.targets import TARGET_SETS, isa_target

_VECTOR: Final = VGPRS | AGPRS
_DMA: Final = frozenset({MemoryKind.LOAD_TO_LDS, MemoryKind.STORE_FROM_LDS})

LIMITS: Final[dict[str, dict[str, int]]] = {
    "gfx9": {"vmcnt": 63, "lgkmcnt": 15, "expcnt": 7},
    "gfx11": {"vmcnt": 63, "vscnt": 63, "lgkmcnt": 63, "expcnt": 7},
    "gfx12": {
        "loadcnt": 63,
        "storecnt": 63,
        "dscnt": 63,
        "kmcnt": 31,
        "expcnt": 7,
        "asynccnt": 63,
        "tensorcnt": 63,
    },
}
"""Generation -> counter -> the most it counts; an instruction that would count further is not
issued before (AMD, rocm-systems pull request 10926 on rocjitsu's wait check)."""


@dataclass(frozen=True, slots=True)
class Queue:
    """Operations of one counter that complete in the order of issue.

    `order` names the kind of operation: kinds complete in any order among each other. An
    `unordered` queue gives no order at all, so only a wait for zero tells anything about it.
    `writes_in_order`: results also reach the registers in that order, so that a later operation
    of the queue may load into a register an earlier one still has to write.
    """

    counter: str
    order: str
    unordered: bool = False
    writes_in_order: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """One count of one instruction: `writes` are the registers that change by its completion,
    `holds` those it may still read until then."""

    queue: Queue
    writes: int = 0
    holds: int = 0


@cache
def generation_of(target: str) -> str:
    """`gfx9`, `gfx11` or `gfx12`: the target's set of counters."""
    name = isa_target(target)
    return next(found for found in ("gfx9", "gfx11", "gfx12+") if name in TARGET_SETS[found])[:5]


_GFX9_VECTOR = Queue("vmcnt", "vector memory", writes_in_order=True)
_GFX11_LOAD = Queue("vmcnt", "load", writes_in_order=True)
_GFX12_LOAD = Queue("loadcnt", "load")
_LOADS = {"gfx9": _GFX9_VECTOR, "gfx11": _GFX11_LOAD, "gfx12": _GFX12_LOAD}
_STORES = {
    "gfx9": _GFX9_VECTOR,
    "gfx11": Queue("vscnt", "store"),
    "gfx12": Queue("storecnt", "store"),
}
_SCRATCH_STORES = {
    "gfx9": _GFX9_VECTOR,
    "gfx11": Queue("vscnt", "scratch store"),
    "gfx12": Queue("storecnt", "scratch store"),
}
_LDS = {
    "gfx9": Queue("lgkmcnt", "LDS"),
    "gfx11": Queue("lgkmcnt", "LDS"),
    "gfx12": Queue("dscnt", "LDS"),
}
_SCALAR_COUNTER = {"gfx9": "lgkmcnt", "gfx11": "lgkmcnt", "gfx12": "kmcnt"}
_SCALAR = {
    name: Queue(counter, "scalar", unordered=True) for name, counter in _SCALAR_COUNTER.items()
}
_MESSAGE = {name: Queue(counter, "message") for name, counter in _SCALAR_COUNTER.items()}
_FLAT = {
    "vmcnt": Queue("vmcnt", "flat", unordered=True),
    "lgkmcnt": Queue("lgkmcnt", "flat", unordered=True),
}
_GDS = {
    name: (Queue(counter, "GDS"), Queue("expcnt", "GDS"))
    for name, counter in (("gfx9", "lgkmcnt"), ("gfx11", "lgkmcnt"))
}
_ASYNC = Queue("asynccnt", "async")
_TENSOR = Queue("tensorcnt", "tensor")
_WRITE_BACKS = {"gfx9": Queue("vmcnt", "write-back"), "gfx12": _STORES["gfx12"]}
"""Cache control that is counted with stores."""


def events(decoded: Decoded, target: str) -> tuple[Event, ...]:
    """What `decoded` counts in, one event per counter; empty where nothing is outstanding after it.

    SCC written by `s_barrier_signal_isfirst` is left out: the wait for the barrier covers it.
    """
    generation = generation_of(target)
    row = decoded.opcode
    form, memory = row.form, decoded.memory
    if form == "SMEM":
        if row.role is Role.PREFETCH:
            return ()
        return (Event(_SCALAR[generation], decoded.writes),)
    if form == "TENSOR":
        return (Event(_TENSOR),)
    if row.role is Role.CACHE:
        return _cache(row, generation)
    if row.role is Role.MESSAGE:
        return (Event(_MESSAGE[generation], decoded.writes),)
    if OpcodeFlag.BARRIER_QUERY in row.flags:
        return (Event(_SCALAR[generation], decoded.writes & ~SCC),)
    if memory is None:
        return ()
    if memory.space is Space.LDS:
        return _lds(decoded, generation)
    if form in VECTOR_MEMORY_FORMS:
        return _vector_memory(decoded, generation)
    return ()


def _cache(row: Opcode, generation: str) -> tuple[Event, ...]:
    if OpcodeFlag.LOAD_COUNTED in row.flags:
        return (Event(_LOADS[generation]),)
    if OpcodeFlag.STORE_COUNTED in row.flags:
        return (Event(_WRITE_BACKS[generation]),)
    return ()


def _lds(decoded: Decoded, generation: str) -> tuple[Event, ...]:
    writes = decoded.writes & _VECTOR
    if "gds" in decoded.modifiers and generation in _GDS:
        counted, held = _GDS[generation]
        return (Event(counted, writes), Event(held, 0, decoded.reads & (_VECTOR | EXEC)))
    return (Event(_LDS[generation], writes),)


def _vector_memory(decoded: Decoded, generation: str) -> tuple[Event, ...]:
    memory = decoded.memory
    assert memory is not None
    writes = decoded.writes & _VECTOR
    if memory.kind in _DMA:
        return (Event(_GFX9_VECTOR if generation == "gfx9" else _ASYNC),)
    if memory.space is Space.FLAT:
        if generation == "gfx9":
            return (Event(_FLAT["vmcnt"], writes), Event(_FLAT["lgkmcnt"], writes))
        vector = _LOADS[generation] if writes else _SCRATCH_STORES[generation]
        return (Event(vector, writes), Event(_LDS[generation], writes))
    if writes:
        return (Event(_LOADS[generation], writes),)
    stores = _SCRATCH_STORES if memory.space is Space.SCRATCH else _STORES
    return (Event(stores[generation]),)


__all__ = ["LIMITS", "Event", "Queue", "events", "generation_of"]
