"""Requests of sampled waves as sectors of memory: what is kept of lanes and addresses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from wavecast.compile.loops import loop

Array = np.ndarray[Any, Any]

VECTOR, SCALAR, LDS, PRIVATE = range(4)
"""Where a request goes: through the vector L1, the scalar cache, to LDS, or to scratch memory."""
LOAD, STORE, ATOMIC = range(3)
SECTOR_BITS: Final = 6
SECTOR: Final = 1 << SECTOR_BITS
"""Bytes in which requests are kept. Stores move so much at least between L1 and L2: a channel takes
64 B per clock (AMD, "CDNA 3 white paper")."""
MOST: Final = 512
"""Sectors one request can touch: 64 lanes, 16 bytes each, all unaligned, and room."""


@dataclass(frozen=True, slots=True, eq=False)
class MemoryTable:
    """Per instruction: `path` and `kind` (i8) are the constants above, `width` (i32) bytes per
    lane, `phases` (i32) the row of `lanes` (i32[phases, groups, lanes], -1 for none) that says
    which lanes the LDS serves together, over `banks` (i32[phases]) banks."""

    path: Array
    kind: Array
    width: Array
    phases: Array
    lanes: Array
    banks: Array


@dataclass(frozen=True, slots=True, eq=False)
class ArrayMap:
    """Where arrays of this process are on a device: those at `first` (i64) to before `end` begin at
    `base`. Anything else lies in `window` bytes (a power of two) from `rest` on.

    Numbers and bases follow the order in which arrays are given, never their host addresses: two
    processes predict the same time. `by_address` (i64) sorts the arrays by `first`.
    """

    first: Array
    end: Array
    base: Array
    by_address: Array
    rest: int
    window: int

    @staticmethod
    def of(ranges: Sequence[tuple[int, int]], page: int = 4096) -> ArrayMap:
        """Arrays one after the other in the order given, each in separate pages."""
        unique_ranges = list(dict.fromkeys(ranges))
        size = np.array([high - low for low, high in unique_ranges], np.int64)
        pages = 1 + np.concatenate([[0], np.cumsum(size // page + 2)]).astype(np.int64)
        first = np.array([low for low, _ in unique_ranges], np.int64)
        by_address = np.argsort(first, kind="stable")
        base, rest = pages[:-1] * page, int(pages[-1]) * page
        return ArrayMap(first, first + size, base, by_address, rest, page)

    @property
    def sizes(self) -> tuple[float, ...]:
        """Bytes of the arrays, and of what is in none."""
        return (*(self.end - self.first).astype(float).tolist(), float(self.window))


@dataclass(frozen=True, slots=True, eq=False)
class Accesses:
    """m requests, those of a wave in order.

    `stream` (i64[m]) numbers the waves, `instruction` (i64[m]) the instructions, `array` (i64[m])
    what each goes to, by its first lane; the last number stands for none. The sectors a request
    touches are `sectors[start[n] : start[n + 1]]` (u32, sorted), device addresses over `SECTOR`;
    none for LDS and scratch. `passes` (f64[m]) are the passes of an LDS request, or the
    lanes of an atomic that wait for one with the same address. `lanes` (i64[m]) are those that take
    part.
    """

    stream: Array
    instruction: Array
    array: Array
    passes: Array
    lanes: Array
    start: Array
    sectors: Array

    def __len__(self) -> int:
        return len(self.stream)

    @staticmethod
    def join(parts: Sequence[Accesses]) -> Accesses:
        """All of them, ordered by stream."""
        lengths = np.concatenate([np.diff(part.start) for part in parts])
        starts = np.concatenate([[0], np.cumsum(lengths)])[:-1]
        stream = np.concatenate([part.stream for part in parts])
        order = np.argsort(stream, kind="stable")
        start = np.concatenate([[0], np.cumsum(lengths[order])])
        sectors = np.concatenate([part.sectors for part in parts])
        gathered = np.zeros(len(sectors), np.uint32)
        _gather(sectors, starts[order], start, gathered)
        return Accesses(
            stream[order],
            np.concatenate([part.instruction for part in parts])[order],
            np.concatenate([part.array for part in parts])[order],
            np.concatenate([part.passes for part in parts])[order],
            np.concatenate([part.lanes for part in parts])[order],
            start,
            gathered,
        )


def reduce_records(records: Array, instructions: MemoryTable, arrays: ArrayMap) -> Accesses:
    """What is kept of access records: u64[m, 2 + lanes], the number of the stream (upper half) and
    of the instruction, the lanes that take part, the address of each."""
    number = len(records)
    stream = (records[:, 0] >> np.uint64(32)).astype(np.int64)
    instruction = (records[:, 0] & np.uint64(0xFFFFFFFF)).astype(np.int64)
    array = np.zeros(number, np.int64)
    passes = np.zeros(number)
    counts = np.zeros(number, np.int64)
    room = np.zeros(max(1024, 8 * number), np.uint32)
    scratch = np.zeros(MOST, np.uint32), np.zeros((64, 64), np.int64), np.zeros(64, np.int64)
    progress = np.zeros(2, np.int64)
    while _reduce(
        records, instruction, instructions.path, instructions.kind, instructions.width,
        instructions.phases, instructions.lanes, instructions.banks, arrays.first, arrays.end,
        arrays.base, arrays.by_address, arrays.first[arrays.by_address], arrays.rest,
        arrays.window, array, passes, counts, scratch, room, progress,
    ):  # fmt: skip
        room = np.concatenate([room, np.zeros(len(room) + MOST, np.uint32)])
    start = np.concatenate([[0], np.cumsum(counts)])
    masks = np.ascontiguousarray(records[:, 1]).view(np.uint8).reshape(number, 8)
    lanes = np.unpackbits(masks, axis=1).sum(axis=1, dtype=np.int64)
    return Accesses(stream, instruction, array, passes, lanes, start, room[: progress[1]].copy())


@loop
def _reduce(  # pragma: no cover
    records, instruction, path, kind, width, phases, lanes, banks, first, end, base, by_address,
    firsts, rest, window, array, passes, counts, scratch, room, progress,
):  # fmt: skip
    """Reduce records from `progress[0]` on; their sectors go to `room`, `progress[1]` of them so
    far. 1 where `room` has none left for the next record, 0 at the end."""
    sectors, dwords, fill = scratch
    cursor = progress[1]
    for at in range(progress[0], len(records)):
        progress[0], progress[1] = at, cursor
        if cursor + MOST > len(room):
            return 1
        which = instruction[at]
        mask = records[at, 1]
        array[at] = len(first)
        if mask == 0:
            continue
        if path[which] == LDS:
            row = phases[which]
            passes[at] = _lds_passes(
                records[at, 2:], mask, width[which], lanes[row], banks[row],
                kind[which] == ATOMIC, dwords, fill,
            )  # fmt: skip
            continue
        if path[which] == PRIVATE:
            continue
        lane = 0
        while not (mask >> np.uint64(lane)) & np.uint64(1):
            lane += 1
        address = np.int64(records[at, 2 + lane])
        below = np.searchsorted(firsts, address, side="right") - 1
        if below >= 0 and address < end[by_address[below]]:
            array[at] = by_address[below]
        count = 0
        for lane in range(records.shape[1] - 2):
            if not (mask >> np.uint64(lane)) & np.uint64(1):
                continue
            address = np.int64(records[at, 2 + lane])
            if array[at] < len(first):
                address += base[array[at]] - first[array[at]]
            else:
                address = rest + (address & (window - 1))
            low = address >> SECTOR_BITS
            high = (address + width[which] - 1) >> SECTOR_BITS
            for sector in range(low, high + 1):
                spot = count
                while spot > 0 and sectors[spot - 1] > sector:
                    spot -= 1
                if (spot > 0 and sectors[spot - 1] == sector) or count == MOST:
                    continue
                for later in range(count, spot, -1):
                    sectors[later] = sectors[later - 1]
                sectors[spot] = sector
                count += 1
        if kind[which] == ATOMIC:
            passes[at] = _repeats(records[at, 2:], mask)
        for sector in range(count):
            room[cursor + sector] = sectors[sector]
        cursor += count
        counts[at] = count
    progress[1] = cursor
    return 0


@loop
def _lds_passes(addresses, mask, width, groups, banks, serial, dwords, fill):  # pragma: no cover
    """Passes of an LDS request: of each group the most dwords one bank is asked for."""
    passes = 0
    for group in groups:
        fill[:banks] = 0
        worst = 0
        for lane in group:
            if lane < 0 or not (mask >> np.uint64(lane)) & np.uint64(1):
                continue
            low = np.int64(addresses[lane]) // 4
            high = (np.int64(addresses[lane]) + max(width, 1) - 1) // 4
            for dword in range(low, high + 1):
                bank = dword % banks
                is_duplicate = False
                if not serial:
                    for at in range(fill[bank]):
                        if dwords[bank, at] == dword:
                            is_duplicate = True
                            break
                if not is_duplicate and fill[bank] < 64:
                    dwords[bank, fill[bank]] = dword
                    fill[bank] += 1
                    worst = max(worst, fill[bank])
        passes += worst
    return passes


@loop
def _repeats(addresses, mask):  # pragma: no cover
    """Lanes whose address an earlier lane has."""
    repeats = 0
    for lane in range(len(addresses)):
        if not (mask >> np.uint64(lane)) & np.uint64(1):
            continue
        for earlier in range(lane):
            if (mask >> np.uint64(earlier)) & np.uint64(1) and (
                addresses[earlier] == addresses[lane]
            ):
                repeats += 1
                break
    return repeats


@loop
def _gather(sectors, starts, start, out):  # pragma: no cover
    """Write the sectors from each of `starts` on to `out`, in the order of `start`."""
    for at in range(len(starts)):
        for number in range(start[at + 1] - start[at]):
            out[start[at] + number] = sectors[starts[at] + number]


__all__ = [
    "ATOMIC",
    "LDS",
    "LOAD",
    "MOST",
    "PRIVATE",
    "SCALAR",
    "SECTOR",
    "SECTOR_BITS",
    "STORE",
    "VECTOR",
    "Accesses",
    "ArrayMap",
    "MemoryTable",
    "reduce_records",
]  # fmt: skip
