"""Which requests belong to which executed instruction of a warp."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wavecast.analyze.sass.walk import WarpPaths
from wavecast.perfmodel.streams import REQUEST

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class RowTable:
    """Which row each execution of a memory instruction is. Step n of the paths has the
    entries from `first[n]` on, one per instruction with rows; `access` (i64) is the access recorded
    there, -1 for none, `instruction` its number. `base` is the first of an access's rows in `rows`,
    `rank` (i64[accesses, warps]) the position of a warp among them, -1 where it takes no part."""

    first: Array
    count: Array
    access: Array
    instruction: Array
    base: Array
    rank: Array
    rows: Array
    defaults: Array

    @staticmethod
    def of(
        paths: WarpPaths, rows: Sequence[Array], slots: Sequence[Array], defaults: Array
    ) -> RowTable:
        """The table of what warps executed; `slots` are the instructions with rows of each run."""
        per_run = np.array([len(instructions) for instructions in slots], np.int64)
        count = per_run[paths.blocks]
        first = np.concatenate([[0], np.cumsum(count)])[:-1]
        parts = [slots[run] for run in paths.blocks.tolist()]
        instruction = np.concatenate(parts) if parts else np.zeros(0, np.int64)
        access = np.full(len(instruction), -1, np.int64)
        rank = np.full((len(paths.accesses), paths.members.shape[1]), -1, np.int64)
        for number, warp_access in enumerate(paths.accesses):
            instructions = slots[int(paths.blocks[warp_access.step])]
            at = int(first[warp_access.step]) + int(
                np.searchsorted(instructions, warp_access.instruction)
            )
            access[at] = number
            rank[number, warp_access.warps] = np.arange(len(warp_access.warps))
        sizes = [len(run_rows) for run_rows in rows]
        base = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        every = np.concatenate(rows) if rows else np.zeros((0, REQUEST), np.float32)
        return RowTable(first, count, access, instruction, base, rank, every, defaults)

    def of_warp(self, warp: int, steps: Array) -> Array:
        """The rows (f32[n, REQUEST]) of a warp in some steps, in order."""
        count = self.count[steps]
        ends = np.cumsum(count)
        within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - count, count)
        at = np.repeat(self.first[steps], count) + within
        access = self.access[at]
        rows = self.defaults[self.instruction[at]]
        recorded = np.flatnonzero(access >= 0)
        rank = self.rank[access[recorded], warp]
        rows[recorded] = 0.0
        taking = recorded[rank >= 0]
        rows[taking] = self.rows[self.base[access[taking]] + rank[rank >= 0]]
        return rows


__all__ = ["RowTable"]
