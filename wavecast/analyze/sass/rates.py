"""Rates of the SMs of each NVIDIA target (`costs.toml`) and what an instruction takes there."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any

from wavecast.analyze.charges import Charge
from wavecast.analyze.sass.table import UNKNOWN_COST
from wavecast.isa.instruction import Decoded
from wavecast.isa.opcode import MatrixShape, MemoryEffect, MemoryKind, Role, Space

WARP = 32
SUB_PARTITIONS = 4

_VECTOR_DTYPES = {"fma": "fp32", "fma_pair": "fp32", "half": "fp16", "fp64": "fp64", "mufu": "fp32"}
_PIPE_OF_CLASS = {
    "matrix": "matrix",
    "valu": "valu",
    "trans": "trans",
    "salu": "salu",
    "smem": "smem",
    "lds": "lds",
    "vmem_load": "vmem",
    "vmem_store": "vmem",
    "vmem_atomic": "vmem",
    "scratch": "vmem",
    "branch": "branch",
}
_PIPE_OF_COST = {"convert": "trans"}
_GLOBAL_SPACES = frozenset({Space.GLOBAL, Space.FLAT})
_WARPGROUP = 4


@cache
def rates(target: str) -> dict[str, dict[str, Any]]:
    """Cost class -> its entry for a target (`sm_90`), {} for a target without a table.

    Architecture suffixes (`sm_90a`) are dropped.
    """
    text = (resources.files("wavecast.analyze.sass") / "costs.toml").read_text(encoding="utf-8")
    return tomllib.loads(text).get(target.rstrip("af"), {})


class SassCharges:
    """Charges of SASS instructions on one target.

    `shapes` gives the shape of a tcgen05 instruction by its index, because SASS keeps it in a
    descriptor; `warps` is the number of warps of a workgroup, over which the one thread's tcgen05
    work is averaged. `unknown_rates` and `unknown_opcodes` collect what could not be charged.
    """

    def __init__(self, target: str, warps: int, shapes: dict[int, MatrixShape]) -> None:
        self.rates = rates(target)
        self.warps = warps
        self.shapes = shapes
        self.unknown_rates: set[str] = set()
        self.unknown_opcodes: set[str] = set()
        self._known: dict[object, Charge] = {}

    def of(self, decoded: Decoded, index: int) -> Charge:
        """The charge of the instruction at `index`; equal for instructions of one kind."""
        opcode = decoded.opcode
        shape = opcode.matrix or self.shapes.get(index)
        key = (opcode.name, opcode.cost_class, decoded.memory, shape)
        charge = self._known.get(key)
        if charge is None:
            charge = self._known[key] = self._make(decoded, shape)
        return charge

    def _make(self, decoded: Decoded, shape: MatrixShape | None) -> Charge:
        opcode = decoded.opcode
        cost = opcode.cost_class
        if cost == UNKNOWN_COST:
            self.unknown_opcodes.add(opcode.name)
        dtype = shape.a_type if shape is not None else ""
        flops = self._matrix_flops(cost, shape)
        to_global, to_lds = _bytes(decoded.memory)
        return Charge(
            klass=opcode.form,
            pipe=_PIPE_OF_COST.get(cost) or _PIPE_OF_CLASS.get(opcode.form, ""),
            cycles=self._matrix_cycles(cost, dtype, flops) if flops else self._cycles(cost),
            shared_cycles=self._shared_cycles(to_global, to_lds),
            slots=1,
            idle=0,
            latency=None,
            chained_latency=None,
            matrix_dtype=dtype,
            matrix_flops=flops,
            vector_dtype=_VECTOR_DTYPES.get(cost, "") if opcode.flops else "",
            vector_flops=opcode.flops * WARP,
            bytes_global=to_global,
            bytes_lds=to_lds,
            barrier=opcode.role is Role.BARRIER,
            mnemonic=opcode.name,
            unit=self.rates.get(cost, {}).get("unit", ""),
        )

    def _matrix_flops(self, cost: str, shape: MatrixShape | None) -> int:
        """Operations one warp's execution stands for."""
        if shape is None:
            return 0
        sharing = {"wgmma": _WARPGROUP, "tcgen05": self.warps}.get(cost, 1)
        return shape.flops // sharing

    def _matrix_cycles(self, cost: str, dtype: str, flops: int) -> float:
        rate = self.rates.get(cost, {}).get("flops", {}).get(dtype)
        if rate is None:
            self.unknown_rates.add(f"{cost} {dtype}")
            return 0.0
        return flops * SUB_PARTITIONS / rate

    def _cycles(self, cost: str) -> float:
        """Clocks a warp takes its sub-partition's share of a unit."""
        if cost in ("", UNKNOWN_COST):
            return 0.0
        lanes = self.rates.get(cost, {}).get("lanes")
        if lanes is None:
            self.unknown_rates.add(cost)
            return 0.0
        return WARP * SUB_PARTITIONS / lanes

    def _shared_cycles(self, to_global: int, to_lds: int) -> float:
        shared = self.rates.get("shared", {}).get("bytes")
        cache_rate = self.rates.get("l1", {}).get("bytes")
        cycles = to_lds / shared if shared and to_lds else 0.0
        return max(cycles, to_global / cache_rate if cache_rate and to_global else 0.0)


def _bytes(memory: MemoryEffect | None) -> tuple[int, int]:
    """Bytes a warp moves to or from global and shared memory, all lanes active."""
    if memory is None:
        return 0, 0
    size = memory.bytes * WARP
    to_global = size if memory.space in _GLOBAL_SPACES else 0
    in_shared = memory.space is Space.LDS or memory.kind in (
        MemoryKind.LOAD_TO_LDS,
        MemoryKind.STORE_FROM_LDS,
    )
    return to_global, size if in_shared else 0
