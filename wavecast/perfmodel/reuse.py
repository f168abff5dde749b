"""Reuse between the workgroups that run at once, from the addresses of their accesses.

The workgroups of the first round are taken at their start; their threads' addresses come from
following the code (`analyze.values.points`). Where an instruction reaches b distinct addresses
among n workgroups, each with equally many bytes, the L2 of a die passes on b / n of the requested
bytes: workgroups go through their loops side by side. Where an iteration advances the addresses by
a step, addresses that are whole steps apart meet as well, as long as the cache keeps the bytes in
between. Within a workgroup, lines count once that several waves, or instructions side by side, ask
for; so do lines that a loop returns to (the taps of a convolution), if the L2 keeps what all
workgroups touch until then. Loads that are executed side by side share the vector L1
(`vector_cache`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from wavecast.analyze.result import CodeAnalysis, MemoryInstruction
from wavecast.analyze.values.points import ThreadAddresses, follow
from wavecast.compile.codeobject import Launch
from wavecast.isa.opcode import MemoryKind
from wavecast.isa.program import Kernel, Program
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.memory import residency
from wavecast.perfmodel.placement import LaunchPlacement
from wavecast.perfmodel.vector_cache import missed_shares

_LOADS: Final = (MemoryKind.LOAD.value, MemoryKind.LOAD_TO_LDS.value)
AT_ONCE: Final = 1024
"""Workgroups of the first round that are followed at most."""


@dataclass(frozen=True, slots=True)
class Reuse:
    """The part of an instruction's requested bytes that passes the L2 of its die (`die`), the
    distinct part of what passes the L2 of all dies (`chip`), and the part of the requested bytes
    that passes the vector L1 (`unit`). 1 means no reuse. Parts that others ask for side by side are
    on the way to the L2 (`pending`), and to the memory-side cache (`pending_chip`)."""

    die: float
    chip: float
    unit: float = 1.0
    pending: float = 0.0
    pending_chip: float = 0.0


def reuse(
    launch: Launch,
    analysis: CodeAnalysis,
    kernel: Kernel,
    chip: Chip,
    placement: LaunchPlacement,
    bytes_moved: Mapping[int, float],
    line: float,
) -> Mapping[int, Reuse]:
    """The reuse of every instruction whose addresses are known. `bytes_moved` are the bytes that
    one execution by one wave asks of the L2, `line` those of a cache line."""
    numbers = np.arange(min(len(placement.first_round()), AT_ONCE))
    program, lanes = kernel.program, placement.wave_lanes
    threads = placement.waves * lanes
    workgroups = np.array([launch.workgroup(int(number)) for number in numbers])
    trace = follow(kernel, launch, workgroups, threads)
    first, every = trace.first, trace.iterations
    memory = {e.index: e for e in analysis.memory if e.index in first and e.index in bytes_moved}
    origins = np.unique([argument.storage for argument in launch.tensors if argument.storage])
    trips = {loop.index: loop.trip_count or 1.0 for loop in analysis.loops}
    regions = {index: _region(entry, program, analysis) for index, entry in memory.items()}
    requests = _Requests(memory, first, regions, origins, threads, lanes, int(line))
    within = requests.distinct_shares()
    of_unit = requests.missed_shares(_lines_of_workgroup(chip, placement, line))
    returning = partial(_returning, every=every or {}, origins=origins, line=int(line))
    bent = {index for index in memory if every is None or not _steady(every.get(index, ()))}
    streams = _streams(memory, first, bent, numbers % placement.dies, threads)
    per_iteration: dict[int | None, float] = {}  # bytes that all dies fetch, by loop
    for stream in streams:
        request_bytes = (
            sum(bytes_moved[i] * within[i] for i in stream.indices) * placement.waves * len(numbers)
        )
        fetched = request_bytes * stream.distinct(on_dies=True)
        per_iteration[stream.loop] = per_iteration.get(stream.loop, 0.0) + fetched
    usable = chip.coefficient("memory", "cache_share")
    reuses = {}
    for stream in streams:
        in_l2 = in_mall = 1.0
        if stream.loop is not None:
            # iterations of this loop that the L2 of a die, and the memory-side cache, keep
            trip, fetched = trips[stream.loop], per_iteration[stream.loop]
            in_l2 = min(trip, usable * chip.l2_slice * placement.dies / fetched)
            in_mall = min(trip, usable * chip.mall_bytes / fetched)
        die_share = stream.distinct(on_dies=True, window=in_l2)
        distinct = min(1.0, stream.distinct(on_dies=False, window=in_mall) / die_share)
        # what is new in an iteration, whoever asks for it first
        new = min(1.0, die_share / stream.distinct(on_dies=True))
        new_of_chip = min(
            new,
            stream.distinct(on_dies=False, window=in_mall) / stream.distinct(on_dies=False),
        )
        lines, once = returning(stream.indices)
        if lines:
            working_set = once * line * len(numbers) * die_share
            capacity = usable * chip.l2_slice
            hit_share = float(np.asarray(residency(working_set / placement.dies, capacity)))
            again = 1 - hit_share * (1 - once / lines)
            die_share, new, new_of_chip = die_share * again, new * again, new_of_chip * again
        reuses.update(
            {
                index: Reuse(
                    within[index] * die_share,
                    distinct,
                    of_unit.get(index, 1.0),
                    max(0.0, new - within[index] * die_share),
                    max(0.0, new_of_chip - within[index] * die_share * distinct),
                )
                for index in stream.indices
            }
        )
    return reuses


@dataclass(frozen=True, slots=True, eq=False)
class AddressStream:
    """Instructions of one loop that go through one argument side by side.

    `bases` (i64[instructions · workgroups]) are the addresses at which each workgroup begins, by
    instruction; `die` is the die of the workgroup. All advance by `step` bytes per iteration, 0 if
    unknown or not constant.
    """

    indices: tuple[int, ...]
    loop: int | None
    bases: np.ndarray
    die: np.ndarray
    step: int

    def distinct(self, *, on_dies: bool, window: float = 1.0) -> float:
        """Distinct addresses, on each die or on the chip, over the sum of those of each workgroup,
        per iteration, when the cache keeps `window` iterations."""
        group = self.die if on_dies else np.zeros_like(self.die)
        threads = np.tile(np.arange(len(self.die) // len(self.indices)), len(self.indices))
        every = _distinct(self.bases, threads, self.step, window)
        return _distinct(self.bases, group, self.step, window) / every


def _streams(
    memory: Mapping[int, MemoryInstruction],
    addresses: Mapping[int, ThreadAddresses],
    bent: Set[int],
    die: np.ndarray,
    threads: int,
) -> list[AddressStream]:
    alike: dict[tuple[object, ...], list[int]] = {}
    for index, entry in memory.items():
        moves = entry.loop is not None and index not in bent
        step = _step(addresses[index]) if moves else 0
        key = entry.argument, entry.kind, entry.bytes_per_lane, entry.loop, step
        alike.setdefault(key, []).append(index)
    streams = []
    for (*_, step), indices in alike.items():
        bases = np.concatenate([addresses[index].first[threads:] for index in indices])
        loop = memory[indices[0]].loop
        assert isinstance(step, int)
        streams.append(AddressStream(tuple(indices), loop, bases, np.tile(die, len(indices)), step))
    return streams


def _distinct(base: np.ndarray, group: np.ndarray, step: int, window: float) -> float:
    """Distinct addresses per iteration in each group, over all groups, when every address advances
    by `step` and the cache keeps `window` iterations."""
    base = base - base.min()
    if not step or window <= 1:
        return float(len(np.unique(base * (int(group.max()) + 1) + group)))
    position, lane = base // step, base % step
    order = np.lexsort((position, lane, group))
    position, lane, group = position[order], lane[order], group[order]
    same = (np.diff(lane) == 0) & (np.diff(group) == 0)
    return 1.0 + float(np.where(same, np.minimum(np.diff(position), window), window).sum()) / window


def _on_gpu(addresses: np.ndarray, origins: np.ndarray) -> np.ndarray:
    """Addresses (i64[n]) as on a GPU, where every storage starts a line: `origins` (sorted) are
    the starts of the storages on the host."""
    if not len(origins):
        return addresses
    storage = np.searchsorted(origins, addresses, side="right") - 1
    return addresses - origins[np.maximum(storage, 0)] + (storage << 44)


def _steady(addresses: Sequence[np.ndarray]) -> bool:
    """Whether the first thread advances by one step from each iteration to the next."""
    first = np.array([iteration[0] for iteration in addresses if len(iteration)], np.int64)
    return len(np.unique(np.diff(first))) <= 1


def _returning(
    indices: Sequence[int],
    every: Mapping[int, Sequence[np.ndarray]],
    origins: np.ndarray,
    line: int,
) -> tuple[int, int]:
    """Lines that some instructions touch, summed over iterations, and how many of them are
    distinct; zeros where that is not known."""
    if not all(index in every for index in indices):
        return 0, 0
    lines_by_iteration: dict[int, list[np.ndarray]] = {}
    for index in indices:
        for iteration, addresses in enumerate(every[index]):
            lines_by_iteration.setdefault(iteration, []).append(_on_gpu(addresses, origins) // line)
    each = [np.unique(np.concatenate(lines)) for lines in lines_by_iteration.values()]
    return sum(map(len, each)), len(np.unique(np.concatenate(each)))


def _step(addresses: ThreadAddresses) -> int:
    """Bytes from the first execution to the second where all threads agree, else 0."""
    if addresses.second is None:
        return 0
    steps = np.unique(addresses.second - addresses.first)
    return abs(int(steps[0])) if len(steps) == 1 else 0


def _region(
    entry: MemoryInstruction, program: Program, analysis: CodeAnalysis
) -> tuple[str, int | None]:
    """What is executed side by side with an instruction: its block; for one that a loop of one
    iteration repeats for other descriptors ("waterfall"), all such loops of what is around it."""
    trips = {loop.index: loop.trip_count for loop in analysis.loops}
    if entry.loop is None or trips.get(entry.loop) != 1:
        return "block", bisect_right([block.start for block in program.blocks], entry.index)
    loop: int | None = entry.loop
    while loop is not None and trips.get(loop) == 1:
        loop = program.loops[loop].parent
    return "loops", loop


def _lines_of_workgroup(chip: Chip, placement: LaunchPlacement, line: float) -> float:
    """Lines that a vector L1 keeps for each workgroup of its unit; a WGP has two of them."""
    caches = 2 if placement.unit == "WGP" else 1
    at_once = min(placement.resident, -(-placement.workgroups // placement.units))
    return caches * chip.device.facts.integer("l1v_size", "B") / line / at_once


class _Requests:
    """The lines that the waves of the first workgroup ask for, by instruction. `origins` are the
    starts of the arguments' storages, which start a line."""

    def __init__(
        self,
        memory: Mapping[int, MemoryInstruction],
        addresses: Mapping[int, ThreadAddresses],
        regions: Mapping[int, tuple[str, int | None]],
        origins: np.ndarray,
        threads: int,
        lanes: int,
        line: int,
    ) -> None:
        self._memory, self._regions = memory, regions
        wave, waves = np.arange(threads) // lanes, -(-threads // lanes)
        self._lines: dict[int, np.ndarray] = {}
        """Of each instruction (i64[n]), a line once for each wave."""
        for index, entry in memory.items():
            in_bounds = addresses[index].in_bounds[:threads]
            start = _on_gpu(addresses[index].first[:threads][in_bounds], origins)
            width = max(1, entry.bytes_per_lane)
            lines = np.concatenate([start // line, (start + width - 1) // line])
            self._lines[index] = np.unique(lines * waves + np.tile(wave[in_bounds], 2)) // waves

    def distinct_shares(self) -> dict[int, float]:
        """Distinct lines over requested lines: of all instructions of a region that access the
        same argument."""
        shares = {}
        for indices in self._alike():
            lines = np.concatenate([self._lines[index] for index in indices])
            share = len(np.unique(lines)) / len(lines) if len(lines) else 1.0
            shares.update(dict.fromkeys(indices, share))
        return shares

    def missed_shares(self, capacity: float) -> dict[int, float]:
        """The part of the lines which all loads of a region ask of the same argument that the
        vector L1 does not have; it keeps `capacity` lines."""
        by_region: dict[tuple[str, int | None], list[int]] = {}
        for index, entry in sorted(self._memory.items()):
            if entry.kind in _LOADS:
                by_region.setdefault(self._regions[index], []).append(index)
        missed: dict[int, float] = {}
        for indices in by_region.values():
            shares = missed_shares([self._lines[index] for index in indices], capacity)
            missed.update(zip(indices, shares, strict=True))
        together: dict[int, float] = {}
        for indices in self._alike():
            if indices[0] in missed:
                numbers = [len(self._lines[index]) for index in indices]
                total = sum(missed[i] * number for i, number in zip(indices, numbers, strict=True))
                share = total / sum(numbers) if sum(numbers) else 1.0
                together.update(dict.fromkeys(indices, share))
        return together

    def _alike(self) -> Iterable[list[int]]:
        """The instructions of every region that access the same argument in the same way."""
        alike: dict[tuple[object, ...], list[int]] = {}
        for index, entry in self._memory.items():
            alike.setdefault((self._regions[index], entry.argument, entry.kind), []).append(index)
        return alike.values()


__all__ = ["AT_ONCE", "AddressStream", "Reuse", "reuse"]
