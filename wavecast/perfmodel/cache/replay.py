"""Requests through vector L1, scalar cache and L2 of one die, in the order of their clocks.

Lines of the L1 are filled on loads; stores and atomics go through to the L2, which keeps what is
written until it is replaced or the launch ends. What one request asks of a line counts once,
however many lanes ask.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from wavecast.compile.loops import loop
from wavecast.perfmodel.cache.accesses import (
    ATOMIC,
    LOAD,
    SCALAR,
    SECTOR,
    SECTOR_BITS,
    STORE,
    Accesses,
    MemoryTable,
)
from wavecast.perfmodel.cache.geometry import Cache, DieCaches

Array = np.ndarray[Any, Any]

TAGS, L2, MISSED, WRITTEN, UPDATED, LATE = range(6)
COLUMNS: Final = 6
"""Per request: lines looked up; bytes asked of the L2; bytes the L2 fetches from beyond; bytes the
L2 takes that go to memory later; those of them in lines that the launch had read before; bytes
asked of lines that the L2 has on the way for another request."""


_SCRAMBLE: Final = np.uint64(0x9E3779B97F4A7C15)


def replay(
    accesses: Accesses,
    instructions: MemoryTable,
    unit: Array,
    clock: Array,
    geometry: DieCaches,
    passes: int = 1,
    *,
    fetching: float = 0.0,
) -> Array:
    """What every request asks of the caches, f64[m, COLUMNS]; rows of LDS and scratch are 0.

    `unit` (i64[m]) is the compute unit a request comes from, `clock` (f64[m]) orders them. With
    several `passes` all run one after the other, as launches do: each begins with an L1 and a
    scalar cache that are empty, and with the L2 the one before left. The last one counts. A line is
    on the way to the L2 for `fetching` clocks.
    """
    arrival = _arriving(accesses, instructions, clock)
    order = np.argsort(arrival, kind="stable")
    units = int(unit.max(initial=0)) + 1
    scalars = -(-units // geometry.scalar_units)
    traffic = np.zeros((len(accesses), COLUMNS))
    second = _state(1, geometry.l2)
    dirty, read = np.zeros(second[0].shape, np.int64), np.zeros(second[0].shape, np.bool_)
    since = np.zeros(second[0].shape)
    for number in range(passes):
        traffic[:] = 0
        since[:] = -np.inf
        dirty[:] = read[:] = 0
        _replay(
            order,
            number * len(accesses),
            unit,
            instructions.path[accesses.instruction],
            instructions.kind[accesses.instruction],
            accesses.start,
            accesses.sectors,
            geometry.scalar_units,
            _shape(geometry.vector),
            _shape(geometry.scalar),
            _shape(geometry.l2),
            *_state(units, geometry.vector),
            *_state(scalars, geometry.scalar),
            *second,
            dirty,
            read,
            arrival,
            fetching,
            since,
            traffic,
        )
    return traffic


def _arriving(accesses: Accesses, instructions: MemoryTable, clock: Array) -> Array:
    """When requests reach the L2 (f64[m]): stores wait for nothing, so those of a wave that follow
    each other, until it loads or its code comes round again, are one burst, there when the first
    is.

    Pieces of a line that a wave writes with several instructions so meet in the L2, which merges
    them. Were all waves in step, the same pieces of all lines of a die would come between.
    """
    passing = np.flatnonzero(np.diff(accesses.start))
    if not len(passing):
        return clock
    instruction, stream = accesses.instruction[passing], accesses.stream[passing]
    store = instructions.kind[instruction] == STORE
    goes_on = np.zeros(len(passing), bool)
    goes_on[1:] = store[1:] & store[:-1] & (np.diff(stream) == 0) & (np.diff(instruction) > 0)
    first = np.maximum.accumulate(np.where(goes_on, 0, np.arange(len(passing))))
    arrival = np.array(clock, float)
    arrival[passing] = arrival[passing[first]]
    return arrival


def _shape(cache: Cache) -> tuple[int, int, int, bool]:
    return cache.line.bit_length() - 1, cache.sets, cache.plain, cache.arbitrary


def _state(caches: int, cache: Cache) -> tuple[Array, Array]:
    """Tags and times of last use of some caches of a shape."""
    tags = np.full((caches, cache.sets, cache.ways), -1, np.int64)
    return tags, np.zeros(tags.shape, np.int64)


@loop
def _set(line, sets, plain):  # pragma: no cover
    """The set of a line: low bits as they are, those above them folded to as many as are left."""
    above = line >> plain
    width = 0
    while (1 << (width + plain)) < sets:
        width += 1
    folded = 0
    while above > 0 and width > 0:
        folded ^= above & ((1 << width) - 1)
        above >>= width
    return (folded << plain) | (line & ((1 << plain) - 1))


@loop
def _look_up(tags, last_use, line, moment, arbitrary):  # pragma: no cover
    """The way a set has a line in, which is the latest then, and whether it had it. A missing one
    replaces the one used longest ago, or with `arbitrary` any one."""
    oldest = 0
    for way in range(len(tags)):
        if tags[way] == line:
            last_use[way] = moment
            return way, True
        if last_use[way] < last_use[oldest]:
            oldest = way
    if arbitrary and tags[oldest] >= 0:
        scrambled = (np.uint64(moment) ^ np.uint64(line) << np.uint64(20)) * _SCRAMBLE
        oldest = np.int64((scrambled >> np.uint64(33)) % np.uint64(len(tags)))
    tags[oldest] = line
    last_use[oldest] = moment
    return oldest, False


@loop
def _replay(  # pragma: no cover
    order, moment, unit, path, kind, start, sectors, scalar_units, vector, scalar, l2,
    vector_tags, vector_used, scalar_tags, scalar_used, l2_tags, l2_used, dirty, read,
    arrival, fetching, since, traffic,
):  # fmt: skip
    within = (1 << (l2[0] - SECTOR_BITS)) - 1
    for at in order:
        moment += 1
        on_scalar = path[at] == SCALAR
        shape = scalar if on_scalar else vector
        down = shape[0] - SECTOR_BITS
        if kind[at] == LOAD:
            before = np.int64(-1)
            for number in range(start[at], start[at + 1]):
                line = np.int64(sectors[number]) >> down
                if line == before:
                    continue
                before = line
                traffic[at, TAGS] += 1
                row = _set(line, shape[1], shape[2])
                if on_scalar:
                    cache_index = unit[at] // scalar_units
                    tags, last_use = scalar_tags[cache_index, row], scalar_used[cache_index, row]
                else:
                    cache_index = unit[at]
                    tags, last_use = vector_tags[cache_index, row], vector_used[cache_index, row]
                if _look_up(tags, last_use, line, moment, shape[3])[1]:
                    continue
                traffic[at, L2] += 1 << shape[0]
                wide = (line << shape[0]) >> l2[0]
                row = _set(wide, l2[1], l2[2])
                way, hit = _look_up(l2_tags[0, row], l2_used[0, row], wide, moment, l2[3])
                if not hit:
                    dirty[0, row, way] = 0
                    since[0, row, way] = arrival[at]
                    traffic[at, MISSED] += 1 << l2[0]
                elif arrival[at] - since[0, row, way] < fetching:
                    traffic[at, LATE] += 1 << shape[0]
                read[0, row, way] = True
            continue
        before, row, way = np.int64(-1), 0, 0
        for number in range(start[at], start[at + 1]):
            traffic[at, L2] += SECTOR
            wide = np.int64(sectors[number]) >> (l2[0] - SECTOR_BITS)
            if wide != before:
                before = wide
                traffic[at, TAGS] += 1
                row = _set(wide, l2[1], l2[2])
                way, hit = _look_up(l2_tags[0, row], l2_used[0, row], wide, moment, l2[3])
                if not hit:
                    dirty[0, row, way] = 0
                    read[0, row, way] = False
                    if kind[at] == ATOMIC:
                        traffic[at, MISSED] += 1 << l2[0]
            bit = 1 << (np.int64(sectors[number]) & within)
            if not dirty[0, row, way] & bit:
                dirty[0, row, way] |= bit
                traffic[at, WRITTEN] += SECTOR
                if read[0, row, way]:
                    traffic[at, UPDATED] += SECTOR


__all__ = ["COLUMNS", "L2", "MISSED", "TAGS", "UPDATED", "WRITTEN", "replay"]
