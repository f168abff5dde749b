"""The product loop: tiles of rows x vectors of columns stay in registers while k runs.

Every element of D is C + a0*b0 + a1*b1 + … with one fused multiply-add per product, k ascending
(stored k for sparse A), each rounded to f32 or f64. Integers are exact modulo 2^32; with `clamp`
the exact sum of products is added to C with signed saturation.

A chain of instructions that accumulate into the same D is one such sum over the k of its links.

Links of pairs of bf16 (`dots.py`) add two products at a time where all operands are fit, tile by
tile; other tiles use the f32 of the arrays, written by then. Links of words of four bytes
(`quads.py`) have a further row of sums where A is signed, of 128 times B.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from wavecast.emulate.matrix import dots, quads
from wavecast.emulate.matrix.host import Host
from wavecast.emulate.matrix.loops import (
    accumulating_loop,
    constant_table,
    counted_loop,
    splat,
    table_entry,
)
from wavecast.emulate.matrix.results import Results
from wavecast.emulate.matrix.spec import MatrixSpec
from wavecast.emulate.values import I8, I32, I64, PTR, constant, element, load

_UNROLLED = 64
"""Multiply-adds in one pass of the loop over k: enough to hide its overhead, quick to compile."""


@dataclass(frozen=True, slots=True)
class Arrays:
    """The scratch arrays: A `[block][k][row]`, B `[block][k][column]`, and for sparse A
    `[k][row]` element offsets of rows of B. `depth` counts k as stored in A's array, where
    `pairs` of bf16 count once."""

    a: Any
    b: Any
    depth: int
    offsets: Any = None
    pairs: bool = False


@dataclass(frozen=True, slots=True)
class Links:
    """A chain: `count` (an i64 value, at least 1) pairs of i32 at `offsets`, where in `room` the
    arrays A and B of a link are, each of `depth` k. In bytes. `pairs` describes the arrays where
    they begin with pairs of bf16; `depth` counts f32 then."""

    room: Any
    offsets: Any
    count: Any
    depth: int
    pairs: tuple[dots.PairsArray, dots.PairsArray] | None = None


@dataclass(frozen=True, slots=True)
class ProductTile:
    """Rows and vectors of one tile. Both powers of two."""

    rows: int
    vectors: int


def choose_tile(spec: MatrixSpec, host: Host, width: int) -> ProductTile:
    """As many accumulators as leave registers for B, a broadcast, and addresses."""
    budget = 16 if host.vectors >= 32 else 8
    most = 4 if host.vectors >= 32 and host.vector_bits <= 128 else 2
    vectors = min(spec.shape.n // width, most)
    return ProductTile(min(spec.shape.m, budget // vectors), vectors)


class Product:
    """Emits the product loop of one instruction."""

    def __init__(
        self,
        builder: ir.IRBuilder,
        spec: MatrixSpec,
        host: Host,
        factors: Arrays | Links,
        results: Results,
    ) -> None:
        self.builder = builder
        self.spec = spec
        self.host = host
        self.factors = factors
        self.results = results
        self.width = results.width
        self.tile = choose_tile(spec, host, self.width)
        self.item = results.kind.element
        self.quads = isinstance(factors, Links) and quads.uses_quads(spec, host)
        self.flipped = self.quads and quads.is_signed(spec, "a")

    def emit(self) -> None:
        """All tiles, in a loop."""
        shape = self.spec.shape
        tile = self.tile
        columns = tile.vectors * self.width
        origins = [
            (block, row, column)
            for block in range(shape.blocks)
            for row in range(0, shape.m, tile.rows)
            for column in range(0, shape.n, columns)
        ]
        self.origins = origins
        results = self.results
        tables = [
            [results.word(results.c_layout, row, block) + column for block, row, column in origins],
            [results.word(results.d_layout, row, block) + column for block, row, column in origins],
        ]
        module = self.builder.module
        globals_ = [constant_table(module, "tiles", values) for values in tables]
        factors = self.factors
        unfit = self._unfit_links(factors) if isinstance(factors, Links) and factors.pairs else None
        with counted_loop(self.builder, len(origins)) as index:
            c_base, d_base = (table_entry(self.builder, entry, index) for entry in globals_)
            self._tile(index, c_base, d_base, unfit)

    def _factor_bases(self, index: Any, depth: int) -> tuple[Any, Any]:
        """Where a tile's A and B begin in arrays of `depth` k."""
        shape = self.spec.shape
        read = self.spec.a.blocks or tuple(range(shape.blocks))
        b_depth = shape.k if shape.sparse else depth
        a = [(read[block] * depth) * shape.m + row for block, row, _ in self.origins]
        b = [block * b_depth * shape.n + column for block, _, column in self.origins]
        tables = [constant_table(self.builder.module, "tiles", values) for values in (a, b)]
        first, second = (table_entry(self.builder, table, index) for table in tables)
        return first, second

    def _tile(self, index: Any, c_base: Any, d_base: Any, unfit: Any) -> None:
        tile = self.tile
        addends = [
            [self.results.load(c_base, row, vector * self.width) for vector in range(tile.vectors)]
            for row in range(tile.rows)
        ]
        start = addends
        if self.spec.clamp and self.spec.integer:
            start = [[self.results.zero()] * tile.vectors for _ in range(tile.rows)]
        if unfit is None and self.flipped:
            further = [self.results.zero()] * tile.vectors
            *sums, excess = self._sum(self.factors, [*start, further], index)
            sums = [
                [self.builder.sub(total, less) for total, less in zip(row, excess, strict=True)]
                for row in sums
            ]
        elif unfit is None:
            sums = self._sum(self.factors, start, index)
        else:
            sums = self._sum_of_pairs(start, index, unfit)
        if self.spec.clamp and self.spec.integer:
            sums = [
                [self._saturating_add(c, total) for c, total in zip(left, right, strict=True)]
                for left, right in zip(addends, sums, strict=True)
            ]
        for vector in range(tile.vectors):
            rows = [sums[row][vector] for row in range(tile.rows)]
            self.results.store(d_base, rows, vector * self.width)

    def _sum(self, factors: Arrays | Links, sums: list[list[Any]], index: Any) -> list[list[Any]]:
        """All products of one tile, one by one."""
        bases = self._factor_bases(index, factors.depth)
        if isinstance(factors, Arrays):
            return self._run(factors, sums, *bases)
        starts = [pairs.floats for pairs in factors.pairs] if factors.pairs else [0, 0]
        return self._over_links(factors, sums, starts, factors.depth, bases)

    def _sum_of_pairs(self, sums: list[list[Any]], index: Any, unfit: Any) -> list[list[Any]]:
        """All products of one tile: two at a time where no link nor C is unfit."""
        builder, links = self.builder, self.factors
        assert isinstance(links, Links)
        unfit = builder.or_(unfit, dots.unfit_addends(builder, [c for row in sums for c in row]))
        blocks = [builder.append_basic_block(name) for name in ("singly", "in_pairs")]
        after = builder.append_basic_block("either")
        builder.cbranch(unfit, *blocks).set_weights([1, 99])
        totals = []
        for block in blocks:
            builder.position_at_end(block)
            if block is blocks[0]:
                self._expand_links(links)
                total = self._sum(links, sums, index)
            else:
                depth = links.depth // 2
                bases = self._factor_bases(index, depth)
                total = self._over_links(links, sums, [0, 0], depth, bases, pairs=True)
            totals.append((total, builder.block))
            builder.branch(after)
        builder.position_at_end(after)
        joined = [[builder.phi(value.type) for value in row] for row in sums]
        for total, block in totals:
            for phis, row in zip(joined, total, strict=True):
                for phi, value in zip(phis, row, strict=True):
                    phi.add_incoming(value, block)
        return joined

    def _over_links(
        self,
        links: Links,
        sums: list[list[Any]],
        starts: list[int],
        depth: int,
        bases: tuple[Any, Any],
        *,
        pairs: bool = False,
    ) -> list[list[Any]]:
        """All products of one tile; arrays begin `starts` bytes after the offsets of a link."""

        def link(index: Any, running: list[list[Any]]) -> list[list[Any]]:
            a, b = self._link_arrays(links, index, starts)
            return self._run(Arrays(a, b, depth, pairs=pairs), running, *bases)

        return accumulating_loop(self.builder, links.count, 1, sums, link)

    def _link_arrays(self, links: Links, index: Any, starts: list[int]) -> tuple[Any, Any]:
        first = self.builder.shl(index, I64(1))
        a = self._array(links, first, starts[0])
        return a, self._array(links, self.builder.add(first, I64(1)), starts[1])

    def _unfit_links(self, links: Links) -> Any:
        """i1: some array of the links has elements that are not fit."""
        builder = self.builder
        assert links.pairs is not None
        starts = [pairs.state for pairs in links.pairs]

        def join(index: Any, running: list[list[Any]]) -> list[list[Any]]:
            total = running[0][0]
            for state in self._link_arrays(links, index, starts):
                total = builder.or_(total, load(builder, state, I32))
            return [[total]]

        joined = accumulating_loop(builder, links.count, 1, [[I32(0)]], join)[0][0]
        return builder.icmp_unsigned("!=", builder.and_(joined, I32(dots.UNFIT)), I32(0))

    def _expand_links(self, links: Links) -> None:
        """Have the f32 of every array of the links: a call of a function."""
        module = self.builder.module
        name = f"matrix.expand.{self.spec.name}"
        function = module.globals.get(name)
        if function is None:
            kind = ir.FunctionType(ir.VoidType(), [PTR, PTR, I64])
            function = ir.Function(module, kind, name)
            function.linkage = "internal"
            function.attributes.add("noinline")
            builder = ir.IRBuilder(function.append_basic_block("entry"))
            room, offsets, count = function.args
            inner = Product(
                builder,
                self.spec,
                self.host,
                Links(room, offsets, count, links.depth, links.pairs),
                self.results,
            )
            inner._emit_expansion()
        self.builder.call(function, [links.room, links.offsets, links.count])

    def _emit_expansion(self) -> None:
        """The body of the function that expands links."""
        builder, links, shape = self.builder, self.factors, self.spec.shape
        assert isinstance(links, Links)
        assert links.pairs is not None
        pairs = links.pairs

        def expand(index: Any, running: list[list[Any]]) -> list[list[Any]]:
            arrays = self._link_arrays(links, index, [0, 0])
            for array, parts, rows in zip(arrays, pairs, (shape.m, shape.n), strict=True):
                dots.expand(builder, array, parts, rows)
            return running

        accumulating_loop(builder, links.count, 1, [], expand)
        builder.ret_void()

    def _array(self, links: Links, index: Any, start: int) -> Any:
        offset = load(self.builder, element(self.builder, links.offsets, index, I32), I32)
        offset = self.builder.add(self.builder.zext(offset, I64), I64(start))
        return element(self.builder, links.room, offset, I8)

    def _run(
        self, arrays: Arrays, sums: list[list[Any]], a_base: Any, b_base: Any
    ) -> list[list[Any]]:
        """All of k over one tile: unrolled, or a loop over unrolled parts."""
        depth = arrays.depth
        step = min(depth, max(1, _UNROLLED // (self.tile.rows * self.tile.vectors)))
        while depth % step:
            step //= 2

        def part(first: Any, running: list[list[Any]]) -> list[list[Any]]:
            for k in range(step):
                current = self.builder.add(first, I64(k))
                running = self._step(arrays, running, a_base, b_base, current)
            return running

        if depth == step:
            return part(I64(0), sums)
        return accumulating_loop(self.builder, I64(depth), step, sums, part)

    def _step(
        self, arrays: Arrays, sums: list[list[Any]], a_base: Any, b_base: Any, k: Any
    ) -> list[list[Any]]:
        """One k: a column of A times a row of B."""
        builder = self.builder
        a_first = builder.add(a_base, builder.mul(k, I64(self.spec.shape.m)))
        shared: list[Any] | None = None
        if arrays.offsets is None:
            first = builder.add(b_base, builder.mul(k, I64(self.spec.shape.n)))
            shared = self._b_row(arrays, first)
        new_sums = []
        for row, running in enumerate(sums):
            index = builder.add(a_first, I64(row))
            b_row = shared
            if b_row is None:
                b_row = self._b_row(arrays, self._b_address(arrays, b_base, index))
            item = I32 if arrays.pairs else self.item
            if row < self.tile.rows:
                value = load(builder, element(builder, arrays.a, index, item), item)
                factor = splat(builder, value, self.width)
            else:
                factor = constant(quads.FLIPPED, 32, self.width)
            pairs = zip(running, b_row, strict=True)
            if arrays.pairs:
                new_sums.append([dots.add_products(builder, c, factor, b) for c, b in pairs])
            else:
                new_sums.append([self._multiply_add(factor, b, total) for total, b in pairs])
        return new_sums

    def _b_address(self, arrays: Arrays, b_base: Any, index: Any) -> Any:
        address = element(self.builder, arrays.offsets, index, I32)
        offset = self.builder.zext(load(self.builder, address, I32), I64)
        return self.builder.add(b_base, offset)

    def _b_row(self, arrays: Arrays, first: Any) -> list[Any]:
        vectors = []
        for vector in range(self.tile.vectors):
            index = self.builder.add(first, I64(vector * self.width))
            item = I32 if arrays.pairs else self.item
            address = element(self.builder, arrays.b, index, item)
            vectors.append(load(self.builder, address, ir.VectorType(item, self.width)))
        return vectors

    def _multiply_add(self, factor: Any, b: Any, total: Any) -> Any:
        if not self.spec.integer:
            bits = 64 if self.spec.double else 32
            return self._intrinsic(f"llvm.fma.v{self.width}f{bits}", factor, b, total)
        if self.spec.shape.sparse:
            return self.builder.add(total, self.builder.mul(factor, b))
        if self.quads:
            return quads.add_products(self.builder, total, factor, b)
        return self.builder.add(total, self._pair_product(factor, b))

    def _pair_product(self, a: Any, b: Any) -> Any:
        """Low half times low half plus high half times high half, halves being signed."""
        builder = self.builder
        if self.host.pair_product and self.width * 32 == self.host.vector_bits:
            halves = ir.VectorType(ir.IntType(16), 2 * self.width)
            left, right = builder.bitcast(a, halves), builder.bitcast(b, halves)
            kind = ir.FunctionType(self.results.kind, [halves, halves])
            return builder.call(self._declare(self.host.pair_product, kind), [left, right])
        shift = constant(16, 32, self.width)
        low_a = builder.ashr(builder.shl(a, shift), shift)
        low_b = builder.ashr(builder.shl(b, shift), shift)
        high = builder.mul(builder.ashr(a, shift), builder.ashr(b, shift))
        return builder.add(builder.mul(low_a, low_b), high)

    def _saturating_add(self, c: Any, total: Any) -> Any:
        return self._intrinsic(f"llvm.sadd.sat.v{self.width}i32", c, total)

    def _intrinsic(self, name: str, *arguments: Any) -> Any:
        kind = ir.FunctionType(self.results.kind, [argument.type for argument in arguments])
        return self.builder.call(self._declare(name, kind), list(arguments))

    def _declare(self, name: str, kind: ir.FunctionType) -> Any:
        declaration = self.builder.module.globals.get(name)
        return (
            declaration if declaration is not None else ir.Function(self.builder.module, kind, name)
        )
