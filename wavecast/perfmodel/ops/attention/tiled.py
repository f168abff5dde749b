"""Time of a fused tile kernel, forward or backward.

Of every score a workgroup computes, its CU spends clocks for

    matrix = FLOP / matrix rate, or LDS bytes / LDS rate where those are more
    vector = exponentials / exponentials per clock + operations / lanes

one after the other: the scores of a tile are needed before their exponentials, those before the
second product. `operations` are what the waves of a CU do not hide of each other: fitted to kernels
that were measured, else those of the schedule (`libraries.toml`). Under the asynchronous schedule
products run while the waves compute, and only the longer of both counts. Kernels whose waves are
stated queue for the pipes instead (`queue`): the waves that share a SIMD overlap by chance, and
one that is alone waits for everything. The bytes of a workgroup's own rows (queries and outputs;
keys, values and their gradients) move while it computes nothing, shared by the workgroups that are
resident. Memory bounds everything that moves.
Forward is one product each with head and head_v elements per score; backward five: Q·Kᵀ again,
dO·Vᵀ, dV = Pᵀ·dO, dK = dSᵀ·Q, dQ = dS·K; or seven where a separate kernel computes dQ: it
computes the first two again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.ops.attention.libraries import Library, Tile
from wavecast.perfmodel.ops.attention.machine import AttentionRates, TimeBreakdown
from wavecast.perfmodel.ops.attention.queue import LoopOfTile, clocks_per_score
from wavecast.perfmodel.ops.attention.sizes import BITS, AttentionSizes

_FP32 = 4.0
ASSUMED = "tiles and waves"
"""What a breakdown assumes of a kernel whose `libraries.toml` row nobody published."""
_MASK_OPERATIONS = 2.0
"""Lane operations per score to convert and add an element of a mask that is a tensor."""
_L2_BYTES = 64.0
"""Per clock and CU: the width of the path from the L2 of CDNA and RDNA (white papers)."""


def tiled_time(
    sizes: AttentionSizes,
    *,
    machine: AttentionRates,
    kernel: Tile,
    library: Library,
    backward: bool,
    eager: bool,
) -> TimeBreakdown:
    """The time of `sizes` in one kernel, `eager` with the call of the library on an idle GPU; no
    faster than products were measured on the chip.

    Raises MissingFact for a dtype the chip does not have.
    """
    k, chip = machine.k, machine.chip
    direction = "backward" if backward else "forward"
    tiles = _scores(sizes, kernel, chip.units, chip.dies, backward=backward)
    shared = min(kernel.resident, math.ceil(tiles.workgroups / chip.units))
    score = _score(sizes, machine, kernel, tiles, shared, backward=backward)
    busy = min(1.0, tiles.workgroups / chip.units)
    clock = float(machine.clock(sizes.dtype, score.matrix_activity, score.vector_activity, busy))
    in_a_row = 0.0 if kernel.waves else k[f"latencies_{direction}"]
    in_a_row += kernel.counter and sizes.causal
    latencies = in_a_row * chip.latency["hbm"] / shared
    exposed, others, bytes_moved = _bytes(sizes, kernel, backward=backward)
    busiest, clocks = max(
        (tiles.busiest, score.clocks), (tiles.longest, score.alone), key=math.prod
    )
    setup = _setup(tiles.workgroups, kernel, chip.units)
    products = sizes.scores * _flops(sizes.head, sizes.head_v, 5 if backward else 2)
    measured = chip.device.sustained_flops(sizes.dtype)
    if measured is not None:
        clock = min(clock, (busiest * clocks + setup) * measured.number / products)
    parts = {
        "matrix": busiest * score.matrix / clock,
        "vector": (busiest * score.vector + setup) / clock,
        "latency": math.ceil(tiles.workgroups / chip.units) * latencies,
        "own rows": exposed / shared / chip.hbm,
    }
    if kernel.waves:
        parts |= {name: busiest * part / clock for name, part in score.others.items()}
    computing = (busiest * clocks + setup) / clock
    fused, memory = computing + parts["latency"] + parts["own rows"], bytes_moved / chip.hbm
    cache = _from_caches(tiles.scores, sizes, kernel, backward=backward) / _cache_bandwidth(chip)
    p = k["overlap"]
    main = (fused**p + memory**p + cache**p) ** (1 / p)
    call = machine.coefficient("call", library.caller, "python", direction) if eager else 0.0
    parts |= {
        "memory": memory,
        "other kernels": others / chip.hbm + (2 * chip.launch if backward else 0.0),
        "call": call * k["host"] if eager else chip.launch,
    }
    if cache:
        parts["L2"] = cache
    useful = products / (chip.matrix_rate(sizes.dtype) * chip.units * clock)
    useful = min(useful, parts["matrix"])
    vector = min(parts["vector"], computing - parts["matrix"])
    shares = {
        "useful products": useful,
        "padding, mask edges, uneven rounds, repeated products": parts["matrix"] - useful,
        "vector": vector,
        "latency": parts["latency"],
        "own rows": parts["own rows"],
        "memory": main - fused,
        **{name: parts[name] for name in ("other kernels", "call")},
    }
    if kernel.waves:
        shares["LDS and loads that no other wave hides"] = computing - parts["matrix"] - vector
    assumed: dict[str, object] = {
        "library": library.name,
        "kernel": kernel.kernel,
        "schedule": kernel.schedule,
        "tile": (kernel.rows, kernel.columns),
        "workgroups": tiles.workgroups,
        "clock_mhz": round(clock / 1e6),
    }
    if kernel.assumed:
        assumed[ASSUMED] = "assumed"
    return TimeBreakdown(sum(shares.values()), parts, shares, assumed)


@dataclass(frozen=True, slots=True)
class _Score:
    """Clocks of a CU per score: of its pipes (`others` than matrix and vector), in all with the
    workgroups that share it, and of a workgroup that has it `alone`; and the share of the clocks
    that draws power."""

    matrix: float
    vector: float
    clocks: float
    alone: float
    matrix_activity: float
    vector_activity: float
    others: Mapping[str, float]


def _score(
    sizes: AttentionSizes,
    machine: AttentionRates,
    kernel: Tile,
    tiles: _Tiles,
    shared: int,
    *,
    backward: bool,
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
    masks = kernel.mask_operations
    masks = masks and masks * _masked_share(sizes, kernel, backward=backward)
    extra_operations = masks * machine.lanes / machine.selects
    if sizes.dtype == "bf16" and not chip.device.capabilities.bf16_conversion:
        extra_operations += k["bf16_operations"] * (2 if backward else 1)
    if kernel.waves and not backward:
        operations += head_v / kernel.columns + (_MASK_OPERATIONS if kernel.mask_tensor else 0.0)
    concurrent = kernel.schedule == "asynchronous"
    exponentials *= k["exponentials_on_pipe"] if concurrent else 1.0
    vector = machine.vector_clocks(operations + extra_operations, exponentials)
    vector = max(0.0, vector - matrix) if concurrent else vector
    worked = k[f"vector_work_{direction}"] + extra_operations
    working = machine.vector_clocks(worked, exponentials)
    clocks = alone = matrix + vector
    others: dict[str, float] = {}
    if kernel.waves:
        steps = tiles.scores / tiles.workgroups / (kernel.rows * kernel.columns)
        loop = _loop(sizes, machine, kernel, steps, backward=backward)
        others = {"LDS": loop.lds, "waits": loop.waits}
        per_workgroup = kernel.waves / chip.simds
        stations = (matrix, vector, loop.lds)
        clocks = clocks_per_score(stations, loop.waits, per_workgroup * shared)
        alone = clocks_per_score(stations, loop.waits, per_workgroup)
    return _Score(matrix, vector, clocks, alone, full / clocks, min(1.0, working / clocks), others)


def _loop(
    sizes: AttentionSizes, machine: AttentionRates, kernel: Tile, steps: float, *, backward: bool
) -> LoopOfTile:
    """What a loop over tiles costs in addition to its two pipes, per score.

    Every product reads the tile that streams by from LDS, once per wave, which has a share of the
    workgroup's rows; the tiles are written there once. The waves wait for `loads` and `exchanges`
    through LDS in every step. On a chip of several dies a tile comes from the memory-side cache:
    the workgroups of a head reach it at the same time, and the first of every die misses its L2.
    Before the first step and after the last one they wait for memory `latencies_start` times.
    """
    k, chip = machine.k, machine.chip
    head, head_v = kernel.padded_elements(sizes)
    element = BITS[sizes.dtype] / 8
    products, kernels = (kernel.products, kernel.products - 5) if backward else (2, 1)
    read = _flops(head, head_v, products) / 2 * element / (kernel.rows / kernel.waves)
    written = max(1, kernels) * (head + head_v) * element / kernel.rows
    rate = chip.lds_rate * k["lds_compiled"]
    near = max(chip.latency["l2"], chip.latency["mall"]) if chip.dies > 1 else chip.latency["l2"]
    latency = (kernel.loads + kernel.mask_tensor) * near
    latency += (kernel.exchanges + kernel.mask_tensor) * 2 * chip.latency["lds"]
    latency += k["latencies_start"] * chip.latency["hbm"] * max(1, kernels) / steps
    masks = 2 * element if kernel.mask_tensor else 0.0
    scores = kernel.rows * kernel.columns * chip.simds / kernel.waves
    return LoopOfTile((read + written + masks) / rate, latency * chip.clock / scores)


def _from_caches(scores: float, sizes: AttentionSizes, kernel: Tile, *, backward: bool) -> float:
    """Bytes that workgroups fetch from the L2 for `scores`: of kernels whose waves are stated."""
    if not kernel.waves:
        return 0.0
    head, head_v = kernel.padded_elements(sizes)
    kernels = max(1, kernel.products - 5) if backward else 1
    streamed = kernels * (head + head_v) * BITS[sizes.kv_dtype] / 8 / kernel.rows
    masks = BITS[sizes.dtype] / 8 if kernel.mask_tensor else 0.0
    return scores * (streamed + masks)


def _cache_bandwidth(chip: Chip) -> float:
    """Bytes per second of the L2 (64 per clock and CU where nobody published it)."""
    return chip.l2_bandwidth or _L2_BYTES * chip.units * chip.clock


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


@dataclass(frozen=True, slots=True)
class _Tiles:
    """Workgroups, all their scores, those of the CU that computes most, and of the longest
    workgroup; padding included."""

    workgroups: int
    scores: float
    busiest: float
    longest: float


def _scores(
    sizes: AttentionSizes, kernel: Tile, units: int, dies: int, *, backward: bool
) -> _Tiles:
    """How the tiles of all sequences and heads fall on the CUs."""
    workgroups, scores, longest, widest = 0, 0.0, 0.0, 0.0
    for queries, keys, count in sizes.lengths:
        rows, other = (keys, queries) if backward else (queries, keys)
        tiles, step = math.ceil(rows / kernel.rows), kernel.columns * kernel.rows
        full = most = float(math.ceil(other / kernel.columns))
        total = tiles * full
        if sizes.causal:
            widths = _widths(queries, keys, tiles, kernel, sizes.causal, backward=backward)
            if kernel.lockstep:
                widths = _rounds(widths, units // dies)
            widths = np.maximum(widths, 1.0)
            total, most = float(widths.sum()), float(widths.max())
        workgroups += tiles * sizes.heads * count
        scores += total * step * sizes.heads * count
        longest, widest = max(longest, most * step), max(widest, full * step)
    unmasked = math.ceil(workgroups / units) * widest
    if not sizes.causal and len(sizes.lengths) == 1:
        return _Tiles(workgroups, scores, unmasked, longest)
    tail = _TAIL * longest * kernel.resident if kernel.ascending and sizes.causal else 0.0
    busiest = max(longest, min(unmasked, scores / units + tail))
    return _Tiles(workgroups, scores, busiest, longest)


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
        last = np.maximum((number + 1) * kernel.rows + keys - queries, 0)
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


__all__ = ["ASSUMED", "tiled_time"]
