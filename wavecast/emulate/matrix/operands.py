"""LLVM IR that reads A, B, index and scales from register rows into arrays the product loop likes.

A becomes `[block][k][row]`, B `[block][k][column]`, both f32, f64, or i32. For dense integers two
consecutive k share an i32 as a pair of i16 and there are half as many k. So do two bf16 where
products are made of pairs (`dots.py`); four bytes share one where they are made of fours
(`quads.py`). A sparse index becomes, by stored k and row, the position of the row of B it selects.

Code is emitted once per element of a lane and runs in a loop over strips of lanes: every address
is the sum of a part from the element and a part from the strip.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from wavecast.emulate.matrix import dots
from wavecast.emulate.matrix.byte_tables import TableDecoder
from wavecast.emulate.matrix.decode import ElementDecoder
from wavecast.emulate.matrix.formats import Integer
from wavecast.emulate.matrix.host import Host
from wavecast.emulate.matrix.layouts import GROUP, INDEX_BITS, Placement
from wavecast.emulate.matrix.loops import constant_table, counted_loop, splat, table_entry
from wavecast.emulate.matrix.spec import MatrixSource, MatrixSpec
from wavecast.emulate.values import I32, I64, constant, element, load

DOUBLE = ir.DoubleType()
_SHORT = 16
"""Conversions that are quick enough to compile that their loop may be unrolled."""


@dataclass(frozen=True, slots=True)
class OperandWalk:
    """The elements of an operand as (element number) x (strip of consecutive lanes).

    `elements` maps an element number to its (row, depth, block) in lane 0; `strips` the first lane
    of each strip to its (row, depth, block) of element 0. The indices of an element in a strip are
    the sums.
    """

    elements: tuple[tuple[int, int, int], ...]
    strips: tuple[tuple[int, tuple[int, int, int]], ...]


def walk(layout: Placement, rows: int, depth: int, blocks: int, width: int) -> OperandWalk:
    """The walk over an operand of `rows` x `depth` x `blocks` in strips of `width` lanes."""
    elements: dict[int, tuple[int, int, int]] = {}
    strips: dict[int, tuple[int, int, int]] = {}
    for block in range(blocks):
        for k in range(depth):
            for row in range(rows):
                number, lane = layout.element(row, k, block)
                if lane == 0:
                    elements[number] = (row, k, block)
                if number == 0 and lane % width == 0:
                    strips[lane] = (row, k, block)
    ordered = tuple(elements[number] for number in sorted(elements))
    return OperandWalk(ordered, tuple(sorted(strips.items())))


def strip_width(spec: MatrixSpec, host: Host) -> int:
    """Lanes converted at a time."""
    bits = 64 if spec.double else 32
    return min(host.width(bits), spec.shape.n, spec.shape.m, 16)


class Reader:
    """Reads raw elements of strips of lanes from an operand's register rows."""

    def __init__(self, builder: ir.IRBuilder, pointer: Any, lanes: int, width: int) -> None:
        self.builder = builder
        self.pointer = pointer
        self.lanes = lanes
        self.width = width
        self._loaded: dict[int, Any] = {}

    def start(self, lane: Any) -> None:
        """Move to the strip that begins at `lane` (an i64 value)."""
        self.lane = lane
        self._loaded = {}

    def register(self, number: int) -> Any:
        """One register of the strip's lanes."""
        if number not in self._loaded:
            offset = self.builder.add(self.lane, I64(number * self.lanes))
            address = element(self.builder, self.pointer, offset, I32)
            kind = ir.VectorType(I32, self.width)
            self._loaded[number] = load(self.builder, address, kind)
        return self._loaded[number]

    def bits(self, first: int, count: int) -> Any:
        """Bits first … first + count of each lane, at the bottom; higher bits are arbitrary."""
        register, shift = divmod(first, 32)
        low = self.register(register)
        if shift:
            low = self.builder.lshr(low, constant(shift, 32, self.width))
        if shift + count > 32:
            high = self.register(register + 1)
            upper = self.builder.shl(high, constant(32 - shift, 32, self.width))
            low = self.builder.or_(low, upper)
        return low

    def double(self, first: int) -> Any:
        """The 64-bit elements at bit `first`, as doubles."""
        wide = ir.VectorType(I64, self.width)
        low = self.builder.zext(self.register(first // 32), wide)
        high = self.builder.zext(self.register(first // 32 + 1), wide)
        high = self.builder.shl(high, constant(32, 64, self.width))
        return self.builder.bitcast(self.builder.or_(low, high), ir.VectorType(DOUBLE, self.width))


@dataclass(frozen=True, slots=True)
class SourceJob:
    """What is needed to convert one of A and B."""

    source: MatrixSource
    layout: Placement
    rows: int
    depth: int
    blocks: int
    scale: Any = None
    """Pointer to the register row of block scales."""


class SourceConverter:
    """Emits the conversion of A or B into a scratch array; to pairs of bf16 where there is a
    `guard`, which sees every element; to words of four bytes, with `flips` exclusive-or'ed, where
    `quads` is set."""

    def __init__(
        self,
        builder: ir.IRBuilder,
        spec: MatrixSpec,
        host: Host,
        guard: dots.FactorGuard | TableDecoder | None = None,
        *,
        quads: bool = False,
        flips: int = 0,
    ) -> None:
        self.builder = builder
        self.spec = spec
        self.host = host
        self.guard = guard
        self.width = strip_width(spec, host)
        self.quads = quads
        self.flips = flips
        self.paired = guard is not None or (spec.integer and not spec.shape.sparse and not quads)

    @property
    def item(self) -> ir.Type:
        """The type of one scratch element."""
        if self.spec.double:
            return DOUBLE
        return I32 if self.paired or self.spec.integer else ir.FloatType()

    @property
    def step(self) -> int:
        """Consecutive k in a scratch element."""
        return 4 if self.quads else 2 if self.paired else 1

    def size(self, job: SourceJob) -> int:
        """Scratch elements."""
        return job.blocks * job.depth * job.rows // self.step

    def convert(self, pointer: Any, job: SourceJob, scratch: Any) -> None:
        """Read all of the operand at `pointer` into `scratch`."""
        traversal = walk(job.layout, job.rows, job.depth, job.blocks, self.width)
        lanes = [self._source_lane(job, lane) for lane, _ in traversal.strips]
        targets = [self._position(job, indices) for _, indices in traversal.strips]
        first = self._scale_position(job, (0, 0, 0))
        scales = [
            tuple(
                int(n) - m for n, m in zip(self._scale_position(job, indices), first, strict=True)
            )
            for _, indices in traversal.strips
        ]
        name = "strips"
        lane_table = constant_table(self.builder.module, name, lanes)
        target_table = constant_table(self.builder.module, name, targets)
        scale_tables = [
            constant_table(self.builder.module, name, column)
            for column in zip(*scales, strict=True)
        ]
        short = len(traversal.strips) * len(traversal.elements) <= _SHORT
        with counted_loop(self.builder, len(traversal.strips), short=short) as strip:
            reader = Reader(self.builder, pointer, self.spec.lanes, self.width)
            reader.start(table_entry(self.builder, lane_table, strip))
            base = table_entry(self.builder, target_table, strip)
            scale_base = [table_entry(self.builder, table, strip) for table in scale_tables]
            self._strip(reader, job, traversal, scratch, base, scale_base)

    def _strip(
        self,
        reader: Reader,
        job: SourceJob,
        traversal: OperandWalk,
        scratch: Any,
        base: Any,
        scale_base: list[Any],
    ) -> None:
        step = self.step
        scaled: dict[tuple[int, int], Any] = {}
        for number in range(0, len(traversal.elements), step):
            offset = self._position(job, traversal.elements[number])
            index = self.builder.add(base, I64(offset))
            address = element(self.builder, scratch, index, self.item)
            if self.quads:
                word = reader.register(number // step)
                word = self.builder.xor(word, constant(self.flips, 32, self.width))
                self.builder.store(word, address, align=4)
                continue
            if isinstance(self.guard, TableDecoder):
                word = self._looked_up(reader, job, traversal, number, scale_base, scaled)
                self.builder.store(word, address, align=4)
                continue
            values = [
                self._value(reader, job, number + part, traversal.elements[number + part][1])
                for part in range(step)
            ]
            if job.scale is not None:
                position = self._scale_position(job, traversal.elements[number])
                if position not in scaled:
                    scaled[position] = self._scale(job, scale_base, position)
                values = [self.builder.fmul(value, scaled[position]) for value in values]
            value = self._pair(*values) if self.paired else values[0]
            self.builder.store(value, address, align=4)

    def _looked_up(
        self,
        reader: Reader,
        job: SourceJob,
        traversal: OperandWalk,
        number: int,
        scale_base: list[Any],
        scaled: dict[tuple[int, int], Any],
    ) -> Any:
        """A word of two elements from `number` on, by tables."""
        decoder = self.guard
        assert isinstance(decoder, TableDecoder)
        first, part = divmod(number, decoder.elements)
        register = reader.register(first)
        if not part:
            decoder.see(register)
        word = decoder.word(register, part // 2)
        if job.scale is None:
            return word
        position = self._scale_position(job, traversal.elements[number])
        if position not in scaled:
            raw = self._raw_scale(job, scale_base, position)
            byte = self.builder.and_(raw, constant(0xFF, 32, self.width))
            scaled[position] = decoder.exponents(byte)
        return decoder.scaled(word, scaled[position])

    def _value(self, reader: Reader, job: SourceJob, number: int, depth: int) -> Any:
        kind = job.source.format
        first = number * job.layout.width
        if self.spec.double:
            value = reader.double(first)
        else:
            decoder = ElementDecoder(self.builder, self.host, self.width)
            raw = reader.bits(first, kind.bits)
            if isinstance(kind, Integer):
                return decoder.to_integer(raw, kind)
            value = decoder.to_float(raw, kind)
            if job.source.type == "xf32":
                value = decoder.round_to_xf32(value)
        return self.builder.fneg(value) if job.source.negate[depth & 1] else value

    def _pair(self, low: Any, high: Any) -> Any:
        if isinstance(self.guard, dots.FactorGuard):
            if self.guard.scaled:
                self.guard.see_scaled(low)
                self.guard.see_scaled(high)
            word = dots.pair(self.builder, low, high)
            self.guard.see_pair(word)
            return word
        low = self.builder.and_(low, constant(0xFFFF, 32, self.width))
        return self.builder.or_(low, self.builder.shl(high, constant(16, 32, self.width)))

    def _position(self, job: SourceJob, indices: tuple[int, int, int]) -> int:
        row, depth, block = indices
        return (block * (job.depth // self.step) + depth // self.step) * job.rows + row

    def _source_lane(self, job: SourceJob, lane: int) -> int:
        groups = job.source.groups
        return groups[lane // 16] * 16 + lane % 16 if groups else lane

    def _scale_position(self, job: SourceJob, indices: tuple[int, int, int]) -> tuple[int, int]:
        """Lane and byte of the scale of a row and k. Those of an element, and the distances of its
        strip from the first, add up: the bits of their indices are different ones."""
        scale, (row, depth, _) = job.source.scale, indices
        return (0, 0) if scale is None else scale.position(row, depth)

    def _scale(self, job: SourceJob, base: list[Any], position: tuple[int, int]) -> Any:
        """The scales of the strip's lanes, `base` and `position` added up."""
        raw = self._raw_scale(job, base, position)
        decoder = ElementDecoder(self.builder, self.host, self.width)
        if job.source.scale_format is None:
            return decoder.to_scale(raw)
        kind = job.source.scale_format
        assert not isinstance(kind, Integer)
        byte = self.builder.and_(raw, constant(0xFF, 32, self.width))
        return decoder.to_float(byte, kind)

    def _raw_scale(self, job: SourceJob, base: list[Any], position: tuple[int, int]) -> Any:
        """The same as bytes, with arbitrary bits above."""
        builder, scale = self.builder, job.source.scale
        assert scale is not None
        lane, byte = builder.add(base[0], I64(position[0])), I64(position[1])
        if scale.byte is None:
            byte = builder.add(base[1], byte)
            register = builder.lshr(byte, I64(2))
            lane = builder.add(lane, builder.mul(register, I64(self.spec.lanes)))
        address = element(builder, job.scale, lane, I32)
        raw = load(builder, address, ir.VectorType(I32, self.width))
        bit = builder.shl(builder.trunc(builder.and_(byte, I64(3)), I32), I32(3))
        return builder.lshr(raw, splat(builder, bit, self.width))


def convert_index(
    builder: ir.IRBuilder, spec: MatrixSpec, pointer: Any, scratch: Any, width: int
) -> None:
    """Write, for each stored k of A and each row, the first element of the row of B it meets."""
    shape = spec.shape
    layout = spec.index_layout
    traversal = walk(layout, shape.m, shape.k // GROUP, 1, width)
    module = builder.module
    lane_table = constant_table(module, "index", [lane for lane, _ in traversal.strips])
    group_table = constant_table(module, "index", [origin[1] for _, origin in traversal.strips])
    rows_table = constant_table(module, "index", [origin[0] for _, origin in traversal.strips])
    with counted_loop(builder, len(traversal.strips)) as strip:
        reader = Reader(builder, pointer, spec.lanes, width)
        reader.start(table_entry(builder, lane_table, strip))
        group_base = table_entry(builder, group_table, strip)
        row_base = table_entry(builder, rows_table, strip)
        for number, (row, group, _) in enumerate(traversal.elements):
            raw = reader.bits(number * INDEX_BITS + layout.first_bit, INDEX_BITS)
            this = builder.add(group_base, I64(group))
            for slot in range(2):
                position = builder.lshr(raw, constant(2 * slot, 32, width)) if slot else raw
                position = builder.and_(position, constant(GROUP - 1, 32, width))
                first = builder.trunc(builder.mul(this, I64(GROUP)), I32)
                lifted = builder.add(position, splat(builder, first, width))
                value = builder.mul(lifted, constant(shape.n, 32, width))
                stored = builder.add(builder.mul(this, I64(2)), I64(slot))
                index = builder.add(builder.mul(stored, I64(shape.m)), row_base)
                index = builder.add(index, I64(row))
                builder.store(value, element(builder, scratch, index, I32), align=4)
