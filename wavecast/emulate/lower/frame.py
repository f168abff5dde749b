"""One strip of lanes: values of registers that instructions hand to each other within it."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from wavecast.emulate.lower.emitter import Emitter
from wavecast.emulate.lower.mode import overflow
from wavecast.emulate.lower.ops import LlvmOps
from wavecast.emulate.values import I32, constant, element, splat

_MASK_REGISTER = 16
"""Lanes of a strip from which hosts have registers of masks; others compare bit by bit in vectors,
which LLVM does one lane after another where it is left to it."""


class StripFrame:
    """One strip: forwarded rows and masks, and what is stored at its end."""

    def __init__(
        self,
        emitter: Emitter,
        builder: ir.IRBuilder,
        start: Any,
        lanes: int,
        active: Any,
        full: Any = None,
    ) -> None:
        self.emitter = emitter
        self.builder = builder
        self.start = start
        self.lanes = lanes
        self.active = active
        """`<lanes x i1>`: EXEC of the strip."""
        self.full = full
        """Whether EXEC has every lane of the wave (i1); None where nobody has asked."""
        self.rows: dict[int, Any] = {}
        self.dirty: dict[int, Any] = {}
        self.masks: dict[int, Any] = {}
        self.kind = ir.VectorType(I32, lanes)
        numbers = ir.Constant(self.kind, list(range(lanes)))
        if isinstance(start, ir.Constant):
            offset = ir.Constant(self.kind, [start.constant] * lanes)
        else:
            offset = splat(builder, builder.trunc(start, I32), lanes)
        self.ops = LlvmOps(
            builder,
            lanes,
            emitter.machine,
            emitter.layout.lanes,
            builder.add(numbers, offset),
        )
        self.ops.overflow = overflow(emitter)

    def _pointer(self, row: int) -> Any:
        return element(self.builder, self.emitter.row(row), self.start, I32)

    def read(self, row: int) -> Any:
        """The lanes of a row, `<lanes x i32>`."""
        if row not in self.rows:
            self.rows[row] = self.builder.load(self._pointer(row), align=32, typ=self.kind)
        return self.rows[row]

    def write(self, row: int, value: Any) -> None:
        """Write the active lanes of a row."""
        self.rows[row] = self.dirty[row] = value

    def store_rows(self) -> None:
        """Store every row written, active lanes only."""
        if self.full is None:
            self._store_active()
        elif self.dirty:
            with self.builder.if_else(self.full, likely=True) as (whole, partial):
                with whole:
                    for row, value in self.dirty.items():
                        self.builder.store(value, self._pointer(row), align=32)
                with partial:
                    self._store_active()

    def _store_active(self) -> None:
        for row, value in self.dirty.items():
            masked_store(self.builder, value, self._pointer(row), self.active)


def masked_store(builder: ir.IRBuilder, value: Any, pointer: Any, mask: Any) -> None:
    """Store the lanes whose mask bit is set."""
    lanes = value.type.count
    bits = value.type.element.width
    name = f"llvm.masked.store.v{lanes}i{bits}.p0"
    function = builder.module.globals.get(name)
    if function is None:
        kind = ir.FunctionType(ir.VoidType(), [value.type, pointer.type, I32, mask.type])
        function = ir.Function(builder.module, kind, name)
    builder.call(function, [value, pointer, I32(32), mask])


def strip_mask(builder: ir.IRBuilder, whole: Any, start: Any, lanes: int, strip: int) -> Any:
    """The bits of a lane mask that belong to a strip, as `<strip x i1>`."""
    mask = builder.lshr(whole, lane_shift(builder, start, lanes))
    if strip >= _MASK_REGISTER:
        if strip < lanes:
            mask = builder.trunc(mask, ir.IntType(strip))
        return builder.bitcast(mask, ir.VectorType(ir.IntType(1), strip))
    if lanes > 32:
        mask = builder.trunc(mask, I32)
    bits = ir.Constant(ir.VectorType(I32, strip), [1 << lane for lane in range(strip)])
    lane_bits = builder.and_(splat(builder, mask, strip), bits)
    return builder.icmp_unsigned("!=", lane_bits, constant(0, 32, strip))


def lane_shift(builder: ir.IRBuilder, start: Any, lanes: int) -> Any:
    """The first lane of a strip as an integer of one bit per lane, to shift masks by."""
    return start if lanes == 64 else builder.trunc(start, ir.IntType(lanes))


__all__ = ["StripFrame", "lane_shift", "masked_store", "strip_mask"]
