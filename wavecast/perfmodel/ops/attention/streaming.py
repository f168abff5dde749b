"""Time of decoding: few queries per sequence, keys and values streamed, keys split over workgroups.

A workgroup takes up to `ROWS` rows (query heads that share a head of keys, times queries), one
sequence and one of `splits` parts of its keys. While n of them run, one needs for `tokens` keys

    ((start + tokens · token)^p + (n · bytes / bandwidth)^p)^(1/p)

where `token` combines, with the same exponent, what one workgroup streams by itself and what the
workgroups of a CU compute. They run in rounds of the CUs' slots; then a second kernel adds up the
parts, one after the other. Rows of keys and values move in whole cache lines.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wavecast.perfmodel.ops.attention.machine import AttentionRates, TimeBreakdown
from wavecast.perfmodel.ops.attention.sizes import BITS, AttentionSizes

Array = np.ndarray[Any, Any]

ROWS = 128
"""Rows of a workgroup at most."""
_GRAIN = 16
"""Rows a matrix instruction takes at least."""
SPLITS = np.arange(1, 65)
LATENT_SPLITS = np.array([*range(1, 17), 24, 32, 48, 64, 96, 128, 192, 256])
"""Numbers of parts tried where none is given. Latent decoding takes as many as there are CUs in
AITER (max_split_per_batch of get_mla_metadata_v1, vllm/v1/attention/backends/mla/rocm_aiter_mla.py
of vLLM 0.33.0), FlashMLA and TensorRT-LLM; AITER without a schedule takes 16 (aiter/mla.py)."""
_RESIDENT = 3
"""Workgroups on a CU where a token is not as wide as a latent one, which fills the LDS."""
_FP32 = 4.0


@dataclass(frozen=True, slots=True)
class _Grid:
    """Workgroups of one length: `rows` each (padded), `row_tiles` for each of `heads`, `chunk` keys
    per part, `parts` that have keys and `asked` all of them. Arrays are over numbers of splits."""

    rows: int
    row_tiles: int
    keys: int
    sequences: int
    heads: int
    chunk: Array
    parts: Array
    asked: Array


def streaming(
    sizes: AttentionSizes,
    *,
    machine: AttentionRates,
    library: str,
    splits: int,
) -> TimeBreakdown:
    """The time over the best number of splits, or `splits`.

    Raises MissingFact for a dtype the chip does not have.
    """
    k, chip = machine.k, machine.chip
    candidates = LATENT_SPLITS if sizes.latent else SPLITS
    split_counts = np.array([splits]) if splits else candidates
    grid = _grid(sizes, split_counts, int(k["split_tokens"]))
    bandwidth = chip.hbm * machine.coefficient("bandwidth", library, "split")
    slots = chip.units * (1 if sizes.latent else _RESIDENT)
    workgroups = grid.sequences * grid.heads * grid.row_tiles * grid.parts
    token = _token(sizes, machine, library, grid.rows, np.minimum(1.0, workgroups / chip.units))
    main = _rounds(workgroups, slots, chip.units, grid, sizes, token, bandwidth, k)
    partial = np.where(split_counts > 1, workgroups * grid.rows * sizes.head_v * _FP32, 0.0)
    combine = _combine(sizes, grid, chip.units, partial + sizes.output_bytes, bandwidth, k)
    idle = (
        (split_counts - grid.parts) * grid.sequences * grid.heads / chip.units * k["idle_workgroup"]
    )
    combine = np.where(split_counts > 1, combine, k["combine_kernel"])
    seconds = k["call_decode"] + main + combine + idle
    best = int(np.argmin(seconds))
    rounds = float(workgroups[best]) / chip.units
    tokens = float(grid.chunk[best])
    parts = {
        "stream": max(1.0, rounds * chip.units / slots) * tokens * token.stream,
        "matrix": max(1.0, rounds) * tokens * float(token.matrix[best]),
        "vector": max(1.0, rounds) * tokens * float(token.vector[best]),
        "memory": float(workgroups[best]) * tokens * token.bytes / bandwidth,
        "combine": float(combine[best]),
        "call": k["call_decode"],
    }
    assumed = {
        "library": library,
        "kernel": "split keys",
        "splits": int(split_counts[best]),
        "workgroups": int(workgroups[best]),
    }
    starts = float(np.ceil(workgroups[best] / slots)) * k["start_workgroup"]
    shares = {
        "start of workgroups": starts,
        "keys and values": float(main[best]) - starts,
        "workgroups without keys": float(idle[best]),
        "combine": parts["combine"],
        "call": parts["call"],
    }
    return TimeBreakdown(float(seconds[best]), parts, shares, assumed)


def _grid(sizes: AttentionSizes, split_counts: Array, least: int) -> _Grid:
    """Parts of at least `least` tokens. Sequences of several lengths count with their mean, of
    which workgroups that finish early leave the slots to others."""
    queries, _ = sizes.longest
    rows = sizes.group * queries
    row_tiles = math.ceil(rows / ROWS)
    padded = math.ceil(math.ceil(rows / row_tiles) / _GRAIN) * _GRAIN
    keys = max(1, round(sizes.keys / sizes.batch))
    chunk = np.maximum(np.ceil(keys / split_counts), least)
    parts = np.ceil(keys / chunk)
    chunk = np.ceil(np.minimum(chunk, keys) / _GRAIN) * _GRAIN
    chunk = np.maximum(chunk, least)
    return _Grid(padded, row_tiles, keys, sizes.batch, sizes.kv_heads, chunk, parts, split_counts)


@dataclass(frozen=True, slots=True)
class _Token:
    """Seconds per token and workgroup: streamed, and computed by a CU; bytes that move."""

    stream: float
    matrix: Array
    vector: Array
    bytes: float


def _token(
    sizes: AttentionSizes,
    machine: AttentionRates,
    library: str,
    rows: int,
    busy: Array,
) -> _Token:
    """Of workgroups on the share `busy` of the CUs, which compute while they stream; `fetched` are
    bytes from memory, those of a token less what caches have."""
    chip = machine.chip
    stream = sizes.token_lines / machine.coefficient("stream", library, "split")
    matrix = rows * 2.0 * (sizes.head + sizes.head_v) / chip.matrix_rate(sizes.dtype)
    vector = rows * machine.vector_clocks(machine.k["vector_decode"])
    all_of_it = matrix + vector + stream * chip.clock
    clock = machine.clock(sizes.dtype, matrix / all_of_it, vector / all_of_it, busy)
    clock = np.broadcast_to(np.asarray(clock, float), busy.shape)
    return _Token(stream, matrix / clock, vector / clock, sizes.token_lines)


def _rounds(
    workgroups: Array,
    slots: int,
    units: int,
    grid: _Grid,
    sizes: AttentionSizes,
    token: _Token,
    bandwidth: float,
    k: Mapping[str, float],
) -> Array:
    """Seconds of all rounds: full ones, and one of the workgroups that are left."""
    p = k["overlap_decode"]
    element = BITS[sizes.dtype] / 8
    row_bytes = grid.rows * (sizes.head * element + sizes.head_v * _FP32) * k["own_traffic"]
    workgroup_bytes = grid.chunk * token.bytes + row_bytes

    def round_of(number: Array | float) -> Array:
        computed = np.ceil(np.asarray(number) / units) * (token.matrix + token.vector)
        alone = k["start_workgroup"] + grid.chunk * (token.stream**p + computed**p) ** (1 / p)
        return (alone**p + (number * workgroup_bytes / bandwidth) ** p) ** (1 / p)

    full, remainder = np.divmod(workgroups, slots)
    return full * round_of(float(slots)) + np.where(remainder > 0, round_of(remainder), 0.0)


def _combine(
    sizes: AttentionSizes,
    grid: _Grid,
    units: int,
    traffic: Array,
    bandwidth: float,
    k: Mapping[str, float],
) -> Array:
    """The second kernel: a wave per head and query walks the parts."""
    rounds = np.ceil(sizes.queries * sizes.heads / units / _COMBINE_RESIDENT)
    walk = np.maximum(k["combine_kernel"], rounds * grid.parts * k["combine_part"])
    return walk + traffic / bandwidth


_COMBINE_RESIDENT = 16
"""Workgroups of the second kernel a CU holds at once (guessed: 2 waves per SIMD, 2 waves each)."""

__all__ = ["LATENT_SPLITS", "SPLITS", "streaming"]
