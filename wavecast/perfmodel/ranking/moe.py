"""Products of rows sorted by expert, a group of rows for each expert's weights."""

from __future__ import annotations

from dataclasses import dataclass

from wavecast.arch import Device
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.ranking.demand import Demand
from wavecast.perfmodel.ranking.product import TiledProduct

FAMILY = "ranking_moe"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedRows:
    """An element of weights of `weight_size` bytes, read once per block and multiplied by each of
    its rows: `blocks` blocks of `rows` rows, padding included."""

    blocks: int
    rows: int
    weight_size: float

    def seconds(self, device: Device) -> float:
        """Time on a device, in seconds."""
        chip = Chip.of(device)
        rate = chip.matrix_rate("fp16") * chip.units * chip.clock
        sustained = coefficients.values(FAMILY, device)["sustained_matrix_rate"]
        multiplied = 2 * self.rows / (sustained * rate)
        return self.blocks * (self.weight_size / chip.hbm + multiplied)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedTile:
    """A tile of `tile_m` x `tile_n` results in steps of `tile_k` elements of `element_size` bytes,
    operands of `num_stages` steps at once."""

    tile_m: int
    tile_n: int
    tile_k: int
    element_size: float
    num_warps: int
    num_stages: int

    def resident(self, device: Device) -> int:
        """Workgroups that have room on a compute unit: operands in the LDS, accumulators and
        operands in flight in registers. 0: not one."""
        constants, limits, chip = (
            coefficients.values(FAMILY, device),
            device.limits(),
            Chip.of(device),
        )
        direct = device.capabilities.direct_to_lds
        staged = (self.tile_m + self.tile_n) * self.tile_k * self.element_size
        lds = staged * (self.num_stages if direct else max(1, self.num_stages - 1))
        sums = self.tile_m * self.tile_n * 4
        threads = self.num_warps * device.wave_lanes
        live = (sums + (0 if direct else staged) + staged / 2) / 4 / threads
        if lds > limits.lds_max_per_workgroup or live > constants["most_registers"]:
            return 0
        waves = chip.simds * (limits.vgpr_total // (live + constants["fixed_registers"]))
        return max(1, int(min(chip.lds_bytes // max(lds, 1), waves // self.num_warps)))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedProduct(Demand):
    """A grouped product in tiles. Where few workgroups have room (`tile`), reading weights of
    `weight_bytes` in all waits for their barriers. `bytes_only`: operands have one byte at most."""

    product: TiledProduct
    tile: GroupedTile
    weight_bytes: float
    bytes_only: bool

    def seconds(self, device: Device, num_warps: int) -> float:
        constants = coefficients.values(FAMILY, device)
        seconds = self.product.seconds(device, num_warps)
        resident = self.tile.resident(device)
        lost = {1: constants["alone_wait"], 2: constants["paired_wait"]}.get(resident, 0.0)
        waiting = lost * (self.weight_bytes / Chip.of(device).hbm)
        if resident == 1 and self.bytes_only:
            waiting = max(waiting, constants["idle_matrix"] * seconds)
        return seconds + waiting


__all__ = ["FAMILY", "BlockedRows", "GroupedProduct", "GroupedTile"]
