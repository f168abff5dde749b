"""The time of one tiled kernel, over problems and candidate tiles at once.

A workgroup computes a tile `bm x bn` of the result in steps of `depth` along K, which may be split
over workgroups. The unit that gets the most workgroups is busy for

    rounds · 2 · bm · bn · K · (1 + edge · (1/bm + 1/bn)) / rate

while it loads the elements of bm rows and bn columns for every K, and waits, once per round of the
workgroups that are resident together, for its start and end and for `step` seconds per step of K.
The launch takes

    launch + (matrix⁴ + address⁴ + memory⁴)^¼ + latency

as in `wavecast.perfmodel.solve`; the constants are those of the library's kernels
(`coefficients/convolution.toml`). The clock of kernels on matrix pipes is what the power limit
allows (`wavecast.perfmodel.power`): a compute unit that multiplies or addresses draws `power` of
what one with full matrix pipes draws.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.ops.convolution.geometry import Array
from wavecast.perfmodel.power import sustained_clock

Coefficients = Mapping[str, float]

STEP_BYTES = 64.0
"""Bytes of one row of an operand that a step of K covers: 16 fp32, 32 fp16."""


PACKED = 4.0
"""Elements of 8 bits that lie together and are loaded at once (MIOpen's packed channels)."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of every problem, the parts they are made of, and the configuration chosen.

    Arrays of shape (problems,). `choice` holds what describes the best candidate.
    """

    seconds: Array
    parts: Mapping[str, Array]
    choice: Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class Tiles:
    """Candidate tiles of a kernel family: rows of M, columns of N, ways K is split."""

    rows: Array
    columns: Array
    split: Array

    @staticmethod
    def grid(
        rows: tuple[int, ...],
        columns: tuple[int, ...],
        splits: tuple[int, ...],
        smallest: int,
        largest: int,
    ) -> Tiles:
        """All tiles whose area is within the limits, with every split."""
        tiles = [
            (m, n, s) for m, n, s in product(rows, columns, splits) if smallest <= m * n <= largest
        ]
        table = np.array(tiles, float).T
        return Tiles(*(row[None] for row in table))


@dataclass(frozen=True, slots=True)
class TileWork:
    """What a kernel does, for problems of shape (problems, 1).

    `batch` products of m x n x k. `rate` is FLOP per clock and CU a tile without edges reaches;
    `moved` bytes memory moves, `result` bytes of the result; `start` seconds of a workgroup besides
    its K, `step` those a step of K waits; `loads` what loading an element of each operand costs, 1
    alone and less in rows; `edge` extra matrix time of a tile, in rows; `splits` whether K may be
    split, `padded` whether it is taken in whole steps. `dtype` is that of matrix pipes, "" where
    the kernel uses none.
    """

    m: Array
    n: Array
    k: Array
    batch: Array
    element: int
    rate: Array | float
    moved: Array
    result: Array
    start: float = 0.0
    step: float = 0.0
    loads: tuple[float, Array | float] = (0.0, 0.0)
    splits: bool = False
    edge: float = 0.0
    padded: bool = True
    dtype: str = ""


def best_tile_time(work: TileWork, tiles: Tiles, chip: Chip, constants: Coefficients) -> Timing:
    """The time of the best tile of a kernel, without its launch."""
    depth = STEP_BYTES / work.element
    steps = work.k / (depth * tiles.split)
    if work.padded:
        steps = np.ceil(steps)
    area = tiles.rows * tiles.columns
    groups = np.ceil(work.m / tiles.rows) * np.ceil(work.n / tiles.columns)
    groups = groups * work.batch * tiles.split
    rounds = np.ceil(groups / chip.units)
    resident = np.clip(np.floor(constants["resident_area"] / area), 1.0, 8.0)
    resident_rounds = np.ceil(groups / (chip.units * resident))
    span = steps * depth
    edge = 1.0 + work.edge * (1.0 / tiles.rows + 1.0 / tiles.columns)
    addresses = constants["addresses"] * (PACKED if work.element == 1 else 1.0)
    flops = 2.0 * area * span * edge
    parts = {
        "matrix": rounds * flops / (work.rate * chip.clock),
        "address": rounds
        * span
        * (tiles.rows * work.loads[0] + tiles.columns * work.loads[1])
        / (addresses * chip.clock),
        "memory": (work.moved + (tiles.split > 1) * 2.0 * tiles.split * work.result)
        / (chip.hbm * constants["memory"]),
    }
    busy = overlap_time(*parts.values())
    latency = resident_rounds * (work.start + steps * work.step)
    computed = overlap_time(parts["matrix"], parts["address"])
    clock = sustained_clock(
        chip, work.dtype, constants["power"] * computed / np.maximum(busy + latency, computed)
    )
    for name in ("matrix", "address"):
        parts[name] = parts[name] * (chip.clock / clock)
    busy = overlap_time(*parts.values())
    seconds = busy + latency + (tiles.split > 1) * constants["split"]
    if not work.splits:
        seconds = np.where(tiles.split > 1, np.inf, seconds)
    else:
        seconds = np.where((tiles.split > 1) & (steps < 4), np.inf, seconds)
    best = np.argmin(seconds, axis=1)
    row = np.arange(len(best))
    parts["latency"] = latency
    return Timing(
        seconds[row, best],
        {name: np.broadcast_to(part, seconds.shape)[row, best] for name, part in parts.items()},
        {
            "tile_m": tiles.rows[0, best],
            "tile_n": tiles.columns[0, best],
            "split_k": tiles.split[0, best],
        },
    )


def overlap_time(*parts: Array) -> Array:
    """Seconds of parts that work at once: (Σ part⁴)^¼, as `kernel.overlap` in `solve`."""
    total = 0.0
    for part in parts:
        square = part * part
        total = total + square * square
    return np.sqrt(np.sqrt(total))


def fastest(timings: list[Timing]) -> Timing:
    """The fastest of the alternatives, problem by problem."""
    if len(timings) == 1:
        return timings[0]
    best = np.argmin([timing.seconds for timing in timings], axis=0)
    row = np.arange(len(best))

    def pick(name: str, where: str) -> Array:
        nothing = np.zeros(len(best))
        return np.array([getattr(t, where).get(name, nothing) for t in timings])[best, row]

    names = {
        where: {n for t in timings for n in getattr(t, where)} for where in ("parts", "choice")
    }
    return Timing(
        np.array([timing.seconds for timing in timings])[best, row],
        {name: pick(name, "parts") for name in sorted(names["parts"])},
        {name: pick(name, "choice") for name in sorted(names["choice"])},
    )


def plus(timing: Timing, name: str, seconds: Array | float) -> Timing:
    """A timing with another part that comes before or after the rest."""
    extra = np.broadcast_to(np.asarray(seconds, float).reshape(-1), timing.seconds.shape)
    parts = {**timing.parts, name: timing.parts.get(name, 0.0) + extra}
    return Timing(timing.seconds + extra, parts, timing.choice)


__all__ = [
    "Coefficients",
    "TileWork",
    "Tiles",
    "Timing",
    "best_tile_time",
    "fastest",
    "overlap_time",
    "plus",
]
