"""The 28 cases of rocjitsu's nightly suite through the emulator, each checked against torch.

    python benchmarks/rocjitsu_cases.py [--target gfx950] [--threads N] [NAME …]

The kernels are our own (`suite_kernels.py`); sizes, types and case names are those of
ROCm/rocjitsu-test-corpus, `benchmarks/suites/nightly.toml`. `cold` is the first launch, with
Triton's compilation and the translation; `warm` the median of further ones on the clock, `cpu` of
the processor, all threads together. Exit code 1 when a
result is wrong.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import suite_kernels as kernels
import torch
import triton

import wavecast

RUNS = 5
DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
TOLERANCES = {"fp32": 2e-6, "fp16": 2e-3, "bf16": 1.6e-2}
"""Relative to the largest element: a few units in the last place of the result's type."""


@dataclass(frozen=True)
class Case:
    """`launch` runs the kernel, `result` and `wanted` are compared within `tolerance` of the
    largest element."""

    launch: Callable[[], Any]
    result: torch.Tensor
    wanted: torch.Tensor
    tolerance: float


def _meta(**values: int) -> dict[str, Any]:
    """Values of a kernel's constexpr parameters."""
    return values


def _copy(count: int) -> Case:
    x, y = torch.randn(count), torch.empty(count)
    grid = (triton.cdiv(count, 4096),)
    return Case(lambda: kernels.copy[grid](x, y, count, **_meta(BLOCK=4096)), y, x, 0.0)


def _add(count: int) -> Case:
    x, y, z = torch.randn(count), torch.randn(count), torch.empty(count)
    grid = (triton.cdiv(count, 4096),)
    return Case(lambda: kernels.add[grid](x, y, z, count, **_meta(BLOCK=4096)), z, x + y, 0.0)


def _transpose(rows: int, columns: int) -> Case:
    x = torch.randn(rows, columns).half()
    y = torch.empty(columns, rows, dtype=x.dtype)
    grid = (triton.cdiv(rows, 64), triton.cdiv(columns, 64))
    return Case(lambda: kernels.transpose[grid](x, y, rows, columns, **_meta(SIDE=64)), y, x.T, 0.0)


def _gather(source: int, count: int) -> Case:
    x, y = torch.randn(source), torch.empty(count)
    index = ((torch.arange(count) * 104729 + 17) % source).int()
    grid = (triton.cdiv(count, 1024),)
    return Case(
        lambda: kernels.gather[grid](x, index, y, count, **_meta(BLOCK=1024)), y, x[index], 0.0
    )


def _atomic(count: int, buckets: int) -> Case:
    x, sums = torch.randn(count), torch.empty(buckets)
    index = torch.randint(0, buckets, (count,), dtype=torch.int32)
    grid = (triton.cdiv(count, 1024),)

    def launch() -> None:
        sums.zero_()
        kernels.scatter_add[grid](x, index, sums, count, **_meta(BLOCK=1024))

    wanted = torch.zeros(buckets, dtype=torch.float64).index_add_(0, index, x.double())
    return Case(launch, sums, wanted, 1e-5)


def _softmax(rows: int, columns: int, dtype: str) -> Case:
    x = torch.randn(rows, columns).to(DTYPES[dtype])
    y = torch.empty_like(x)
    block = triton.next_power_of_2(columns)
    wanted = torch.softmax(x.double(), -1)
    return Case(
        lambda: kernels.softmax[(rows,)](x, y, columns, **_meta(BLOCK=block)),
        y,
        wanted,
        TOLERANCES[dtype],
    )


def _rmsnorm(rows: int, columns: int, dtype: str) -> Case:
    x = torch.randn(rows, columns).to(DTYPES[dtype])
    weight, y = torch.randn(columns).to(DTYPES[dtype]), torch.empty_like(x)
    wanted = torch.nn.functional.rms_norm(x.double(), (columns,), weight.double(), 1e-5)
    block = triton.next_power_of_2(columns)

    def launch() -> None:
        kernels.rmsnorm[(rows,)](x, weight, y, columns, 1e-5, **_meta(BLOCK=block))

    return Case(launch, y, wanted, TOLERANCES[dtype])


def _gemm(m: int, n: int, k: int, dtype: str) -> Case:
    a, b = torch.randn(m, k).to(DTYPES[dtype]), torch.randn(k, n).to(DTYPES[dtype])
    c = torch.empty(m, n, dtype=a.dtype)
    grid = (triton.cdiv(m, 128), triton.cdiv(n, 128))
    return Case(
        lambda: kernels.gemm[grid](a, b, c, m, n, k, **_meta(BM=128, BN=128, BK=32)),
        c,
        a.double() @ b.double(),
        TOLERANCES[dtype],
    )


def _attention(length: int, window: int = 128, heads: int = 64, shared: int = 8) -> Case:
    depth, scale = 64, 1 / math.sqrt(64)
    q = torch.randn(heads, length, depth).bfloat16()
    k, v = (torch.randn(shared, length, depth).bfloat16() for _ in range(2))
    sinks, out = torch.randn(heads).bfloat16(), torch.empty_like(q)
    group = heads // shared

    def launch() -> None:
        kernels.sink_attention[(triton.cdiv(length, 64), heads)](
            q, k, v, sinks, out, length, scale,
            **_meta(GROUP=group, WINDOW=window, BM=64, BN=64, D=depth),
        )  # fmt: skip

    keys, values = (t.double().repeat_interleave(group, 0) for t in (k, v))
    logits = q.double() @ keys.transpose(1, 2) * scale
    behind = torch.arange(length)[:, None] - torch.arange(length)[None, :]
    logits = logits.masked_fill((behind < 0) | (behind >= window), -math.inf)
    extra = sinks.double()[:, None, None].expand(heads, length, 1)
    weights = torch.softmax(torch.cat([logits, extra], -1), -1)[:, :, :-1]
    return Case(launch, out, weights @ values, TOLERANCES["bf16"])


GEMMS = {
    "gemm_bf16_aligned": (256, 256, 512),
    "gemm_bf16_ragged": (250, 250, 510),
    **{
        f"gemm_{dtype}_{m}x{n}x{k}": (m, n, k)
        for dtype in ("fp16", "bf16")
        for m, n, k in (
            (128, 128, 128), (256, 256, 512), (512, 512, 512), (1024, 1024, 1024),
            (1024, 128, 512), (128, 1024, 512), (128, 128, 2048), (250, 250, 510),
        )
        if dtype == "fp16" or (m, n, k) not in ((256, 256, 512), (250, 250, 510))
    },
}  # fmt: skip
CASES: dict[str, Callable[[], Case]] = {
    "copy_fp32_32m": lambda: _copy(8388608),
    "vector_add_fp32_boundary": lambda: _add(8388611),
    "transpose_fp16_2048": lambda: _transpose(2048, 2048),
    "gather_fp32_irregular": lambda: _gather(8388608, 4194307),
    "atomic_add_fp32_contended": lambda: _atomic(131072, 256),
    "softmax_fp16_aligned": lambda: _softmax(64, 4096, "fp16"),
    "softmax_fp16_boundary": lambda: _softmax(64, 4097, "fp16"),
    "softmax_fp32_64x4096": lambda: _softmax(64, 4096, "fp32"),
    "rmsnorm_bf16": lambda: _rmsnorm(128, 4096, "bf16"),
    "rmsnorm_fp16_128x4096": lambda: _rmsnorm(128, 4096, "fp16"),
    "gpt_oss_attention_bf16": lambda: _attention(128),
    "gpt_oss_attention_bf16_seq256": lambda: _attention(256),
    **{name: partial(_gemm, *size, name.split("_")[1]) for name, size in GEMMS.items()},
}


def measure(case: Case) -> tuple[float, float, float, float]:
    """Seconds of the first launch, median seconds of later ones on the clock and of the processor,
    error relative to the largest element."""
    clock, processor = [], []
    for _ in range(RUNS + 1):
        start = time.perf_counter(), time.process_time()
        case.launch()
        clock.append(time.perf_counter() - start[0])
        processor.append(time.process_time() - start[1])
    wanted = case.wanted.double()
    difference = (case.result.double() - wanted).abs().max() / wanted.abs().max()
    median = statistics.median
    return clock[0], median(clock[1:]), median(processor[1:]), float(difference)


def main() -> int:
    parser = argparse.ArgumentParser(description="Cases of rocjitsu's nightly suite.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CASES))
    parser.add_argument("--target", default="gfx950")
    parser.add_argument("--threads", type=int, help="host threads (default: all)")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(CASES))
    if unknown:
        parser.error(f"no case {unknown[0]}")
    wrong = 0
    print(f"{'case':34} {'cold ms':>9} {'warm ms':>9} {'cpu ms':>9} {'error':>8}")
    with wavecast.device(options.target, threads=options.threads):
        for name in options.names or CASES:
            torch.manual_seed(0)
            case = CASES[name]()
            cold, warm, processor, error = measure(case)
            right = error <= case.tolerance
            wrong += not right
            mark = "" if right else "  WRONG"
            times = f"{cold * 1e3:9.1f} {warm * 1e3:9.2f} {processor * 1e3:9.2f}"
            print(f"{name:34} {times} {error:8.0e}{mark}", flush=True)
    print(f"{len(options.names or CASES) - wrong} right, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
