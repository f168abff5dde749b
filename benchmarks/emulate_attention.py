"""Flash attention, batch 1, 16 heads, 1024 rows, depth 128, bf16, through the emulator.

    python benchmarks/emulate_attention.py [--target gfx942 …] [--threads N] [--tile 128,64,4]

Milliseconds of the first launch, medians of further ones on the clock and of the processor, GFLOP/s
of the clock, and the error against torch relative to the largest element.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from typing import Any

import suite_kernels as kernels
import torch

import wavecast

HEADS, ROWS, DEPTH = 16, 1024, 128
RUNS = 5


def measure(target: str, threads: int | None, tile: tuple[int, ...]) -> str:
    """One line of results."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(HEADS, ROWS, DEPTH).bfloat16() for _ in range(3))
    out, scale = torch.empty_like(q), 1 / math.sqrt(DEPTH)
    bm, bn, waves = tile
    meta: dict[str, Any] = {"BM": bm, "BN": bn, "D": DEPTH, "num_warps": waves}
    clock, processor = [], []
    with wavecast.device(target, threads=threads):
        for _ in range(RUNS + 1):
            start = time.perf_counter(), time.process_time()
            kernels.attention[(ROWS // bm, HEADS)](q, k, v, out, ROWS, scale, **meta)
            clock.append(time.perf_counter() - start[0])
            processor.append(time.process_time() - start[1])
    wanted = torch.softmax(q.double() @ k.double().transpose(1, 2) * scale, -1) @ v.double()
    error = float((out.double() - wanted).abs().max() / wanted.abs().max())
    warm = statistics.median(clock[1:])
    rate = 4 * HEADS * ROWS * ROWS * DEPTH / warm / 1e9
    return (
        f"{target}: cold {clock[0] * 1e3:.0f} ms, warm {warm * 1e3:.0f} ms"
        f" (processor {statistics.median(processor[1:]) * 1e3:.0f} ms), {rate:.0f} GFLOP/s,"
        f" error {error:.0e}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Flash attention through the emulator.")
    parser.add_argument("--target", nargs="+", default=["gfx942", "gfx950"])
    parser.add_argument("--threads", type=int, help="host threads (default: all)")
    parser.add_argument("--tile", default="128,64,4", help="BM,BN,waves")
    options = parser.parse_args()
    tile = tuple(int(text) for text in options.tile.split(","))
    for target in options.target:
        print(measure(target, options.threads, tile), flush=True)


if __name__ == "__main__":
    main()
