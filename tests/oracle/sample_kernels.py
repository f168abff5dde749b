"""Three Triton kernels that between them use every part of the instruction set a compiler emits:
matrix instructions and LDS, reductions across lanes, atomics and conversions."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        inside = start + depth < k
        left = tl.load(a + rows[:, None] * k + (start + depth)[None, :], mask=inside[None, :])
        right = tl.load(b + (start + depth)[:, None] * n + columns[None, :], mask=inside[:, None])
        total = tl.dot(left, right, total)
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(tl.bfloat16), mask=mask)


@triton.jit
def softmax(x, y, n, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + tl.program_id(0) * n + columns, mask=columns < n, other=-float("inf"))
    values = values.to(tl.float32)
    values = tl.exp(values - tl.max(values, 0))
    values = values / tl.sum(values, 0)
    tl.store(y + tl.program_id(0) * n + columns, values.to(tl.float16), mask=columns < n)


@triton.jit
def scatter(x, index, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    where = tl.load(index + at, mask=at < n, other=0)
    value = tl.load(x + at, mask=at < n, other=0.0)
    tl.atomic_add(y + where // 3, value, mask=(at < n) & (where % 3 != 1))


KERNELS = {
    "matmul": (
        matmul,
        {"a": "*bf16", "b": "*bf16", "c": "*bf16", "m": "i32", "n": "i32", "k": "i32"},
        {"BM": 64, "BN": 64, "BK": 32},
    ),
    "softmax": (softmax, {"x": "*fp16", "y": "*fp16", "n": "i32"}, {"BLOCK": 1024}),
    "scatter": (
        scatter,
        {"x": "*fp32", "index": "*i32", "y": "*fp32", "n": "i32"},
        {"BLOCK": 512},
    ),
}
"""Name -> kernel, runtime signature, constants."""


def compile_for(name: str, target: str) -> tuple[str, bytes]:
    """Assembly and code object of a sample kernel."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    function, signature, constants = KERNELS[name]
    lanes = 64 if target in ("gfx90a", "gfx942", "gfx950") else 32
    full = {**signature, **dict.fromkeys(constants, "constexpr")}
    aligned = {(i,): [["tt.divisibility", 16]] for i, t in enumerate(full.values()) if t[0] == "*"}
    source = ASTSource(function, full, constants, aligned)
    compiled = triton.compile(source, target=GPUTarget("hip", target, lanes))
    return compiled.asm["amdgcn"], compiled.asm["hsaco"]
