"""Times of steps from a grid of sizes, interpolated by compiled code.

Kernels outside of attention depend on the number of tokens, those of attention on sequences and
their context. GPUs with separate sequences wait for the one with the most prompts: what each
computes for its own tokens depends on those. All parts are predicted on a grid of powers of two and
interpolated on logarithmic scales. A cell is priced when it is needed first: compiled code that
meets an unknown cell names it in `wanted` and returns NaN, and is called again when the cell has a
value.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from wavecast.compile.loops import loop

Array = np.ndarray[Any, Any]

ROWS, HEAD, OWN, DECODE, PREFILL = range(5)
"""The arrays of `GridCells`."""
_FINE: Final = 2
"""Points of the grid per factor of two."""
_EXTENTS: Final = {
    "rows": (96,),
    "head": (96,),
    "own": (96,),
    "decode": (48, 64),
    "prefill": (24, 64, 33),
}
"""Points of each size: tokens; sequences; sequences and context; chunks, their tokens, and what is
cached before them. Chunks and what is before them have a point per factor of two."""
SIZES: Final = np.array([round(2 ** (e / _FINE)) for e in range(max(map(max, _EXTENTS.values())))])
"""The sizes at the points, i64[n]; point 2 e of them is 2^e."""


class GridCells(NamedTuple):
    """Seconds and number of kernels (f64[..., 2]) by the sizes of `_EXTENTS`; NaN where unknown.
    Element 0 of the last axis of `prefill` is for chunks with nothing before them. `own` is what
    GPUs with separate sequences compute for them outside of attention; else a part of `rows`."""

    rows: Array
    head: Array
    own: Array
    decode: Array
    prefill: Array

    @classmethod
    def empty(cls) -> GridCells:
        """A grid without values."""
        return cls(*(np.full((*extents, 2), np.nan) for extents in _EXTENTS.values()))


class StepGrids(NamedTuple):
    """The grids of a model and of its draft (`drafted` tokens; `separate`: it has a grid), with
    `sizes` of the points; `ranks` GPUs have separate sequences. `wanted` (i64[5]) is the cell that
    was unknown: 0 of the model or 1 of the draft, its array, its indices."""

    model: GridCells
    draft: GridCells
    sizes: Array
    drafted: int
    separate: int
    ranks: int
    wanted: Array


@loop
def is_captured(engine, decode, chunks):  # pragma: no cover
    """Whether a step is a graph: no chunk of a prompt, and not more sequences than captured."""
    return engine.graphs and chunks == 0 and decode <= engine.captured


@loop
def launched(engine, graph, chunks, rows, launches, attention):  # pragma: no cover
    """What the host launches one by one of the `launches` of a step: those of `attention`, where
    graphs contain the others of a step with chunks of prompts."""
    if graph:
        return 0
    if engine.graphs and chunks > 0 and rows <= engine.prompt_graph:
        return attention
    return launches


@loop
def total_seconds(engine, sequences, device, launches):  # pragma: no cover
    """Seconds of a step whose kernels take `device`, with the host and the `launches` of those that
    no graph contains."""
    host = engine.host_step + engine.host_sequence * sequences
    launches *= engine.launch
    if engine.asynchronous:
        return max(device, launches + host)
    return max(device, launches) + host


@loop
def grid_seconds(
    engine, captures, grids, decode, context, chunks, tokens, before
):  # pragma: no cover
    """Seconds of a step; NaN where a cell is unknown. `tokens` and `before` are means over the
    chunks. A captured graph computes as many sequences as it was captured for (`captures`)."""
    queries = 1 + grids.drafted if decode > 0 else 1
    device, count, attention = _device(
        engine, captures, grids, 0, decode, context, queries, chunks, tokens, before
    )
    if grids.separate > 0 and decode > 0 and not math.isnan(device):
        # One pass per drafted token; the first one also reads what was just accepted.
        each, _, _ = _device(engine, captures, grids, 1, decode, context, 1, 0, 0.0, 0.0)
        device += grids.drafted * each
    if math.isnan(device):
        return device
    graph = is_captured(engine, decode, chunks)
    rows = decode * queries + chunks * tokens
    launches = launched(engine, graph, chunks, rows, count, attention)
    return total_seconds(engine, decode + chunks, device, launches)


@loop
def grid_time(engine, captures, grids, step, seconds):  # pragma: no cover
    """`grid_seconds` of one step (f64[5]: sequences, context, chunks, tokens, before) to
    `found[0]`."""
    seconds[0] = grid_seconds(
        engine[0], captures, grids, int(step[0]), step[1], int(step[2]), step[3], step[4]
    )


@loop
def _device(
    engine, captures, grids, which, decode, context, queries, chunks, tokens, before
):  # pragma: no cover
    cells = grids.draft if which > 0 else grids.model
    sizes, request = grids.sizes, grids.wanted
    request[0] = which
    padded = decode
    if chunks == 0 and engine.graphs:
        at = np.searchsorted(captures, decode)
        if at < len(captures):
            padded = captures[at]
    rows = max(1.0, padded * queries + chunks * tokens)
    device, count = _line(cells.rows, sizes, rows, request, ROWS)
    attention = 0.0
    if math.isnan(device):
        return device, count, attention
    if grids.ranks > 1:
        most = math.ceil(chunks / grids.ranks) * grids.ranks * tokens
        rank_rows = max(1.0, padded * queries + most)
        more, kernels = _line(cells.own, sizes, rank_rows, request, OWN)
        device, count = device + more, count + kernels
        if math.isnan(device):
            return device, count, attention
    more, kernels = _line(cells.head, sizes, max(1.0, padded * queries + chunks), request, HEAD)
    device, count = device + more, count + kernels
    if decode > 0 and not math.isnan(device):
        more, kernels = _decode(cells.decode, sizes, float(decode), max(1.0, context), request)
        device, count, attention = device + more, count + kernels, attention + kernels
    if chunks > 0 and not math.isnan(device):
        more, kernels = _prefill(
            cells.prefill, sizes, float(chunks), max(1.0, tokens), before, request
        )
        device, count, attention = device + more, count + kernels, attention + kernels
    return device, count, attention


@loop
def _between(low, high, below, above, x):  # pragma: no cover
    """Value at `x` from its neighbours, on logarithmic scales."""
    if below == above:
        return low
    share = math.log(x / below) / math.log(above / below)
    if low > 0:
        return low * (high / low) ** share
    return low + (high - low) * share


@loop
def _ends(sizes, x, points):  # pragma: no cover
    """Points below and above `x` of a grid with so many per factor of two, and their sizes."""
    exponent = math.log2(x) * points
    below, above = math.floor(exponent), math.ceil(exponent)
    step = 2 // points
    return below, above, sizes[below * step], sizes[above * step]


@loop
def _line(cells, sizes, x, request, array):  # pragma: no cover
    below, above, low, high = _ends(sizes, x, 2)
    request[1], request[2] = array, below
    first = cells[below, 0]
    if low == high or math.isnan(first):
        return first, cells[below, 1]
    request[2] = above
    return _between(first, cells[above, 0], low, high, x), cells[below, 1]


@loop
def _decode(cells, sizes, sequences, context, request):  # pragma: no cover
    below, above, low, high = _ends(sizes, sequences, 2)
    first, count = _context(cells, sizes, below, context, request)
    if low == high or math.isnan(first):
        return first, count
    second, _ = _context(cells, sizes, above, context, request)
    return _between(first, second, low, high, sequences), count


@loop
def _context(cells, sizes, sequences, context, request):  # pragma: no cover
    below, above, low, high = _ends(sizes, context, 2)
    request[1], request[2], request[3] = DECODE, sequences, below
    first = cells[sequences, below, 0]
    if low == high or math.isnan(first):
        return first, cells[sequences, below, 1]
    request[3] = above
    return _between(first, cells[sequences, above, 0], low, high, context), (
        cells[sequences, below, 1]
    )


@loop
def _prefill(cells, sizes, chunks, tokens, before, request):  # pragma: no cover
    below, above, low, high = _ends(sizes, chunks, 1)
    first, count = _lengths(cells, sizes, below, tokens, before, request)
    if low == high or math.isnan(first):
        return first, count
    second, _ = _lengths(cells, sizes, above, tokens, before, request)
    return _between(first, second, low, high, chunks), count


@loop
def _lengths(cells, sizes, chunks, tokens, before, request):  # pragma: no cover
    below, above, low, high = _ends(sizes, tokens, 2)
    first, count = _prefix_prefill(cells, sizes, chunks, below, before, request)
    if low == high or math.isnan(first):
        return first, count
    second, _ = _prefix_prefill(cells, sizes, chunks, above, before, request)
    return _between(first, second, low, high, tokens), count


@loop
def _prefix_prefill(cells, sizes, chunks, tokens, before, request):  # pragma: no cover
    request[1], request[2], request[3], request[4] = PREFILL, chunks, tokens, 0
    if before < 1:
        return cells[chunks, tokens, 0, 0], cells[chunks, tokens, 0, 1]
    below, above, low, high = _ends(sizes, before, 1)
    request[4] = 1 + below
    first, count = cells[chunks, tokens, 1 + below, 0], cells[chunks, tokens, 1 + below, 1]
    if low == high or math.isnan(first):
        return first, count
    request[4] = 1 + above
    return _between(first, cells[chunks, tokens, 1 + above, 0], low, high, before), count


__all__ = [
    "DECODE",
    "HEAD",
    "OWN",
    "PREFILL",
    "ROWS",
    "SIZES",
    "GridCells",
    "StepGrids",
    "grid_seconds",
    "grid_time",
    "is_captured",
    "launched",
    "total_seconds",
]
