"""The time of kernels whose workgroups each walk over tokens of a cache, by formula: for ranking
configurations before anything is compiled."""

from __future__ import annotations

from dataclasses import dataclass

from wavecast.arch import Device
from wavecast.model.chip import Chip
from wavecast.model.memory import overlapped

_FIXED_REGISTERS = 56
"""Registers for addresses, masks and scores of a tile; from compiled kernels."""
_STEP_CLOCKS = 900.0
"""Clocks of a step that nothing in its wave hides: reductions, waits for LDS, conversions."""
_BARRIER_CLOCKS = 600.0
"""What each doubling of the waves of a workgroup adds to that."""
_OVERLAP = 2.5
"""Exponent that joins resources which work at once; ranks as executed samples do."""
_DOUBTFUL = 1.5
"""Estimated registers over those there are, beyond which nothing is compiled."""
_SPILLING = 4.0
"""How much slower it gets per such excess."""
_CONVERTED_CLOCKS = 8.0
"""Instructions that widen an element of 8 bits, where a target has none for it."""

_ALONE = 0.2
"""How much slower it gets where a SIMD has registers for one wave; a quarter of it where for two:
others hide its waits."""


@dataclass(frozen=True, slots=True)
class Walk:
    """`programs` workgroups of `warps` waves that take `steps` tiles of `columns` tokens each for
    `rows` rows of queries: keys of `depth` elements of `size` bytes, values of `width`.

    `bytes` are read from memory in all. `held` says that queries stay in registers, `shared` that
    values are a part of the keys. `ahead` tiles are loaded before they are needed. Where `turned`,
    waves share the columns of the values among them.
    """

    programs: float
    warps: int
    steps: float
    rows: int
    columns: int
    depth: int
    width: int
    size: int
    bytes: float
    held: bool = True
    shared: bool = False
    ahead: int = 0
    turned: bool = False

    def registers(self, device: Device) -> float:
        """Registers a lane needs, about."""
        lanes = device.wave_lanes
        threads = lanes * self.warps
        mine = max(16, self.rows // self.warps)
        twice = 2 if device.target.startswith("gfx11") else 1
        queries = mine * self.depth / 2 / lanes * twice if self.held else 0.0
        loaded = self.columns * (self.depth + (0 if self.shared else self.width)) / threads
        tiles = loaded * (1 + self.ahead) * self.size / 4 + (loaded / 2 if self.size == 1 else 0)
        return _FIXED_REGISTERS + queries + tiles + self.rows * self.width / threads

    def lds(self) -> float:
        """Bytes a workgroup needs: a tile of keys or values, or the queries on their way."""
        tile = self.columns * max(self.depth, self.width) * 2
        return max(tile, self.rows * self.width * 2 if self.held else 0)

    def resident(self, device: Device) -> int:
        """Workgroups that run on a unit at once."""
        limits = device.limits()
        needed = max(16.0, self.registers(device))
        waves = min(limits.max_waves_per_simd, int(limits.vgpr_total // needed))
        chip = Chip.of(device)
        by_registers = max(1, waves) * chip.simds // self.warps
        by_lds = int(chip.lds_bytes // max(1.0, self.lds()))
        return max(1, min(by_registers, by_lds))

    def excess(self, device: Device) -> float:
        """Registers needed over those a lane can have."""
        most = 256
        if device.target.startswith("gfx9") and self.warps <= 4:
            most = 512
        return self.registers(device) / (0.97 * most)

    def fits(self, device: Device) -> bool:
        """Whether LDS will do, and registers may."""
        limits = device.limits()
        return self.lds() <= limits.lds_max_per_workgroup and self.excess(device) < _DOUBTFUL

    def seconds(self, device: Device, dtype: str) -> float:
        """Memory, matrix pipe and LDS overlapped, with the chain of steps of each workgroup."""
        chip = Chip.of(device)
        products = 2.0 * self.rows * self.columns * (self.depth + self.width)
        matrix = products / chip.matrix_rate(dtype)
        # every wave of other rows reads all keys and values; a tile is written once
        readers = max(1, min(self.warps, self.rows // 16))
        of_values = 1 if self.turned else readers
        moved = self.columns * 2 * (self.depth * (readers + 1) + self.width * (of_values + 1))
        if not self.held:
            moved += self.rows * self.depth * 2 * 2
        lds = moved / chip.lds_rate
        elements = self.columns * (self.depth + (0 if self.shared else self.width))
        vector = self.rows * (self.columns * 12.0 + self.width * 1.5)
        if self.size == 1:
            vector += elements * _CONVERTED_CLOCKS
        vector /= chip.vector_flops / 2
        running = min(self.programs, self.resident(device) * chip.units)
        wait = chip.latency["hbm"] * chip.clock / (1 + 3 * self.ahead)
        alone = wait + _STEP_CLOCKS + _BARRIER_CLOCKS * (self.warps.bit_length() - 1)
        alone += matrix * min(4, 4 / self.warps) + lds + vector
        total = self.programs * self.steps
        rounds = -(-self.programs // running) * running / self.programs
        busy = total / min(self.programs, chip.units)
        parts = [
            total / running * rounds * alone / chip.clock,
            busy * matrix / chip.clock,
            busy * lds / chip.clock,
            busy * vector / chip.clock,
            self.bytes / chip.hbm,
        ]
        spilled = max(0.0, self.excess(device) - 1.0)
        return float(overlapped(parts, _OVERLAP)) * (1 + _SPILLING * spilled)


class ManyRows(Walk):
    """A walk whose rows may be many, with keys a tile ahead: on CDNA it is told, too, what limits
    workgroups that differ in their rows."""

    def registers(self, device: Device) -> float:
        """With scores, and a tile as the operand of matrix instructions beside those on their way
        from memory: within 20% of compiled kernels."""
        found = super().registers(device)
        if not device.target.startswith("gfx9"):
            return found
        threads = device.wave_lanes * self.warps
        ahead = self.ahead * self.columns * (self.depth + self.width) * self.size / 4 / threads
        operand = self.columns * self.depth / 2 / device.wave_lanes
        return found - ahead + operand + self.rows * self.columns / threads

    def seconds(self, device: Device, dtype: str) -> float:
        """With what all workgroups together read from L2, and few waves a SIMD."""
        found = super().seconds(device, dtype)
        if not device.target.startswith("gfx9"):
            return found
        chip = Chip.of(device)
        read = self.programs * self.steps * self.columns * (self.depth + self.width) * self.size
        found += read / (chip.l2_bandwidth or 4 * chip.hbm)
        waves = max(1, int(device.limits().vgpr_total // self.registers(device)))
        return found * (1 + _ALONE / waves**2)


def chunks(head: int, device: Device) -> tuple[int, ...]:
    """In how many elements at a time queries may be multiplied: all, or fewer of wide heads where a
    lane has 256 registers."""
    padded = 1 << (head - 1).bit_length()
    held = 64 if device.target.startswith("gfx11") else 128
    return (padded,) if padded <= held or device.target.startswith("gfx9") else (padded, 64)


def compiler_options(device: Device) -> dict[str, tuple[int, ...]]:
    """Axes of a space for Triton's compiler: small matrix instructions for few rows, and operands
    of two of them read from LDS at once where the target needs to be told."""
    found: dict[str, tuple[int, ...]] = {"waves_per_eu": (0,)}
    if device.target.startswith("gfx9"):
        found["matrix_instr_nonkdim"] = (16,)
    if device.target in ("gfx90a", "gfx942"):
        found["kpack"] = (2,)
    return found


__all__ = ["ManyRows", "Walk", "chunks", "compiler_options"]
