"""Direct convolution on the vector units: tuned kernels, and the reference that does everything.

The tuned kernels hold a tile of outputs in registers and convert 16-bit operands to fp32, but
in weight gradients, where instructions that multiply pairs take them as they are. The
reference computes one output per thread: a workgroup of 256 threads for each image and channel
(forward, data) or each channel out (weights), whose threads take positions in turn and walk the
reduction one element at a time. With channels last a workgroup has a row of an image instead, and
threads next to each other have channels next to each other: good for what lies along them (the
gradient), bad for what does not (the filter in forward).
(MIOpen, src/kernels/gpu_reference_kernel.)
"""

from __future__ import annotations

import numpy as np

from wavecast.arch import Device
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.ops.convolution.geometry import ConvolutionBatch
from wavecast.perfmodel.ops.convolution.library import library_kernels
from wavecast.perfmodel.ops.convolution.timing import (
    Coefficients,
    Tiles,
    TileWork,
    Timing,
    best_tile_time,
    overlap_time,
    plus,
)
from wavecast.perfmodel.ops.convolution.units import vector_rate

_THREADS = 256.0
_RESIDENT = 8.0
_ROWS, _COLUMNS = (1, 2, 4, 8, 16, 32, 64), (16, 64, 256, 1024)
_DATA = Tiles.grid(_ROWS, _COLUMNS, (1,), 64, 8192)
_WEIGHTS = Tiles.grid(_ROWS, _COLUMNS, (1, 4, 16, 64), 64, 8192)


def applies(geometry: ConvolutionBatch, device: Device) -> bool:
    """Tuned kernels take NCHW images; the dtypes are those of the vector units."""
    if not library_kernels(device.target).static_solvers:
        return False
    return geometry.layout == "nchw" and geometry.rank == 2 and geometry.element > 1


def direct(geometry: ConvolutionBatch, chip: Chip, constants: Coefficients) -> Timing:
    """The time of the tuned kernels."""
    m, n, k, count = geometry.product()
    bytes_moved = geometry.input_bytes + geometry.output_bytes + geometry.filter_bytes
    converts = geometry.element < 4 and geometry.direction != "weights"
    work = TileWork(
        m,
        n,
        k,
        count * geometry.groups,
        geometry.element,
        vector_rate("fp32")
        * constants["direct_rate"]
        * (constants["direct_convert"] if converts else 1.0),
        bytes_moved + constants["scatter"] * geometry.scattered_bytes,
        geometry.result_bytes,
        splits=geometry.direction == "weights",
        step=constants["direct_step"],
        padded=False,
    )
    tiles = _WEIGHTS if geometry.direction == "weights" else _DATA
    return plus(best_tile_time(work, tiles, chip, constants), "launch", constants["launch"])


def anything(geometry: ConvolutionBatch, device: Device) -> bool:  # noqa: ARG001
    """The reference does every problem of 16 bits and more."""
    return geometry.element > 1


def naive(geometry: ConvolutionBatch, chip: Chip, constants: Coefficients) -> Timing:
    """The time of the reference kernels."""
    last = geometry.layout == "nhwc"
    rate = constants[f"naive_{geometry.direction}"]
    if geometry.direction == "forward":
        workgroups = geometry.n * geometry.k * geometry.groups
        positions, reduction = geometry.outputs, geometry.c * geometry.taps
        rows, width, channels = (
            geometry.outputs / geometry.out_width,
            geometry.out_width,
            geometry.k,
        )
        rate = rate * (constants["naive_last_forward"] if last else 1.0)
    elif geometry.direction == "data":
        workgroups = geometry.n * geometry.c * geometry.groups
        positions, reduction = geometry.pixels, geometry.k * geometry.taps
        rows, width, channels = geometry.pixels / geometry.width, geometry.width, geometry.c
        rate = rate * (constants["naive_last_data"] if last else 1.0)
    else:
        workgroups = geometry.k * geometry.groups
        positions, reduction = geometry.c * geometry.taps, geometry.n * geometry.outputs
        rows, width, channels = geometry.k / geometry.n, positions, 1.0
    if last:
        workgroups, positions = geometry.n * rows * geometry.groups, width * channels
    passes = np.ceil(positions / _THREADS) * reduction
    rounds = np.ceil(workgroups / chip.units)
    resident_rounds = np.ceil(workgroups / (chip.units * _RESIDENT))
    parts = {
        "vector": rounds * passes * _THREADS / (rate * chip.clock),
        "latency": resident_rounds * passes * constants["naive_step"],
        "memory": (geometry.input_bytes + geometry.output_bytes + geometry.filter_bytes)
        / (chip.hbm * constants["memory"]),
    }
    seconds = overlap_time(*parts.values())
    flat = {name: part[:, 0] for name, part in parts.items()}
    return plus(Timing(seconds[:, 0], flat, {}), "launch", constants["launch"])


__all__ = ["anything", "applies", "direct", "naive"]
