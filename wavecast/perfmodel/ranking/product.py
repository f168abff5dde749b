"""Matrix products computed in tiles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from wavecast.arch import Device
from wavecast.perfmodel.ops.gemm.problem import Gemm, bounds, machine
from wavecast.perfmodel.ranking.demand import Demand

LIBRARY = "triton"


@dataclass(frozen=True, slots=True, kw_only=True)
class TiledProduct(Demand):
    """A product [m, k] x [k, n], `batch` of them or one per entry of `groups` (rows of each), in
    tiles of `tile_m` x `tile_n` with steps of `tile_k` elements of K, K split into `splits` parts.

    `dtype`, `weight` and `scaling` are as in `wavecast.perfmodel.ops.gemm.Gemm`. `seconds` raises
    MissingFact for a dtype the device has no rate of.
    """

    m: int
    n: int
    k: int
    dtype: str
    tile_m: int
    tile_n: int
    tile_k: int
    splits: int = 1
    batch: int = 1
    groups: tuple[int, ...] = ()
    weight: str = ""
    scaling: str = ""

    def seconds(self, device: Device, num_warps: int) -> float:
        chip, constants = machine(device)
        problem = _gemm(self, num_warps)
        times = bounds(problem, problem.candidates(device.generation), chip, constants)
        return float(np.asarray(times.seconds).flat[0])


@cache
def _gemm(product: TiledProduct, num_warps: int) -> Gemm:
    plain = Gemm(m=product.m, n=product.n, k=product.k, dtype=product.dtype, weight=product.weight)
    step_bytes = max(1, int(product.tile_k * plain.operands.a.size))
    return Gemm(
        m=product.m,
        n=product.n,
        k=product.k,
        dtype=product.dtype,
        batch=product.batch,
        groups=product.groups,
        weight=product.weight,
        scaling=product.scaling,
        library=LIBRARY,
        tile=(product.tile_m, product.tile_n, step_bytes),
        splits=product.splits,
        waves=num_warps,
    )


__all__ = ["LIBRARY", "TiledProduct"]
