"""Implicit GEMM: one kernel that forms the operands of the matrix product as it loads them.

There are three families of kernels. `gather` reads NCHW directly, element by element if the filter
has taps; `nhwc` reads whole channel vectors, and problems in NCHW are transposed before and after;
`vector` uses no matrix instructions. `library.toml` has the families of a target and dtype.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from wavecast.arch import Device
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.ops.convolution.geometry import Array, ConvolutionBatch
from wavecast.perfmodel.ops.convolution.library import library_kernels
from wavecast.perfmodel.ops.convolution.timing import (
    Coefficients,
    Tiles,
    TileWork,
    Timing,
    best_tile_time,
    fastest,
    plus,
)
from wavecast.perfmodel.ops.convolution.units import has_matrix, multiply_rate, vector_rate

_SIDES = (16, 32, 64, 128, 256)
_WHOLE = Tiles.grid(_SIDES, _SIDES, (1, 2, 4, 8), 1024, 32768)
_SPLIT = Tiles.grid(_SIDES, _SIDES, (1, 2, 4, 8, 16, 32, 64), 1024, 32768)


def families(geometry: ConvolutionBatch, device: Device) -> dict[str, Array]:
    """The families that apply, with a mask over problems, shape (problems, 1).

    Raises MissingFact for a matrix dtype the chip does not have.
    """
    plain, anything = geometry.groups == 1, geometry.groups > 0
    nchw, images = geometry.layout == "nchw", geometry.rank == 2
    backward = geometry.direction != "forward"
    if geometry.dtype == "int8" and backward:
        return {}
    kernels = library_kernels(device.target)
    if not has_matrix(device):
        if not kernels.static_solvers:
            return {}
        valid = geometry.dtype == "fp32" or geometry.direction != "data"
        return {"vector": plain} if nchw and valid and geometry.element > 1 else {}
    bf16 = geometry.dtype == "bf16"
    masks = {}
    if kernels.grouped_nhwc:
        masks["nhwc"] = anything
    elif images and (kernels.nhwc_bf16 or not bf16):
        masks["nhwc"] = plain
    if not kernels.static_solvers:
        return masks
    bf16_data = bf16 and geometry.direction == "data"
    if nchw and images and (kernels.gather_bf16_data or not bf16_data):
        masks["gather"] = anything
    if nchw and not images and geometry.dtype == "fp32":
        masks["vector"] = plain
    return masks


def applies(geometry: ConvolutionBatch, device: Device) -> bool:
    """Whether the chip has any family for such problems."""
    return bool(families(geometry, device))


def implicit_gemm(geometry: ConvolutionBatch, chip: Chip, constants: Coefficients) -> Timing:
    """The time of the fastest family; infinite where none applies."""
    timings = []
    times = {"gather": _gather, "nhwc": _nhwc, "vector": _vector}
    for family, mask in families(geometry, chip.device).items():
        timing = times[family](geometry, chip, constants)
        seconds = np.where(mask[:, 0], timing.seconds, np.inf)
        timings.append(Timing(seconds, timing.parts, timing.choice))
    return plus(fastest(timings), "launch", constants["launch"])


def _gather(geometry: ConvolutionBatch, chip: Chip, constants: Coefficients) -> Timing:
    rate = multiply_rate(chip, geometry.dtype) * constants["gather_rate"]
    if geometry.dtype == "bf16":
        rate = rate * library_kernels(chip.device.target).gather_bf16_rate
    work = replace(
        _work(geometry, rate, chip.device, constants),
        start=constants["gather_start"],
        step=constants["gather_step"],
        loads=(
            constants["dense"],
            np.where(geometry.pointwise & ~geometry.strided, constants["dense"], 1.0),
        ),
        splits=geometry.direction == "weights",
    )
    return best_tile_time(work, _tiles(geometry), chip, constants)


def _nhwc(geometry: ConvolutionBatch, chip: Chip, constants: Coefficients) -> Timing:
    rate = multiply_rate(chip, geometry.dtype) * constants["nhwc_rate"]
    work = replace(
        _work(geometry, rate, chip.device, constants),
        start=constants["nhwc_start"],
        loads=(constants["dense"], constants["dense"]),
        splits=True,
    )
    timing = best_tile_time(work, _tiles(geometry), chip, constants)
    if geometry.layout == "nhwc":
        return timing
    bytes_ = 2.0 * (geometry.input_bytes + geometry.output_bytes + geometry.filter_bytes)
    moving = bytes_ / (chip.hbm * constants["transpose"]) + constants["transpose_launch"]
    return plus(timing, "transpose", moving)


def _vector(geometry: ConvolutionBatch, chip: Chip, constants: Coefficients) -> Timing:
    rate = vector_rate(geometry.dtype) * constants["vector_rate"]
    work = replace(
        _work(geometry, rate, chip.device, constants),
        start=constants["vector_start"],
        step=constants["vector_step"],
        loads=(constants["dense"], 1.0),
        edge=0.0,
        dtype="",
    )
    return best_tile_time(work, _tiles(geometry), chip, constants)


def _work(
    geometry: ConvolutionBatch, rate: float, device: Device, constants: Coefficients
) -> TileWork:
    m, n, k, count = geometry.product()
    bytes_moved = geometry.input_bytes + geometry.output_bytes + geometry.filter_bytes
    return TileWork(
        m,
        n,
        k,
        count * geometry.groups,
        geometry.element,
        rate,
        bytes_moved + constants["scatter"] * geometry.scattered_bytes,
        geometry.result_bytes,
        edge=constants["edge"],
        dtype=geometry.dtype if has_matrix(device) else "",
    )


def _tiles(geometry: ConvolutionBatch) -> Tiles:
    return _SPLIT if geometry.direction == "weights" else _WHOLE


__all__ = ["applies", "families", "implicit_gemm"]
