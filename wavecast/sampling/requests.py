"""Recorded waves as requests: what instructions ask, when, and from which compute unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from wavecast.analyze.values.banks import phases
from wavecast.arch import Device
from wavecast.arch.lds import Phases
from wavecast.emulate.trace.mode import lds_banks
from wavecast.isa.opcode import MemoryKind, Space
from wavecast.isa.program import Program
from wavecast.perfmodel.cache import accesses as path
from wavecast.perfmodel.cache.accesses import MemoryTable
from wavecast.perfmodel.cache.order import positions

_PATHS: Final = {
    Space.SCALAR: path.SCALAR,
    Space.LDS: path.LDS,
    Space.SCRATCH: path.PRIVATE,
}
_KINDS: Final = {
    MemoryKind.STORE: path.STORE,
    MemoryKind.STORE_FROM_LDS: path.STORE,
    MemoryKind.ATOMIC: path.ATOMIC,
}


@dataclass(frozen=True, slots=True, eq=False)
class RequestTable:
    """What a program's instructions ask of memory (`asked`), how many requests each makes
    (`slots`, i64), and where blocks start and how long they are (`starts`, `lengths`, i64)."""

    asked: MemoryTable
    slots: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray

    @staticmethod
    def of(program: Program, device: Device, wave_lanes: int) -> RequestTable:
        """The table of a program; `device` says how LDS serves lanes."""
        number = len(program.instructions)
        kinds, served = np.zeros((3, number), np.int32), dict[Phases, int]()
        slots, row = np.zeros(number, np.int64), np.zeros(number, np.int32)
        kinds[2] = 1
        banks = lds_banks(device.target)
        for instruction in program.instructions:
            memory, index = instruction.memory, instruction.index
            if memory is None:
                continue
            slots[index] = instruction.opcode.memory_form.offsets
            kind = _KINDS.get(memory.kind, path.LOAD)
            width = max(1, memory.bytes // int(slots[index]))
            kinds[:, index] = _PATHS.get(memory.space, path.VECTOR), kind, width
            if memory.space is Space.LDS:
                lds_phases = phases(program.target, width, kind == path.STORE, wave_lanes, banks)
                row[index] = served.setdefault(lds_phases, len(served))
        lanes, of_row = _phase_tables(list(served))
        table = MemoryTable(
            kinds[0].astype(np.int8), kinds[1].astype(np.int8), kinds[2], row, lanes, of_row
        )
        starts = np.array([block.start for block in program.blocks])
        stops = np.array([block.stop for block in program.blocks])
        return RequestTable(table, slots, starts, stops - starts)

    def clocks(self, blocks: np.ndarray, instructions: np.ndarray) -> np.ndarray:
        """How many instructions a wave that went through `blocks` executed before each request of
        `instructions`, f64."""
        counts = positions(
            blocks.astype(np.int64), self.starts, self.lengths, self.slots, instructions
        )
        return counts.astype(float)


def _phase_tables(all_phases: list[Phases]) -> tuple[np.ndarray, np.ndarray]:
    """Lanes served together, i32[phases, groups, lanes], and the banks of each."""
    groups = max((len(p.groups) for p in all_phases), default=1)
    widest = max((len(group) for p in all_phases for group in p.groups), default=1)
    lanes = np.full((max(1, len(all_phases)), groups, widest), -1, np.int32)
    for number, served in enumerate(all_phases):
        for at, group in enumerate(served.groups):
            lanes[number, at, : len(group)] = group
    return lanes, np.array([p.banks for p in all_phases] or [1], np.int32)


__all__ = ["RequestTable"]
