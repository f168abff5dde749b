"""Winograd convolution: F(m, r) computes m outputs of an r-tap filter with m + r - 1 products.

Two families: kernels that transform, multiply and transform back in registers, on the vector units
(F(2,3) and F(3,2) in both dimensions); and weight gradients of 3x3 filters in several passes
through memory, whose products run as a batched GEMM on the matrix units.
(Lavin, Gray: Fast algorithms for convolutional neural networks, CVPR 2016.)
"""

from __future__ import annotations

import numpy as np

from wavecast.arch import Device
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.ops.convolution.geometry import Array, ConvolutionBatch
from wavecast.perfmodel.ops.convolution.library import library_kernels
from wavecast.perfmodel.ops.convolution.timing import Coefficients, Timing, fastest, plus
from wavecast.perfmodel.ops.convolution.units import has_matrix, multiply_rate, vector_rate

_FORMS = ((2, 3), (3, 2))
_PASSES = (2, 3, 4, 5, 6)
_CHANNELS_OUT, _CHANNELS_IN = 16, 8
"""Channels a workgroup of the register kernels computes, and takes in at once."""


def applies(geometry: ConvolutionBatch, device: Device) -> bool:
    """NCHW images; fp32, and fp16 where the kernels of the dtype are made for the chip."""
    if geometry.layout != "nchw" or geometry.rank != 2 or device.vendor != "amd":
        return False
    if geometry.dtype == "fp32":
        return True
    if geometry.dtype == "fp16":
        return (
            geometry.direction == "forward"
            or library_kernels(device.target).winograd_fp16_gradients
        )
    return geometry.dtype == "bf16" and geometry.direction == "weights" and has_matrix(device)


def winograd(geometry: ConvolutionBatch, chip: Chip, constants: Coefficients) -> Timing:
    """The time of the faster family; infinite where neither applies."""
    timings = []
    if geometry.dtype != "bf16":
        timings.append(_registers(geometry, chip, constants))
    if geometry.direction == "weights" and has_matrix(chip.device):
        timings.append(_passes(geometry, chip, constants))
    return fastest(timings)


def _registers(geometry: ConvolutionBatch, chip: Chip, constants: Coefficients) -> Timing:
    products = np.min([_products(geometry, m, r) for m, r in _FORMS], axis=0)
    out, into = geometry.k, geometry.c
    if geometry.direction == "data":
        out, into = into, out
    padded = np.ceil(out / _CHANNELS_OUT) * _CHANNELS_OUT
    padded = padded * np.ceil(into / _CHANNELS_IN) * _CHANNELS_IN
    share = constants["winograd_weights" if geometry.direction == "weights" else "winograd_rate"]
    rate = vector_rate(geometry.dtype) * share * chip.units * chip.clock
    bytes_ = geometry.input_bytes + geometry.output_bytes + geometry.filter_bytes
    parts = {
        "vector": 2.0 * products * padded * geometry.n * geometry.groups / rate,
        "memory": bytes_ / (chip.hbm * constants["memory"]),
    }
    seconds = np.where(geometry.dilated, np.inf, parts["vector"] + parts["memory"])
    flat = {name: part[:, 0] for name, part in parts.items()}
    return plus(Timing(seconds[:, 0], flat, {}), "launch", constants["winograd_launch"])


def _products(geometry: ConvolutionBatch, m: int, r: int) -> Array:
    """Products of one image, channel in and channel out.

    Steps split forward filters into phases of every second tap, data gradients into phases of
    every second pixel; weight gradients exchange the filter and the output image.
    """
    sizes = (
        (geometry.out_height, geometry.rows, geometry.height, geometry.step_rows),
        (geometry.out_width, geometry.columns, geometry.width, geometry.step_columns),
    )
    total = np.ones_like(geometry.n)
    for outputs, taps, pixels, step in sizes:
        count = np.minimum(step, 2.0)
        if geometry.direction == "forward":
            total = total * count * np.ceil(outputs / m) * np.ceil(np.ceil(taps / count) / r)
        elif geometry.direction == "data":
            total = total * count * np.ceil(pixels / count / m) * np.ceil(np.ceil(taps / count) / r)
        else:
            total = total * count * np.ceil(taps / count / m) * np.ceil(outputs / r)
    return total * (m + r - 1.0) ** 2


def _passes(geometry: ConvolutionBatch, chip: Chip, constants: Coefficients) -> Timing:
    """Transforms of both tensors to memory, products of every point of the transform, and back."""
    rate = multiply_rate(chip, geometry.dtype) * chip.units * chip.clock
    rate = rate * constants["passes_rate"]
    bandwidth = chip.hbm * constants["memory"]
    timings = []
    for m in _PASSES:
        points = np.ceil(geometry.out_height / m) * np.ceil(geometry.out_width / m) * (m + 2.0) ** 2
        matrix = 2.0 * points * geometry.n * geometry.c * geometry.k / rate
        tiles = points * geometry.n * (geometry.c + geometry.k)
        tiles = tiles + (m + 2.0) ** 2 * geometry.c * geometry.k
        bytes_moved = geometry.input_bytes + geometry.output_bytes + 2.0 * tiles * geometry.element
        parts = {"matrix": matrix[:, 0], "memory": (bytes_moved / bandwidth)[:, 0]}
        timings.append(
            Timing(
                parts["matrix"] + parts["memory"], parts, {"transform": bytes_moved[:, 0] * 0 + m}
            )
        )
    best = plus(fastest(timings), "launch", constants["passes_launch"])
    three = (geometry.rows == 3) & (geometry.columns == 3) & (geometry.groups == 1)
    return Timing(
        np.where((three & ~geometry.dilated)[:, 0], best.seconds, np.inf), best.parts, best.choice
    )


__all__ = ["applies", "winograd"]
