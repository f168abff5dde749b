"""The checks of numbers of one program: NaNs, infinities, and what is too large for its format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from wavecast.emulate.check import log
from wavecast.emulate.check.log import CheckRecord
from wavecast.emulate.check.numbers.decisions import DecisionCode, NumberDecisions
from wavecast.emulate.check.numbers.first import NumberChecks, computes
from wavecast.emulate.check.numbers.narrowing import Narrowing, narrowings
from wavecast.emulate.check.numbers.overflows import WORDS, OverflowChecks, message
from wavecast.emulate.check.numbers.uses import NumberUses
from wavecast.emulate.lower.observer import Observer
from wavecast.emulate.reports import Kind
from wavecast.isa.program import Program


@dataclass(frozen=True, slots=True)
class SpecialNumbers:
    """What is looked at in a program, and what decides whether it counts."""

    decisions: NumberDecisions
    narrowings: Mapping[int, Narrowing]

    @classmethod
    def of(cls, program: Program) -> SpecialNumbers:
        """The checks of a program."""
        uses = NumberUses(program)
        narrow = narrowings(program, uses)
        looked_at = [
            instruction
            for instruction in program.instructions
            if computes(instruction.decoded) or instruction.index in narrow
        ]
        stores = {
            (index, number): reached
            for index, narrowing in narrow.items()
            if None not in narrowing.stores
            for number, reached in enumerate(narrowing.stores)
            if reached is not None
        }
        return cls(NumberDecisions.of(uses, looked_at, stores), narrow)

    def observers(self) -> tuple[Observer, ...]:
        """What emits the code, in order."""
        code = DecisionCode(self.decisions)
        return NumberChecks(code), OverflowChecks(self.narrowings, code)


class NumberMemory:
    """The memory of one launch."""

    def __init__(self, numbers: SpecialNumbers, program: Program) -> None:
        self.numbers = numbers
        self.locations = [instruction.location for instruction in program.instructions]
        self._lists = numbers.decisions.table()
        self._values = np.zeros(WORDS * numbers.decisions.instructions, np.uint64)

    def attach(self, context: np.ndarray) -> np.ndarray:
        """Put the addresses into a host thread's context. Returns what has to stay."""
        context[log.NUMBER_VALUES] = self._values.ctypes.data
        return self.numbers.decisions.attach(context, self._lists)

    def merge_by_line(self, records: Sequence[CheckRecord]) -> list[CheckRecord]:
        """The records with one of each source line whose values are too large, for all of them."""
        by_line: dict[object, CheckRecord] = {}
        for record in records:
            key = self._line(record)
            first = by_line.setdefault(key, record)
            if first is not record:
                values = self._values.reshape(-1, WORDS)
                values[first.instruction, 0] += values[record.instruction, 0]
                largest = max(values[first.instruction, 1], values[record.instruction, 1])
                values[first.instruction, 1] = largest
                by_line[key] = replace(first, count=first.count + record.count)
        return list(by_line.values())

    def _line(self, record: CheckRecord) -> object:
        narrow = self.numbers.narrowings.get(record.instruction)
        location = self.locations[record.instruction]
        if record.kind is not Kind.FP8_OVERFLOW or narrow is None or location is None:
            return record.kind, record.instruction
        return record.kind, narrow.dtype, location.outermost.file, location.outermost.line

    def message(self, record: CheckRecord) -> str:
        """What a report of numbers says, "" for one of another kind."""
        if record.kind is not Kind.FP8_OVERFLOW:
            return ""
        return message(self.numbers.narrowings[record.instruction], record, self._values)


__all__ = ["NumberMemory", "SpecialNumbers"]
