"""The registers of one wave."""

from __future__ import annotations

import numpy as np

from wavecast.analyze.values.domain import WaveOps, join
from wavecast.analyze.values.kinds import UNWRITTEN, Scattered, Value, is_known
from wavecast.isa.registers import SPECIAL_REGISTERS
from wavecast.isa.semantics.integers import Integer, Unknown

EXEC_LOW = SPECIAL_REGISTERS["exec"][0]

_SWITCHED_OFF = "lanes that may not have been active"


class RegisterState:
    """The registers of one wave, by their bit position (`wavecast.isa.registers`).

    Positions above those of all registers are scratch dwords (`scratch`). `partial` has the vector
    registers whose value is valid only in some lanes, because they were written under an unknown
    EXEC, or over unknown lanes: their previous value, and that EXEC. When EXEC includes other
    lanes, their value becomes unknown.
    """

    __slots__ = ("ops", "partial", "values")

    def __init__(self, ops: WaveOps, size: int) -> None:
        self.ops = ops
        self.values: list[Value] = [UNWRITTEN] * size
        self.partial: dict[int, tuple[Value, Integer]] = {}

    def exec_changed(self) -> None:
        """Take over EXEC after an instruction wrote it."""
        ops = self.ops
        mask = self.values[EXEC_LOW]
        if ops.lanes == 64:
            mask = join(mask, self.values[EXEC_LOW + 1])
        ops.set_exec(mask if isinstance(mask, (int, Unknown)) else Unknown(0, "EXEC"))
        if self.partial and isinstance(ops.exec_mask, int):
            self._widen(ops.exec_mask)

    def write_vector(self, position: int, value: Value) -> None:
        """Write a vector register in the active lanes."""
        ops = self.ops
        mask = ops.exec_mask
        if mask == ops.full_mask:
            self.values[position] = value
            if position in self.partial:
                del self.partial[position]
            return
        if mask == 0:
            return
        old = self.values[position]
        if isinstance(mask, int):
            merged = ops.select(ops.active, value, old, 32)
            if isinstance(value, Scattered) or not isinstance(merged, Scattered):
                self.values[position] = merged
                return
        self.partial.setdefault(position, (old, mask))
        self.values[position] = value

    def _widen(self, mask: int) -> None:
        for position, (old, written) in list(self.partial.items()):
            if isinstance(written, int) and mask & ~written == 0:
                continue
            new = self.values[position]
            same = new is old or (is_known(new) and is_known(old) and np.array_equal(new, old))
            if not same:
                self.values[position] = Scattered(_SWITCHED_OFF)
            del self.partial[position]
