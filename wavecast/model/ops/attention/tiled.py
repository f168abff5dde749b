"""Time of a fused tile kernel, forward or backward.

Of every score a workgroup computes, its CU spends

    matrix = FLOP / matrix rate          and
    vector = 1 / exponentials per clock + vector_<kernel> / lanes

clocks one after the other: the scores of a tile are needed before their exponentials, those before
the second product, and what the waves of a CU hide of each other is in `vector_<kernel>`. The bytes
of a workgroup's own rows (queries and outputs; keys, values and their gradients) move while it
computes nothing, shared by the workgroups that are resident. Memory bounds everything that moves.
Forward is one product each with head and head_v elements per score; backward five: Q·Kᵀ again,
dO·Vᵀ, dV = Pᵀ·dO, dK = dSᵀ·Q, dQ = dS·K.
"""

from __future__ import annotations

import math

import numpy as np

from wavecast.model.ops.attention.libraries import Library, Tile
from wavecast.model.ops.attention.machine import AttentionRates, TimeBreakdown
from wavecast.model.ops.attention.sizes import AttentionSizes

_FP32 = 4.0


def tiled(
    sizes: AttentionSizes,
    *,
    machine: AttentionRates,
    kernel: Tile,
    library: Library,
    backward: bool,
    eager: bool,
) -> TimeBreakdown:
    """The time of `sizes` in one kernel, `eager` with the call of the library on an idle GPU.

    Raises MissingFact for a dtype the chip does not have.
    """
    k, chip = machine.k, machine.chip
    direction = "backward" if backward else "forward"
    workgroups, busiest = _scores(sizes, kernel, chip.units, chip.dies, backward=backward)
    grain = kernel.grain
    head, head_v = (math.ceil(n / grain) * grain for n in (sizes.head, sizes.head_v))
    matrix = _flops(head, head_v, backward=backward) / chip.matrix_rate(sizes.dtype)
    operations = k[f"vector_{kernel.name}_{direction}"]
    vector = machine.vector_clocks(operations)
    working = machine.vector_clocks(min(operations, k["vector_work"]))
    clocks = matrix + vector
    busy = min(1.0, workgroups / chip.units)
    clock = float(machine.clock(sizes.dtype, matrix / clocks, working / clocks, busy))
    latencies = k[f"latencies_{direction}"] * chip.latency["hbm"] / kernel.resident
    exposed, others, moved = _bytes(sizes, kernel, backward=backward)
    parts = {
        "matrix": busiest * matrix / clock,
        "vector": busiest * vector / clock,
        "latency": math.ceil(workgroups / chip.units) * latencies,
        "own rows": exposed / kernel.resident / chip.hbm,
    }
    fused, memory = sum(parts.values()), moved / chip.hbm
    p = k["overlap"]
    main = (fused**p + memory**p) ** (1 / p)
    parts |= {
        "memory": memory,
        "other kernels": others / chip.hbm + (2 * chip.launch if backward else 0.0),
        "call": k[f"call_{library.caller}_{direction}"] * k["host"] if eager else chip.launch,
    }
    useful = sizes.scores * _flops(sizes.head, sizes.head_v, backward=backward)
    useful /= chip.matrix_rate(sizes.dtype) * chip.units * clock
    shares = {
        "useful products": useful,
        "padding, mask edges, uneven rounds": parts["matrix"] - useful,
        **{name: parts[name] for name in ("vector", "latency", "own rows")},
        "memory": main - fused,
        **{name: parts[name] for name in ("other kernels", "call")},
    }
    assumed = {
        "library": library.name,
        "kernel": kernel.name,
        "tile": (kernel.rows, kernel.columns),
        "workgroups": workgroups,
        "clock_mhz": round(clock / 1e6),
    }
    return TimeBreakdown(sum(shares.values()), parts, shares, assumed)


def _flops(head: int, head_v: int, *, backward: bool) -> float:
    """Per score."""
    return 2.0 * ((3 * head + 2 * head_v) if backward else (head + head_v))


def _scores(
    sizes: AttentionSizes, kernel: Tile, units: int, dies: int, *, backward: bool
) -> tuple[int, float]:
    """Workgroups, and scores of the CU that computes most, padding included."""
    workgroups, scores, longest, even = 0, 0.0, 0.0, True
    for queries, keys, count in sizes.lengths:
        tiles = math.ceil((keys if backward else queries) / kernel.rows)
        widths = _widths(queries, keys, tiles, kernel, sizes.causal, backward=backward)
        if kernel.lockstep and sizes.causal:
            widths = _rounds(widths, units // dies)
        widths = np.maximum(widths, 1.0) * kernel.columns * kernel.rows
        workgroups += tiles * sizes.heads * count
        scores += float(widths.sum()) * sizes.heads * count
        longest = max(longest, float(widths.max()))
        even = even and not sizes.causal
    if even and len(sizes.lengths) == 1:
        return workgroups, math.ceil(workgroups / units) * longest
    return workgroups, max(longest, scores / units)


def _widths(
    queries: int, keys: int, tiles: int, kernel: Tile, causal: bool, *, backward: bool
) -> np.ndarray:
    """Columns each tile of a head walks, in tiles of columns."""
    other = queries if backward else keys
    if not causal:
        return np.full(tiles, math.ceil(other / kernel.columns), float)
    number = np.arange(tiles)
    if backward:
        first = np.maximum(0, number * kernel.rows - (keys - queries))
        seen = queries - first // kernel.mask * kernel.mask
    else:
        last = np.clip((number + 1) * kernel.rows + keys - queries, 0, keys)
        seen = np.minimum(keys, np.ceil(last / kernel.mask) * kernel.mask)
    return np.ceil(np.maximum(seen, 0) / kernel.columns)


def _rounds(widths: np.ndarray, slots: int) -> np.ndarray:
    """Every tile as long as the longest of its round of `slots`."""
    starts = np.arange(0, len(widths), slots)
    return np.repeat(np.maximum.reduceat(widths, starts), slots)[: len(widths)]


def _bytes(sizes: AttentionSizes, kernel: Tile, *, backward: bool) -> tuple[float, float, float]:
    """Bytes a workgroup waits for, those of kernels before and after, and all of the main one.

    Gradients of queries that several workgroups add to are in single precision until the end.
    """
    query, out, kv = sizes.query_bytes, sizes.output_bytes, sizes.kv_bytes
    if not backward:
        return query + out, 0.0, query + out + kv
    if sizes.longest[1] <= kernel.rows:
        return 2 * kv, 2 * out, 2 * query + out + 2 * kv
    gradient = _FP32 * sizes.queries * sizes.heads * sizes.head
    return 2 * kv, 2 * out + 2 * gradient + query, query + out + 2 * kv + gradient


__all__ = ["tiled"]
