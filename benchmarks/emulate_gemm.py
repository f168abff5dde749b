"""Speed of Triton GEMMs through the emulator, beside numpy's float32 matmul on as many threads.

    python benchmarks/emulate_gemm.py [--target gfx942 …] [--dtype bf16 …] [--size 1024 …]
                                      [--threads 1 2] [--tile 256,128,32,4]

One process per number of threads. In it, runs of the emulator and of numpy take turns, and medians
are printed: milliseconds, GFLOP/s (GOP/s for integers) and the ratio of the two; on one thread
also the ratio of processor times, which other processes on the machine disturb less. Results are
checked against torch. B is given transposed (`[n][k]`), as weights are.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

import wavecast

RUNS = 9
PAUSE = 0.15
"""Seconds before every call: threads of OpenBLAS keep a core busy for a while after a product."""
STARTED = "WAVECAST_BENCHMARK_STARTED"
CORE = "OPENBLAS_CORETYPE"
DTYPES = {
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp8": torch.float8_e4m3fn,
    "int8": torch.int8,
}
TILE = (256, 128, 32, 4)
"""BM, BN, BK, waves: what a host's caches like best."""
OPTIONS = {"gfx942": {"kpack": 2}}
"""Triton's options: two runs of k per load of LDS."""


@triton.jit
def gemm(
    a, b, c, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """c[m][n] = a[m][k] · b[n][k]ᵀ, sizes multiples of the tile."""
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    left = a + row[:, None] * k + depth[None, :]
    right = b + column[None, :] * k + depth[:, None]
    total = tl.zeros((BM, BN), ACC)
    for _ in range(0, k, BK):
        total = tl.dot(tl.load(left), tl.load(right), total, out_dtype=ACC)
        left += BK
        right += BK
    tl.store(c + row[:, None] * n + column[None, :], total.to(c.dtype.element_ty))


def operands(size: int, dtype: str, target: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Seeded random A and B."""
    generator = torch.Generator().manual_seed(size)
    kind = DTYPES[dtype]
    if dtype == "fp8" and target == "gfx942":
        kind = torch.float8_e4m3fnuz
    if dtype == "int8":
        made = [torch.randint(-128, 128, (size, size), generator=generator) for _ in range(2)]
    else:
        made = [torch.randn((size, size), generator=generator) for _ in range(2)]
    left, right = (tensor.to(kind) for tensor in made)
    return left, right


def error(result: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> float:
    """Largest difference from torch's product in f64, relative to the largest element."""
    wanted = left.double() @ right.double().T
    return float((result.double() - wanted).abs().max() / wanted.abs().max())


Times = tuple[float, float]
"""Seconds on the clock and of the processor, all threads together."""


def medians(*calls: Callable[[], Any]) -> list[Times]:
    """Median times of calls that take turns, after one of each to warm up."""
    taken: list[list[Times]] = [[] for _ in calls]
    for turn in range(RUNS + 1):
        for call, times in zip(calls, taken, strict=True):
            time.sleep(PAUSE)
            clock, processor = time.perf_counter(), time.process_time()
            call()
            if turn:
                times.append((time.perf_counter() - clock, time.process_time() - processor))
    median = statistics.median
    return [(median(t[0] for t in times), median(t[1] for t in times)) for times in taken]


def measure(
    target: str, dtype: str, size: int, threads: int, tile: tuple[int, ...]
) -> tuple[Times, Times, float]:
    """Times of the emulator and of numpy, and the emulator's error."""
    left, right = operands(size, dtype, target)
    integer = dtype == "int8"
    out = torch.empty((size, size), dtype=torch.int32 if integer else torch.float32)
    bm, bn, bk, waves = tile
    options: dict[str, Any] = {
        "BM": bm,
        "BN": bn,
        "BK": bk,
        "ACC": tl.int32 if integer else tl.float32,
        "num_warps": waves,
        **OPTIONS.get(target, {}),
    }
    one = np.random.default_rng(0).standard_normal((size, size), np.float32)
    two = one.T.copy()
    with wavecast.device(target, threads=threads):
        grid = (size // bm, size // bn)
        emulator, numpy = medians(
            lambda: gemm[grid](left, right, out, size, size, **options),
            lambda: np.matmul(one, two),
        )
    return emulator, numpy, error(out, left, right)


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description="Speed of Triton GEMMs through the emulator.")
    found.add_argument("--target", nargs="+", default=["gfx942", "gfx950"])
    found.add_argument("--dtype", nargs="+", default=["bf16"], choices=sorted(DTYPES))
    found.add_argument("--size", nargs="+", type=int, default=[1024])
    found.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    found.add_argument("--tile", help="BM,BN,BK,waves")
    return found


def main() -> None:
    options = parser().parse_args()
    if STARTED not in os.environ:  # numpy reads its number of threads when it is imported
        for threads in options.threads:
            # OpenBLAS chooses its kernel by the host, whatever the environment says
            kept = {name: text for name, text in os.environ.items() if name != CORE}
            environment = {**kept, "OPENBLAS_NUM_THREADS": str(threads), STARTED: "1"}
            command = [sys.executable, __file__, *sys.argv[1:], "--threads", str(threads)]
            subprocess.run(command, env=environment, check=True)
        return
    threads = options.threads[0]
    torch.set_num_threads(threads)
    chosen = tuple(int(text) for text in options.tile.split(",")) if options.tile else None
    print(f"{threads} thread(s): ms, GFLOP/s, ratio (of processor time), error", flush=True)
    for target in options.target:
        for dtype in options.dtype:
            for size in options.size:
                tile = chosen or TILE
                emulator, numpy, wrong = measure(target, dtype, size, threads, tile)
                gigaflops = 2 * size**3 / 1e9
                of_processor = f" ({numpy[1] / emulator[1]:.2f})" if threads == 1 else ""
                print(
                    f"{target} {dtype} {size}: {emulator[0] * 1e3:7.1f} ms"
                    f" {gigaflops / emulator[0]:6.1f}  numpy {numpy[0] * 1e3:7.1f} ms"
                    f" {gigaflops / numpy[0]:6.1f}  ratio {numpy[0] / emulator[0]:.2f}"
                    f"{of_processor}  {wrong:.0e}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
