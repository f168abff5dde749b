"""Convolutions as matrix products whose operands are formed while they are loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from wavecast.arch import Device
from wavecast.perfmodel import coefficients
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.ops.gemm.formats import activation
from wavecast.perfmodel.ops.gemm.problem import Gemm, machine
from wavecast.perfmodel.ops.gemm.tiles import demand
from wavecast.perfmodel.ranking.demand import Demand
from wavecast.perfmodel.ranking.product import LIBRARY
from wavecast.perfmodel.solve import solve

FAMILY = "ranking_convolution"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImplicitProduct(Demand):
    """`batch` products [m, k] x [k, n] in tiles of `tile_m` x `tile_n` with steps of `tile_k`
    elements of K, of which `num_stages` are in flight; K is split into `splits` parts.

    The launch reads `read` bytes at least; `taps` visits of an element find all others in caches.
    With `narrow_loads` lanes cannot load whole vectors. `seconds` raises MissingFact for a dtype
    the device has no rate of.
    """

    m: int
    n: int
    k: int
    dtype: str
    tile_m: int
    tile_n: int
    tile_k: int
    num_stages: int
    splits: int
    batch: int
    read: float
    taps: int
    narrow_loads: bool

    def seconds(self, device: Device, num_warps: int) -> float:
        return _seconds(self, device, num_warps)


@cache
def _seconds(product: ImplicitProduct, device: Device, num_warps: int) -> float:
    chip, gemm_constants = machine(device)
    constants = coefficients.values(FAMILY, device)
    size = int(activation(product.dtype).size)
    gemm = Gemm(
        m=product.m,
        n=product.n,
        k=product.k,
        dtype=product.dtype,
        batch=product.batch,
        library=LIBRARY,
        tile=(product.tile_m, product.tile_n, product.tile_k * size),
        splits=product.splits,
        waves=num_warps,
    )
    tile_demand = demand(
        gemm.sizes, gemm.operands, gemm.candidates(device.generation), chip, gemm_constants
    )
    resident = _resident(product, size, device, num_warps, constants)
    waves = min(resident * num_warps / device.simds_per_cu, constants["full_overlap"])
    slower = constants["narrow_loads"] if product.narrow_loads else 1.0
    tile_demand = replace(
        tile_demand,
        read=product.read,
        resident=resident,
        serial=tile_demand.serial * (constants["full_overlap"] / waves) ** 0.5,
        refetched=tile_demand.refetched / product.taps,
        l2=tile_demand.l2 * slower,
        lds=tile_demand.lds * slower,
        latency=tile_demand.latency
        * slower
        * (constants["unpipelined"] if product.num_stages == 1 else 1.0),
        combining=0.0,
        combined=0.0,
    )
    rate = constants["l2_rate"]
    if chip.l2_bandwidth is not None:
        rate = min(rate, chip.l2_bandwidth / chip.units / chip.clock)
    times = solve(tile_demand, chip, {**gemm_constants, "tail": constants["tail"], "l2_rate": rate})
    return float(np.asarray(times.seconds).flat[0])


def _resident(
    product: ImplicitProduct,
    size: int,
    device: Device,
    num_warps: int,
    constants: Mapping[str, float],
) -> float:
    """Workgroups that run on a compute unit at once, by LDS and registers."""
    tile_m, tile_n = product.tile_m, product.tile_n
    lanes = device.wave_lanes
    operands = (tile_m + tile_n) * product.tile_k * size
    registers = (tile_m * tile_n + operands / 2) / num_warps / lanes + constants["other_registers"]
    waves = max(1, int(constants["simd_registers"] / lanes // registers)) * device.simds_per_cu
    staged = staged_bytes(tile_m, tile_n, product.tile_k, size, product.num_stages)
    by_lds = Chip.of(device).lds_bytes // staged
    return float(max(1, min(waves // num_warps, by_lds, constants["resident_workgroups"])))


def staged_bytes(tile_m: int, tile_n: int, tile_k: int, size: int, num_stages: int) -> int:
    """Bytes of LDS of a tile of elements of `size` bytes: the operands of the steps in flight, or
    the result before it is stored."""
    operands = max(tile_m, tile_n) if num_stages == 1 else (tile_m + tile_n) * (num_stages - 1)
    return max(operands * tile_k * size, tile_m * tile_n * size)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSums(Demand):
    """Partial sums in float32 of `splits` parts of a reduction with `count` results: written, then
    added up by the fastest of `kernels`, whose workgroups have four waves."""

    count: int
    splits: int
    kernels: tuple[Demand, ...]

    def seconds(self, device: Device, num_warps: int) -> float:
        del num_warps
        chip = Chip.of(device)
        fastest = min(kernel.seconds(device, 4) for kernel in self.kernels)
        return fastest + self.count * self.splits * 4 / chip.hbm + chip.launch


__all__ = ["FAMILY", "ImplicitProduct", "SplitSums", "staged_bytes"]
