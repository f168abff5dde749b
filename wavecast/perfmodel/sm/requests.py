"""What executions of memory instructions ask of an SM: lines, sectors and passes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from wavecast.compile.loops import loop

Array = np.ndarray[Any, Any]

SECTOR_BITS: Final = 5
"""The L2 and memory move sectors of 32 B."""
LINE_BITS: Final = 7
BANKS: Final = 32
"""Banks of shared memory, 4 B wide each."""
MOST: Final = 64
"""Sectors one request can touch: 32 lanes of up to 32 bytes, each unaligned."""
SEEN: Final = 64
"""Words of one bank that lanes served together can ask for, and room."""


def sectors(addresses: Array, lanes: Array, width: int) -> tuple[Array, Array, Array]:
    """The distinct sectors of requests and the lines they lie in.

    `addresses` (u64[n, 32]) and `lanes` (bool[n, 32]) of n requests of `width` bytes a lane, at
    most 32. Gives the sectors (u64), the first of each request (i64[n + 1]), and lines per request
    (i64[n]).
    """
    number = len(addresses)
    start, lines = np.zeros(number + 1, np.int64), np.zeros(number, np.int64)
    room = np.zeros(max(1, number * MOST), np.uint64)
    request_sectors = np.zeros(MOST, np.uint64)
    size = _sectors(
        *_contiguous(addresses, lanes), max(1, width), room, request_sectors, start, lines
    )
    return room[:size].copy(), start, lines


def passes(addresses: Array, lanes: Array, width: int) -> Array:
    """Passes of shared-memory requests (f64[n]): of the lanes served together, the most words one
    bank is asked for. Lanes of 8 bytes go in halves of a warp, lanes of 16 in quarters."""
    counts = np.zeros(len(addresses))
    bank_words, fill = np.zeros((BANKS, SEEN), np.int64), np.zeros(BANKS, np.int64)
    _passes(*_contiguous(addresses, lanes), width, bank_words, fill, counts)
    return counts


def repeats(addresses: Array, lanes: Array) -> Array:
    """Lanes of atomics whose address an earlier lane has (f64[n])."""
    counts = np.zeros(len(addresses))
    _repeats(*_contiguous(addresses, lanes), counts)
    return counts


def _contiguous(addresses: Array, lanes: Array) -> tuple[Array, Array]:
    return np.ascontiguousarray(addresses, np.uint64), np.ascontiguousarray(lanes, bool)


@loop
def _sectors(addresses, lanes, width, room, request_sectors, start, lines):  # pragma: no cover
    size = 0
    for at in range(len(addresses)):
        count = 0
        for lane in range(32):
            if not lanes[at, lane]:
                continue
            first = addresses[at, lane] >> np.uint64(SECTOR_BITS)
            last = (addresses[at, lane] + np.uint64(width - 1)) >> np.uint64(SECTOR_BITS)
            sector = first
            while sector <= last:
                spot = count
                while spot > 0 and request_sectors[spot - 1] > sector:
                    spot -= 1
                if not (spot > 0 and request_sectors[spot - 1] == sector) and count < MOST:
                    for later in range(count, spot, -1):
                        request_sectors[later] = request_sectors[later - 1]
                    request_sectors[spot] = sector
                    count += 1
                sector += np.uint64(1)
        for sector in range(count):
            room[size + sector] = request_sectors[sector]
        size += count
        start[at + 1] = size
        for sector in range(count):
            line = request_sectors[sector] >> np.uint64(LINE_BITS - SECTOR_BITS)
            if sector == 0 or line != request_sectors[sector - 1] >> np.uint64(
                LINE_BITS - SECTOR_BITS
            ):
                lines[at] += 1
    return size


@loop
def _passes(addresses, lanes, width, bank_words, fill, counts):  # pragma: no cover
    together = 32 if width <= 4 else 16 if width <= 8 else 8
    words = max(1, width // 4)
    for at in range(len(addresses)):
        for first in range(0, 32, together):
            for bank in range(BANKS):
                fill[bank] = 0
            worst = 0
            for lane in range(first, first + together):
                if not lanes[at, lane]:
                    continue
                base = np.int64(addresses[at, lane]) // 4
                for word in range(base, base + words):
                    bank = word % BANKS
                    is_duplicate = False
                    for entry in range(fill[bank]):
                        if bank_words[bank, entry] == word:
                            is_duplicate = True
                            break
                    if not is_duplicate and fill[bank] < SEEN:
                        bank_words[bank, fill[bank]] = word
                        fill[bank] += 1
                        worst = max(worst, fill[bank])
            counts[at] += worst


@loop
def _repeats(addresses, lanes, counts):  # pragma: no cover
    for at in range(len(addresses)):
        for lane in range(32):
            if not lanes[at, lane]:
                continue
            for earlier in range(lane):
                if lanes[at, earlier] and addresses[at, earlier] == addresses[at, lane]:
                    counts[at] += 1
                    break


__all__ = ["LINE_BITS", "SECTOR_BITS", "passes", "repeats", "sectors"]
