"""How long the laboratory takes: passes of a kernel, alternatives of a GEMM, a long loop scheduled.

    python benchmarks/lab.py [passes tune schedule] [--arch gfx942] [--jobs 2]

Runs the commands on a bf16 matrix product. Nothing but the simulator, which a first command makes,
is compiled before. Figures are seconds of the whole command: of `tune` also per 100 alternatives,
of `schedule` with the default work on a loop of about 1,000 instructions.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SCRIPT = """
import torch
import triton
import triton.language as tl


@triton.jit
def product(
    a_ptr, b_ptr, c_ptr, K, N,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    STAGES: tl.constexpr, UNROLL: tl.constexpr,
):
    offs_m = tl.program_id(0) * BM + tl.arange(0, BM)
    offs_n = tl.program_id(1) * BN + tl.arange(0, BN)
    offs_k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK, num_stages=STAGES, loop_unroll_factor=UNROLL):
        a = tl.load(a_ptr + offs_m[:, None] * K + (k + offs_k)[None, :])
        b = tl.load(b_ptr + (k + offs_k)[:, None] * N + offs_n[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(c_ptr.dtype.element_ty))


SIZE = 1024
torch.manual_seed(0)
a, b, c = (torch.randn(SIZE, SIZE, device="cuda", dtype=torch.bfloat16) for _ in range(3))
BM, BN, BK, STAGES, UNROLL, WARPS = {tile}
grid = (SIZE // BM, SIZE // BN)
product[grid](a, b, c, SIZE, SIZE, BM, BN, BK, STAGES, UNROLL, num_warps=WARPS)
"""
USUAL, LONG = (128, 128, 64, 2, 1, 8), (128, 128, 32, 1, 16, 4)
WARM = (64, 64, 32, 2, 1, 4)
"""Tiles, stages, unrolling and warps. The loop of the long one has about 1,000 instructions."""


def main() -> None:
    parser = argparse.ArgumentParser(description="How long the laboratory takes.")
    parser.add_argument("verbs", nargs="*", default=[])
    parser.add_argument("--arch", default="gfx942")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    for verb in given.verbs or ("passes", "tune", "schedule"):
        print(_measured(verb, given.arch, given.jobs))


def _measured(verb: str, arch: str, jobs: int) -> str:
    """A line with the times of a verb."""
    options = ["--jobs", str(jobs)] if verb == "tune" else []
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "product.py"
        script.write_text(SCRIPT.format(tile=LONG if verb == "schedule" else USUAL))
        environment = {
            **os.environ,
            "TRITON_CACHE_DIR": f"{folder}/triton",
            "WAVECAST_CACHE_DIR": f"{folder}/cache",
            "TRITON_DEFAULT_FP_FUSION": "1",
        }
        command = [sys.executable, "-m", "wavecast", "lab", verb, str(script), "--arch", arch]
        warm = Path(folder) / "warm.py"
        warm.write_text(SCRIPT.format(tile=WARM))
        first = [*command[:4], "schedule", str(warm), "--arch", arch, "--work", "1"]
        subprocess.run(first, env=environment, capture_output=True, check=True)
        before, started = _processor(), time.perf_counter()
        done = subprocess.run(
            [*command, *options, "--format", "json"],
            env=environment,
            capture_output=True,
            check=True,
        )
        wall, processor = time.perf_counter() - started, _processor() - before
    return _line(verb, arch, json.loads(done.stdout), wall, processor)


def _line(verb: str, arch: str, document: dict[str, Any], wall: float, processor: float) -> str:
    shown = f"{verb} {arch}: wall {wall:.1f} s, processor {processor:.1f} s"
    if verb == "tune":
        count = sum(len(entry["rows"]) for entry in document["entries"])
        part = 100 / count
        each = f"wall {wall * part:.1f} s, processor {processor * part:.1f} s"
        return f"{shown}, {count} alternatives; of 100: {each}"
    if verb == "schedule":
        loops = [loop for kernel in document["kernels"] for loop in kernel["loops"]]
        sizes = ", ".join(f"{one['instructions']} instructions" for one in loops)
        return f"{shown}, loop of {sizes}"
    return shown


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
