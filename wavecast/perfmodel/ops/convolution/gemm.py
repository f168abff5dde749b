"""Convolution by a BLAS library's GEMM, with the kernels that rearrange images around it.

Pointwise forward and data gradient: one strided-batched GEMM over images. With a stride of two:
a transpose to CNHW, one GEMM, a transpose back. Everything else goes image by image: im2col, then
GEMM (forward, weights), or GEMM, then col2im (data); pointwise weight gradients need no im2col.
The kernels of that loop are queued one behind another, each with its own start, so that the
library's share of a call shows only once and partly. Grouped pointwise problems are left to other
algorithms: a GEMM per image and group takes seconds (find-db).
(MIOpen, src/solver/conv/gemm*.cpp.)
"""

from __future__ import annotations

import numpy as np

from wavecast.arch import Device
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.ops.convolution.geometry import Array, ConvolutionBatch
from wavecast.perfmodel.ops.convolution.timing import (
    Coefficients,
    Tiles,
    TileWork,
    Timing,
    best_tile_time,
    plus,
)
from wavecast.perfmodel.ops.convolution.units import has_matrix, multiply_rate

_SIDES = (16, 32, 64, 128, 256)
_TILES = Tiles.grid(_SIDES, _SIDES, (1, 4, 16), 512, 32768)


def applies(geometry: ConvolutionBatch, device: Device) -> bool:  # noqa: ARG001
    """NCHW of every rank, every dtype of 16 bits and more, on every chip."""
    return geometry.layout == "nchw" and geometry.element > 1


def gemm(geometry: ConvolutionBatch, chip: Chip, constants: Coefficients) -> Timing:
    """The time of the loop over images, or of the one batched GEMM."""
    forward, weights = geometry.direction == "forward", geometry.direction == "weights"
    lowered = geometry.c * geometry.taps
    whole = (geometry.pointwise & ~geometry.strided & (geometry.groups == 1)) & (not weights)
    moved_steps = (
        geometry.pointwise
        & (geometry.step_rows == 2)
        & (geometry.step_columns == 2)
        & (not weights and geometry.rank == 2)
    )
    loops = np.where(whole | moved_steps, 1.0, geometry.n)
    m = lowered if geometry.direction == "data" else geometry.k
    n = lowered if weights else np.where(moved_steps, geometry.n, 1.0) * geometry.outputs
    k = lowered if forward else geometry.outputs if weights else geometry.k
    batch = np.where(whole, geometry.n, geometry.groups)
    product = TileWork(
        m,
        n,
        k,
        batch,
        geometry.element,
        multiply_rate(chip, geometry.dtype) * constants["gemm_rate"],
        (m * k + n * k + m * n * (2.0 if weights else 1.0)) * batch * geometry.element,
        m * n * batch * geometry.element,
        start=constants["gemm_start"],
        loads=(constants["dense"], constants["dense"]),
        splits=True,
        edge=constants["edge"],
        dtype=geometry.dtype if has_matrix(chip.device) else "",
    )
    iteration = best_tile_time(product, _TILES, chip, constants)
    repeated = Timing(
        iteration.seconds * loops[:, 0],
        {name: part * loops[:, 0] for name, part in iteration.parts.items()},
        iteration.choice,
    )
    rearranged = _rearranging(geometry, chip, constants, moved_steps, loops)
    timing = plus(
        plus(repeated, "rearrange", rearranged),
        "launch",
        np.where(loops > 1.0, constants["gemm_loop"], constants["gemm_launch"]),
    )
    unused = (geometry.groups > 1) & geometry.pointwise & ~geometry.strided
    return Timing(np.where(unused[:, 0], np.inf, timing.seconds), timing.parts, timing.choice)


def _rearranging(
    geometry: ConvolutionBatch,
    chip: Chip,
    constants: Coefficients,
    moved_steps: Array,
    loops: Array,
) -> Array:
    """Seconds of im2col or col2im of every image, or of the transposes around a strided GEMM."""
    bandwidth = chip.hbm * constants["memory"]
    element = geometry.element * geometry.groups
    image = geometry.c * geometry.pixels * element
    column = geometry.c * geometry.taps * geometry.outputs * element
    lowering = (image + column * constants["column_traffic"]) / bandwidth + constants[
        "column_launch"
    ]
    passes = constants["scatter"] if geometry.direction == "data" else 1.0
    strided = passes * geometry.input_bytes + geometry.n * column + 2.0 * geometry.output_bytes
    transposes = strided / (chip.hbm * constants["transpose"]) + constants["transpose_launch"]
    none = geometry.pointwise & ~geometry.strided
    return np.where(moved_steps, transposes, np.where(none, 0.0, loops * lowering))


__all__ = ["applies", "gemm"]
