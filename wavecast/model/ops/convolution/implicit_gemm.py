"""Implicit GEMM: one kernel that forms the operands of the matrix product as it loads them.

Three families of kernels do it. `gather` reads NCHW as it lies, element by element where the filter
has taps; `nhwc` reads whole channel vectors, and problems that lie as NCHW are transposed before
and after; `vector` uses no matrix instructions. Which of them a chip and dtype has was read off the
solvers MIOpen measured (find-db of 2024-10, gfx908, gfx90a, gfx1030); gfx942 and later have CK's
grouped kernels in `nhwc` for everything.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from wavecast.arch import Device
from wavecast.model.chip import Chip
from wavecast.model.ops.convolution.geometry import Array, Geometry
from wavecast.model.ops.convolution.timing import (
    Coefficients,
    Tiles,
    Timing,
    Work,
    fastest,
    plus,
    tiled,
)
from wavecast.model.ops.convolution.units import has_matrix, multiply_rate, vector_rate

_SIDES = (16, 32, 64, 128, 256)
_WHOLE = Tiles.grid(_SIDES, _SIDES, (1, 2, 4, 8), 1024, 32768)
_SPLIT = Tiles.grid(_SIDES, _SIDES, (1, 2, 4, 8, 16, 32, 64), 1024, 32768)
_FIRST = ("gfx908", "gfx90a")
"""Matrix chips without CK's grouped kernels in the find-db."""


def ways(geometry: Geometry, device: Device) -> dict[str, Array]:
    """The families that can do it, with a mask over problems.

    Raises MissingFact for a matrix dtype the chip does not have.
    """
    plain, anything = geometry.groups == 1, geometry.groups > 0
    nchw, images = geometry.layout == "nchw", geometry.rank == 2
    backward = geometry.direction != "forward"
    if geometry.dtype == "int8" and backward:
        return {}
    if not has_matrix(device):
        valid = geometry.dtype == "fp32" or geometry.direction != "data"
        return {"vector": plain} if nchw and valid and geometry.element > 1 else {}
    bf16 = geometry.dtype == "bf16"
    found = {}
    if device.target not in _FIRST:
        found["nhwc"] = anything
    elif images and not (bf16 and device.target == "gfx908"):
        found["nhwc"] = plain
    if (
        nchw
        and images
        and not (bf16 and geometry.direction == "data" and device.target != "gfx908")
    ):
        found["gather"] = anything
    if nchw and not images and geometry.dtype == "fp32":
        found["vector"] = plain
    return found


def applies(geometry: Geometry, device: Device) -> bool:
    """Whether the chip has any family for such problems."""
    return bool(ways(geometry, device))


def implicit_gemm(geometry: Geometry, chip: Chip, known: Coefficients) -> Timing:
    """The time of the fastest family; infinite where none applies."""
    timings = []
    for way, mask in ways(geometry, chip.device).items():
        timing = {"gather": _gather, "nhwc": _nhwc, "vector": _vector}[way](geometry, chip, known)
        seconds = np.where(mask[:, 0], timing.seconds, np.inf)
        timings.append(Timing(seconds, timing.parts, timing.choice))
    return plus(fastest(timings), "launch", known["launch"])


def _gather(geometry: Geometry, chip: Chip, known: Coefficients) -> Timing:
    rate = multiply_rate(chip, geometry.dtype) * known["gather_rate"]
    if geometry.dtype == "bf16" and chip.device.target == "gfx90a":
        rate = rate / 2
    work = replace(
        _work(geometry, rate, known),
        start=known["gather_start"],
        step=known["gather_step"],
        loads=(
            known["dense"],
            np.where(geometry.pointwise & ~geometry.strided, known["dense"], 1.0),
        ),
        splits=geometry.direction == "weights",
    )
    return tiled(work, _tiles(geometry), chip, known)


def _nhwc(geometry: Geometry, chip: Chip, known: Coefficients) -> Timing:
    rate = multiply_rate(chip, geometry.dtype) * known["nhwc_rate"]
    work = replace(
        _work(geometry, rate, known),
        start=known["nhwc_start"],
        loads=(known["dense"], known["dense"]),
        splits=True,
    )
    timing = tiled(work, _tiles(geometry), chip, known)
    if geometry.layout == "nhwc":
        return timing
    bytes_ = 2.0 * (geometry.input_bytes + geometry.output_bytes + geometry.filter_bytes)
    moving = bytes_ / (chip.hbm_peak * known["transpose"]) + known["transpose_launch"]
    return plus(timing, "transpose", moving)


def _vector(geometry: Geometry, chip: Chip, known: Coefficients) -> Timing:
    rate = vector_rate(geometry.dtype) * known["vector_rate"]
    work = replace(
        _work(geometry, rate, known),
        start=known["vector_start"],
        step=known["vector_step"],
        loads=(known["dense"], 1.0),
        edge=0.0,
    )
    return tiled(work, _tiles(geometry), chip, known)


def _work(geometry: Geometry, rate: float, known: Coefficients) -> Work:
    m, n, k, count = geometry.product()
    moved = geometry.input_bytes + geometry.output_bytes + geometry.filter_bytes
    return Work(
        m,
        n,
        k,
        count * geometry.groups,
        geometry.element,
        rate,
        moved + known["scatter"] * geometry.scattered_bytes,
        geometry.result_bytes,
        edge=known["edge"],
    )


def _tiles(geometry: Geometry) -> Tiles:
    return _SPLIT if geometry.direction == "weights" else _WHOLE


__all__ = ["applies", "implicit_gemm", "ways"]
