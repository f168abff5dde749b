"""How the products of `wavecast.ops.distributed` are divided, and how long one launch takes.

A launch has one persistent workgroup per compute unit. What ranks must agree on (tiles, pieces)
follows from sizes that are the same on all of them. K of a sum and the columns of gathered products
may differ: the choice takes `_UNKNOWN` for them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from wavecast.arch import Device
from wavecast.arch.links import GpuGroup
from wavecast.dtypes import element_bytes
from wavecast.errors import MissingFact
from wavecast.perfmodel.chip import of_device
from wavecast.perfmodel.memory import overlap_time
from wavecast.perfmodel.ops.collectives.algorithms import Known, link_rate
from wavecast.perfmodel.ops.gemm.libraries import fixed_configuration
from wavecast.perfmodel.ops.gemm.problem import Gemm, bounds, machine
from wavecast.perfmodel.ops.gemm.tiles import GemmSizes

PRODUCTS: Final = {
    "matmul_reduce_scatter": "reduce_scatter",
    "matmul_all_reduce": "all_reduce",
    "all_gather_matmul": "all_gather",
}
"""The collective of each product."""
OWN_PROGRAMS: Final = 320
"""Most workgroups of a product, one per compute unit (MI300X has 304)."""
_STEP: Final = 128
"""Bytes of K that a workgroup multiplies per step: a cache line of every row."""
_TILES: Final = ((64, 64), (16, 128), (64, 128), (128, 128), (256, 128))
"""Rows and columns of tiles; the first where the model does not know the chip or the dtype. Two of
the operands' steps of the largest fit the 64 KiB of LDS of a compute unit."""
_FEW_REGISTERS: Final = 128 * 128
"""Elements of the largest tile where lanes have 64 registers for its sums."""
_WAVES: Final = 8
"""Waves of a workgroup."""
_COPIES: Final = 32
"""Workgroups that copy rows to peers while the others multiply: those at which the links of
MI300X limit a collective (`channel_bandwidth`)."""
_UNKNOWN: Final = 8192
"""A size that ranks do not agree on, where they choose a tile."""
_PIECES: Final = 8
"""Most pieces of a chunk, copied by as many workgroups; a tile waits for all of them."""
_PIECE: Final = 1 << 14
"""Bytes that a piece has at least, where a chunk has more than one."""


@dataclass(frozen=True, slots=True)
class ProductPlan:
    """Tiles of `rows` x `columns` by `depth` elements of K, multiplied by up to `workers`
    workgroups. Of a sum over ranks, `team` workgroups divide the parts of a tile that different
    ranks add up. Rows are gathered by `copies` further workgroups, chunks of `rows` in `pieces`."""

    rows: int
    columns: int
    depth: int
    workers: int
    team: int = 1
    copies: int = 0
    pieces: int = 1

    def tiles(self, rows: int, columns: int) -> int:
        """Tiles of a matrix."""
        return math.ceil(rows / self.rows) * math.ceil(columns / self.columns)


@dataclass(frozen=True, slots=True)
class LaunchParts:
    """Seconds of a launch: `product`, what its workgroups read to add it up (`reads`), the transfer
    between ranks, and `tail`, which nothing overlaps."""

    product: float
    reads: float
    transfer: float
    tail: float

    @property
    def seconds(self) -> float:
        """Workgroups multiply and read in turn while the links work."""
        return max(self.product + self.reads, self.transfer) + self.tail


@cache
def reduce_plan(part: int, columns: int, parts: int, dtype: str, device: Device) -> ProductPlan:
    """The plan of a product whose result, `parts` times `part` rows of `columns`, is added over
    ranks."""
    workers = min(device.compute_units, OWN_PROGRAMS)
    teams = {1, parts} if parts <= workers else {1}
    plans = [
        replace(ProductPlan(*tile, 0, workers), team=team)
        for team in sorted(teams)
        for tile in _tiles(device)
    ]
    return _fastest(plans, part, parts, columns, _UNKNOWN, dtype, device)


@cache
def gather_plan(
    rows: int, columns: int, k: int, ranks: int, dtype: str, device: Device
) -> ProductPlan:
    """The plan of a product of the x[`rows`, `k`] of `ranks` ranks by a weight of `columns`, on
    which only the columns of tiles depend."""
    units = min(device.compute_units, OWN_PROGRAMS)
    copies = min(_COPIES, max(1, units // 4))
    plans = [ProductPlan(*tile, 0, units - copies, copies=copies) for tile in _tiles(device)]
    height = _fastest(plans, rows, ranks, _UNKNOWN, k, dtype, device).rows
    plans = [plan for plan in plans if plan.rows == height]
    plan = _fastest(plans, rows, ranks, columns, k, dtype, device)
    chunks = math.ceil(rows / height)
    chunk = height * k * element_size(dtype)
    wanted = min(_PIECES, math.ceil(copies / chunks), max(1, chunk // _PIECE))
    pieces = 1 << (wanted.bit_length() - 1)
    return replace(plan, copies=min(copies, chunks * pieces), pieces=pieces)


def _tiles(device: Device) -> list[tuple[int, int]]:
    """Tiles whose sums leave registers for operands: on AMD's chips without MFMA a lane of eight
    waves of 32 would have 128 of its 256 for the largest."""
    few = device.vendor == "amd" and device.capabilities.matrix_unit != "mfma"
    return [tile for tile in _TILES if not few or math.prod(tile) <= _FEW_REGISTERS]


def launch_length(
    function: str, rows: int, k: int, ranks: int, shots: int, element: int, buffer: int
) -> int:
    """How many rows of x of a rank (of a gathered product), else columns of the result of `rows`, a
    launch exchanges through half a buffer of `buffer` bytes; 0 where not one fits."""
    if function == "all_gather_matmul":
        return buffer // (ranks * k * element)
    slots = ranks * (2 if shots == 2 and function == "matmul_all_reduce" else 1)
    return buffer // (slots * math.ceil(rows / (ranks if shots == 2 else 1)) * element)


def launch_parts(
    function: str,
    sizes: tuple[int, int, int],
    shots: int,
    dtype: str,
    group: GpuGroup,
    device: Device,
    constants: Known,
) -> LaunchParts:
    """The parts of one launch, m x n x k (`sizes`) on every rank of a node. Raises MissingFact.

    Results to be added are sent tile by tile to the rank that adds them, which then reads all from
    its own memory; an all-reduce of two shots sends these once more. Nothing overlaps the last tile
    of the first phase and the last wave of tiles of the second. Of a gathered product the own rows
    are there at once; tiles of the last chunk are left when it has arrived.
    """
    m, n, k = sizes
    ranks = group.local
    size = element_size(dtype)
    rate = link_rate(group, ranks, constants) * constants["concurrent_gemm"]
    hop = constants["read_hop"]
    if function == "all_gather_matmul":
        rows = m // ranks
        plan = gather_plan(rows, n, k, ranks, dtype, device)
        product = product_seconds(rows, ranks, n, k, dtype, device, plan)
        sent = (ranks - 1) * rows * k * size
        limits = [sent / rate, sent / (plan.copies * constants["channel_bandwidth"])]
        arrival = hop + float(overlap_time(limits, constants["channel_overlap"]))
        chunks = math.ceil(rows / plan.rows)
        waves = math.ceil(ranks * plan.tiles(rows, n) / plan.workers)
        last = product * max((ranks - 1) / ranks / chunks, 1 / waves)
        return LaunchParts(max(0.0, product - last), 0.0, arrival, last)
    parts = ranks if shots == 2 else 1
    part = math.ceil(m / parts)
    plan = reduce_plan(part, n, parts, dtype, device)
    product = product_seconds(part, parts, n, k, dtype, device, plan)
    waves = math.ceil(plan.tiles(part, n) / (plan.workers // plan.team))
    phases = 2 if shots == 2 and function == "matmul_all_reduce" else 1
    sent = (ranks - 1) * part * n * size / rate
    read = phases * ranks * part * n * size / of_device(device).hbm
    alone = sent * plan.team / (waves * parts) + (phases - 1) * sent / waves
    return LaunchParts(product, read, phases * sent - alone, phases * hop + alone)


def product_seconds(
    part: int, parts: int, n: int, k: int, dtype: str, device: Device, plan: ProductPlan
) -> float:
    """The product of `parts` times `part` rows by itself, by persistent workgroups. Raises
    MissingFact for a dtype or a chip without rates."""
    teams = plan.workers // plan.team
    tiles = plan.tiles(part, n) * (parts if plan.copies else 1)
    chip, constants = machine(device, min(teams, tiles) * plan.team)
    configuration = fixed_configuration(
        "triton",
        (plan.rows, plan.columns, plan.depth * element_size(dtype)),
        1,
        device.generation,
    )
    problem = Gemm(m=part * parts, n=n, k=k, dtype=dtype, waves=_WAVES)
    padded = parts * math.ceil(part / plan.rows) * plan.rows
    sizes = GemmSizes((padded,), n, k, 1)
    return float(bounds(problem, configuration, chip, constants, sizes).seconds.flat[0])


def element_size(dtype: str) -> int:
    """Bytes of an element that ranks exchange."""
    return int(element_bytes(dtype))


def _fastest(
    plans: Sequence[ProductPlan], part: int, parts: int, n: int, k: int, dtype: str, device: Device
) -> ProductPlan:
    """The plan whose tiles are multiplied fastest; the first of those where that is not known."""
    plans = [replace(plan, depth=_STEP // element_size(dtype)) for plan in plans]
    try:
        times = [product_seconds(part, parts, n, k, dtype, device, plan) for plan in plans]
    except MissingFact:
        return plans[0]
    return plans[times.index(min(times))]
