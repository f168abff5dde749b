"""What executions of memory instructions ask of an SM: lines, sectors and passes."""

from __future__ import annotations

from typing import Any, Final

import numba
import numpy as np

Array = np.ndarray[Any, Any]

SECTOR_BITS: Final = 5
"""The L2 and memory move sectors of 32 B."""
LINE_BITS: Final = 7
BANKS: Final = 32
"""Banks of shared memory, 4 B wide each."""
MOST: Final = 32 * 33
"""Sectors one request can touch: 32 lanes of 32 bytes, each unaligned."""


@numba.njit(cache=True)
def sectors(addresses, lanes, width):  # pragma: no cover
    """The distinct sectors of requests and the lines they lie in.

    `addresses` (u64[n, 32]) and `lanes` (bool[n, 32]) of n requests of `width` bytes a lane. Gives
    the sectors (u64), the first of each request (i64[n + 1]), and lines per request (i64[n]).
    """
    number = len(addresses)
    start = np.zeros(number + 1, np.int64)
    lines = np.zeros(number, np.int64)
    room = np.zeros(max(64, number * 16), np.uint64)
    own = np.zeros(MOST, np.uint64)
    used = 0
    for at in range(number):
        count = 0
        for lane in range(32):
            if not lanes[at, lane]:
                continue
            first = addresses[at, lane] >> np.uint64(SECTOR_BITS)
            last = (addresses[at, lane] + np.uint64(width - 1)) >> np.uint64(SECTOR_BITS)
            sector = first
            while sector <= last:
                spot = count
                while spot > 0 and own[spot - 1] > sector:
                    spot -= 1
                if not (spot > 0 and own[spot - 1] == sector) and count < MOST:
                    for later in range(count, spot, -1):
                        own[later] = own[later - 1]
                    own[spot] = sector
                    count += 1
                sector += np.uint64(1)
        if used + count > len(room):
            larger = np.zeros(2 * len(room) + count, np.uint64)
            larger[:used] = room[:used]
            room = larger
        room[used : used + count] = own[:count]
        used += count
        start[at + 1] = used
        for sector in range(count):
            line = own[sector] >> np.uint64(LINE_BITS - SECTOR_BITS)
            if sector == 0 or line != own[sector - 1] >> np.uint64(LINE_BITS - SECTOR_BITS):
                lines[at] += 1
    return room[:used].copy(), start, lines


@numba.njit(cache=True)
def passes(addresses, lanes, width):  # pragma: no cover
    """Passes of shared-memory requests (f64[n]): of the lanes served together, the most words one
    bank is asked for. Lanes of 8 bytes go in halves of a warp, lanes of 16 in quarters."""
    together = 32 if width <= 4 else 16 if width <= 8 else 8
    words = max(1, width // 4)
    found = np.zeros(len(addresses))
    seen = np.zeros((BANKS, 64), np.int64)
    fill = np.zeros(BANKS, np.int64)
    for at in range(len(addresses)):
        for first in range(0, 32, together):
            fill[:] = 0
            worst = 0
            for lane in range(first, first + together):
                if not lanes[at, lane]:
                    continue
                base = np.int64(addresses[at, lane]) // 4
                for word in range(base, base + words):
                    bank = word % BANKS
                    known = False
                    for entry in range(fill[bank]):
                        if seen[bank, entry] == word:
                            known = True
                            break
                    if not known and fill[bank] < 64:
                        seen[bank, fill[bank]] = word
                        fill[bank] += 1
                        worst = max(worst, fill[bank])
            found[at] += worst
    return found


@numba.njit(cache=True)
def repeats(addresses, lanes):  # pragma: no cover
    """Lanes of atomics whose address an earlier lane has (f64[n])."""
    found = np.zeros(len(addresses))
    for at in range(len(addresses)):
        for lane in range(32):
            if not lanes[at, lane]:
                continue
            for earlier in range(lane):
                if lanes[at, earlier] and addresses[at, earlier] == addresses[at, lane]:
                    found[at] += 1
                    break
    return found


__all__ = ["LINE_BITS", "SECTOR_BITS", "passes", "repeats", "sectors"]
