"""The registers of one wave."""

from __future__ import annotations

import numpy as np

from wavecast.analyze.values.domain import Scattered, Value, WaveOps, is_known, join
from wavecast.isa.registers import SPECIAL_REGISTERS
from wavecast.isa.semantics.integers import Unknown

EXEC_LOW = SPECIAL_REGISTERS["exec"][0]


class Registers:
    """The registers of one wave, by their bit position (`wavecast.isa.registers`).

    Positions above those of all registers hold scratch dwords (`scratch`). `masked`
    keeps what a vector register held before it was written under an EXEC that is not known: once
    EXEC is known again, lanes may hold either.
    """

    __slots__ = ("masked", "ops", "values")

    def __init__(self, ops: WaveOps, size: int) -> None:
        self.ops = ops
        self.values: list[Value] = [Scattered("a register nothing has written")] * size
        self.masked: dict[int, Value] = {}

    def exec_changed(self) -> None:
        """Take over EXEC after an instruction wrote it."""
        ops = self.ops
        mask = self.values[EXEC_LOW]
        if ops.lanes == 64:
            mask = join(mask, self.values[EXEC_LOW + 1])
        ops.set_exec(mask if isinstance(mask, (int, Unknown)) else Unknown(0, "EXEC"))
        if self.masked and isinstance(ops.exec_mask, int):
            for position, old in self.masked.items():
                new = self.values[position]
                same = new is old or (is_known(new) and is_known(old) and np.array_equal(new, old))
                if not same:
                    self.values[position] = Scattered("lanes that may not have been active")
            self.masked.clear()

    def write_vector(self, position: int, value: Value) -> None:
        """Write a vector register in the active lanes."""
        ops = self.ops
        mask = ops.exec_mask
        if mask == ops.full_mask:
            self.values[position] = value
        elif isinstance(mask, int):
            if mask:
                self.values[position] = ops.select(ops.active, value, self.values[position], 32)
        else:
            self.masked.setdefault(position, self.values[position])
            self.values[position] = value
