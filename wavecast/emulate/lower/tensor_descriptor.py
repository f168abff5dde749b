"""Descriptors of tensor tiles (gfx1250): their fields, and the copy that is made from them.

Bits are counted from the first word of a group of scalar registers. Sources: see `tensor_copies`.
"""

from __future__ import annotations

from enum import IntEnum, auto
from typing import Any, Final

from llvmlite import ir

from wavecast.emulate.values import I1, I64, element, load

DIMENSIONS: Final = 5
GROUPS: Final = (4, 8, 4, 4)
"""Words of the groups of scalar registers; the last two may be missing, and are zeros then."""
DESCRIPTOR_WORDS: Final = sum(GROUPS) + 2
"""Words of memory for a descriptor: fields are read eight bytes at a time."""
UNITS: Final = (16, 4, 1)
"""Bytes that a lane moves at once: the largest that divides every distance of a copy."""
INDICES: Final = 16
"""Rows that a tile can gather at most."""
NO_BARRIER: Final = 1 << 32
"""Address of the barrier at which a copy without one arrives."""
_NO_PADDING: Final = 63
"""Binary logarithm of an interval that no tile fills."""


class TensorWord(IntEnum):
    """Words of a copy. Dimension 0 is counted in units, the others in elements; distances and
    addresses are in bytes."""

    BASE = 0
    LDS = auto()
    UNIT = auto()
    TILE = auto()
    TENSOR = TILE + DIMENSIONS
    STRIDE = TENSOR + DIMENSIONS
    PAD_SHIFT = STRIDE + DIMENSIONS
    PAD_BYTES = auto()
    ITERATIONS = auto()
    LDS_STEP = auto()
    MEMORY_STEP = auto()
    BARRIER = auto()
    GATHERS = auto()
    INDEX = auto()
    # where the next unit is
    COORDINATE = INDEX + INDICES
    ITERATION = COORDINATE + DIMENSIONS
    LDS_OFFSET = auto()
    ROW = auto()
    LIMIT = auto()
    DONE = auto()


COPY_WORDS: Final = TensorWord.DONE + 1


class Refusal(IntEnum):
    """Why a descriptor is refused: what `open` returns instead of the size of a unit."""

    COUNT = -1
    ITERATION = -2
    GATHER = -3
    EMPTY = -4


REFUSALS: Final = {
    Refusal.COUNT: "has a reserved count",
    Refusal.ITERATION: "iterates over a tensor whose dimensions are not nested by stride",
    Refusal.GATHER: "gathers no rows or more than it has indices",
    Refusal.EMPTY: "has a tile without elements",
}


class TensorCopy:
    """The words of a copy while code is built."""

    def __init__(self, builder: ir.IRBuilder, words: Any) -> None:
        self.builder, self.words = builder, words

    def get(self, word: int) -> Any:
        return load(self.builder, element(self.builder, self.words, int(word), I64), I64, 8)

    def set(self, word: int, value: Any) -> None:
        value = I64(value) if isinstance(value, int) else value
        self.builder.store(value, element(self.builder, self.words, int(word), I64), align=8)

    def index(self, number: Any) -> Any:
        """The row that a tile gathers as its row `number` (i64)."""
        at = self.builder.add(number, I64(TensorWord.INDEX))
        return load(self.builder, element(self.builder, self.words, at, I64), I64, 8)


class _Fields:
    """Fields of the four groups of a descriptor in memory."""

    def __init__(self, builder: ir.IRBuilder, words: Any) -> None:
        self.builder, self.words = builder, words

    def get(self, group: int, first: int, bits: int) -> Any:
        """A field as i64, of at most 57 bits."""
        builder = self.builder
        position = 32 * sum(GROUPS[:group]) + first
        at = element(builder, self.words, position // 8, ir.IntType(8))
        value = builder.lshr(load(builder, at, I64, 1), I64(position % 8))
        return builder.and_(value, I64((1 << bits) - 1))

    def flag(self, group: int, bit: int) -> Any:
        return self.builder.trunc(self.get(group, bit, 1), I1)


def build_open(function: ir.Function, *, stores: bool) -> None:
    """`i64 open(ptr descriptor, ptr copy)`: bytes of a unit, 0 for nothing to copy, or why not."""
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    fields, copy = _Fields(builder, function.args[0]), TensorCopy(builder, function.args[1])
    gathers = fields.flag(0, 31)
    iterates = builder.and_(fields.flag(1, 19), builder.not_(gathers))
    count = fields.get(0, 0, 2)
    tiles = _tiles(builder, fields, gathers, iterates)
    rank = _rank(builder, tiles, gathers)
    # kernels of AITER end their loads ahead of a loop by a first dimension of the tile of 0
    empty = builder.or_(_is(builder, rank, 0), _is(builder, tiles[0], 0))
    nothing = builder.or_(_is(builder, count, 0), empty)
    with builder.if_then(nothing):
        builder.ret(I64(0))
    _refuse(builder, builder.icmp_unsigned(">", count, I64(1)), Refusal.COUNT)
    _fill(builder, fields, copy, gathers, stores=stores)
    size = builder.shl(I64(1), fields.get(1, 16, 2))
    _fill_dimensions(builder, fields, copy, tiles, rank, size, iterates)
    _fill_iterations(builder, fields, copy, rank, size, iterates)
    _refuse_gather(builder, fields, gathers)
    builder.ret(_choose_unit(builder, copy, size))


def _is(builder: ir.IRBuilder, value: Any, number: int) -> Any:
    return builder.icmp_unsigned("==", value, I64(number))


def _refuse(builder: ir.IRBuilder, bad: Any, refusal: Refusal) -> None:
    with builder.if_then(bad, likely=False):
        builder.ret(I64(refusal))


def _tiles(builder: ir.IRBuilder, fields: _Fields, gathers: Any, iterates: Any) -> list[Any]:
    """Elements of the tile in each dimension. The number of gathered rows stands for the
    second one, that of iterations for the fourth."""
    tiles = [
        fields.get(1, 112, 16),
        fields.get(1, 128, 16),
        fields.get(1, 144, 16),
        builder.select(iterates, I64(0), fields.get(2, 112, 16)),
        fields.get(3, 80, 16),
    ]
    return tiles[:2] + [builder.select(gathers, I64(0), tile) for tile in tiles[2:]]


def _rank(builder: ir.IRBuilder, tiles: list[Any], gathers: Any) -> Any:
    """One more than the last dimension in which the tile has elements; 2 where it gathers."""
    rank: Any = I64(0)
    for dimension, tile in enumerate(tiles):
        rank = builder.select(_is(builder, tile, 0), rank, I64(dimension + 1))
    return builder.select(gathers, I64(2), rank)


def _fill(
    builder: ir.IRBuilder, fields: _Fields, copy: TensorCopy, gathers: Any, *, stores: bool
) -> None:
    """Bases, padding and indices; the next unit is the first. Stores ignore padding."""
    top = fields.get(0, 96, 25)
    copy.set(TensorWord.BASE, builder.or_(fields.get(0, 64, 32), builder.shl(top, I64(32))))
    copy.set(TensorWord.LDS, fields.get(0, 32, 32))
    barrier = builder.shl(fields.get(1, 32, 16), I64(3))
    copy.set(TensorWord.BARRIER, builder.select(fields.flag(1, 18), barrier, I64(NO_BARRIER)))
    pads = I1(0) if stores else fields.flag(1, 20)
    # intervals are 2, 4 ... 256 dwords, amounts 1 to 128
    shift = builder.add(fields.get(1, 22, 3), I64(3))
    amount = builder.shl(builder.add(fields.get(1, 25, 7), I64(1)), I64(2))
    copy.set(TensorWord.PAD_SHIFT, builder.select(pads, shift, I64(_NO_PADDING)))
    copy.set(TensorWord.PAD_BYTES, builder.select(pads, amount, I64(0)))
    copy.set(TensorWord.GATHERS, builder.zext(gathers, I64))
    wide = fields.flag(0, 30)
    for number in range(INDICES):
        group, number_in_group = 2 + number // 8, number % 8
        index = fields.get(group, 16 * number_in_group, 16)
        if number < INDICES // 2:
            full = fields.get(2 + number // 4, 32 * (number % 4), 32)
            index = builder.select(wide, full, index)
        copy.set(TensorWord.INDEX + number, index)
    for word in range(TensorWord.COORDINATE, COPY_WORDS):
        copy.set(word, 0)


def _fill_dimensions(
    builder: ir.IRBuilder,
    fields: _Fields,
    copy: TensorCopy,
    tiles: list[Any],
    rank: Any,
    size: Any,
    iterates: Any,
) -> None:
    """Extents of the tile and the tensor, and strides; dimensions beyond the rank have one row. The
    extents of dimension 0 are in bytes here."""
    tensors = [
        fields.get(1, 48, 32),
        fields.get(1, 80, 32),
        fields.get(2, 0, 32),
        builder.select(iterates, I64(0), fields.get(2, 32, 32)),
        fields.get(3, 48, 32),
    ]
    strides = [
        size,
        builder.mul(fields.get(1, 160, 48), size),
        builder.mul(fields.get(1, 208, 48), size),
        builder.mul(builder.select(iterates, I64(0), fields.get(2, 64, 48)), size),
        builder.mul(fields.get(3, 0, 48), size),
    ]
    rows = zip(tiles, tensors, strides, strict=True)
    for dimension, (tile, tensor, stride) in enumerate(rows):
        present = builder.icmp_unsigned("<", I64(dimension), rank)
        _refuse(builder, builder.and_(present, _is(builder, tile, 0)), Refusal.EMPTY)
        scale = size if dimension == 0 else I64(1)
        tile = builder.select(present, builder.mul(tile, scale), I64(1))
        tensor = builder.select(present, builder.mul(tensor, scale), I64(1))
        copy.set(TensorWord.TILE + dimension, tile)
        copy.set(TensorWord.TENSOR + dimension, tensor)
        copy.set(TensorWord.STRIDE + dimension, builder.select(present, stride, I64(0)))


def _fill_iterations(
    builder: ir.IRBuilder, fields: _Fields, copy: TensorCopy, rank: Any, size: Any, iterates: Any
) -> None:
    """Iterations move the tile through memory and LDS; where it lies in the tensor then has to
    follow from its address."""
    count = builder.select(iterates, builder.add(fields.get(2, 112, 16), I64(1)), I64(1))
    step = builder.select(iterates, builder.mul(fields.get(2, 64, 48), size), I64(0))
    lds_step = builder.select(iterates, builder.mul(fields.get(2, 32, 32), size), I64(0))
    copy.set(TensorWord.ITERATIONS, count)
    copy.set(TensorWord.MEMORY_STEP, step)
    copy.set(TensorWord.LDS_STEP, lds_step)
    moves = builder.and_(
        builder.icmp_unsigned(">", count, I64(1)), builder.icmp_unsigned("!=", step, I64(0))
    )
    bad = builder.icmp_unsigned(">", rank, I64(3))
    span = copy.get(TensorWord.TENSOR)
    for dimension in (1, 2):
        stride = copy.get(TensorWord.STRIDE + dimension)
        extent = copy.get(TensorWord.TENSOR + dimension)
        several = builder.icmp_unsigned(">", extent, I64(1))
        overlaps = builder.icmp_unsigned("<", stride, span)
        bad = builder.or_(bad, builder.and_(several, overlaps))
        span = builder.select(several, builder.mul(stride, extent), span)
    _refuse(builder, builder.and_(moves, bad), Refusal.ITERATION)


def _refuse_gather(builder: ir.IRBuilder, fields: _Fields, gathers: Any) -> None:
    wide = fields.flag(0, 30)
    rows, most = fields.get(1, 128, 16), builder.select(wide, I64(INDICES // 2), I64(INDICES))
    wrong = builder.or_(_is(builder, rows, 0), builder.icmp_unsigned(">", rows, most))
    bad = builder.select(gathers, wrong, wide)
    _refuse(builder, bad, Refusal.GATHER)


def _choose_unit(builder: ir.IRBuilder, copy: TensorCopy, size: Any) -> Any:
    """The bytes of a unit; dimension 0 is counted in units from here on."""
    interval = builder.shl(I64(1), copy.get(TensorWord.PAD_SHIFT))
    lengths: Any = builder.or_(interval, builder.shl(size, I64(4)))
    words = (
        TensorWord.TILE, TensorWord.TENSOR, TensorWord.LDS_STEP, TensorWord.MEMORY_STEP,
    )  # fmt: skip
    for word in words:
        lengths = builder.or_(lengths, copy.get(word))
    unit: Any = I64(UNITS[-1])
    for candidate in reversed(UNITS[:-1]):
        fits = _is(builder, builder.and_(lengths, I64(candidate - 1)), 0)
        unit = builder.select(fits, I64(candidate), unit)
    copy.set(TensorWord.UNIT, unit)
    for word in (TensorWord.TILE, TensorWord.TENSOR):
        copy.set(word, builder.udiv(copy.get(word), unit))
    return unit


__all__ = [
    "COPY_WORDS",
    "DESCRIPTOR_WORDS",
    "DIMENSIONS",
    "GROUPS",
    "NO_BARRIER",
    "REFUSALS",
    "UNITS",
    "Refusal",
    "TensorCopy",
    "TensorWord",
    "build_open",
]
