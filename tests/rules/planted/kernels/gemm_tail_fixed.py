"""GEMM whose grid is many rounds of smaller tiles."""

import torch
import triton
import triton.language as tl


@triton.jit
def gemm(
    a, b, c, M, N, K, stride_am, stride_bn, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a + offs_m[:, None] * stride_am + offs_k[None, :]
    b_ptrs = b + offs_n[None, :] * stride_bn + offs_k[:, None]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, K, BLOCK_K):
        a_tile = tl.load(a_ptrs)
        b_tile = tl.load(b_ptrs)
        acc = tl.dot(a_tile, b_tile, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
    tl.store(c + offs_m[:, None] * stride_cm + offs_n[None, :], acc.to(c.dtype.element_ty))


def main(m=5120, n=4096, k=8192):
    a = torch.empty(m, k, dtype=torch.bfloat16)
    b = torch.empty(n, k, dtype=torch.bfloat16)
    c = torch.empty(m, n, dtype=torch.bfloat16)
    gemm[(m // 128, n // 128)](
        a, b, c, m, n, k, a.stride(0), b.stride(0), c.stride(0),
        BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, num_warps=8,
    )  # fmt: skip


if __name__ == "__main__":
    main()
