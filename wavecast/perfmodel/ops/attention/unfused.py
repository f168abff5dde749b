"""Time of attention as separate kernels that write the scores to memory.

Forward: product, softmax, product; backward: five products and the gradient of the softmax. Every
kernel reads and writes the scores; products pad them to matrix tiles, one workgroup at least per
head and sequence. Tensors are copied into and out of the order of heads products need. With one
query per sequence the products are sums the compiler fuses into few kernels and half the copies.
`widened`: inputs of 16 bits become fp32 first, and so do all products; queries and keys are scaled
by separate kernels (PyTorch's math backend).
"""

from __future__ import annotations

import math

from wavecast.errors import MissingFact
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.ops.attention.machine import AttentionRates, TimeBreakdown
from wavecast.perfmodel.ops.attention.sizes import BITS, AttentionSizes

_TILE = 16
_FP32 = 4.0
_HALF = 16
_WIDENING = 6
"""Kernels that convert queries, keys, values and the output, and scale queries and keys."""


def unfused_time(
    sizes: AttentionSizes,
    *,
    machine: AttentionRates,
    library: str,
    backward: bool,
    eager: bool,
    widened: bool,
) -> TimeBreakdown:
    """The time of all kernels in a row, `eager` with the calls of a program on an idle GPU. Raises
    MissingFact for a dtype the chip does not have."""
    k, chip = machine.k, machine.chip
    direction = "backward" if backward else "forward"
    products, softmaxes = (5, 2) if backward else (2, 1)
    padded = tiles = 0.0
    for queries, keys, count in sizes.lengths:
        rows, columns = math.ceil(queries / _TILE), math.ceil(keys / _TILE)
        padded += sizes.heads * count * rows * columns * _TILE**2
        tiles += sizes.heads * count * math.ceil(rows / 8) * math.ceil(columns / 8)
    flops = 2.0 * padded * (sizes.head + sizes.head_v) / 2 * products
    widened = widened and BITS[sizes.dtype] == _HALF
    dtype = "fp32" if widened else sizes.dtype
    rate, clock = _products(machine, chip, dtype)
    inputs = sizes.query_bytes + sizes.output_bytes + sizes.heads / sizes.kv_heads * sizes.kv_bytes
    scores = sum(count * q * s for q, s, count in sizes.lengths) * sizes.heads * _FP32
    single = sizes.longest[0] == 1
    copies = inputs * (softmaxes if single else 2)
    conversions = 0.0
    if widened:
        inputs *= BITS["fp32"] / _HALF
        conversions = 3 * inputs
    bytes_moved = products * inputs / 2 + copies + (products + 2 * softmaxes) * scores + conversions
    workgroups = products * tiles / chip.units
    kernels = (1 if single else products + softmaxes) + (_WIDENING if widened else 0)
    parts = {
        "matrix": flops / rate / chip.units / clock,
        "memory": bytes_moved / chip.hbm,
        "workgroups": 0.0 if single else workgroups * k["unfused_workgroup"],
        "call": kernels * (k["unfused_launch"] if eager else chip.launch),
    }
    assumed = {"library": library, "kernel": f"{products} products, softmax", "tile": _TILE}
    return TimeBreakdown(sum(parts.values()), parts, parts, {**assumed, "direction": direction})


def _products(machine: AttentionRates, chip: Chip, dtype: str) -> tuple[float, float]:
    """FLOP per clock and CU of products, and the clock in Hz; of fp32 on a chip whose matrix
    instructions have none, those of its lanes."""
    try:
        return chip.matrix_rate(dtype), float(machine.clock(dtype, 1.0, 0.0))
    except MissingFact:
        if dtype != "fp32":
            raise
        return chip.vector_flops, chip.clock


__all__ = ["unfused_time"]
