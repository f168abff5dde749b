"""Time of attention as separate kernels that write the scores to memory.

Forward: product, softmax, product; backward: five products and the gradient of the softmax. Every
kernel reads and writes the scores; products pad them to matrix tiles, one workgroup at least per
head and sequence. Tensors are copied into and out of the order of heads products need. With one
query per sequence the products are sums the compiler fuses into few kernels and half the copies.
"""

from __future__ import annotations

import math

from wavecast.perfmodel.ops.attention.machine import AttentionRates, TimeBreakdown
from wavecast.perfmodel.ops.attention.sizes import AttentionSizes

_TILE = 16
_FP32 = 4.0


def unfused_time(
    sizes: AttentionSizes, *, machine: AttentionRates, backward: bool
) -> TimeBreakdown:
    """The time of all kernels in a row. Raises MissingFact for a dtype the chip does not have."""
    k, chip = machine.k, machine.chip
    direction = "backward" if backward else "forward"
    products, softmaxes = (5, 2) if backward else (2, 1)
    padded = tiles = 0.0
    for queries, keys, count in sizes.lengths:
        rows, columns = math.ceil(queries / _TILE), math.ceil(keys / _TILE)
        padded += sizes.heads * count * rows * columns * _TILE**2
        tiles += sizes.heads * count * math.ceil(rows / 8) * math.ceil(columns / 8)
    flops = 2.0 * padded * (sizes.head + sizes.head_v) / 2 * products
    matrix = flops / chip.matrix_rate(sizes.dtype) / chip.units
    clock = float(machine.clock(sizes.dtype, 1.0, 0.0))
    inputs = sizes.query_bytes + sizes.output_bytes + sizes.heads / sizes.kv_heads * sizes.kv_bytes
    scores = sum(count * q * s for q, s, count in sizes.lengths) * sizes.heads * _FP32
    single = sizes.longest[0] == 1
    copies = inputs * (softmaxes if single else 2)
    bytes_moved = products * inputs / 2 + copies + (products + 2 * softmaxes) * scores
    workgroups = products * tiles / chip.units
    parts = {
        "matrix": matrix / clock,
        "memory": bytes_moved / chip.hbm,
        "workgroups": 0.0 if single else workgroups * k["unfused_workgroup"],
        "call": k["unfused_launch"] * (1 if single else products + softmaxes),
    }
    assumed = {"library": "unfused", "kernel": f"{products} products, softmax", "tile": _TILE}
    return TimeBreakdown(sum(parts.values()), parts, parts, {**assumed, "direction": direction})


__all__ = ["unfused_time"]
