"""LLVM IR that loads C into accumulators and stores accumulators to D.

Accumulators are `<width x float>`, `<width x double>` or `<width x i32>`: one row of the result,
`width` columns. Narrow results are rounded once, when they are stored.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from wavecast.dtypes import Encoding
from wavecast.emulate.matrix.decode import ElementDecoder, float_vector
from wavecast.emulate.matrix.formats import F32, element_format
from wavecast.emulate.matrix.host import Host
from wavecast.emulate.matrix.layouts import Placement
from wavecast.emulate.matrix.spec import MatrixSpec
from wavecast.emulate.values import I32, I64, constant, element, load

_NARROW = frozenset({"f16", "bf16"})


class Results:
    """Loads and stores rows of C and D for one instruction.

    `c` is None when C is a constant. Rows are given by their number within a tile; `base` is the
    word offset of the tile (an i64 value), column offsets are in lanes.
    """

    def __init__(
        self, builder: ir.IRBuilder, spec: MatrixSpec, host: Host, width: int, c: Any, d: Any
    ) -> None:
        self.builder = builder
        self.spec = spec
        self.width = width
        self.c = c
        self.d = d
        self.decoder = ElementDecoder(builder, host, width)
        self.c_layout = spec.result_layout(spec.c.type)
        self.d_layout = spec.result_layout(spec.d_type)

    @property
    def kind(self) -> ir.VectorType:
        """The type of an accumulator."""
        if self.spec.double:
            return ir.VectorType(ir.DoubleType(), self.width)
        if self.spec.integer:
            return ir.VectorType(I32, self.width)
        return float_vector(self.width)

    def zero(self) -> ir.Constant:
        """An accumulator of zeros."""
        value = 0 if self.spec.integer else 0.0
        return ir.Constant(self.kind, [value] * self.width)

    def word(self, layout: Placement, row: int, block: int = 0) -> int:
        """The word of (row, column 0) relative to the first register row."""
        register, _, lane = layout.position(row, 0, block)
        return register * self.spec.lanes + lane

    def load(self, base: Any, row: int, column: int) -> Any:
        """C of one row from `column` on, with its modifiers applied."""
        value = self._constant() if self.c is None else self._read(base, row, column)
        if self.spec.c.absolute:
            value = self._absolute(value)
        return self.builder.fneg(value) if self.spec.c.negate else value

    def _absolute(self, value: Any) -> Any:
        bits = 64 if self.spec.double else 32
        kind = ir.VectorType(ir.IntType(bits), self.width)
        mask = constant((1 << (bits - 1)) - 1, bits, self.width)
        plain = self.builder.and_(self.builder.bitcast(value, kind), mask)
        return self.builder.bitcast(plain, self.kind)

    def _constant(self) -> Any:
        bits = self.spec.c.constant or 0
        wide = 64 if self.spec.double else 32
        if self.spec.c.type in _NARROW:
            return self._widen(constant(bits, 32, self.width))
        return self.builder.bitcast(constant(bits, wide, self.width), self.kind)

    def _widen(self, raw: Any) -> Any:
        kind = element_format(self.spec.c.type, self.spec.target)
        assert isinstance(kind, Encoding)
        return self.decoder.to_float(raw, kind)

    def _load_words(self, pointer: Any, base: Any, offset: int) -> Any:
        index = self.builder.add(base, I64(offset))
        address = element(self.builder, pointer, index, I32)
        return load(self.builder, address, ir.VectorType(I32, self.width))

    def _store_words(self, value: Any, base: Any, offset: int) -> None:
        index = self.builder.add(base, I64(offset))
        self.builder.store(value, element(self.builder, self.d, index, I32), align=4)

    def _read(self, base: Any, row: int, column: int) -> Any:
        offset = self.word(self.c_layout, row) + column
        low = self._load_words(self.c, base, offset)
        if self.spec.double:
            wide = ir.VectorType(I64, self.width)
            high = self._load_words(self.c, base, offset + self.spec.lanes)
            high = self.builder.zext(high, wide)
            high = self.builder.shl(high, constant(32, 64, self.width))
            low = self.builder.or_(self.builder.zext(low, wide), high)
        elif self.spec.c.type in _NARROW:
            shift = self._shift(self.c_layout, row)
            raw = self.builder.lshr(low, constant(shift, 32, self.width)) if shift else low
            return self._widen(raw)
        return self.builder.bitcast(low, self.kind)

    def _shift(self, layout: Placement, row: int) -> int:
        """Where a 16-bit element starts in its register."""
        if self.spec.half is not None:
            return 16 * self.spec.half
        return layout.position(row)[1]

    def store(self, base: Any, rows: list[Any], column: int) -> None:
        """Write the rows of a tile, in order from its first, from `column` on."""
        if self.spec.d_type in _NARROW:
            self._store_narrow(base, rows, column)
            return
        for row, value in enumerate(rows):
            offset = self.word(self.d_layout, row) + column
            if self.spec.double:
                self._store_double(value, base, offset)
            else:
                bits = self.builder.bitcast(value, ir.VectorType(I32, self.width))
                self._store_words(bits, base, offset)

    def _store_double(self, value: Any, base: Any, offset: int) -> None:
        narrow = ir.VectorType(I32, self.width)
        bits = self.builder.bitcast(value, ir.VectorType(I64, self.width))
        self._store_words(self.builder.trunc(bits, narrow), base, offset)
        high = self.builder.lshr(bits, constant(32, 64, self.width))
        self._store_words(self.builder.trunc(high, narrow), base, offset + self.spec.lanes)

    def _store_narrow(self, base: Any, rows: list[Any], column: int) -> None:
        """Rows of 16 bits: two to a register, or one half of it while the other half stays."""
        kind = element_format(self.spec.d_type, self.spec.target)
        assert isinstance(kind, Encoding)
        assert kind != F32
        words: dict[int, Any] = {}
        for row, value in enumerate(rows):
            offset = self.word(self.d_layout, row) + column
            shift = self._shift(self.d_layout, row)
            bits = self.decoder.from_float(value, kind)
            if shift:
                bits = self.builder.shl(bits, constant(shift, 32, self.width))
            if self.spec.half is not None:
                old = self._load_words(self.d, base, offset)
                mask = constant(0xFFFF0000 >> shift, 32, self.width)
                bits = self.builder.or_(bits, self.builder.and_(old, mask))
            words[offset] = self.builder.or_(words[offset], bits) if offset in words else bits
        for offset, bits in words.items():
            self._store_words(bits, base, offset)
