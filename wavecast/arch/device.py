"""A device: its identity, its facts, and the rates, limits, and costs that follow from them."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TypeVar

from wavecast.arch import cost, limits, rates
from wavecast.arch.capability import Capabilities, capabilities
from wavecast.arch.cost import Cost
from wavecast.arch.facts import Facts
from wavecast.arch.limits import OccupancyLimits
from wavecast.arch.quantity import Quantity, Value
from wavecast.arch.reader import Identity
from wavecast.errors import MissingFact

Default = TypeVar("Default")


@dataclass(frozen=True, slots=True, eq=False)
class Device:
    """One GPU, or one die of a package that shows as its own GPU."""

    identity: Identity
    facts: Facts

    def __reduce__(self) -> tuple[object, ...]:
        """Caches have devices as keys, by identity: a process that gets one device with every task
        must know it again."""
        return _unpickle, (pickle.dumps((self.identity, self.facts)),)

    @property
    def id(self) -> str:
        """Short name, unique: `mi300x`."""
        return self.identity.id

    @property
    def name(self) -> str:
        """Marketing name."""
        return self.identity.name

    @property
    def vendor(self) -> str:
        """`amd` or `nvidia`."""
        return self.identity.vendor

    @property
    def target(self) -> str:
        """LLVM processor (`gfx942`) or CUDA architecture (`sm_90`)."""
        return self.identity.target

    @property
    def generation(self) -> str:
        """Names the cost table: `cdna3`, `rdna3.5`, `hopper` …"""
        return self.identity.generation

    @property
    def capabilities(self) -> Capabilities:
        """What the instruction set of the target can do."""
        return capabilities(self.target)

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names that select this device."""
        return self.identity.aliases

    def quantity(self, name: str) -> Quantity:
        """A fact. Raises UnknownName for a field no device has, MissingFact for one this lacks."""
        return self.facts.quantity(name)

    def value(self, name: str) -> Value:
        """The value of a fact in the unit of its file. Raises MissingFact when it is not known."""
        return self.facts.value(name)

    def get(self, name: str, default: Default = None) -> Value | Default:
        """The value of a fact, or `default` when it is not known. Raises UnknownName."""
        fact = self.facts.find(name)
        return default if fact is None or fact.value is None else fact.value

    def fields(self) -> tuple[str, ...]:
        """The names of this device's facts, in display order."""
        return tuple(self.facts.names())

    @property
    def wave_lanes(self) -> int:
        """Lanes of a native wave (threads of a warp)."""
        return self.facts.integer("wave_size")

    @property
    def compute_units(self) -> int:
        """CUs (WGPs on gfx1250, SMs on NVIDIA)."""
        return self.facts.integer("cu")

    @property
    def simds_per_cu(self) -> int:
        """SIMDs of one of `compute_units`; sub-partitions of an SM."""
        return self.facts.integer("simd_per_cu")

    @property
    def issue_period(self) -> int:
        """Clocks between two issue slots of a SIMD for native waves; a sub-partition of an SM
        issues every clock (A100 white paper)."""
        if self.vendor == "nvidia":
            return 1
        return max(1, self.wave_lanes // self.facts.integer("lanes_per_simd"))

    @property
    def lds_bytes(self) -> int:
        """LDS of one of `compute_units`; shared memory of an SM at its largest setting."""
        return limits.lds_bytes(self.facts, self.vendor)

    @property
    def dies(self) -> int:
        """Dies that have an L2 each, between which workgroups are dealt."""
        return self.facts.integer("xcds")

    @property
    def clock_hz(self) -> Quantity:
        """Highest engine clock in Hz. Raises MissingFact when it is not known."""
        self.facts.value("peak_clock")
        return self.facts.quantity("peak_clock").to("Hz")

    def limits(self, wave_lanes: int | None = None, *, cu_mode: bool = False) -> OccupancyLimits:
        """What bounds occupancy for waves of `wave_lanes` (native by default).

        `cu_mode` is for RDNA kernels whose workgroups stay on one CU. Raises UsageError for a wave
        size the device does not run.
        """
        return limits.occupancy_limits(self.facts, self.identity, wave_lanes, cu_mode=cu_mode)

    def peak_flops(self, dtype: str) -> Quantity | None:
        """Datasheet rate in FLOP/s of a matrix type (`bf16`) or vector type (`vector_fp32`).

        None when the chip has no such rate or none is known (`why_no_peak` says which). Raises
        UnknownName for an unknown type.
        """
        return rates.peak_flops(self.facts, dtype)

    def why_no_peak(self, dtype: str) -> str:
        """Why `peak_flops(dtype)` is None; "" when it is not."""
        return rates.why_no_peak(self.facts, dtype)

    def sustained_flops(self, dtype: str) -> Quantity | None:
        """Measured rate in FLOP/s, None when nobody published one. Raises UnknownName."""
        return rates.sustained_flops(self.facts, dtype)

    def peak_bandwidth(self) -> Quantity | None:
        """Datasheet memory bandwidth in byte/s, None when it is not known."""
        return rates.peak_bandwidth(self.facts)

    def sustained_bandwidth(self) -> Quantity | None:
        """Measured memory bandwidth in byte/s, None when nobody published one."""
        return rates.sustained_bandwidth(self.facts)

    def cost(self, cost_class: str, wave_lanes: int | None = None) -> Cost:
        """What an instruction of a class costs a wave of `wave_lanes` (native by default).

        Matrix instructions have separate costs (`matrix_cost`). Raises UnknownName for an
        unknown class, MissingFact for a generation without a cost table (NVIDIA).
        """
        return _class_cost(self, cost_class, wave_lanes)

    def matrix_cost(
        self, mnemonic: str, a_format: str = "", b_format: str = "", wave_lanes: int | None = None
    ) -> Cost:
        """What a matrix instruction costs, by its mnemonic as printed for the target.

        The formats (`fp8`, `bf6`, `f4` …; FP8 when absent) choose among the rates of `f8f6f4`
        instructions. Raises UnknownName for an instruction the target does not have.
        """
        return _matrix_cost(self, mnemonic, a_format, b_format, wave_lanes)


@cache
def _class_cost(device: Device, cost_class: str, wave_lanes: int | None) -> Cost:
    return cost.class_cost(device.facts, device.identity, cost_class, wave_lanes)


@cache
def _matrix_cost(
    device: Device, mnemonic: str, a_format: str, b_format: str, wave_lanes: int | None
) -> Cost:
    if device.vendor != "amd":
        raise MissingFact(f"no matrix instruction costs are known for {device.target}")
    facts, identity = device.facts, device.identity
    return cost.matrix_cost(facts, identity, mnemonic, a_format, b_format, wave_lanes)


@lru_cache(maxsize=64)
def _unpickle(content: bytes) -> Device:
    return Device(*pickle.loads(content))
