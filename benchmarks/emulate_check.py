"""What check mode costs: a Triton GEMM plain and checked, in turns in one process, on one thread.

    python benchmarks/emulate_check.py [--target gfx942 gfx950] [--size 1024] [--operators]

Medians of processor time in milliseconds, and their ratio; with `--operators` also of operators of
the library, of their second call (cold) and of later ones (warm).
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
import triton.language as tl
from emulate_gemm import OPTIONS, TILE, gemm, operands

import wavecast
from wavecast import ops
from wavecast.emulate.check.collected import Reports

RUNS = 7
NARROW_TILE = (128, 128, 32, 4)
"""That of targets with waves of 32 lanes, whose registers hold no larger one."""
WARM = 3
"""Launches before: code that runs long is compiled well in the background."""


def measure(target: str, size: int, checked: bool) -> float:
    """Median seconds of processor time of a launch."""
    left, right = operands(size, "bf16", target)
    out = torch.empty((size, size))
    bm, bn, bk, waves = TILE if target.startswith("gfx9") else NARROW_TILE
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


def operators() -> dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]]:
    """Operators with the shapes of their bf16 arguments."""
    row, vector, heads = (512, 1024), (1024,), (1, 4, 512, 64)
    return {
        "softmax": (ops.softmax, [row]),
        "layer_norm": (ops.layer_norm, [row, vector, vector]),
        "rms_norm": (ops.rms_norm, [row, vector]),
        "attention": (ops.attention, [heads] * 3),
        "matmul": (ops.matmul, [(512, 512)] * 2),
        "add": (ops.add, [(1 << 19,)] * 2),
        "gelu": (ops.gelu, [(1 << 19,)]),
    }


def measure_operator(target: str, name: str, checked: bool) -> tuple[float, float]:
    """Seconds of processor time of an operator's second call, and the median of later ones."""
    operator, shapes = operators()[name]
    generator = torch.Generator().manual_seed(0)
    values = [torch.randn(shape, generator=generator).bfloat16() for shape in shapes]
    with wavecast.device(target, threads=1, check=Reports() if checked else False) as device:
        arguments = [value.to("cuda") for value in values]
        seconds = []
        for turn in range(2 * RUNS):
            start = time.process_time()
            operator(*arguments)
            seconds.append(time.process_time() - start)
            if turn == RUNS - 1:
                time.sleep(1.0)
        assert not list(device.reports)
    return seconds[1], statistics.median(seconds[RUNS:])


def main() -> None:
    parser = argparse.ArgumentParser(description="What check mode costs.")
    parser.add_argument("--target", nargs="+", default=["gfx942", "gfx950"])
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--operators", action="store_true", help="operators of the library too")
    given = parser.parse_args()
    for target in given.target:
        plain, checked = (measure(target, given.size, checked) for checked in (False, True))
        print(
            f"{target} {given.size}: plain {1e3 * plain:6.1f} ms, checked {1e3 * checked:6.1f} ms, "
            f"{checked / plain:4.2f}x",
            flush=True,
        )
        for name in operators() if given.operators else ():
            plain, checked = (measure_operator(target, name, checked) for checked in (False, True))
            ratios = [after / before for before, after in zip(plain, checked, strict=True)]
            print(
                f"{target} {name}: plain {1e3 * plain[1]:6.1f} ms, "
                f"checked {1e3 * checked[1]:6.1f} ms, {ratios[1]:4.2f}x, cold {ratios[0]:4.2f}x",
                flush=True,
            )


if __name__ == "__main__":
    main()
