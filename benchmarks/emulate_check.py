"""What check mode costs: a Triton GEMM plain and checked, in turns in one process, on one thread.

    python benchmarks/emulate_check.py [--target gfx942 gfx950] [--size 1024]

Medians of processor time in milliseconds, and their ratio.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import torch
import triton.language as tl
from emulate_gemm import OPTIONS, TILE, gemm, operands

import wavecast
from wavecast.emulate.check.collected import Reports

RUNS = 7
WARM = 3
"""Launches before: code that runs long is compiled well in the background."""


def measure(target: str, size: int, checked: bool) -> float:
    """Median seconds of processor time of a launch."""
    left, right = operands(size, "bf16", target)
    out = torch.empty((size, size))
    bm, bn, bk, waves = TILE
    options: dict[str, Any] = {
        "BM": bm,
        "BN": bn,
        "BK": bk,
        "ACC": tl.float32,
        "num_warps": waves,
        **OPTIONS.get(target, {}),
    }
    with wavecast.device(target, threads=1, check=Reports() if checked else False) as device:
        taken = []
        for turn in range(WARM + RUNS):
            start = time.process_time()
            gemm[size // bm, size // bn](left, right, out, size, size, **options)
            taken.append(time.process_time() - start)
            if turn < WARM:
                time.sleep(1.0)
        assert not list(device.reports)
    return statistics.median(taken[WARM:])


def main() -> None:
    parser = argparse.ArgumentParser(description="What check mode costs.")
    parser.add_argument("--target", nargs="+", default=["gfx942", "gfx950"])
    parser.add_argument("--size", type=int, default=1024)
    given = parser.parse_args()
    for target in given.target:
        plain, checked = (measure(target, given.size, checked) for checked in (False, True))
        print(
            f"{target} {given.size}: plain {1e3 * plain:6.1f} ms, checked {1e3 * checked:6.1f} ms, "
            f"{checked / plain:4.2f}x",
            flush=True,
        )


if __name__ == "__main__":
    main()
