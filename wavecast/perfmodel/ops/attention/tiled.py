"""Time of a fused tile kernel, forward or backward.

Of every score a workgroup computes, its CU spends clocks for

    matrix = FLOP / matrix rate, or LDS bytes / LDS rate where those are more
    vector = exponentials / exponentials per clock + operations / lanes

one after the other: the scores of a tile are needed before their exponentials, those before the
second product. `operations` are what the waves of a CU do not hide of each other: fitted to kernels
that were measured, else those of the schedule (`libraries.toml`). Under the asynchronous schedule
products run while the waves compute, and only the longer of both counts. The bytes of a workgroup's
own rows (queries and outputs; keys, values and their gradients) move while it computes nothing,
shared by the workgroups that are resident. Memory bounds everything that moves.
Forward is one product each with head and head_v elements per score; backward five: Q·Kᵀ again,
dO·Vᵀ, dV = Pᵀ·dO, dK = dSᵀ·Q, dQ = dS·K; or seven where a separate kernel computes dQ: it
computes the first two again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wavecast.perfmodel.ops.attention.libraries import Library, Tile
from wavecast.perfmodel.ops.attention.machine import AttentionRates, TimeBreakdown
from wavecast.perfmodel.ops.attention.sizes import AttentionSizes

_FP32 = 4.0


def tiled_time(
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
    score = _score(sizes, machine, kernel, backward=backward)
    busy = min(1.0, workgroups / chip.units)
    clock = float(machine.clock(sizes.dtype, score.matrix_activity, score.vector_activity, busy))
    in_a_row = k[f"latencies_{direction}"] + (kernel.counter and sizes.causal)
    latencies = in_a_row * chip.latency["hbm"] / kernel.resident
    exposed, others, bytes_moved = _bytes(sizes, kernel, backward=backward)
    parts = {
        "matrix": busiest * score.matrix / clock,
        "vector": (busiest * score.vector + _setup(workgroups, kernel, chip.units)) / clock,
        "latency": math.ceil(workgroups / chip.units) * latencies,
        "own rows": exposed / kernel.resident / chip.hbm,
    }
    fused, memory = sum(parts.values()), bytes_moved / chip.hbm
    p = k["overlap"]
    main = (fused**p + memory**p) ** (1 / p)
    call = machine.coefficient("call", library.caller, "python", direction) if eager else 0.0
    parts |= {
        "memory": memory,
        "other kernels": others / chip.hbm + (2 * chip.launch if backward else 0.0),
        "call": call * k["host"] if eager else chip.launch,
    }
    useful = sizes.scores * _flops(sizes.head, sizes.head_v, 5 if backward else 2)
    useful /= chip.matrix_rate(sizes.dtype) * chip.units * clock
    useful = min(useful, parts["matrix"])
    shares = {
        "useful products": useful,
        "padding, mask edges, uneven rounds, repeated products": parts["matrix"] - useful,
        **{name: parts[name] for name in ("vector", "latency", "own rows")},
        "memory": main - fused,
        **{name: parts[name] for name in ("other kernels", "call")},
    }
    assumed = {
        "library": library.name,
        "kernel": kernel.kernel,
        "schedule": kernel.schedule,
        "tile": (kernel.rows, kernel.columns),
        "workgroups": workgroups,
        "clock_mhz": round(clock / 1e6),
    }
    return TimeBreakdown(sum(shares.values()), parts, shares, assumed)


@dataclass(frozen=True, slots=True)
class _Score:
    """Clocks of a CU per score, and the share of them that draws power."""

    matrix: float
    vector: float
    matrix_activity: float
    vector_activity: float


def _score(
    sizes: AttentionSizes, machine: AttentionRates, kernel: Tile, *, backward: bool
) -> _Score:
    k, chip = machine.k, machine.chip
    head, head_v = kernel.padded_elements(sizes)
    products = kernel.products if backward else 2
    full = _flops(head, head_v, products) / chip.matrix_rate(sizes.dtype)
    matrix = full / k["warp_matrix_rate"] if kernel.warp_level else full
    matrix = max(matrix, kernel.lds_bytes * (head + head_v) / 2 / chip.lds_rate)
    exponentials = 2.0 if products == _SPLIT else 1.0
    direction = "backward" if backward else "forward"
    operations = machine.coefficient("vector", kernel.kernel, kernel.schedule, direction)
    masks = kernel.mask_operations * _masked_share(sizes, kernel, backward=backward)
    extra_operations = masks * machine.lanes / machine.selects
    if sizes.dtype == "bf16" and not chip.device.capabilities.bf16_conversion:
        extra_operations += k["bf16_operations"] * (2 if backward else 1)
    concurrent = kernel.schedule == "asynchronous"
    exponentials *= k["exponentials_on_pipe"] if concurrent else 1.0
    vector = machine.vector_clocks(operations + extra_operations, exponentials)
    vector = max(0.0, vector - matrix) if concurrent else vector
    working = machine.vector_clocks(
        min(operations, k["vector_work"]) + extra_operations, exponentials
    )
    clocks = matrix + vector
    return _Score(matrix, vector, full / clocks, min(1.0, working / clocks))


def _setup(workgroups: int, kernel: Tile, units: int) -> float:
    """Clocks that the waves of a CU issue before and after their loops."""
    return kernel.setup_clocks * workgroups / units


_SPLIT = 7
"""Products of a backward pass with a separate kernel for dQ."""


_TAIL = 0.5
"""Of the longest tile: the CUs finish at any time while the last long tile runs. It takes so many
times as long as there are workgroups that share its CU."""


def _flops(head: int, head_v: int, products: int) -> float:
    """Per score, of a number of products: 2 forward, 5 or 7 backward."""
    of_head, of_value = {2: (1, 1), 5: (3, 2), _SPLIT: (4, 3)}[products]
    return 2.0 * (of_head * head + of_value * head_v)


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
    tail = _TAIL * longest * kernel.resident if kernel.ascending and sizes.causal else 0.0
    return workgroups, max(longest, scores / units + tail)


def _masked_share(sizes: AttentionSizes, kernel: Tile, *, backward: bool) -> float:
    """Share of the scores in tiles of columns that the diagonal or the end crosses."""
    masked = every = 0.0
    for queries, keys, count in sizes.lengths:
        rows, other = (keys, queries) if backward else (queries, keys)
        tiles = math.ceil(rows / kernel.rows)
        widths = _widths(queries, keys, tiles, kernel, sizes.causal, backward=backward)
        edge = math.ceil(kernel.rows / kernel.columns) if sizes.causal else 0
        edge += bool(other % kernel.columns or (sizes.causal and rows % kernel.rows))
        masked += count * float(np.minimum(widths, edge).sum())
        every += count * float(widths.sum())
    return masked / every if every else 0.0


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
        extent = queries - first // kernel.mask * kernel.mask
    else:
        last = np.clip((number + 1) * kernel.rows + keys - queries, 0, keys)
        extent = np.minimum(keys, np.ceil(last / kernel.mask) * kernel.mask)
    return np.ceil(np.maximum(extent, 0) / kernel.columns)


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


__all__ = ["tiled_time"]
