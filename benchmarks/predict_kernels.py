"""Launches of benchmarks/predict.py: a large GEMM and a long attention on an MI300X."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import suite_kernels as kernels
import torch
import triton
import triton.language as tl

import wavecast
from wavecast.arch import resolve
from wavecast.compile.parsing import parse_kernel
from wavecast.perfmodel.predict import predict
from wavecast.perfmodel.static import profile_of_code
from wavecast.sampling.executed import profile_of_sample

DEVICE = resolve("mi300x").device
Work = Callable[[], object]


@triton.jit
def product(
    a, b, c, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr
):
    program, columns = tl.program_id(0), n // BN
    group = program // (GROUP * columns)
    row = group * GROUP + program % GROUP
    column = program % (GROUP * columns) // GROUP
    rows, inner = row * BM + tl.arange(0, BM), tl.arange(0, BK)
    left = a + rows[:, None] * k + inner[None, :]
    right = b + (column * BN + tl.arange(0, BN))[None, :] * k + inner[:, None]
    total = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, k, BK):
        total = tl.dot(tl.load(left), tl.load(right), total)
        left += BK
        right += BK
    out = c + rows[:, None] * n + (column * BN + tl.arange(0, BN))[None, :]
    tl.store(out, total.to(tl.bfloat16))


def gemm(size: int = 8192) -> tuple[Work, Work]:
    """C = A·Bᵀ of bf16, tiles of 256 x 256."""
    a, b, c = (torch.empty(size, size, dtype=torch.bfloat16) for _ in range(3))
    grid = ((size // 256) ** 2,)
    return _works(
        product, (a, b, c), (a, b, c, size, size), grid,
        {"BM": 256, "BN": 256, "BK": 64, "GROUP": 4, "num_warps": 8, "num_stages": 2,
         "matrix_instr_nonkdim": 16},
    )  # fmt: skip


def attention(rows: int = 16384, heads: int = 16, depth: int = 128) -> tuple[Work, Work]:
    """Flash attention of bf16."""
    q, k, v, out = (torch.empty(heads, rows, depth, dtype=torch.bfloat16) for _ in range(4))
    return _works(
        kernels.attention, (q, k, v, out), (q, k, v, out, rows, 1 / math.sqrt(depth)),
        (rows // 128, heads), {"BM": 128, "BN": 64, "D": depth, "num_warps": 4},
    )  # fmt: skip


def _works(
    function: Any, tensors: tuple[torch.Tensor, ...], arguments: tuple[Any, ...],
    grid: tuple[int, ...], meta: dict[str, Any],
) -> tuple[Work, Work]:  # fmt: skip
    """Functions that predict the launch from its code and from an executed sample."""
    (found,) = wavecast.explain(function, *arguments, grid=grid, arch="mi300x", **meta).explanations
    launch = found.launch
    assert launch is not None
    kernel = parse_kernel(found.code)

    def static() -> object:
        return predict(profile_of_code(launch, found.analysis, kernel, DEVICE), DEVICE)

    def executed() -> object:
        ranges = [(t.data_ptr(), t.data_ptr() + t.numel() * t.element_size()) for t in tensors]
        return predict(profile_of_sample(launch, ranges, DEVICE), DEVICE)

    return static, executed
