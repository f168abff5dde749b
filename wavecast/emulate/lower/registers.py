"""Scalar registers while code is lowered: values of slots in memory, kept at hand in a block."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from wavecast.emulate.lower.state import WaveLayout
from wavecast.emulate.values import I1, I32, load
from wavecast.isa.defuse import bits_of
from wavecast.isa.registers import SGPR_BASE, SPECIAL_REGISTERS


class ScalarRegisters:
    """`scalars` are slots (pointers to i32) by bit position; `builder` emits what reads them."""

    builder: ir.IRBuilder

    def __init__(self, layout: WaveLayout) -> None:
        self.layout = layout
        self.scalars: dict[int, Any] = {}
        self._loaded: dict[int, tuple[Any, Any]] = {}
        """Scalar registers whose value is at hand in a block."""

    def scalar(self, position: int) -> Any:
        """The 32-bit value of a scalar register now."""
        entry = self._loaded.get(position)
        if entry is not None and entry[0] is self.builder.block:
            return entry[1]
        value = load(self.builder, self.scalars[position], I32)
        self._loaded[position] = (self.builder.block, value)
        return value

    def scalar_bits(self, first: int, count: int) -> Any:
        """`count` scalar registers as one integer."""
        if count == 1:
            return self.scalar(first)
        wide = ir.IntType(32 * count)
        value: Any = None
        for index in range(count):
            part = self.builder.zext(self.scalar(first + index), wide)
            if index:
                part = self.builder.shl(part, ir.Constant(wide, 32 * index))
                value = self.builder.or_(value, part)
            else:
                value = part
        return value

    def set_scalar_bits(self, first: int, value: Any) -> None:
        """Store an integer to as many scalar registers as it is wide."""
        count = value.type.width // 32
        for index in range(count):
            part = value
            if index:
                part = self.builder.lshr(value, ir.Constant(value.type, 32 * index))
            if count > 1:
                part = self.builder.trunc(part, I32)
            slot = self.scalars.get(first + index)
            if slot is not None:
                self.builder.store(part, slot)
                self._loaded[first + index] = (self.builder.block, part)

    def special(self, name: str, bits: int) -> Any:
        """VCC, EXEC, M0 … as an integer of `bits`; SCC as a condition."""
        first, _ = SPECIAL_REGISTERS[name]
        if name == "scc":
            return self.builder.trunc(self.scalar(first), I1)
        return self.scalar_bits(first, bits // 32)

    def set_special(self, name: str, value: Any) -> None:
        first, _ = SPECIAL_REGISTERS[name]
        if name == "scc":
            value = self.builder.zext(value, I32)
        self.set_scalar_bits(first, value)

    def exec_mask(self) -> Any:
        """EXEC as an integer of one bit per lane."""
        return self.special("exec", self.layout.lanes)

    def forget(self, written: int) -> None:
        """Scalar registers in this set have been written through their slots."""
        for position in bits_of(written >> SGPR_BASE):
            self._loaded.pop(position + SGPR_BASE, None)


__all__ = ["ScalarRegisters"]
