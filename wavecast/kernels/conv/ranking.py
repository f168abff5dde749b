"""How long tiles of implicit matrix products take, by the formula of matrix products."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import torch

from wavecast.arch import Device
from wavecast.errors import MissingFact
from wavecast.kernels import estimates
from wavecast.kernels.conv import combine
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.model.chip import Chip
from wavecast.model.ops.gemm.problem import Gemm, machine
from wavecast.model.ops.gemm.tiles import demand
from wavecast.model.solve import solve

DTYPES: Mapping[torch.dtype, str] = {
    torch.float32: "fp32",
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
}
"""Dtypes of convolutions as the models of this package name them."""
SIZES: Mapping[str, int] = {"fp32": 4, "fp16": 2, "bf16": 2}
_SPLITS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_TAIL = 0.9
"""How much of a whole round of workgroups the last, incomplete one takes."""
_UNPIPELINED = 1.6
"""Waiting of a step whose loads do not overlap the products of the step before."""
_CROWD = 4.0
"""Waves per SIMD with which pipes overlap as the model of matrix products has it."""
_OTHER_REGISTERS = 48
"""Registers per lane for addresses and masks."""
_MATRIX_REGISTERS = {"gfx9": 256, "gfx1": 128, "sm_": 128}
"""Accumulators per lane, by the beginning of a target; with more, operands spill."""


@cache
def product_seconds(
    device: Device, m: int, n: int, k: int, dtype: str, rows: int, columns: int, depth: int,
    splits: int, batch: int, waves: int, stages: int, read: float, taps: int, slow: float,
) -> float:  # fmt: skip
    """Seconds of `batch` products of m x k by k x n in tiles; the launch reads `read` bytes at
    least, finds the others of `taps` visits of an element in caches, and its loads take `slow`
    times the usual. Raises MissingFact."""
    chip, known = machine(device)
    one = Gemm(
        m=m,
        n=n,
        k=k,
        dtype=dtype,
        batch=batch,
        library=estimates.LIBRARY,
        tile=(rows, columns, depth * SIZES[dtype]),
        splits=splits,
        waves=waves,
    )
    asked = demand(one.sizes, one.operands, one.candidates(device.generation), chip, known)
    size = SIZES[dtype]
    rate = (chip.l2_bandwidth or 0.0) / chip.units / chip.clock
    resident = _resident(device, rows, columns, depth, size, waves, stages)
    crowd = resident * waves / (device.simds_per_cu or 4)
    asked = replace(
        asked,
        read=read,
        resident=resident,
        serial=asked.serial * (_CROWD / min(crowd, _CROWD)) ** 0.5,
        refetched=asked.refetched / taps,
        l2=asked.l2 * slow,
        lds=asked.lds * slow,
        latency=asked.latency * slow * (_UNPIPELINED if stages == 1 else 1.0),
        combining=0.0,
        combined=0.0,
    )
    known = {**known, "tail": _TAIL, "l2_rate": min(rate or 290.0, 290.0)}
    return float(np.asarray(solve(asked, chip, known).seconds).flat[0])


def lds_bytes(rows: int, columns: int, depth: int, size: int, stages: int) -> int:
    """Bytes of LDS of a tile: operands of the steps it holds, or the result on its way out."""
    operands = max(rows, columns) if stages == 1 else (rows + columns) * (stages - 1)
    return max(operands * depth * size, rows * columns * size)


def _resident(
    device: Device, rows: int, columns: int, depth: int, size: int, waves: int, stages: int
) -> float:
    """Workgroups a compute unit runs at once, by LDS and registers."""
    lanes = device.wave_lanes or 64
    simds = device.simds_per_cu or 4
    each = rows * columns / waves / lanes
    registers = each + (rows + columns) * depth * size / 2 / waves / lanes + _OTHER_REGISTERS
    by_registers = max(1, int(512 * 64 / lanes // registers)) * simds // waves
    by_lds = Chip.of(device).lds_bytes // lds_bytes(rows, columns, depth, size, stages)
    return float(max(1, min(by_registers, by_lds, 4)))


def stages(device: Device) -> tuple[int, ...]:
    """Steps that are on their way at once."""
    return (1, 2) if device.target.startswith("gfx") else (2, 3)


def tile_fits(
    settings: Settings, device: Device, size: int, rows: int, columns: int, depth: int
) -> bool:
    """Whether accumulators and operands of a tile stay in registers and in the LDS."""
    lanes = settings["num_warps"] * (64 if device.target.startswith("gfx9") else 32)
    limit = next(n for start, n in _MATRIX_REGISTERS.items() if device.target.startswith(start))
    each = rows * columns / lanes
    if each > limit or each < 4:
        return False
    loaded = (rows + columns) * depth * size / 4 / lanes
    if each + 2 * loaded > 1.5 * limit:
        return False
    if device.target in ("gfx90a", "gfx942") and depth * size > 128 and rows * columns > 4096:
        return False  # one workgroup would fill the LDS
    held = settings["num_stages"] + device.target.startswith("sm_")
    most = device.limits().lds_max_per_workgroup
    return lds_bytes(rows, columns, depth, size, held) <= most


def best_splits(space: Space, problem: dict[str, Any], device: Device, count: int) -> int:
    """Into how many parts a reduction is best cut, whose `count` results are then added up."""
    return _best_splits(space, tuple(sorted(problem.items())), device, count)


@cache
def _best_splits(space: Space, items: tuple[Any, ...], device: Device, count: int) -> int:
    try:
        times = {
            splits: _seconds(space, {**dict(items), "splits": splits}, device, count)
            for splits in _SPLITS
        }
    except MissingFact:
        return 1
    return min(times, key=lambda splits: times[splits])


def _seconds(space: Space, problem: Problem, device: Device, count: int) -> float:
    if problem["splits"] > 1 and problem["splits"] * 2 > problem["steps"]:
        return float("inf")
    ranked = space.ranked(problem, device)
    if not ranked:
        return float("inf")
    best = space.seconds(problem, ranked[0].settings, device)
    splits = problem["splits"]
    return best + (combine.seconds(count, splits, device) if splits > 1 else 0.0)


__all__ = ["DTYPES", "SIZES", "best_splits", "product_seconds", "stages", "tile_fits"]
