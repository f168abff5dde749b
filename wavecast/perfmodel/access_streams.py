"""Access streams from code: the bytes each memory instruction moves per cache level.

An access asks for the lines its lanes touch (contiguous where unknown). How much of that passes a
cache follows from what the workgroups of the first round reuse (`reuse`). Where their addresses are
unknown, each takes its part of a tensor as if at random: n workgroups that ask for q bytes each of
a tensor of F bytes touch F·(1 − (1 − q/F)ⁿ) distinct ones. A tensor that fits the L2 of a die is
fetched once by it. Of what all dies fetch, the memory-side cache keeps as much as for an executed
launch (`model.cache.traffic`), and the resident shares of the arguments were there before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from wavecast.analyze.result import CodeAnalysis, MemoryInstruction
from wavecast.compile.codeobject import Launch
from wavecast.isa.program import Kernel
from wavecast.perfmodel import streams as request
from wavecast.perfmodel.atomics import CACHED, at_one_address
from wavecast.perfmodel.cache.accesses import SECTOR
from wavecast.perfmodel.cache.traffic import reach
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.cu.code import Code
from wavecast.perfmodel.footprint import element_bytes
from wavecast.perfmodel.placement import LaunchPlacement
from wavecast.perfmodel.profile import LevelTraffic
from wavecast.perfmodel.reuse import Reuse, reuse
from wavecast.perfmodel.scratch import scratch_requests

Array = np.ndarray[Any, Any]

_MUCH: Final = 0.1
"""Part of the requested bytes with unknown reuse from which a profile notes it."""
_STORED: Final = (*CACHED, "scratch")
_BEYOND: Final = np.isin(np.arange(request.REQUEST), (request.MALL, request.HBM))


class AccessStreams:
    """Requests of the memory instructions of a launch, and their sums.

    `executions` (f64[instructions]) are per wave. `resident` is the share of each argument's bytes
    that is in the memory-side cache before the launch. `rows` (f32[instructions, REQUEST]) has the
    request of one execution, with the columns of `cu.streams`.
    """

    def __init__(
        self,
        launch: Launch,
        analysis: CodeAnalysis,
        kernel: Kernel,
        code: Code,
        chip: Chip,
        placement: LaunchPlacement,
        executions: Array,
        resident: Mapping[str, float],
    ) -> None:
        self._code, self._chip, self._placement = code, chip, placement
        self._executions, self._waves = executions, placement.workgroups * placement.waves
        self._memory = {entry.index: entry for entry in analysis.memory}
        self._line = chip.device.facts.number("l1v_line")
        self.unknown_addresses = any(
            entry.pattern == "unknown" and executions[entry.index] > 0
            for entry in analysis.memory
            if entry.space not in ("lds", "scalar", "scratch")
        )
        sizes = {a.name: element_bytes(a) for a in launch.tensors}
        times = {index: float(executions[index]) for index in self._memory}
        self._atomics = at_one_address(analysis.memory, times, placement, sizes)
        self._requested = {
            index: self._line_bytes(entry) * executions[index] * self._waves
            for index, entry in self._memory.items()
            if entry.space in CACHED and executions[index] > 0
        }
        each = {index: self._line_bytes(self._memory[index]) for index in self._requested}
        reuses = reuse(launch, analysis, kernel, chip, placement, each, self._line)
        self._reuse, estimated = self._reuse_of_all(sizes, reuses)
        self.unknown_reuse = estimated / max(1.0, sum(self._requested.values())) > _MUCH
        self._memory_shares = self._shares_of_memory(sizes, resident)
        self._scratch = scratch_requests(
            kernel.program, chip, placement, analysis.registers.scratch_bytes
        )
        self.rows = self._rows()

    def _reuse_of_all(
        self, sizes: Mapping[str, float], reuses: Mapping[int, Reuse]
    ) -> tuple[dict[int, Reuse], float]:
        """The reuse of every instruction, and the bytes for which it is an estimate."""
        placement, chip = self._placement, self._chip
        usable = chip.coefficient("memory", "cache_share")
        first_round = len(placement.first_round())
        requested = self._by_argument(self._requested)
        estimates = {}
        for name, total in requested.items():
            if name not in sizes:
                continue
            size, part = sizes[name], total / placement.workgroups
            once = min(1.0, size / total) if total else 1.0
            die = max(once, _distinct(size, part, max(1.0, first_round / placement.dies)))
            chips = max(once, _distinct(size, part, first_round))
            estimates[name] = Reuse(die, min(1.0, chips / die))
        by_instruction, estimated = {}, 0.0
        for index, total in self._requested.items():
            name = self._memory[index].argument
            instruction_reuse = reuses.get(index) or estimates.get(name) or Reuse(1.0, 1.0)
            size = sizes.get(name, math.inf)
            if size <= usable * chip.l2_slice:
                once = min(1.0, size * placement.dies / requested[name])
                instruction_reuse = replace(
                    instruction_reuse,
                    die=min(instruction_reuse.die, once),
                    chip=max(instruction_reuse.chip, 1 / placement.dies),
                )
            elif index not in reuses:
                estimated += total
            by_instruction[index] = instruction_reuse
        return by_instruction, estimated

    def _shares_of_memory(
        self, sizes: Mapping[str, float], resident: Mapping[str, float]
    ) -> dict[str, float]:
        """The share, by argument, of the distinct bytes all dies fetch that comes from memory."""
        beyond_l2 = {i: total * self._beyond(i) for i, total in self._requested.items()}
        by_argument = self._by_argument(beyond_l2)
        whole = [sizes.get(name, math.inf) for name in by_argument]
        before = np.array([resident.get(name, 0.0) for name in by_argument])
        shares = reach(self._chip, np.array([*by_argument.values()]), whole, before)
        return dict(zip(by_argument, shares.tolist(), strict=True))

    def _by_argument(self, amounts: Mapping[int, float]) -> dict[str, float]:
        sums: dict[str, float] = {}
        for index, amount in amounts.items():
            name = self._memory[index].argument
            sums[name] = sums.get(name, 0.0) + amount
        return sums

    def _beyond(self, index: int) -> float:
        """The part of an instruction's bytes that is fetched beyond the L2. With a memory-side
        cache, bytes that several dies fetch count once."""
        entry = self._reuse[index]
        return entry.die * (entry.chip if self._chip.mall_bytes else 1.0)

    def _rows(self) -> Array:
        rows = self._code.contiguous.copy()
        for entry in self._memory.values():
            row = rows[entry.index]
            if entry.space == "lds":
                row[request.PASSES] *= entry.conflict_ways or 1.0
            elif entry.space != "scratch":
                bytes_moved = self._line_bytes(entry)
                row[request.TAGS] = (
                    entry.lines if entry.lines is not None else bytes_moved / self._line
                )
                row[request.L2] = self._l2_bytes(entry, bytes_moved)
                if entry.index in self._reuse:
                    row[request.L2] *= self._reuse[entry.index].unit
                    memory = self._memory_shares[entry.argument]
                    row[request.MALL] = bytes_moved * self._reuse[entry.index].die
                    row[request.HBM] = bytes_moved * self._beyond(entry.index) * memory
                    np.minimum(row, row[request.L2], out=row, where=_BEYOND)
                    instruction_reuse = self._reuse[entry.index]
                    row[request.LATE_MALL] = bytes_moved * instruction_reuse.pending
                    row[request.LATE_HBM] = bytes_moved * instruction_reuse.pending_chip * memory
                if entry.space == "scalar":
                    row[request.L2 :] = 0.0
            else:
                row[:] = self._scratch[entry.index]
        return rows

    def traffic(self) -> LevelTraffic:
        """Bytes of the whole launch per level."""
        instruction_bytes = self.rows * (self._executions * self._waves)[:, None]
        totals = instruction_bytes.sum(axis=0)
        stores = [entry.index for entry in self._memory.values() if _writes(entry)]
        return LevelTraffic(
            *(float(totals[level]) for level in (request.L2, request.MALL, request.HBM)),
            written=float(instruction_bytes[stores, request.MALL].sum()),
            atomics=self._atomics,
        )

    def _line_bytes(self, entry: MemoryInstruction) -> float:
        """Bytes of the whole lines that one execution touches."""
        contiguous = float(self._code.contiguous[entry.index, request.L2])
        return contiguous if entry.lines is None else max(entry.lines * self._line, 0.0)

    def _l2_bytes(self, entry: MemoryInstruction, lines: float) -> float:
        """Bytes one execution moves between L1 and L2, of `lines` bytes it touches: as much of a
        line as a store writes, but no less than a sector of each."""
        if entry.kind != "store" or entry.lines is None:
            return lines
        contiguous = float(self._code.contiguous[entry.index, request.L2])
        return min(lines, max(contiguous, float(entry.lines * SECTOR)))


def _writes(entry: MemoryInstruction) -> bool:
    return entry.kind in ("store", "store_from_lds", "atomic") and entry.space in _STORED


def _distinct(size: float, part: float, number: float) -> float:
    """Distinct bytes over requested bytes, when a number of workgroups each ask for a `part` of
    the `size` bytes of a tensor, picked at random."""
    if not part or not size:
        return 1.0
    distinct = size * (1 - (1 - min(1.0, part / size)) ** number)
    return min(1.0, distinct / (number * part))


__all__ = ["AccessStreams"]
