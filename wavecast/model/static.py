"""Demand of a launch read off its code: blocks with their counts, accesses with their patterns.

Source (c) of the model: nothing is executed. A wave's path is laid out from the loops and their
trip counts, some iterations of each standing for all; every wave of the launch is taken to be
alike. An access asks for the lines its lanes touch (contiguous where unknown).

How much of that passes a cache follows from where the workgroups that run at once reach
(`sharing`). Where that is not known they share what they ask of a tensor as if each picked its part
at random: n workgroups that ask for q bytes each of a tensor of F bytes touch F·(1 − (1 − q/F)ⁿ)
different ones. A tensor the L2 of a die holds is fetched once by it. Of what all dies fetch, the
memory-side cache keeps what it keeps of an executed launch (`model.cache.traffic`); before, only
what is said to be is in it (`model.sequence`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from wavecast.analyze.launch import waves_of
from wavecast.analyze.result import CodeAnalysis, MemoryInstruction
from wavecast.arch import Device
from wavecast.compile.codeobject import Launch
from wavecast.errors import Unpredictable
from wavecast.isa.program import Kernel, Loop, Program
from wavecast.model.cache.accesses import SECTOR
from wavecast.model.cache.traffic import reach
from wavecast.model.chip import Chip
from wavecast.model.cu import streams as request
from wavecast.model.cu.code import Code
from wavecast.model.cu.fold import FIRST, LAST
from wavecast.model.cu.streams import Streams, expanded
from wavecast.model.footprint import element_bytes
from wavecast.model.launch import Grid, Launched, Traffic
from wavecast.model.sharing import Share, shares

Array = np.ndarray[Any, Any]

_MUCH: Final = 0.1
"""What of the bytes asked for may be shared by a guess before that is worth a note."""
_CACHED: Final = ("global", "buffer", "flat")
_BEYOND: Final = np.isin(np.arange(request.REQUEST), (request.MALL, request.HBM))
GUESSED = (
    "where workgroups reach is not known from the code: each takes its part of a tensor as if at "
    "random; an executed sample knows"
)
UNKNOWN_PATTERN = "addresses that could not be followed count as contiguous"
ALIKE = "every wave is taken to be like the average of the sampled ones"


def static_launch(
    launch: Launch,
    analysis: CodeAnalysis,
    kernel: Kernel,
    device: Device,
    held: Mapping[str, float] | None = None,
) -> Launched:
    """The launch from its code; of arguments in `held` that share is in the memory-side cache
    before. Raises Unpredictable where a count or the grid is not known."""
    program, wave_lanes = kernel.program, kernel.descriptor.wave_size
    counts = _counts(launch, analysis, program)
    chip = Chip.of(device)
    code = Code.of(program, device, wave_lanes)
    waves = waves_of(launch, analysis.occupancy.waves_per_workgroup)
    assert waves is not None
    grid = grid_of(launch, analysis, device, wave_lanes)
    blocks, weights = _path(program, analysis, counts)
    lengths = np.array([b.stop - b.start for b in program.blocks], np.int64)
    firsts = np.array([b.start for b in program.blocks], np.int64)
    steps = expanded(blocks, firsts, lengths)
    step_weights = np.repeat(weights, lengths[blocks])
    asked = _Asked(launch, analysis, kernel, code, chip, counts, waves, grid, held or {})
    rows = asked.rows()[steps[code.places[steps] > 0]]
    number = grid.waves
    found = Streams(
        waves=number,
        steps=np.tile(steps, number).astype(np.int32),
        weights=np.tile(step_weights, number).astype(np.float32),
        start=np.arange(number + 1) * len(steps),
        rows=np.tile(rows, (number, 1)).astype(np.float32),
        rows_start=np.arange(number + 1) * len(rows),
    )
    flops = analysis.executed_flops or {}
    dtype = max(flops, key=lambda name: flops[name]) if flops else ""
    notes = (
        ALIKE,
        *((UNKNOWN_PATTERN,) if asked.unknown else ()),
        *((GUESSED,) if asked.guessed > _MUCH else ()),
    )
    return Launched(chip, code, found, grid, asked.traffic(), dtype, notes)


def grid_of(launch: Launch, analysis: CodeAnalysis, device: Device, wave_lanes: int) -> Grid:
    """Where the workgroups of a launch lie on a device. Raises Unpredictable for some that do not
    fit it."""
    x, y, z = launch.grid
    occupied = analysis.occupancy
    limits = device.limits(wave_lanes)
    waves = occupied.waves_per_workgroup
    most = -(-limits.max_workgroup_threads // wave_lanes)
    if not occupied.fits or waves > most:
        raise Unpredictable(f"a workgroup of {waves} waves does not fit {device.id}")
    resident = max(1, int((occupied.resident_waves or 0) * limits.simds // waves))
    units = limits.units or device.compute_units
    dies = int(device.get("xcds", 1) or 1)
    return Grid(x * y * z, waves, resident, units, dies, limits.simds)


def _counts(launch: Launch, analysis: CodeAnalysis, program: Program) -> Array:
    if not all(launch.grid):
        raise Unpredictable("the grid of the launch is not known (state --grid)")
    counts = np.zeros(len(program.blocks))
    for block in program.blocks:
        count = analysis.executed[block.index] if block.index < len(analysis.executed) else None
        if count is None:
            raise Unpredictable(_why(analysis, program, block.index))
        counts[block.index] = count
    return counts


def _why(analysis: CodeAnalysis, program: Program, block: int) -> str:
    for loop in analysis.loops:
        if loop.trip_count is None and block in program.loops[loop.index].blocks:
            where = f" at line {loop.location.line}" if loop.location else ""
            return f"the loop{where} runs an unknown number of times ({loop.trip_note})"
    location = program.instructions[program.blocks[block].start].location
    where = f" at line {location.line}" if location else ""
    return f"how often the code{where} runs depends on data"


def _path(program: Program, analysis: CodeAnalysis, counts: Array) -> tuple[Array, Array]:
    """Blocks in the order a wave meets them, and for how many executions each stands."""
    trips = {loop.index: loop.trip_count or 0.0 for loop in analysis.loops}
    headers = {loop.header: loop for loop in program.loops}
    path: list[int] = []
    weights: list[float] = []

    def region(inside: Callable[[int], bool], weight: float, own: Loop | None) -> None:
        done: set[int] = set()
        for block in program.blocks:
            number = block.index
            if not inside(number) or number in done or counts[number] == 0:
                continue
            loop = headers.get(number)
            if loop is not None and loop is not own:
                turns(loop, weight)
                done |= loop.blocks
            else:
                path.append(number)
                weights.append(weight)

    def turns(loop: Loop, weight: float) -> None:
        trip = max(1.0, trips.get(loop.index, 1.0))
        whole = int(min(trip, FIRST + LAST))
        late = max(1, whole - FIRST)
        for turn in range(whole):
            share = 1.0 if turn < whole - late else (trip - (whole - late)) / late
            region(lambda number: number in loop.blocks, weight * share, loop)

    region(lambda _: True, 1.0, None)
    blocks = np.array(path, np.int64)
    found = np.array(weights)
    sums = np.bincount(blocks, found, len(counts))
    scale = np.divide(counts, sums, out=np.zeros(len(counts)), where=sums > 0)
    return blocks, found * scale[blocks]


class _Asked:
    """What every memory instruction asks of the caches, and the sums of a launch."""

    def __init__(
        self,
        launch: Launch,
        analysis: CodeAnalysis,
        kernel: Kernel,
        code: Code,
        chip: Chip,
        counts: Array,
        waves: int,
        grid: Grid,
        held: Mapping[str, float],
    ) -> None:
        program = code.program
        lengths = [b.stop - b.start for b in program.blocks]
        self.code, self.chip, self.waves = code, chip, waves
        self.executed = np.repeat(counts, lengths)
        self.memory = {entry.index: entry for entry in analysis.memory}
        line = chip.device.get("l1v_line")
        self.line = float(line) if isinstance(line, (int, float)) else 64.0
        self.unknown = any(
            entry.pattern == "unknown" and self.executed[entry.index] > 0
            for entry in analysis.memory
            if entry.space not in ("lds", "scalar", "scratch")
        )
        self.launch, self.analysis, self.kernel, self.grid = launch, analysis, kernel, grid
        sizes = {a.name: element_bytes(a) for a in launch.arguments if a.bytes > 0}
        self.requested = {
            index: self._moved(entry) * self.executed[index] * waves
            for index, entry in self.memory.items()
            if entry.space in _CACHED and self.executed[index] > 0
        }
        self.shares = self._shares(sizes)
        self.memory_shares = self._memory_shares(sizes, held)

    def _shares(self, sizes: Mapping[str, float]) -> dict[int, Share]:
        """What of the bytes instructions ask for passes the caches."""
        each = {index: self._moved(self.memory[index]) for index in self.requested}
        grid, chip = self.grid, self.chip
        known = shares(self.launch, self.analysis, self.kernel, chip, grid, each, self.line)
        usable = chip.coefficient("memory", "cache_share")
        at_once = min(grid.workgroups, grid.units * grid.resident)
        asked = self._by_argument(self.requested)
        guessed = {}
        for name, total in asked.items():
            if name not in sizes:
                continue
            size, part = sizes[name], total / grid.workgroups
            once = min(1.0, size / total) if total else 1.0
            die = max(once, _different(size, part, max(1.0, at_once / grid.dies)))
            chips = max(once, _different(size, part, at_once))
            guessed[name] = Share(die, min(1.0, chips / die))
        found, unknown = {}, 0.0
        for index, total in self.requested.items():
            name = self.memory[index].argument
            share = known.get(index) or guessed.get(name) or Share(1.0, 1.0)
            size = sizes.get(name, math.inf)
            if size <= usable * chip.l2_slice:
                once = min(1.0, size * grid.dies / asked[name])
                share = Share(min(share.die, once), max(share.chip, 1 / grid.dies))
            elif index not in known:
                unknown += total
            found[index] = share
        self.guessed = unknown / max(1.0, sum(self.requested.values()))
        return found

    def _memory_shares(
        self, sizes: Mapping[str, float], held: Mapping[str, float]
    ) -> dict[str, float]:
        """What of the different bytes all dies fetch of an argument comes from memory."""
        passed = {i: total * self._beyond(i) for i, total in self.requested.items()}
        moved = self._by_argument(passed)
        whole = [sizes.get(name, math.inf) for name in moved]
        before = np.array([held.get(name, 0.0) for name in moved])
        reached = reach(self.chip, np.array([*moved.values()]), whole, before)
        return dict(zip(moved, reached.tolist(), strict=True))

    def _by_argument(self, amounts: Mapping[int, float]) -> dict[str, float]:
        sums: dict[str, float] = {}
        for index, amount in amounts.items():
            name = self.memory[index].argument
            sums[name] = sums.get(name, 0.0) + amount
        return sums

    def _beyond(self, index: int) -> float:
        """What of an instruction's bytes is fetched from memory or the memory-side cache, counting
        once what several dies fetch."""
        share = self.shares[index]
        return share.die * (share.chip if self.chip.mall_bytes else 1.0)

    def rows(self) -> Array:
        """One request per instruction (f32[n, REQUEST])."""
        rows = self.code.contiguous.copy()
        for entry in self.memory.values():
            row = rows[entry.index]
            if entry.space == "lds":
                row[request.PASSES] *= entry.conflict_ways or 1.0
            elif entry.space != "scratch":
                moved = self._moved(entry)
                lines = entry.lines if entry.lines is not None else moved / self.line
                row[request.TAGS] = lines
                row[request.L2] = self._passed(entry, moved)
                if entry.index in self.shares:
                    memory = self.memory_shares[entry.argument]
                    row[request.MALL] = moved * self.shares[entry.index].die
                    row[request.HBM] = moved * self._beyond(entry.index) * memory
                    np.minimum(row, row[request.L2], out=row, where=_BEYOND)
                if entry.space == "scalar":
                    row[request.L2 :] = 0.0
            else:
                row[request.MALL :] = 0.0
        return rows

    def traffic(self) -> Traffic:
        """Bytes of the whole launch per level."""
        moved = self.rows() * (self.executed * self.waves)[:, None]
        totals = moved.sum(axis=0)
        stores = [entry.index for entry in self.memory.values() if _writes(entry)]
        return Traffic(
            *(float(totals[level]) for level in (request.L2, request.MALL, request.HBM)),
            written=float(moved[stores, request.MALL].sum()),
        )

    def _moved(self, entry: MemoryInstruction) -> float:
        """Bytes of the whole lines that one execution touches."""
        contiguous = float(self.code.contiguous[entry.index, request.L2])
        return contiguous if entry.lines is None else max(entry.lines * self.line, 0.0)

    def _passed(self, entry: MemoryInstruction, lines: float) -> float:
        """Bytes one execution moves between L1 and L2, of `lines` it touches: as much of a line as
        a store writes, but no less than a sector of each."""
        if entry.kind != "store" or entry.lines is None:
            return lines
        contiguous = float(self.code.contiguous[entry.index, request.L2])
        return min(lines, max(contiguous, float(entry.lines * SECTOR)))


def _writes(entry: MemoryInstruction) -> bool:
    return entry.kind in ("store", "store_from_lds", "atomic") and entry.space in _CACHED


def _different(size: float, part: float, number: float) -> float:
    """Different bytes over bytes asked for, when a number of workgroups each ask for a `part` of
    the `size` bytes of a tensor, picked at random."""
    if not part or not size:
        return 1.0
    different = size * (1 - (1 - min(1.0, part / size)) ** number)
    return min(1.0, different / (number * part))


__all__ = ["grid_of", "static_launch"]
