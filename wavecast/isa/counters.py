"""Which wait counters an instruction counts in until it has completed, and what it changes then.

Part of the opcode table, the other side of `isa/waits.py`. Sources: LLVM SIInsertWaitcnts.cpp (the
events of each counter, updateEventWaitcntAfter) and "User Guide for AMDGPU Backend", memory model
of each generation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from wavecast.arch import capabilities
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
from wavecast.isa.targets import isa_target

_VECTOR: Final = VGPRS | AGPRS
_DMA: Final = frozenset({MemoryKind.LOAD_TO_LDS, MemoryKind.STORE_FROM_LDS})

LIMITS: Final[dict[str, dict[str, int]]] = {
    "combined": {"vmcnt": 63, "lgkmcnt": 15, "expcnt": 7},
    "stores_apart": {"vmcnt": 63, "vscnt": 63, "lgkmcnt": 63, "expcnt": 7},
    "separate": {
        "loadcnt": 63,
        "storecnt": 63,
        "dscnt": 63,
        "kmcnt": 31,
        "expcnt": 7,
        "asynccnt": 63,
        "tensorcnt": 63,
    },
}
"""Set of counters -> counter -> the most it counts; an instruction that would count further is not
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
class CounterEvent:
    """One count of one instruction: `writes` are the registers that change by its completion,
    `holds` those it may still read until then."""

    queue: Queue
    writes: int = 0
    holds: int = 0


@cache
def counter_set(target: str) -> str:
    """The target's set of counters, a key of `LIMITS`. Raises UsageError and UnknownName as
    `isa_target`."""
    return capabilities(isa_target(target)).wait_counters


_VECTOR_MEMORY = Queue("vmcnt", "vector memory", writes_in_order=True)
_LOAD_WITHOUT_STORES = Queue("vmcnt", "load", writes_in_order=True)
_SEPARATE_LOAD = Queue("loadcnt", "load")
_LOADS = {
    "combined": _VECTOR_MEMORY,
    "stores_apart": _LOAD_WITHOUT_STORES,
    "separate": _SEPARATE_LOAD,
}
_STORES = {
    "combined": _VECTOR_MEMORY,
    "stores_apart": Queue("vscnt", "store"),
    "separate": Queue("storecnt", "store"),
}
_SCRATCH_STORES = {
    "combined": _VECTOR_MEMORY,
    "stores_apart": Queue("vscnt", "scratch store"),
    "separate": Queue("storecnt", "scratch store"),
}
_LDS = {
    "combined": Queue("lgkmcnt", "LDS"),
    "stores_apart": Queue("lgkmcnt", "LDS"),
    "separate": Queue("dscnt", "LDS"),
}
_SCALAR_COUNTER = {"combined": "lgkmcnt", "stores_apart": "lgkmcnt", "separate": "kmcnt"}
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
    for name, counter in (("combined", "lgkmcnt"), ("stores_apart", "lgkmcnt"))
}
_ASYNC = Queue("asynccnt", "async")
_TENSOR = Queue("tensorcnt", "tensor")
_WRITE_BACKS = {"combined": Queue("vmcnt", "write-back"), "separate": _STORES["separate"]}
"""Cache control that is counted with stores."""


def events(decoded: Decoded, target: str) -> tuple[CounterEvent, ...]:
    """What `decoded` counts in, one event per counter; empty where nothing is outstanding after it.

    SCC written by `s_barrier_signal_isfirst` is left out: the wait for the barrier covers it.
    """
    counters = counter_set(target)
    row = decoded.opcode
    form, memory = row.form, decoded.memory
    if form == "SMEM":
        if row.role is Role.PREFETCH:
            return ()
        return (CounterEvent(_SCALAR[counters], decoded.writes),)
    if form == "TENSOR":
        return (CounterEvent(_TENSOR),)
    if row.role is Role.CACHE:
        return _cache(row, counters)
    if row.role is Role.MESSAGE:
        return (CounterEvent(_MESSAGE[counters], decoded.writes),)
    if OpcodeFlag.BARRIER_QUERY in row.flags:
        return (CounterEvent(_SCALAR[counters], decoded.writes & ~SCC),)
    if memory is None:
        return ()
    if memory.space is Space.LDS:
        return _lds(decoded, counters)
    if form in VECTOR_MEMORY_FORMS:
        return _vector_memory(decoded, counters)
    return ()


def _cache(row: Opcode, counters: str) -> tuple[CounterEvent, ...]:
    if OpcodeFlag.LOAD_COUNTED in row.flags:
        return (CounterEvent(_LOADS[counters]),)
    if OpcodeFlag.STORE_COUNTED in row.flags:
        return (CounterEvent(_WRITE_BACKS[counters]),)
    return ()


def _lds(decoded: Decoded, counters: str) -> tuple[CounterEvent, ...]:
    writes = decoded.writes & _VECTOR
    if "gds" in decoded.modifiers and counters in _GDS:
        counter_name, source_read = _GDS[counters]
        return (
            CounterEvent(counter_name, writes),
            CounterEvent(source_read, 0, decoded.reads & (_VECTOR | EXEC)),
        )
    return (CounterEvent(_LDS[counters], writes),)


def _vector_memory(decoded: Decoded, counters: str) -> tuple[CounterEvent, ...]:
    memory = decoded.memory
    assert memory is not None
    writes = decoded.writes & _VECTOR
    if memory.kind in _DMA:
        return (CounterEvent(_VECTOR_MEMORY if counters == "combined" else _ASYNC),)
    if memory.space is Space.FLAT:
        if counters == "combined":
            return (CounterEvent(_FLAT["vmcnt"], writes), CounterEvent(_FLAT["lgkmcnt"], writes))
        vector = _LOADS[counters] if writes else _SCRATCH_STORES[counters]
        return (CounterEvent(vector, writes), CounterEvent(_LDS[counters], writes))
    if writes:
        return (CounterEvent(_LOADS[counters], writes),)
    stores = _SCRATCH_STORES if memory.space is Space.SCRATCH else _STORES
    return (CounterEvent(stores[counters]),)


__all__ = ["LIMITS", "CounterEvent", "Queue", "counter_set", "events"]
