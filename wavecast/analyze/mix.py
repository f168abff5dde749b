"""Instruction classes: what kind of work an instruction is, the same names for every vendor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from wavecast.isa.instruction import Decoded
from wavecast.isa.opcode import MemoryKind, Space

CLASSES: Final[tuple[str, ...]] = (
    "matrix",
    "valu",
    "trans",
    "salu",
    "smem",
    "lds",
    "vmem_load",
    "vmem_store",
    "vmem_atomic",
    "scratch",
    "tmem",
    "branch",
    "wait",
    "barrier",
    "other",
)
"""Classes in display order. `smem` is scalar memory (constant memory on NVIDIA), `salu` the
scalar (uniform) unit, `tmem` NVIDIA's tensor memory, `other` what has no result: hints, no-ops,
messages, cache control, the end of the program."""

_OF_COST: Final = {
    "matrix": "matrix",
    "trans": "trans",
    "trans_f64": "trans",
    "accvgpr": "valu",
    "smem_load": "smem",
    "smem_store": "smem",
    "vmem_load": "vmem_load",
    "vmem_lds": "vmem_load",
    "vmem_store": "vmem_store",
    "vmem_atomic": "vmem_atomic",
    "branch": "branch",
    "wait": "wait",
    "barrier": "barrier",
}
_OF_MEMORY: Final = {
    MemoryKind.LOAD: "vmem_load",
    MemoryKind.LOAD_TO_LDS: "vmem_load",
    MemoryKind.STORE: "vmem_store",
    MemoryKind.STORE_FROM_LDS: "vmem_store",
    MemoryKind.ATOMIC: "vmem_atomic",
    MemoryKind.PERMUTE: "lds",
}


def instruction_class(decoded: Decoded) -> str:
    """The class of an AMD instruction, from its row's memory effect and cost class."""
    memory = decoded.memory
    if memory is not None:
        if memory.space is Space.SCALAR:
            return "smem"
        if memory.space is Space.LDS:
            return "lds"
        if memory.space is Space.SCRATCH:
            return "scratch"
        return _OF_MEMORY[memory.kind]
    cost = decoded.opcode.cost_class
    name = _OF_COST.get(cost)
    if name is not None:
        return name
    for prefix in ("valu", "salu", "lds"):
        if cost.startswith(prefix):
            return prefix
    return "other"


def counts_by_class(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Counts per class in display order, classes that do not occur left out."""
    totals: dict[str, int] = dict.fromkeys(CLASSES, 0)
    for name, count in counts:
        totals[name] += count
    return {name: count for name, count in totals.items() if count}
