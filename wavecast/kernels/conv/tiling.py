"""Tiles of implicit matrix products: which fit, and into how many parts reductions are split."""

import math
from functools import cache
from typing import Any

from wavecast import dtypes
from wavecast.arch import Device
from wavecast.errors import MissingFact
from wavecast.kernels import tiles
from wavecast.kernels.conv import combine
from wavecast.kernels.spec import Axes, KernelSpec, Problem, Settings
from wavecast.perfmodel.coefficients import coefficient
from wavecast.perfmodel.ranking.convolution import FAMILY, staged_bytes

_SMALL_LDS = 1 << 16
_SPLITS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


def element_size(problem: Problem) -> int:
    """Bytes of an element."""
    return int(dtypes.lookup(problem["dtype"]).bytes)


def axes(rows: int, columns: int, depths: tuple[int, ...], sizes: int, device: Device) -> Axes:
    """Tiles of a result of `rows` x `columns` in so many `sizes` along a side, with steps of
    `depths`."""
    most = 256 if device.wave_lanes == 64 else 128
    return {
        "BLOCK_M": tiles.blocks(rows, 16, most, sizes),
        "BLOCK_N": tiles.blocks(columns, 16, most, sizes),
        "BLOCK_K": depths,
        "GROUP": (8,),
        "num_warps": (1, 2, 4, 8),
        "num_stages": (1, 2) if device.vendor == "amd" else (2, 3),
    }


def fits(problem: Problem, settings: Settings, device: Device) -> bool:
    """Whether the accumulators and operands of a tile fit into registers and LDS."""
    most = coefficient("ranking_product", "accumulators").of(device)
    size, lanes = element_size(problem), settings["num_warps"] * device.wave_lanes
    tile_m, tile_n, tile_k = (settings[f"BLOCK_{axis}"] for axis in "MNK")
    accumulators = tile_m * tile_n / lanes
    if not 4 <= accumulators <= most:
        return False
    operands = (tile_m + tile_n) * tile_k * size / 4 / lanes
    if accumulators + 2 * operands > most * coefficient(FAMILY, "operands").of(device):
        return False
    lds = device.limits().lds_max_per_workgroup
    small = device.capabilities.matrix_unit == "mfma" and lds <= _SMALL_LDS
    if small and tile_k * size > 128 and tile_m * tile_n > 4096:
        return False  # one workgroup would fill the LDS
    stages = settings["num_stages"] + (device.vendor == "nvidia")
    return staged_bytes(tile_m, tile_n, tile_k, size, stages) <= lds


def tile_fields(problem: Problem, settings: Settings) -> dict[str, Any]:
    """The fields of an `ImplicitProduct` that all kernels fill alike."""
    same = {name: problem[name] for name in ("dtype", "splits", "read", "taps")}
    return {**tiles.sides(settings), **same, "num_stages": settings["num_stages"]}


def best_splits(spec: KernelSpec, problem: Problem, device: Device, count: int) -> int:
    """Into how many parts a reduction with `count` results is best split, whose sums are then
    added up. `problem["steps"]` are the steps of the reduction."""
    return _best_splits(spec, tuple(sorted(problem.items())), device, count)


@cache
def _best_splits(spec: KernelSpec, items: tuple[Any, ...], device: Device, count: int) -> int:
    try:
        times = {
            splits: _seconds(spec, {**dict(items), "splits": splits}, device, count)
            for splits in _SPLITS
        }
    except MissingFact:
        return 1
    return min(times, key=lambda splits: times[splits])


def _seconds(spec: KernelSpec, problem: Problem, device: Device, count: int) -> float:
    splits = problem["splits"]
    if splits > 1 and splits * 2 > problem["steps"]:
        return math.inf
    ranked = spec.ranked(problem, device)
    if not ranked:
        return math.inf
    settings = ranked[0].settings
    demand = spec.demand(problem, settings, device)
    if splits > 1:
        demand += combine.split_sums(count, splits, device)
    return demand.seconds(device, settings["num_warps"])
