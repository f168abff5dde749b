"""One strip of lanes: values of registers that instructions hand to each other within it."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from wavecast.emulate.lower.emitter import Emitter
from wavecast.emulate.lower.mode import overflow
from wavecast.emulate.lower.ops import LlvmOps
from wavecast.emulate.lower.values import I32, element, splat


class StripFrame:
    """One strip: forwarded rows and masks, and what is stored at its end."""

    def __init__(
        self,
        emitter: Emitter,
        builder: ir.IRBuilder,
        start: Any,
        lanes: int,
        active: Any,
    ) -> None:
        self.emitter = emitter
        self.builder = builder
        self.start = start
        self.lanes = lanes
        self.active = active
        """`<lanes x i1>`: EXEC of the strip."""
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
    moved = builder.lshr(whole, lane_shift(builder, start, lanes))
    if strip < lanes:
        moved = builder.trunc(moved, ir.IntType(strip))
    return builder.bitcast(moved, ir.VectorType(ir.IntType(1), strip))


def lane_shift(builder: ir.IRBuilder, start: Any, lanes: int) -> Any:
    """The first lane of a strip as an integer of one bit per lane, to shift masks by."""
    return start if lanes == 64 else builder.trunc(start, ir.IntType(lanes))


__all__ = ["StripFrame", "lane_shift", "masked_store", "strip_mask"]
