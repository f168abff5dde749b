"""Where each element of a matrix lies in the registers of a wave, by formula.

A placement gives every bit of the indices (row, depth k, block) a weight in the element number
within a lane and a weight in the lane number; element e of a lane starts at bit e * width of the
lane's registers taken as one string. All published layouts have this form; the tests prove it
against every entry of AMD's matrix calculator tables.

Three families follow from the sizes:

- gfx9: lane = row + rows * (block, then the low part of k above what one lane holds); a lane holds
  up to 16 bytes of consecutive k (32 elements of the 6-bit formats), and what remains of k
  continues in further registers.
- gfx11: every lane holds all k of one row; lanes 16 and above repeat lanes 0..15 and are not read.
- gfx12: like gfx9 with two (wave32) or four (wave64) groups of lanes; a lane's run of consecutive k
  is 8 bytes on gfx1201, 16 bytes on gfx1250.

Sparse A holds 2 of every 4 consecutive k; its k axis is B's without the lowest bit. gfx950's deeper
and gfx1250's sparse layouts are published nowhere we know of: they follow the same formula, and
because A, B and index agree on it within a lane, only the order of summation depends on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from wavecast.arch import capabilities

INDEX_BITS: Final = 4
"""Index bits per group of four k: two positions of two bits."""
GROUP: Final = 4
"""Dense k per sparse group, of which two elements are stored."""
SCALE_RUN: Final = 32
"""Consecutive k that share one block scale, but for instructions named `scale16`."""

Weight = tuple[int, int]
"""(element weight, lane weight) of one index bit."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where (row, k, block) of one operand lies. `row` counts along M for A and D's rows, along N
    for B; D's columns are its lanes from 0. Weights are listed from the lowest index bit."""

    width: int
    row: tuple[Weight, ...]
    depth: tuple[Weight, ...] = ()
    block: tuple[Weight, ...] = ()
    first_bit: int = 0

    def position(self, row: Any, depth: Any = 0, block: Any = 0) -> tuple[Any, Any, Any]:
        """(register, lowest bit within it, lane); plain integers or numpy arrays."""
        element, lane = self.element(row, depth, block)
        bit = element * self.width + self.first_bit
        return bit // 32, bit % 32, lane

    def element(self, row: Any, depth: Any = 0, block: Any = 0) -> tuple[Any, Any]:
        """(element number within the lane, lane)."""
        element: Any = 0
        lane: Any = 0
        for index, weights in ((row, self.row), (depth, self.depth), (block, self.block)):
            for position, (element_weight, lane_weight) in enumerate(weights):
                bit = (index >> position) & 1
                element = element + bit * element_weight
                lane = lane + bit * lane_weight
        return element, lane


@dataclass(frozen=True, slots=True)
class ScalePlacement:
    """Where the block scales of an operand lie, a byte each.

    MFMA takes one `byte` of every register: that of lane row + rows * run, by analogy with the
    4-bit layout. WMMA takes those of lane `first_lane` + row, in the order of the runs (Composable
    Kernel, test of wmma_scale on gfx1250; rocjitsu, shared/mma/layout.h).
    """

    rows: int
    byte: int | None = None
    first_lane: int = 0
    run: int = SCALE_RUN

    def position(self, row: Any, depth: Any) -> tuple[Any, Any]:
        """(lane, byte among those of the operand's registers); plain integers or arrays."""
        number = depth // self.run
        if self.byte is None:
            return row + self.first_lane, number
        return row + self.rows * number, number * 0 + self.byte


class _Axes:
    """Hands out element bits and lane bits in order."""

    def __init__(self) -> None:
        self.next_element = 1

    def elements(self, count: int) -> list[Weight]:
        """`count` further bits of the element number."""
        weights = [(self.next_element << bit, 0) for bit in range(count)]
        self.next_element <<= count
        return weights


_SHORT_RUNS: Final = ("replicated", "short_runs")
"""Layouts with 64 bits of consecutive k per lane."""
_SPLIT_ROWS: Final = ("short_runs", "long_runs")
"""Layouts with 16 rows over the lanes and further rows over registers."""


def _log2(value: int) -> int:
    if value <= 0 or value & (value - 1):
        raise ValueError(f"{value} is not a power of two")
    return value.bit_length() - 1


def lane_bits(first: int, end: int) -> list[Weight]:
    """Lane weights first, 2 * first … below end."""
    weights = []
    while first < end:
        weights.append((0, first))
        first *= 2
    return weights


def run_length(target: str, width: int, sparse: bool) -> int:
    """Consecutive k of one row in one lane before k moves on to other lanes."""
    short = capabilities(target).matrix_layout in _SHORT_RUNS and not sparse
    if width == 6:
        return 32
    return (64 if short else 128) // min(width, 64)


def _depth_lanes(target: str, lanes: int, width: int, first: int, groups: int) -> list[Weight]:
    """The lane bits that k uses above a lane's run."""
    weights = lane_bits(first, first * groups)
    short = capabilities(target).matrix_layout in _SHORT_RUNS
    swapped = short and lanes == 64 and width < 16
    return weights[::-1] if swapped else weights


@dataclass(frozen=True, slots=True)
class OperandShape:
    """Sizes a layout follows from: rows (M of A, N of B), dense k, blocks, element width in bits.

    `sparse` says the instruction is sparse; `compressed` that this operand is its A.
    """

    rows: int
    depth: int
    blocks: int
    width: int
    sparse: bool = False
    compressed: bool = False


def source(target: str, lanes: int, operand: OperandShape) -> Placement:
    """The placement of A or B. Compressed A is indexed by its stored k, depth / 2 of them."""
    axes = _Axes()
    stored = operand.depth // 2 if operand.compressed else operand.depth
    layout = capabilities(target).matrix_layout
    if layout == "replicated":
        depth = axes.elements(_log2(stored))
        return Placement(operand.width, tuple(lane_bits(1, operand.rows)), tuple(depth))
    lane_rows = min(operand.rows, 16) if layout in _SPLIT_ROWS else operand.rows
    groups = lanes // (lane_rows * operand.blocks)
    groups = min(groups, max(1, stored * operand.width // 32))
    run = run_length(target, operand.width, operand.sparse)
    run = run // 2 if operand.compressed else run
    run = min(run, stored // groups)
    depth = axes.elements(_log2(run))
    depth += _depth_lanes(target, lanes, operand.width, lane_rows * operand.blocks, groups)
    depth += axes.elements(_log2(stored // (run * groups)))
    block = lane_bits(lane_rows, lane_rows * operand.blocks)
    row = lane_bits(1, lane_rows) + axes.elements(_log2(operand.rows // lane_rows))
    return Placement(operand.width, tuple(row), tuple(depth), tuple(block))


def index(a: Placement, key: int) -> Placement:
    """The placement of a sparse instruction's index, by (row of A, group of four k).

    Each lane indexes the elements of A it holds, 4 bits per pair, in their order; `key` chooses
    among the sets that fit in the register.
    """
    depth = tuple((weight // 2, lane) for weight, lane in a.depth[1:])
    per_lane = 1 << sum(1 for weight, _ in depth if weight)
    first_bit = key * per_lane * INDEX_BITS
    return Placement(INDEX_BITS, a.row, depth, first_bit=first_bit)


def index_keys(a: Placement) -> int:
    """How many index sets one 32-bit register holds."""
    per_lane = 1 << sum(1 for weight, _ in a.depth[1:] if weight)
    return max(1, 32 // (per_lane * INDEX_BITS))


def result(target: str, lanes: int, m: int, n: int, blocks: int, width: int) -> Placement:
    """The placement of C and D by row and block; the column is added to the lane.

    On gfx11 elements of 16 bits lie one to a register (op_sel chooses the half): pass width 32.
    """
    axes = _Axes()
    lane_blocks = lanes // n if n < 16 and m < 16 else 1
    lane_blocks = min(lane_blocks, blocks)
    first = n * lane_blocks
    layout = capabilities(target).matrix_layout
    if layout == "replicated" or width == 64:
        row = lane_bits(first, lanes)
    elif layout in _SPLIT_ROWS:
        low = axes.elements(3 if lanes == 32 else 2)
        row = low + lane_bits(first, lanes)[::-1]
    else:
        row = axes.elements(2)
        row += lane_bits(first, lanes)
    row = row[: _log2(m)]
    row += axes.elements(_log2(m) - len(row))
    block = lane_bits(n, first) + axes.elements(_log2(blocks // lane_blocks))
    return Placement(width, tuple(row), block=tuple(block))


def broadcast_blocks(blocks: int, cbsz: int, abid: int) -> tuple[int, ...]:
    """The block of A each block reads: groups of 2^cbsz blocks share their member `abid`. Raises
    ValueError."""
    size = 1 << cbsz
    if size > blocks or abid >= size:
        raise ValueError(f"cbsz:{cbsz} abid:{abid} with {blocks} blocks")
    return tuple((block & ~(size - 1)) | abid for block in range(blocks))


def permuted_groups(blgp: int) -> tuple[int, int, int, int]:
    """The group of 16 lanes of B that each group of 16 lanes reads."""
    return (
        (0, 1, 2, 3),
        (0, 1, 0, 1),
        (2, 3, 2, 3),
        (1, 2, 3, 0),
        (0, 0, 0, 0),
        (1, 1, 1, 1),
        (2, 2, 2, 2),
        (3, 3, 3, 3),
    )[blgp]
