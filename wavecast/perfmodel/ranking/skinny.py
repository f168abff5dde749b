"""Matrix products of few rows, whose time is that of reading the weights."""

from __future__ import annotations

import math
from dataclasses import dataclass

from wavecast.arch import Device
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.ranking.demand import Demand

FAMILY = "ranking_quantised"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkinnyProduct(Demand):
    """A product [m, k] x [k, n] that reads `weights` bytes, in tiles of `tile_m` x `tile_n` with
    steps of `tile_k` elements of K, which is split into `splits` parts. Elements of the left
    operand have `size` bytes.

    Narrow tiles that fill the GPU several times are fastest, even at the price of another launch
    for parts of K. Every tile reads its rows again, from the L2.
    """

    m: int
    n: int
    k: int
    weights: float
    size: float
    tile_m: int
    tile_n: int
    tile_k: int
    splits: int

    def seconds(self, device: Device, num_warps: int) -> float:
        chip, constants = Chip.of(device), coefficients.values(FAMILY, device)
        down, across = -(-self.m // self.tile_m), -(-self.n // self.tile_n)
        shortfall = constants["workgroups_per_unit"] * chip.units / (down * across * self.splits)
        idle = max(1.0, shortfall) ** constants["few_workgroups_exponent"]
        wide = 1.0 + constants["wide_tile_penalty"] * math.log2(self.tile_n / 16)
        elements = self.tile_m * self.tile_n / num_warps / constants["wave_elements"]
        waves = 1.0 + constants["wave_elements_penalty"] * abs(math.log2(elements))
        short = 1.0 + constants["short_step_penalty"] * math.log2(128 / self.tile_k)
        sums = 0.0
        if self.splits > 1:  # the parts often stay in a cache
            sums = constants["sum_launch"] + 4.0 * self.splits * self.m * self.n / chip.hbm
        rows = across * self.tile_m * self.k * self.size / constants["l2_over_memory"]
        read = (self.weights + rows) * down / chip.hbm
        return read * idle * wide * waves * short + sums


__all__ = ["FAMILY", "SkinnyProduct"]
