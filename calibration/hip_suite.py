"""The HIP benchmarks of the MGPUSim validation suite as sequences of launches and copies.

The programs are not part of the project: their kernels are compiled from a checkout of
`sarchlab/mgpusim` (folder `gpu_perf_scripts`), the argument of `calibration.validate --sources`.
This module states what their host code does inside the timed region: which kernels it launches
with which grids and arguments, which copies it makes, and when it waits. A time is the difference
of an event recorded before the first step and one after the last.

Inputs have the sizes and the distributions the programs give them. Large arrays are reserved, not
filled, where nothing depends on their values.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wavecast.errors import UnknownName, UsageError
from wavecast.perfmodel.queue import Copy, Fill, HostWait

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Kernel:
    """`count` launches of a kernel, which take alike long. `values` are its arguments."""

    name: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    values: Sequence[Any]
    dynamic_lds: int = 0
    count: float = 1
    polluting_bytes: float = 0.0
    """Bytes other launches of the program touch before an equal one runs again."""


Step = Kernel | Copy | Fill | HostWait
Steps = Iterator[Step]

UNNAMED = {"bfs": (4, 8, 16, 32)}
"""Program -> values of the argument that its output does not name, in the order in which
`run_all.sh` of the suite runs them: the mean degree of a node."""


def steps(program: str, size: str) -> list[Step]:
    """The timed steps of a program for a problem size as its output names it.

    Raises UnknownName for a program that is not in the suite, UsageError for a size it does not
    print.
    """
    asked = numbers(program, size)
    found = list(PROGRAMS[program][1](*asked))
    kernels = [step for step in found if isinstance(step, Kernel)]
    return [
        replace(step, polluting_bytes=_bytes(k for k in kernels if k is not step))
        if isinstance(step, Kernel)
        else step
        for step in found
    ]


def _bytes(kernels: Iterable[Kernel]) -> float:
    """Bytes of all arrays kernels take."""
    arrays = {id(v): v.nbytes for k in kernels for v in k.values if isinstance(v, np.ndarray)}
    return float(sum(arrays.values()))


def numbers(program: str, size: str) -> list[int]:
    """The numbers of a problem size. Raises UnknownName and UsageError as `steps`."""
    if program not in PROGRAMS:
        raise UnknownName("program of the suite", program, PROGRAMS)
    found = [int(part) for part in _numbers(size)]
    try:
        inspect.signature(PROGRAMS[program][1]).bind(*found)
    except TypeError:
        raise UsageError(f"{program} has no problem size {size!r}") from None
    return found


def source(program: str) -> str:
    """The file a program's kernels are in, without folder; "" for one without kernels."""
    return PROGRAMS[program][0]


def _numbers(size: str) -> Iterator[str]:
    digits = ""
    for letter in size + " ":
        if letter.isdigit() or (letter == "." and digits):
            digits += letter
        elif digits:
            if "." not in digits.rstrip("."):
                yield digits.rstrip(".")
            digits = ""


def _floats(*shape: int) -> Array:
    return np.zeros(shape, np.float32)


def _ints(*shape: int) -> Array:
    return np.zeros(shape, np.int32)


def _groups(items: int, size: int) -> int:
    return -(-items // size)


def _random(seed: int = 42) -> np.random.Generator:
    return np.random.default_rng(seed)


def _vectoradd(n: int) -> Steps:
    yield Kernel(
        "vectoradd_float", (_groups(n, 256),), (256,), (_floats(n), _floats(n), _floats(n), n, 1)
    )


def _relu(n: int) -> Steps:
    yield Kernel("ReLUForward", (_groups(n, 256),), (256,), (n, _floats(n), _floats(n)))


def _memcopy_h2d(megabytes: int) -> Steps:
    yield Copy("h2d", megabytes << 20)


def _memcopy_d2h(megabytes: int) -> Steps:
    yield Copy("d2h", megabytes << 20)


def _memcopy_d2d(megabytes: int) -> Steps:
    yield Copy("d2d", megabytes << 20)


def _matrixtranspose(n: int, _: int) -> Steps:
    quarter = n // 4
    grid = quarter // 16
    yield Kernel(
        "matrixTranspose",
        (grid, grid),
        (16, 16),
        (_floats(n, n), _floats(n, n), None, quarter, quarter, grid, 0, 0),
        dynamic_lds=16 * 16 * 16 * 4,
    )


def _floydwarshall(n: int) -> Steps:
    """Every step sees matrices of an average one: what is shortest of k random sums changes with
    probability 1/k at step k, so of n steps a part H(n)/n shortens a distance."""
    part = float(np.sum(1.0 / np.arange(1, n + 1))) / n
    distances = np.where(_random().random((n, n)) < part, 100, 1).astype(np.uint32)
    paths = np.zeros((n, n), np.uint32)
    yield Copy("h2d", distances.nbytes)
    yield Copy("h2d", paths.nbytes)
    grid = _groups(n, 8)
    values = (distances, paths, n, n // 2)
    yield Kernel("floydWarshallPass", (grid, grid), (8, 8), values, count=n)
    yield HostWait()


def _fir(length: int, taps: int) -> Steps:
    values = (_floats(length), _floats(taps), _floats(length), _floats(taps), taps)
    yield Kernel("FIR", (length // 256,), (256,), values)


def _simpleconvolution(width: int, height: int, mask: int) -> Steps:
    extended = width + mask - 1
    image = np.ones((height + mask - 1, extended), np.uint32)
    values = (
        image, np.ones(mask * mask, np.float32), _ints(height, width), width, height, mask, mask,
        extended,
    )  # fmt: skip
    grid = _groups(width * height, 64)
    yield Kernel("simpleNonSeparableConvolution", (grid,), (64,), values)


def _kmeans(points: int, features: int, clusters: int) -> Steps:
    random = _random()
    swapped = random.uniform(0, 100, (features, points)).astype(np.float32)
    centres = random.uniform(0, 100, (clusters, features)).astype(np.float32)
    values = (swapped, centres, _ints(points), points, clusters, features, 0, points)
    yield Kernel("kmeans_kernel_compute", (_groups(points, 256),), (256,), values)


def _bicg(nx: int, ny: int) -> Steps:
    a, p, q, r, s = _floats(nx, ny), _floats(ny), _floats(nx), _floats(nx), _floats(ny)
    yield Kernel("bicgKernel1", (_groups(nx, 256),), (256,), (a, p, q, nx, ny))
    yield Kernel("bicgKernel2", (_groups(ny, 256),), (256,), (a, r, s, nx, ny))


def _atax(nx: int, ny: int) -> Steps:
    a, x, tmp, y = _floats(nx, ny), _floats(ny), _floats(nx), _floats(ny)
    yield Fill(4 * nx)
    yield Fill(4 * ny)
    yield Kernel("atax_kernel1", (_groups(nx, 256),), (256,), (a, x, tmp, nx, ny))
    yield Kernel("atax_kernel2", (_groups(ny, 256),), (256,), (a, y, tmp, nx, ny))


def _spmv(rows: int, _: int, entries: int) -> Steps:
    per_row = entries // rows
    starts = np.arange(rows + 1, dtype=np.int32) * per_row
    columns = (np.arange(rows)[:, None] + np.arange(per_row)[None, :]) % rows
    values = (
        _floats(entries), _floats(rows), columns.astype(np.int32), starts, rows, _floats(rows),
    )  # fmt: skip
    yield Kernel("spmv_csr_scalar_kernel", (_groups(rows, 256),), (256,), values)


def _nbody(bodies: int) -> Steps:
    positions = _random().uniform(-1, 1, (bodies, 4)).astype(np.float32)
    velocities, scratch = _floats(bodies, 4), _floats(bodies, 4)
    moved, faster = _floats(bodies, 4), _floats(bodies, 4)
    values = (positions, velocities, bodies, 0.005, 50.0, scratch, moved, faster)
    yield Kernel("nbody_sim", (_groups(bodies, 256),), (256,), values)


def _bitonicsort(n: int) -> Steps:
    """Passes of one distance between the elements of a pair take alike long."""
    array = _random().integers(0, 2**31, n, np.uint32)
    yield Copy("h2d", array.nbytes)
    stages = n.bit_length() - 1
    grid = _groups(n // 2, 64)
    for distance in range(stages):
        values = (array, stages - 1, stages - 1 - distance, 1)
        yield Kernel("BitonicSort", (grid,), (64,), values, count=stages - distance)
    yield HostWait()


def _fastwalshtransform(n: int) -> Steps:
    array = _floats(n)
    yield Copy("h2d", array.nbytes)
    step = 1
    while step < n:
        yield Kernel("fastWalshTransform", (_groups(n // 2, 256),), (256,), (array, step))
        step *= 2
    yield HostWait()


def _fft(n: int) -> Steps:
    yield Kernel("fft1D_512", (n // 512,), (64,), (_floats(n, 2),))


def _field(size: int, mask: int) -> int:
    return size - mask + 1


def _pairs(*values: int) -> list[Array]:
    return [np.array([value, value], np.uint32) for value in values]


def _im2col(batch: int, channels: int, height: int, width: int, mask: int, _: int) -> Steps:
    yield _im2col_kernel("im2col", batch, channels, height, width, mask)


def _im2col_kernel(
    name: str, batch: int, channels: int, height: int, width: int, mask: int
) -> Kernel:
    places = _field(height, mask) * _field(width, mask) * batch
    dimensions = np.array([width, height], np.uint32)
    pairs = [pair.tobytes() for pair in (dimensions, *_pairs(mask, 1, 0, 1))]
    values = (
        _floats(batch, channels, height, width), _floats(mask * mask * channels, places), *pairs,
        channels, batch,
    )  # fmt: skip
    return Kernel(name, (_groups(places, 256),), (256,), values)


def _conv2d(
    batch: int, channels: int, height: int, width: int, mask: int, _: int, outputs: int
) -> Steps:
    yield _im2col_kernel("im2col_kernel", batch, channels, height, width, mask)
    m, n = outputs, _field(height, mask) * _field(width, mask) * batch
    k = mask * mask * channels
    # tiles reach over the edges of the result, as far as whole tiles go
    result = _floats(_groups(m, 16) * 16 * n + 16)
    values = (m, n, k, 1.0, 0.0, _floats(m, k), _floats(k, n), _floats(m, n), result)
    yield Kernel("gemm", (_groups(n, 16), _groups(m, 16)), (16, 16), values)


def _matrixmultiplication(n: int, _: int, __: int) -> Steps:
    quarter = n // 4
    grid = quarter // 8
    block = _floats(max(1, grid * grid) * 8 * 8 * 4, 4)
    values = (_floats(n, n), _floats(n, n), _floats(n, n), n, block)
    yield Kernel("mmmKernel_local", (grid, grid), (8, 8), values)


def _nw(length: int) -> Steps:
    """Diagonals of few widths stand for all of them: between two, time is taken to be linear."""
    columns, blocks = length + 1, length // 64
    items, reference, unused = _ints(columns, columns), _ints(columns, columns), _ints(1)
    yield Copy("h2d", items.nbytes)
    for name, widest in (("nw_kernel1", blocks), ("nw_kernel2", blocks - 1)):
        for width, count in _representatives(widest):
            values = (
                reference, items, unused, columns, 10, width, 64, blocks, blocks, 0, 0,
            )  # fmt: skip
            yield Kernel(name, (width,), (64,), values, count=count)


def _representatives(widest: int) -> list[tuple[int, float]]:
    """Some of 1 … widest, and how many each stands for if a quantity is linear between them."""
    if widest < 1:
        return []
    chosen = sorted({1, widest, *(max(1, widest * part // 4) for part in (1, 2, 3))})
    counts = dict.fromkeys(chosen, 0.0)
    for low, high in itertools.pairwise(chosen):
        for width in range(low, high):
            counts[low] += (high - width) / (high - low)
            counts[high] += (width - low) / (high - low)
    counts[widest] += 1
    return list(counts.items())


def _pagerank(nodes: int, _: int) -> Steps:
    """Half of a dense matrix: rows of the first workgroups are filled, the rest is reserved."""
    random = _random()
    most = nodes // 2 + nodes // 64 + 64
    counts = random.binomial(nodes, 0.5, nodes)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)
    columns, weights = np.zeros(int(starts[-1]) + most, np.uint32), _floats(int(starts[-1]) + most)
    for row in range(min(nodes, 1 << 12, max(64, (1 << 27) // nodes))):
        chosen = np.flatnonzero(random.random(nodes) < 0.5)[: counts[row]]
        columns[starts[row] : starts[row] + len(chosen)] = chosen
    x, y = _floats(nodes), _floats(nodes)
    yield Copy("h2d", x.nbytes)
    values = (nodes, starts, columns, weights, x, y)
    yield Kernel("PageRankUpdateGpu", (nodes,), (64,), values, count=2)


def _stencil2d(rows: int, columns: int) -> Steps:
    padded = -(-(columns + 2) // 16) * 16
    data, new = _floats((rows + 2) * padded + 64), _floats((rows + 2) * padded + 64)
    grid = (rows // 16, columns // 64)
    yield Kernel("StencilKernel", grid, (1, 64), (data, new, 16, 0.25, 0.15, 0.05))


def _bfs(nodes: int, degree: int) -> Steps:
    """A random connected graph, searched from node 0, level by level."""
    starts, edges = _graph(nodes, degree)
    source_levels = np.full(nodes, 0xFFFFFFFF, np.uint32)
    source_levels[0] = 0
    yield Copy("h2d", source_levels.nbytes)
    levels, current = source_levels, 0
    flag = _ints(1)
    while True:
        before, levels = levels, levels.copy()
        frontier = np.flatnonzero(before == current)
        reached = np.concatenate(
            [edges[starts[v] : starts[v + 1]] for v in frontier] or [edges[:0]]
        )
        fresh = np.unique(reached[before[reached] == 0xFFFFFFFF])
        levels[fresh] = current + 1
        yield Copy("h2d", 4)
        values = (before, starts, edges, 32, 32, nodes, current, flag)
        yield Kernel("BFS_kernel_warp", (_groups(_groups(nodes, 32) * 32, 256),), (256,), values)
        yield HostWait()
        yield Copy("d2h", 4)
        current += 1
        if not len(fresh):
            return


def _graph(nodes: int, degree: int) -> tuple[Array, Array]:
    """Neighbours of every node in CSR form: a random tree, and edges up to the mean degree."""
    random = _random()
    children = np.arange(1, nodes)
    parents = (random.random(nodes - 1) * children).astype(np.int64)
    more = max(0, nodes * degree // 2 - (nodes - 1))
    ends = random.integers(0, nodes, (more, 2))
    one = np.concatenate([children, ends[:, 0]])
    other = np.concatenate([parents, ends[:, 1]])
    sources, targets = np.concatenate([one, other]), np.concatenate([other, one])
    order = np.argsort(sources, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=nodes))])
    return starts.astype(np.uint32), targets[order].astype(np.uint32)


PROGRAMS: Mapping[str, tuple[str, Callable[..., Steps]]] = {
    "vectoradd": ("vectoradd.cpp", _vectoradd),
    "relu": ("relu.cpp", _relu),
    "memcopy_h2d": ("", _memcopy_h2d),
    "memcopy_d2h": ("", _memcopy_d2h),
    "memcopy_d2d": ("", _memcopy_d2d),
    "matrixtranspose": ("matrixtranspose.cpp", _matrixtranspose),
    "floydwarshall": ("floydwarshall.cpp", _floydwarshall),
    "fir": ("fir.cpp", _fir),
    "simpleconvolution": ("simpleconvolution.cpp", _simpleconvolution),
    "kmeans": ("kmeans.cpp", _kmeans),
    "bicg": ("bicg.cpp", _bicg),
    "atax": ("atax.cpp", _atax),
    "spmv_csr_scalar": ("spmv.cpp", _spmv),
    "nbody": ("nbody.cpp", _nbody),
    "bitonicsort": ("bitonicsort.cpp", _bitonicsort),
    "fastwalshtransform": ("fastwalshtransform.cpp", _fastwalshtransform),
    "fft1D_512": ("fft.cpp", _fft),
    "im2col": ("im2col.cpp", _im2col),
    "conv2d": ("conv2d.cpp", _conv2d),
    "matrixmultiplication": ("matrixmultiplication.cpp", _matrixmultiplication),
    "nw": ("nw.cpp", _nw),
    "pagerank": ("pagerank.cpp", _pagerank),
    "stencil2d": ("stencil2d.cpp", _stencil2d),
    "bfs": ("bfs.cpp", _bfs),
}
"""Name in the data -> source file, and the steps for the numbers of its problem size."""

__all__ = ["PROGRAMS", "UNNAMED", "Kernel", "Step", "numbers", "source", "steps"]
