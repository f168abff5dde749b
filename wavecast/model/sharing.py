"""What workgroups that run at once ask of memory together, by where each of them reaches.

At the start the workgroups of the first round are taken; their threads' addresses come from
following the code (`analyze.values.points`). Of an instruction that reaches b different places
among n workgroups, each with equally many bytes, a die's L2 passes on b / n of what is asked: they
go through their loops side by side. Where an iteration moves the places by a step, places that lie
whole steps apart meet as well, as long as the cache keeps what came in between. Within a workgroup
lines count once that waves, or instructions side by side, ask for twice; and lines that a loop
comes back to (the taps of a convolution) as far as the L2 holds what all workgroups touch by then.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from wavecast.analyze.result import CodeAnalysis, MemoryInstruction
from wavecast.analyze.values.points import Places, places, visits
from wavecast.compile.codeobject import Launch
from wavecast.isa.program import Kernel, Program
from wavecast.model.chip import Chip
from wavecast.model.launch import Grid
from wavecast.model.memory import residency

AT_ONCE: Final = 1024
"""Workgroups of the first round that are followed at most."""


@dataclass(frozen=True, slots=True)
class Share:
    """Of the bytes an instruction asks for: the part that passes the L2 of its die (`die`), and how
    much of what passes all of them differs (`chip`)."""

    die: float
    chip: float


def shares(
    launch: Launch,
    analysis: CodeAnalysis,
    kernel: Kernel,
    chip: Chip,
    grid: Grid,
    moved: Mapping[int, float],
    line: float,
) -> Mapping[int, Share]:
    """The share of every instruction whose addresses are known. `moved` are the bytes that one
    execution by one wave asks of the L2, `line` those of a cache line."""
    numbers = np.arange(min(grid.workgroups, grid.units * grid.resident, AT_ONCE))
    program, descriptor = kernel.program, kernel.descriptor
    threads = grid.waves * descriptor.wave_size
    where = np.array([launch.workgroup(int(number)) for number in numbers])
    found = places(
        program,
        descriptor,
        launch,
        np.concatenate([np.repeat(where[:1], threads, axis=0), where]),
        np.concatenate([np.arange(threads), np.zeros(len(numbers), np.int64)]),
    )
    memory = {e.index: e for e in analysis.memory if e.index in found and e.index in moved}
    origins = np.unique([argument.storage for argument in launch.arguments if argument.storage])
    whole = _within(memory, found, program, origins, threads, descriptor.wave_size, int(line))
    middle = launch.workgroup(int(numbers[len(numbers) // 2]))
    every = visits(program, descriptor, launch, middle, threads)
    again = partial(_returning, every=every or {}, origins=origins, line=int(line))
    bent = {index for index in memory if every is None or not _steady(every.get(index, ()))}
    fronts = _fronts(memory, found, bent, numbers % grid.dies, threads)
    trips = {loop.index: loop.trip_count or 1.0 for loop in analysis.loops}
    turns: dict[int | None, float] = {}
    for front in fronts:
        asked = sum(moved[i] * whole[i] for i in front.indices) * grid.waves * len(numbers)
        turns[front.loop] = turns.get(front.loop, 0.0) + asked * front.part(on_dies=True)
    usable = chip.coefficient("memory", "cache_share")
    shared = {}
    for front in fronts:
        dies = chips = 1.0
        if front.loop is not None:
            # iterations that the L2 of a die, and the memory-side cache, keep of this loop
            dies = min(trips[front.loop], usable * chip.l2_slice * grid.dies / turns[front.loop])
            chips = min(trips[front.loop], usable * chip.mall_bytes / turns[front.loop])
        passed = front.part(on_dies=True, turns=dies)
        differ = min(1.0, front.part(on_dies=False, turns=chips) / passed)
        lines, once = again(front.indices)
        if lines:
            touched = once * line * len(numbers) * passed
            held = float(np.asarray(residency(touched / grid.dies, usable * chip.l2_slice)))
            passed *= 1 - held * (1 - once / lines)
        shared.update({index: Share(whole[index] * passed, differ) for index in front.indices})
    return shared


@dataclass(frozen=True, slots=True, eq=False)
class _Front:
    """Instructions of one loop that go through one argument side by side: `bases` (i64[places]) are
    where each workgroup begins by each instruction, `die` where the workgroup is; all move by
    `step` bytes in an iteration, 0 if unknown or not always."""

    indices: tuple[int, ...]
    loop: int | None
    bases: np.ndarray
    die: np.ndarray
    step: int

    def part(self, *, on_dies: bool, turns: float = 1.0) -> float:
        """Different places, on a die or on the chip, over the sum of those of each workgroup, per
        iteration, when so many iterations are kept."""
        group = self.die if on_dies else np.zeros_like(self.die)
        own = np.tile(np.arange(len(self.die) // len(self.indices)), len(self.indices))
        every = _different(self.bases, own, self.step, turns)
        return _different(self.bases, group, self.step, turns) / every


def _fronts(
    memory: Mapping[int, MemoryInstruction],
    found: Mapping[int, Places],
    bent: Set[int],
    die: np.ndarray,
    threads: int,
) -> list[_Front]:
    alike: dict[tuple[object, ...], list[int]] = {}
    for index, entry in memory.items():
        moves = entry.loop is not None and index not in bent
        step = _step(found[index]) if moves else 0
        key = entry.argument, entry.kind, entry.bytes_per_lane, entry.loop, step
        alike.setdefault(key, []).append(index)
    fronts = []
    for (*_, step), indices in alike.items():
        bases = np.concatenate([found[index].first[threads:] for index in indices])
        loop = memory[indices[0]].loop
        assert isinstance(step, int)
        fronts.append(_Front(tuple(indices), loop, bases, np.tile(die, len(indices)), step))
    return fronts


def _different(base: np.ndarray, group: np.ndarray, step: int, turns: float) -> float:
    """Different places per iteration among those of each group, over all groups, when every place
    moves by `step` and `turns` iterations are kept."""
    base = base - base.min()
    if not step or turns <= 1:
        return float(len(np.unique(base * (int(group.max()) + 1) + group)))
    position, lane = base // step, base % step
    order = np.lexsort((position, lane, group))
    position, lane, group = position[order], lane[order], group[order]
    same = (np.diff(lane) == 0) & (np.diff(group) == 0)
    return 1.0 + float(np.where(same, np.minimum(np.diff(position), turns), turns).sum()) / turns


def _placed(addresses: np.ndarray, origins: np.ndarray) -> np.ndarray:
    """Addresses (i64[n]) as on a GPU, where every storage starts a line: `origins` (sorted) are
    where they start here."""
    if not len(origins):
        return addresses
    storage = np.searchsorted(origins, addresses, side="right") - 1
    return addresses - origins[np.maximum(storage, 0)] + (storage << 44)


def _steady(addresses: Sequence[np.ndarray]) -> bool:
    """Whether the first thread moves by one step from each iteration to the next."""
    first = np.array([one[0] for one in addresses if len(one)], np.int64)
    return len(np.unique(np.diff(first))) <= 1


def _returning(
    indices: Sequence[int],
    every: Mapping[int, Sequence[np.ndarray]],
    origins: np.ndarray,
    line: int,
) -> tuple[int, int]:
    """Lines that some instructions touch in one iteration after the other, and how many different
    ones; none where that is not known."""
    if not all(index in every for index in indices):
        return 0, 0
    turns: dict[int, list[np.ndarray]] = {}
    for index in indices:
        for turn, addresses in enumerate(every[index]):
            turns.setdefault(turn, []).append(_placed(addresses, origins) // line)
    each = [np.unique(np.concatenate(lines)) for lines in turns.values()]
    return sum(map(len, each)), len(np.unique(np.concatenate(each)))


def _step(places: Places) -> int:
    """Bytes from the first execution to the second where all threads agree, else 0."""
    if places.second is None:
        return 0
    steps = np.unique(places.second - places.first)
    return abs(int(steps[0])) if len(steps) == 1 else 0


def _within(
    memory: Mapping[int, MemoryInstruction],
    found: Mapping[int, Places],
    program: Program,
    origins: np.ndarray,
    threads: int,
    lanes: int,
    line: int,
) -> dict[int, float]:
    """Different lines over lines asked for, by instruction: of all instructions of its block that
    access the same argument, in the first workgroup. `origins` are where arguments' storages start,
    where lines do."""
    alike: dict[tuple[int, str, str], list[int]] = {}
    starts = [block.start for block in program.blocks]
    for index, entry in memory.items():
        block = bisect_right(starts, index)
        alike.setdefault((block, entry.argument, entry.kind), []).append(index)
    wave, waves = np.arange(threads) // lanes, -(-threads // lanes)
    parts = {}
    for indices in alike.values():
        all_, asked = [], 0
        for index in indices:
            inside = found[index].inside[:threads]
            start = _placed(found[index].first[:threads][inside], origins)
            width = max(1, memory[index].bytes_per_lane)
            lines = np.concatenate([start // line, (start + width - 1) // line])
            of_waves = np.unique(lines * waves + np.tile(wave[inside], 2))
            asked += len(of_waves)
            all_.append(of_waves // waves)
        part = len(np.unique(np.concatenate(all_))) / asked if asked else 1.0
        parts.update(dict.fromkeys(indices, part))
    return parts


__all__ = ["AT_ONCE", "Share", "shares"]
