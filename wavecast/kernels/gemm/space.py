"""Which tiles a dense product may be cut into on a GPU, and how long each would take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import triton

from wavecast.arch import Device
from wavecast.kernels import estimates
from wavecast.kernels.space import Problem, Settings, Space

_BYTES: Final = {"fp32": 4, "xf32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1}
"""Bytes of an operand's element by the name of its format."""
_PARTS_AT_MOST: Final = 2**28
"""Bytes of sums that the parts of a split K may take."""
_GROUP: Final = 8


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    size = _BYTES[problem["dtype"]]
    amd = device.target.startswith("gfx")
    return {
        "BLOCK_M": _blocks(problem["m"], 16, 256),
        "BLOCK_N": _blocks(problem["n"], 16 if problem["m"] <= 64 else 64, 256),
        "BLOCK_K": tuple(bytes_ // size for bytes_ in (64, 128, 256)),
        "SPLIT_K": _splits(problem),
        "GROUP": (_GROUP,),
        "num_warps": (1, 2, 4, 8),
        "num_stages": (2,) if amd else (3,),
    }


def _blocks(size: int, least: int, most: int) -> tuple[int, ...]:
    """Powers of two from `least` to `most`, without those a half of would do; three at most."""
    enough = min(most, max(least, triton.next_power_of_2(size)))
    found = []
    while enough >= least and len(found) < 4:
        found.append(enough)
        enough //= 2
    return tuple(reversed(found))


def _splits(problem: Problem) -> tuple[int, ...]:
    if problem["wide"] or problem["batch"] > 1 or problem["m"] * problem["n"] > 2**24:
        return (1,)
    return (1, 2, 4, 8)


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    rows, columns, depth = settings["BLOCK_M"], settings["BLOCK_N"], settings["BLOCK_K"]
    size = _BYTES[problem["dtype"]]
    limits = device.limits()
    staged = (rows + columns) * depth * size
    if staged * _buffers(settings, device) > limits.lds_max_per_workgroup:
        return False
    threads = settings["num_warps"] * limits.wave_lanes
    if rows * columns / threads > (128 if limits.wave_lanes == 32 else 256):
        return False
    if rows * columns < 16 * 16 * settings["num_warps"] or rows * columns > 4096 * settings["num_warps"]:
        return False
    splits = settings["SPLIT_K"]
    if splits > 1:
        if splits * problem["m"] * problem["n"] * 4 > _PARTS_AT_MOST:
            return False
        if splits * depth * 2 > problem["k"]:
            return False
    return True


def _buffers(settings: Settings, device: Device) -> int:
    """Steps of operands in the LDS at once: AMD before gfx950 waits for the next in registers."""
    stages = settings["num_stages"]
    if device.target.startswith("gfx") and device.target != "gfx950":
        return max(1, stages - 1)
    return stages


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    return estimates.tile(
        device,
        settings,
        m=problem["m"],
        n=problem["n"],
        k=problem["k"],
        batch=problem["batch"],
        dtype=problem["rate"],
        rows=settings["BLOCK_M"],
        columns=settings["BLOCK_N"],
        depth=settings["BLOCK_K"],
        splits=settings["SPLIT_K"],
    )


def _sum_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    return {
        "BLOCK_M": (1,) if problem["m"] == 1 else (1, 4, 16),
        "BLOCK_N": (64, 128, 256, 512),
        "num_warps": (1, 2, 4),
        "num_stages": (1,),
    }


def _sum_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    rows, columns = settings["BLOCK_M"], settings["BLOCK_N"]
    outputs = problem["m"] * problem["n"]
    return estimates.streaming(
        device,
        settings,
        workgroups=triton.cdiv(problem["m"], rows) * triton.cdiv(problem["n"], columns),
        read=4.0 * outputs * problem["splits"],
        written=4.0 * outputs,
        elements=rows * columns,
        operations=4.0 + 2.0 * problem["splits"],
        held=1.0 + problem["splits"],
    )


TILES = Space(
    kernel="matmul_kernel", axes=_axes, fits=_fits, seconds=_seconds, classes=("m",)
)
SUM = Space(
    kernel="matmul_sum_kernel", axes=_sum_axes, seconds=_sum_seconds, classes=("m",)
)

__all__ = ["SUM", "TILES"]
