"""A product of 16 rows with a long K, split over workgroups."""

import torch
import triton
import triton.language as tl


@triton.jit
def skinny_gemm_split(
    a, b, c, N, K, stride_am, stride_bn, stride_split,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    offs_m = tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.program_id(1) * (K // SPLIT) + tl.arange(0, BLOCK_K)
    a_ptrs = a + offs_m[:, None] * stride_am + offs_k[None, :]
    b_ptrs = b + offs_n[None, :] * stride_bn + offs_k[:, None]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, K // SPLIT, BLOCK_K):
        acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
    out = c + offs_m[:, None] * N + offs_n[None, :]
    tl.store(out + tl.program_id(1) * stride_split, acc)


@triton.jit
def add_parts(parts, c, n, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for part in tl.static_range(SPLIT):
        total += tl.load(parts + part * n + offs)
    tl.store(c + offs, total)


def main(m=16, n=2048, k=16384, split=8):
    a = torch.empty(m, k, dtype=torch.bfloat16)
    b = torch.empty(n, k, dtype=torch.bfloat16)
    c = torch.empty(m, n)
    parts = torch.empty(split, m, n)
    skinny_gemm_split[(n // 64, split)](
        a, b, parts, n, k, a.stride(0), b.stride(0), parts.stride(0),
        BLOCK_M=16, BLOCK_N=64, BLOCK_K=128, SPLIT=split,
    )  # fmt: skip
    add_parts[(m * n // 256,)](parts, c, m * n, SPLIT=split, BLOCK=256)


if __name__ == "__main__":
    main()
