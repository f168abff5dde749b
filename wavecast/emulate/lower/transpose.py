"""Between memory, one lane's dwords after another, and registers, one row of lanes after another.

Sixteen lanes at a time, in two steps of shuffles that take two vectors each. Hosts without AVX-512
move four dwords of 8 lanes at a time (`HALF_RUN`), by shuffles within halves of their vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from llvmlite import ir

from wavecast.compile.processor import processor
from wavecast.emulate.values import I32

LANES: Final = 16
"""Lanes that move together."""
HALF_RUN: Final = 8
"""Lanes of four dwords that move together on hosts without AVX-512."""
_LOW_DWORDS: Final = (0, 8, 1, 9, 4, 12, 5, 13)
_HIGH_DWORDS: Final = (2, 10, 3, 11, 6, 14, 7, 15)
_LOW_PAIRS: Final = (0, 1, 8, 9, 4, 5, 12, 13)
_HIGH_PAIRS: Final = (2, 3, 10, 11, 6, 7, 14, 15)
"""What interleaves dwords, or pairs of them, of each half of two vectors of 8."""


def piece_lanes(count: int) -> int:
    """Lanes of a piece: consecutive lanes of `count` dwords, 64 bytes where they fill them."""
    return 8 if count == 2 else 4


def concatenate(builder: ir.IRBuilder, parts: Sequence[Any]) -> Any:
    """Vectors end to end; their number is a power of two."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    low, high = concatenate(builder, parts[:half]), concatenate(builder, parts[half:])
    return shuffle(builder, low, high, range(2 * low.type.count))


def shuffle(builder: ir.IRBuilder, low: Any, high: Any, picks: Iterable[int]) -> Any:
    """The elements of two vectors that `picks` names, those of `high` after those of `low`."""
    numbers = list(picks)
    order = ir.Constant(ir.VectorType(I32, len(numbers)), numbers)
    return builder.shuffle_vector(low, high, order)


def to_rows(builder: ir.IRBuilder, pieces: Sequence[Any], count: int) -> list[Any]:
    """`count` rows of LANES lanes from pieces in order."""
    lanes = piece_lanes(count)
    if len(pieces) == 2:
        picks = [[lane * count + row for lane in range(2 * lanes)] for row in range(count)]
        return [shuffle(builder, pieces[0], pieces[1], each) for each in picks]
    rows = []
    for first in range(0, count, 2):
        indices = range(first, min(first + 2, count))
        picks = [lane * count + row for row in indices for lane in range(2 * lanes)]
        low, high = (shuffle(builder, pieces[at], pieces[at + 1], picks) for at in (0, 2))
        for half in range(len(indices)):
            part = range(half * 2 * lanes, (half + 1) * 2 * lanes)
            rows.append(
                shuffle(builder, low, high, [*part, *(low.type.count + pick for pick in part)])
            )
    return rows


def to_pieces(builder: ir.IRBuilder, rows: Sequence[Any]) -> list[Any]:
    """The pieces, in order, of rows of LANES lanes."""
    count, lanes = len(rows), piece_lanes(len(rows))
    if count == 2:
        return [
            shuffle(
                builder, rows[0], rows[1], [row * LANES + lane for lane in part for row in (0, 1)]
            )
            for part in (range(lanes), range(lanes, 2 * lanes))
        ]
    pairs = [(rows[first], rows[min(first + 1, count - 1)]) for first in (0, 2)]
    pieces = []
    for start in (0, LANES // 2):
        half = range(start, start + LANES // 2)
        picks = [row * LANES + lane for lane in half for row in range(2)]
        low, high = (shuffle(builder, first, second, picks) for first, second in pairs)
        for first in (0, lanes):
            order = []
            for lane in range(first, first + lanes):
                both = [2 * lane, 2 * lane + 1, LANES + 2 * lane, LANES + 2 * lane + 1]
                order += both[:count]
            pieces.append(shuffle(builder, low, high, order))
    return pieces


def moves_half_runs(count: int) -> bool:
    """Whether `count` dwords of a lane move by 8 lanes on this host."""
    return count == 4 and processor().strip_lanes < LANES


def from_lanes(builder: ir.IRBuilder, lanes: Sequence[Any]) -> list[Any]:
    """Four rows of 8 lanes from the four dwords of each."""
    first = [concatenate(builder, (lanes[lane], lanes[lane + 4])) for lane in range(4)]
    return _interleave(builder, first)


def to_lanes(builder: ir.IRBuilder, rows: Sequence[Any]) -> list[Any]:
    """The four dwords of each of 8 lanes from four rows of them."""
    pairs = _interleave(builder, rows)
    halves = (range(4), range(4, 8))
    return [shuffle(builder, pair, pair, half) for half in halves for pair in pairs]


def _interleave(builder: ir.IRBuilder, vectors: Sequence[Any]) -> list[Any]:
    """Four vectors of 8: a transposition of four dwords by four in each half."""
    outputs = []
    a, b, c, d = vectors
    for dwords in (_LOW_DWORDS, _HIGH_DWORDS):
        left, right = (shuffle(builder, x, y, dwords) for x, y in ((a, b), (c, d)))
        outputs += [shuffle(builder, left, right, pairs) for pairs in (_LOW_PAIRS, _HIGH_PAIRS)]
    return outputs


__all__ = [
    "HALF_RUN",
    "LANES",
    "concatenate",
    "from_lanes",
    "moves_half_runs",
    "piece_lanes",
    "shuffle",
    "to_lanes",
    "to_pieces",
    "to_rows",
]
