"""What a tile of a matrix product takes of a compute unit, before anything is compiled."""

from __future__ import annotations

from dataclasses import dataclass

from wavecast.arch import Device
from wavecast.perfmodel import coefficients

FAMILY = "ranking_gemm"


@dataclass(frozen=True, slots=True, kw_only=True)
class TileResources:
    """Registers and LDS of a workgroup that computes a tile of `tile_m` x `tile_n` in steps of
    `tile_k` elements of `element_size` bytes, of `num_stages` steps at once.

    `aligned` operands are loaded 16 bytes at a time, others element by element; the matrix
    instructions of a `dtype` (`fp32`) take `copies` of each operand.
    """

    tile_m: int
    tile_n: int
    tile_k: int
    element_size: int
    num_warps: int
    num_stages: int
    dtype: str
    aligned: bool
    copies: int = 1

    def lds(self, device: Device) -> int:
        """Bytes of LDS: where operands come through registers, the newest step waits there."""
        direct = device.capabilities.direct_to_lds
        steps = self.num_stages if direct else max(1, self.num_stages - 1)
        return (self.tile_m + self.tile_n) * self.tile_k * self.element_size * steps

    def registers(self, device: Device) -> float:
        """Registers of a lane: sums, the next step's operands on their way to the LDS, and those
        that the matrix instructions take now."""
        capabilities = device.capabilities
        lanes, sides = device.wave_lanes, self.tile_m + self.tile_n
        threads = self.num_warps * lanes
        # elements that are loaded one by one take a register each
        each = self.element_size / 4 if self.aligned else 1.0
        loaded = sides * self.tile_k * each / threads
        if capabilities.direct_to_lds and self.aligned:
            loaded = 0.0
        across = 1 if self.num_warps == 1 else 2
        operand_registers = (
            sides / across * min(self.tile_k, 32) * self.element_size / 4 / lanes * self.copies
        )
        if capabilities.matrix_operands_from_lds and self.dtype != "fp32" and self.tile_m >= 64:
            operand_registers = 0.0
        fixed = coefficients.values(FAMILY, device)["fixed_registers"]
        return self.tile_m * self.tile_n / threads + loaded + operand_registers + fixed

    def fits(self, device: Device) -> bool:
        """Whether there is LDS for it, and registers without spills."""
        most = coefficients.values(FAMILY, device)["most_registers"]
        room = device.limits().lds_max_per_workgroup
        return self.lds(device) <= room and self.registers(device) <= most

    def resident(self, device: Device) -> int:
        """About how many workgroups share a compute unit."""
        limits = device.limits()
        waves = self.num_warps / limits.simds
        by_lds = limits.lds_max_per_workgroup // max(1, self.lds(device))
        by_registers = int(limits.vgpr_total / max(self.registers(device), 1.0) / max(waves, 1.0))
        most = coefficients.values(FAMILY, device)["most_workgroups"]
        return max(1, min(by_lds, by_registers, int(most)))


__all__ = ["FAMILY", "TileResources"]
