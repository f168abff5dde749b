"""Matrix products as the library's Triton kernels compute them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from wavecast.arch import Device
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.ranking.demand import Demand
from wavecast.perfmodel.ranking.product import TiledProduct
from wavecast.perfmodel.ranking.streaming import StreamingKernel
from wavecast.perfmodel.ranking.tile import FAMILY, TileResources


@dataclass(frozen=True, slots=True, kw_only=True)
class TritonProduct(Demand):
    """A tiled product, with what the model of libraries' kernels does not have: the waits that few
    workgroups expose, and programs that share out the tiles.

    `resources` are those of a workgroup. With `programs` each computes every `programs`-th tile,
    and all share the steps of the last round (0: a program for each tile). A product of `few_rows`
    waits for memory.
    """

    product: TiledProduct
    resources: TileResources
    programs: int = 0
    few_rows: bool = False

    def seconds(self, device: Device, num_warps: int) -> float:
        constants = coefficients.values(FAMILY, device)
        seconds = self.product.seconds(device, num_warps) * self._exposure(
            device, num_warps, constants
        )
        if self.product.splits > 1:
            seconds += constants["second_launch"]
        return self._shared_out(device, seconds, constants) if self.programs else seconds

    @property
    def _tiles(self) -> int:
        """Tiles of one matrix of the batch."""
        product = self.product
        return math.ceil(product.m / product.tile_m) * math.ceil(product.n / product.tile_n)

    def _exposure(self, device: Device, num_warps: int, constants: Mapping[str, float]) -> float:
        """How much longer a tile takes where few workgroups share a compute unit: only others, or
        its own steps ahead, hide what one waits for."""
        product = self.product
        slower = constants["many_waves"] if num_warps > 4 else 1.0
        if self.few_rows:
            # memory waits for the compute units that have one workgroup more
            count = self._tiles * product.splits * product.batch
            units = device.compute_units
            slower *= math.ceil(count / units) * units / count
        else:
            if product.tile_n > product.tile_m:
                slower *= constants["wide_tile"]
            area = product.tile_m * product.tile_n / 128**2
            slower *= area ** constants["area_exponent"]
            if area * 128**2 / (num_warps * device.wave_lanes) > constants["direct_sums"]:
                slower *= constants["accumulator_copies"]
        ahead = self.resources.num_stages - 1 if device.capabilities.direct_to_lds else 1
        hidden = self.resources.resident(device) * ahead
        return (1.0 + constants["exposed_wait"] / hidden) * slower

    def _shared_out(self, device: Device, whole: float, constants: Mapping[str, float]) -> float:
        """Seconds where the last round of tiles is shared out, from those where it is not."""
        product, programs, count = self.product, self.programs, self._tiles
        parts = 4.0 * product.tile_m * product.tile_n * (programs + count % programs)
        adding = StreamingKernel(
            workgroups=count % programs * product.tile_m // 8,
            read=parts,
            written=parts,
            elements=8 * product.tile_n,
        )
        iterations = count // programs + 2
        shared = whole * (count / programs) / math.ceil(count / programs)
        return shared + adding.seconds(device, 4) + iterations * constants["further_tile"]


__all__ = ["TritonProduct"]
