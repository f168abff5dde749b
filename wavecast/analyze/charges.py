"""What each instruction of a kernel takes from the device, looked up once per kind.

A kernel holds thousands of instructions but only some hundred kinds; `Charges.of` maps an
instruction to a shared `Charge`, so that blocks, loops and lines are sums over few values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from wavecast.analyze.dtypes import dtype_of, widest
from wavecast.analyze.mix import instruction_class
from wavecast.arch import Device
from wavecast.isa.instruction import Decoded
from wavecast.isa.opcode import MemoryEffect, MemoryKind, Opcode, Role, Space

# bound once: looking an enum member up costs ten times what comparing it does
_NOP = Role.NOP

_GLOBAL_SPACES = frozenset({Space.GLOBAL, Space.BUFFER, Space.FLAT, Space.SCALAR})
_LDS_SIDES = frozenset({MemoryKind.LOAD_TO_LDS, MemoryKind.STORE_FROM_LDS})
_FORMATS: Final = ("fp8", "bf8", "fp6", "bf6", "fp4")
"""Element formats by the number `cbsz` and `blgp` select them with (MI350 ISA, f8f6f4)."""
CATEGORIES: Final = {
    "matrix": "vector",
    "valu": "vector",
    "trans": "vector",
    "salu": "scalar",
    "smem": "scalar",
    "lds": "lds",
    "vmem": "vmem",
    "branch": "branch",
}
"""Pipe -> the issue category its instructions compete in (one per clock each on CDNA)."""


@dataclass(frozen=True, slots=True, eq=False)
class Charge:
    """What one execution by one wave takes. Cycles are clocks of the device's engine clock.

    `cycles` is how long `pipe` is taken per wave of one SIMD, the other SIMDs on the same pipe
    doing the same; `shared_cycles` how long the data path all SIMDs of a compute unit share (LDS,
    vector cache) is taken by one wave, None where its rate is not known.
    `slots` are the issue slots it takes: none for hints the front end drops; `idle` are slots its
    wave lets pass on purpose (no-ops), free for other waves. `latency` is issue to
    result in cycles, None where no source is known; `chained_latency` the same for a matrix
    instruction that accumulates onto the result. `bytes_global` and `bytes_lds` are per wave.
    Units of one pipe (NVIDIA's FMA and ALU under `valu`) work concurrently.
    """

    klass: str
    pipe: str
    cycles: float
    shared_cycles: float | None
    slots: int
    idle: int
    latency: float | None
    chained_latency: float | None
    matrix_dtype: str
    matrix_flops: int
    vector_dtype: str
    vector_flops: float
    bytes_global: int
    bytes_lds: int
    barrier: bool
    mnemonic: str
    unit: str = ""

    @property
    def category(self) -> str:
        """The issue category, "" for what needs no execution unit."""
        return CATEGORIES.get(self.pipe, "") if self.slots else ""


class Charges:
    """Charges of one device for one wave size; remembers every kind it has seen."""

    def __init__(self, device: Device, wave_lanes: int) -> None:
        self.device = device
        self.wave_lanes = wave_lanes
        self.simds = device.simds_per_cu
        self.lds_rate = _rate(device, "lds_bytes_per_clk_cu")
        self.lds_write_rate = _rate(device, "lds_write_bytes_per_clk_cu") or self.lds_rate
        self.cache_rate = _rate(device, "l1v_bytes_per_clk_cu")
        self._by_kind: dict[object, Charge] = {}

    def of(self, decoded: Decoded) -> Charge:
        """The charge of an instruction; equal for instructions of one kind."""
        opcode, second = decoded.opcode, decoded.second
        key: object = (id(opcode), id(decoded.memory), second and id(second.opcode))
        if opcode.matrix is not None:
            key = (key, tuple(decoded.modifiers.items()))
        elif opcode.role is _NOP:
            key = decoded.text
        charge = self._by_kind.get(key)
        if charge is None:
            charge = self._by_kind[key] = self._make(decoded)
        return charge

    def _make(self, decoded: Decoded) -> Charge:
        opcode = decoded.opcode
        dtype, flops = self._matrix_work(decoded)
        if opcode.matrix is not None:
            a_format, b_format = matrix_formats(decoded)
            cost = self.device.matrix_cost(
                decoded.mnemonic, a_format, b_format, wave_lanes=self.wave_lanes
            )
        else:
            cost = self.device.cost(opcode.cost_class, self.wave_lanes)
        to_global, to_lds = self._bytes(decoded.memory)
        element, vector_flops = _vector_work(decoded)
        return Charge(
            klass=instruction_class(decoded),
            pipe=cost.pipe,
            cycles=cost.issue_cycles * cost.shared_by,
            shared_cycles=self._shared_cycles(cost.pipe, decoded.memory, to_global, to_lds),
            slots=0 if opcode.role in (Role.HINT, _NOP) else 1,
            idle=_idle(decoded),
            latency=cost.latency_cycles,
            chained_latency=cost.accumulate_cycles,
            matrix_dtype=dtype,
            matrix_flops=flops,
            vector_dtype=element,
            vector_flops=vector_flops * self.wave_lanes,
            bytes_global=to_global,
            bytes_lds=to_lds,
            barrier=opcode.role is Role.BARRIER,
            mnemonic=decoded.mnemonic,
        )

    def _matrix_work(self, decoded: Decoded) -> tuple[str, int]:
        matrix = decoded.opcode.matrix
        if matrix is None:
            return "", 0
        a_format, b_format = matrix_formats(decoded)
        first = dtype_of(a_format or matrix.a_type)
        return widest(first, dtype_of(b_format or matrix.b_type)), matrix.flops

    def _bytes(self, memory: MemoryEffect | None) -> tuple[int, int]:
        """Bytes a whole wave moves to or from global memory and LDS."""
        if memory is None or memory.kind is MemoryKind.PERMUTE:
            return 0, 0
        lanes = 1 if memory.space is Space.SCALAR else self.wave_lanes
        to_global = memory.bytes * lanes if memory.space in _GLOBAL_SPACES else 0
        in_lds = memory.space is Space.LDS or memory.kind in _LDS_SIDES
        return to_global, memory.bytes * lanes if in_lds else 0

    def _shared_cycles(
        self, pipe: str, memory: MemoryEffect | None, to_global: int, to_lds: int
    ) -> float | None:
        """Cycles the data takes on a pipe the SIMDs share; None where the rate is not known."""
        if pipe == "lds":
            writes = memory is not None and memory.kind is MemoryKind.STORE
            rate = self.lds_write_rate if writes else self.lds_rate
            return to_lds / rate if rate else None
        if pipe == "vmem":
            return to_global / self.cache_rate if self.cache_rate else None
        return 0.0


def matrix_formats(decoded: Decoded) -> tuple[str, str]:
    """Element formats a matrix instruction selects by modifiers, "" where its row has them."""
    matrix = decoded.opcode.matrix
    if matrix is None or "f8f6f4" not in (matrix.a_type, matrix.b_type):
        return "", ""
    return _format(decoded, "cbsz", "matrix_a_fmt"), _format(decoded, "blgp", "matrix_b_fmt")


def _rate(device: Device, name: str) -> float | None:
    value = device.get(name)
    return float(value) if isinstance(value, (int, float)) and value else None


def _format(decoded: Decoded, number: str, name: str) -> str:
    """`fp8` … `fp4` from `cbsz:4` (gfx950) or `matrix_a_fmt:MATRIX_FMT_FP4` (gfx1250)."""
    text = decoded.modifiers.get(name)
    if text is not None:
        return text.rpartition("_")[2].lower()
    return _FORMATS[int(decoded.modifiers.get(number, "0"))]


def _idle(decoded: Decoded) -> int:
    """Wait states of a no-op: `s_nop N` lets N + 1 pass."""
    if decoded.opcode.role is not _NOP:
        return 0
    count = decoded.operands[0].value if decoded.operands else None
    return (count or 0) + 1


def _vector_work(decoded: Decoded) -> tuple[str, float]:
    """Element type and useful operations per lane of a vector instruction, both VOPD halves."""
    halves = [half.opcode for half in (decoded, decoded.second) if half is not None]
    flops = sum(opcode.flops for opcode in halves)
    if not flops:
        return "", 0.0
    working = next(opcode for opcode in halves if opcode.flops)
    return dtype_of(_element_type(working)), flops


def _element_type(opcode: Opcode) -> str:
    """The type a vector opcode computes on: that of its first floating-point source.

    Mixed-precision FMAs choose their source types by modifier; they compute in the result's.
    """
    sources = [role.type.partition("x")[0] for role in opcode.operands[1:]]
    floats = [name for name in sources if name.startswith(("f", "bf"))]
    return floats[0] if floats else opcode.operands[0].type
