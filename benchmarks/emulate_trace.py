"""What trace mode costs: a Triton GEMM plain, with counts, and with more, in turns in one process.

    python benchmarks/emulate_trace.py [--target gfx942 …] [--size 512] [--threads 1]

Medians in milliseconds and as multiples of plain execution. `counts` are executions and active
lanes, `memory` adds transactions and LDS passes, `streams` records the waves of two workgroups.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

import wavecast
from wavecast.emulate.launch import Emulator
from wavecast.emulate.trace.mode import TraceMode

RUNS = 9
TILES = {"gfx1100": (128, 128, 32), "gfx1201": (128, 128, 32)}
MODES: dict[str, dict[str, Any] | None] = {
    "plain": None,
    "counts": {"memory": False},
    "memory": {"memory": True},
    "streams": {"memory": True, "streams": 2},
}


@triton.jit
def gemm(
    a, b, c, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """c[m][n] = a[m][k] · b[n][k]ᵀ, sizes multiples of the tile."""
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    left = a + row[:, None] * k + depth[None, :]
    right = b + column[None, :] * k + depth[:, None]
    total = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, k, BK):
        total = tl.dot(tl.load(left), tl.load(right), total)
        left += BK
        right += BK
    tl.store(c + row[:, None] * n + column[None, :], total)


def medians(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Median seconds of calls that take turns, after one of each to warm up."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(RUNS + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            if turn:
                taken[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in taken.items()}


def measure(target: str, size: int, threads: int) -> dict[str, float]:
    """Median seconds by mode."""
    generator = torch.Generator().manual_seed(size)
    left, right = (torch.randn((size, size), generator=generator).bfloat16() for _ in range(2))
    out = torch.empty((size, size))
    bm, bn, bk = TILES.get(target, (128, 128, 64))
    settings: dict[str, Any] = {"BM": bm, "BN": bn, "BK": bk, "num_warps": 4}
    with wavecast.device(target, threads=threads) as hooks:

        def call(emulator: Emulator) -> None:
            hooks.emulator = emulator
            gemm[(size // bm, size // bn)](left, right, out, size, size, **settings)

        emulators = {
            name: Emulator(threads, TraceMode(**options) if options is not None else None)
            for name, options in MODES.items()
        }
        calls = {name: lambda e=emulator: call(e) for name, emulator in emulators.items()}
        found = medians(calls)
    torch.testing.assert_close(out, left.float() @ right.float().T, rtol=1e-3, atol=1e-2)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="What trace mode costs on a Triton GEMM.")
    parser.add_argument("--target", nargs="+", default=["gfx942", "gfx950"])
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    for target in options.target:
        found = measure(target, options.size, options.threads)
        plain = found["plain"]
        for name, seconds in found.items():
            figures = f"{1e3 * seconds:7.2f} ms {seconds / plain:5.2f}x"
            print(f"{target} {options.size} {name:8} {figures}")


if __name__ == "__main__":
    main()
