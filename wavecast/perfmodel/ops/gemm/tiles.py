"""What tile kernels ask of a chip: the demand of matrix products, over configurations.

A workgroup multiplies a tile of `rows` by `columns` over its part of K, in steps of `depth` bytes;
per step it waits for memory as long as its library's pipelining does not hide (`step_<library>`).
Its waves form a square: each operand is written to the LDS once and read from there by every wave
of a row or a column of the square; a preshuffled B goes past it.

A lane loads at most as many bytes as the rows of an operand in memory are multiples of: rows of an
odd number of 16-bit elements are loaded an element a lane, and a CU takes `address_rate` lanes a
clock. Such elements pass the LDS's write port one a bank. Matrix instructions take elements along
K: 8-bit ones of an operand whose other dimension is contiguous are read from the LDS one by one.
Hopper and later lose the instructions that read shared memory by a descriptor as well
(`unaligned`): they need rows of whole 16 bytes.

Kernels with asynchronous copies keep as many steps on the way as the LDS has space for: a step then
waits `copy_latency` over their number, at least the barrier of a step, and copies take whole lines.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from wavecast.errors import MissingFact
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.demand import Amount, WorkgroupDemand
from wavecast.perfmodel.ops.gemm.formats import GemmFormat
from wavecast.perfmodel.ops.gemm.libraries import Candidates

ACCUMULATOR = 4.0
"""Bytes of an accumulated element."""
REGISTERS = 2.0**18
"""Bytes of registers of a CU that accumulators may take: half of 512 KiB."""
BUFFERS = 2.0
"""Steps of operands a workgroup holds in the LDS: one it multiplies, one it loads."""
VECTOR = ("fp64", "fp32", "fp16")
"""Dtypes vector pipes multiply."""
STAGES = 8
"""Steps that asynchronous copies run ahead at most (CUTLASS: eight stages)."""
LINE = 128.0
"""Bytes of a line, which an asynchronous copy of a row takes at least."""
NARROW_READ = 0.5
"""LDS rate of 12-byte reads: 32 of 64 banks (gfx950, ds_read_b96)."""
WIDEST_LOAD = 16
"""Bytes that a lane loads at most."""
BANK = 4.0
"""Bytes of a bank of the LDS: what a lane writes to one in a clock."""


@dataclass(frozen=True, slots=True)
class GemmSizes:
    """One problem, or columns of many: rows of each group of A, `n`, `k`, products of a batch."""

    rows: tuple[Amount, ...]
    n: Amount
    k: Amount
    batch: Amount


@dataclass(frozen=True, slots=True)
class OperandFormats:
    """How elements are stored. `output` is bytes per element of the result."""

    a: GemmFormat
    b: GemmFormat
    output: float
    block_scaled: bool
    preshuffled: bool
    widened: bool = False
    """B is narrower than A and widened by vector instructions."""
    waves: int = 0
    """Waves of a workgroup; 0: not known, four."""
    stages: int = 0
    """Steps of asynchronous copies on the way; 0: as many as fit."""
    transposed: str = "TN"
    """Layouts of A and B as BLAS names them, whose columns are contiguous: T N are both along K."""

    @property
    def along_k(self) -> tuple[bool, bool]:
        """Whether K is the contiguous dimension of A and of B."""
        return self.transposed[0] == "T", self.transposed[1] == "N"


def demand(
    sizes: GemmSizes,
    operands: OperandFormats,
    tiles: Candidates,
    chip: Chip,
    constants: Mapping[str, float],
) -> WorkgroupDemand:
    """The demand of every configuration. Raises MissingFact for a dtype the chip lacks."""
    a, b = operands.a, operands.b
    rows, columns = tiles.rows, tiles.columns
    depth = tiles.depth / a.size
    down = sum(np.ceil(m / rows) for m in sizes.rows)
    across = np.ceil(sizes.n / columns)
    outputs = down * across * sizes.batch
    steps = np.ceil(sizes.k / depth)
    part = np.ceil(steps / np.minimum(tiles.splits, steps))
    splits = np.ceil(steps / part)
    inner = part * depth
    staged = rows * a.size + columns * b.size
    rate, dtype = matrix_rate(chip, a.multiplied)
    readers = [
        np.where(count > 0, count, square)
        for count, square in zip(tiles.readers, _square(operands.waves)[::-1], strict=True)
    ]
    width_a, width_b = _load_widths(sizes, operands)
    reads_a, reads_b = _read_passes(operands)
    through_lds = rows * a.size * (np.maximum(BANK / width_a, 1.0) + readers[0] * reads_a)
    if not operands.preshuffled:
        through_lds = through_lds + columns * b.size * (
            np.maximum(BANK / width_b, 1.0) + readers[1] * reads_b
        )
    loaded = rows * a.size * _load_passes(width_a, constants)
    loaded = loaded + columns * b.size * _load_passes(width_b, constants)
    described = not dtype or np.minimum(width_a, width_b) >= WIDEST_LOAD
    elements = rows * columns
    fitting = np.minimum(
        chip.lds_bytes / (BUFFERS * staged * depth), REGISTERS / (elements * ACCUMULATOR)
    )
    resident = np.clip(np.floor(fitting), 1.0, constants["resident"])
    m = sum(sizes.rows)
    per_k = m * stored_bytes(a) + len(sizes.rows) * sizes.n * stored_bytes(b)
    return WorkgroupDemand(
        workgroups=outputs * splits,
        resident=resident,
        dtype=dtype,
        matrix=2.0
        * elements
        * inner
        / rate
        / np.where(described, 1.0, constants["unaligned"])
        * tiles.filled(constants),
        serial=tiles.per_library(constants, "serial") * _exposure(operands.waves, constants),
        vector=_vector(operands, elements, columns, inner, constants) / chip.vector_flops,
        lds=through_lds * inner,
        lds_rate=NARROW_READ if a.narrow_reads else 1.0,
        l2=loaded * inner * np.where(tiles.asynchronous, np.maximum(LINE / tiles.depth, 1.0), 1.0),
        stored=elements,
        latency=part * _step(tiles, staged * depth * resident, operands, chip, constants)
        + constants["start"],
        asynchronous=tiles.asynchronous,
        read=per_k * sizes.k * sizes.batch,
        written=m * sizes.n * sizes.batch * operands.output,
        refetched=_refetch_bytes(sizes, outputs * splits, down, across, tiles, chip, a, b),
        combined=np.where(splits > 1, outputs * splits * elements * 2 * ACCUMULATOR, 0.0),
        combining=np.where(splits > 1, 1.0, 0.0),
    )


def stored_bytes(of: GemmFormat) -> float:
    """Bytes per element with its block scales."""
    return of.size + of.scale


def matrix_rate(chip: Chip, dtype: str) -> tuple[float, str]:
    """FLOP per clock and CU, and the dtype whose power it draws; of the vector pipes where a chip
    has no matrix instructions of a dtype. Raises MissingFact."""
    try:
        return chip.matrix_rate(dtype), dtype
    except MissingFact:
        vector = chip.device.peak_flops(f"vector_{dtype}") if dtype in VECTOR else None
        if vector is None:
            raise
        return vector.number / chip.units / chip.clock, ""


def _step(
    tiles: Candidates,
    loaded: Amount,
    operands: OperandFormats,
    chip: Chip,
    constants: Mapping[str, float],
) -> Amount:
    """Seconds a step waits, `loaded` the bytes that the workgroups of a CU load in one."""
    latency = tiles.per_library(constants, "step")
    if not tiles.asynchronous.any():
        return latency
    fitting = np.clip(np.floor(chip.lds_bytes / loaded), 1.0, operands.stages or STAGES)
    return np.where(
        tiles.asynchronous, np.maximum(constants["copy_latency"] / fitting, latency), latency
    )


def _load_widths(sizes: GemmSizes, operands: OperandFormats) -> tuple[Amount, Amount]:
    """Bytes that a lane loads of A and of B: the largest power of two, up to `WIDEST_LOAD`, that
    the bytes of their contiguous rows are a multiple of."""
    a_along_k, b_along_k = operands.along_k
    along_a = sizes.k if a_along_k else sum(sizes.rows)
    along_b = sizes.k if b_along_k or operands.preshuffled else sizes.n
    return _width(along_a, operands.a.size), _width(along_b, operands.b.size)


def _read_passes(operands: OperandFormats) -> tuple[float, float]:
    """How much longer reads of A and of B from the LDS take: those of 8-bit elements that are not
    contiguous along K are of one byte each, where a bank gives four."""
    sizes = operands.a.size, operands.b.size
    passes = [
        BANK / size if size == 1 and not along else 1.0
        for size, along in zip(sizes, operands.along_k, strict=True)
    ]
    return passes[0], passes[1]


def _width(elements: Amount, size: float) -> Amount:
    row = np.asarray(elements * size)
    width = np.ones(row.shape)
    for wider in (2, 4, 8, WIDEST_LOAD):
        width = np.where(row % wider == 0, wider, width)
    return np.maximum(width, size)


def _load_passes(width: Amount, constants: Mapping[str, float]) -> Amount:
    """How much longer a CU takes for bytes that lanes load `width` at a time than for wide ones."""
    rate = constants["address_rate"]
    widest = min(constants["l2_rate"], rate * WIDEST_LOAD)
    return np.maximum(widest / (rate * width), 1.0)


def _square(waves: int) -> tuple[int, int]:
    """Waves down and across a tile, as near to a square as they divide."""
    waves = waves or 4
    down = next(n for n in range(math.isqrt(waves), 0, -1) if waves % n == 0)
    return down, waves // down


def _exposure(waves: int, constants: Mapping[str, float]) -> float:
    """How much more of its other pipes a workgroup shows with fewer waves than two per SIMD, what
    the kernels of libraries have where their waves are not known."""
    return (8 / waves) ** constants["wave_overlap"] if waves else 1.0


def _vector(
    operands: OperandFormats,
    elements: Amount,
    columns: Amount,
    inner: Amount,
    constants: Mapping[str, float],
) -> Amount:
    """FLOPs of vector instructions: block scales on every 128 of K, narrow weights widened by two
    waves each."""
    scaled = elements * inner / 128 * 2.0 if operands.block_scaled else 0.0
    widened = columns * inner * 2 * constants["widen"] if operands.widened else 0.0
    return scaled + widened


def _refetch_bytes(
    sizes: GemmSizes,
    workgroups: Amount,
    down: Amount,
    across: Amount,
    tiles: Candidates,
    chip: Chip,
    a: GemmFormat,
    b: GemmFormat,
) -> Amount:
    """Bytes the L2s fetch beyond the operands: workgroups that run at once on a die share rows and
    columns as if they formed a square."""
    side = np.sqrt(np.maximum(np.minimum(chip.units, workgroups) / chip.dies, 1.0))
    shared = tiles.rows * a.size / np.clip(side, 1.0, across)
    shared = shared + tiles.columns * b.size / np.clip(side, 1.0, down)
    fetched = down * across * sizes.batch * sizes.k * shared
    once = (sum(sizes.rows) * a.size + len(sizes.rows) * sizes.n * b.size) * sizes.k * sizes.batch
    return np.maximum(fetched - once, 0.0)


__all__ = ["GemmSizes", "OperandFormats", "demand", "matrix_rate", "stored_bytes"]
