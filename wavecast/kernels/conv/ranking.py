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
_MATRIX_REGISTERS = {"gfx9": 256, "gfx1": 128, "sm_": 128}
"""Accumulators per lane, by the beginning of a target; with more, operands spill."""


@cache
def product_seconds(
    device: Device, m: int, n: int, k: int, dtype: str, rows: int, columns: int, depth: int,
    splits: int, batch: int, waves: int, read: float, taps: int, slow: float,
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
    asked = replace(
        asked,
        read=read,
        refetched=asked.refetched / taps,
        l2=asked.l2 * slow,
        lds=asked.lds * slow,
        latency=asked.latency * slow,
        combining=0.0,
        combined=0.0,
    )
    return float(np.asarray(solve(asked, chip, known).seconds).flat[0])


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
    buffers = max(1, settings["num_stages"] - (0 if device.target.startswith("sm_") else 1))
    limits = device.limits()
    return (rows + columns) * depth * size * buffers <= limits.lds_max_per_workgroup


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


__all__ = ["DTYPES", "SIZES", "best_splits", "product_seconds", "tile_fits"]
