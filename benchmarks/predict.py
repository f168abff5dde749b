"""How long predictions take: operations, code, and executed samples of GEMM and attention.

    python benchmarks/predict.py [--repeat N]

Times depend on the machine, so each is also given as a multiple of a reference measured in the same
run: a float32 product of two 512 x 512 matrices by numpy on one thread.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")

import numpy as np

from wavecast.arch import resolve
from wavecast.perfmodel.ops import op

OPERATIONS = {
    "gemm": ("4096x4096x4096", {"dtype": "fp8"}),
    "gemm, one row": ("1x7168x2048", {"dtype": "bf16"}),
    "attention": ("1x32x8x8192x128", {"dtype": "bf16", "causal": "true"}),
    "moe": ("64x7168x256x256x8", {"dtype": "fp8"}),
    "conv": ("64x256x56x56,64x3x3", {"dtype": "fp16"}),
    "softmax": ("4096x4096", {"dtype": "bf16"}),
    "elementwise": ("4096x4096", {"dtype": "bf16", "function": "gelu"}),
    "norm": ("4096x4096", {"dtype": "bf16", "function": "layer_norm"}),
}


def best(work: Callable[[], object], repeat: int) -> float:
    """Seconds of the fastest of some calls."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def reference() -> float:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((512, 512), np.float32) for _ in range(2))
    return best(lambda: a @ b, 20)


def operations(unit: float, repeat: int) -> None:
    device = resolve("mi300x").device
    for name, (shape, options) in OPERATIONS.items():
        kind = name.partition(",")[0]
        first = op(kind).parse(shape, options)
        first.predict(device)
        head, _, rest = shape.partition("x")
        others = [op(kind).parse(f"{int(head) + n}x{rest}", options) for n in range(1, 2 * repeat)]
        times = []
        for problem in others:
            start = time.perf_counter()
            problem.predict(device)
            times.append(time.perf_counter() - start)
        report(f"operation {name}", statistics.median(times), unit)


def kernels(unit: float, repeat: int) -> None:
    import torch
    from predict_kernels import attention, gemm

    torch.set_num_threads(1)
    for name, make in (("GEMM 8192 cubed bf16", gemm), ("attention S 16384 D 128", attention)):
        static, executed = make()
        static()
        report(f"{name}, from code", best(static, repeat), unit)
        executed()
        report(f"{name}, executed sample", best(executed, repeat), unit)


def report(name: str, seconds: float, unit: float) -> None:
    print(f"{name:44s} {1e3 * seconds:9.2f} ms  {seconds / unit:9.2f} x reference")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    given = parser.parse_args()
    unit = reference()
    print(f"reference: {1e3 * unit:.2f} ms")
    operations(unit, given.repeat)
    kernels(unit, given.repeat)
    return 0


if __name__ == "__main__":
    sys.exit(main())
