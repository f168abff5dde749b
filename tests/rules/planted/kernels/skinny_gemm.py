"""A product of 16 rows with a long K."""

import torch
import triton
import triton.language as tl


@triton.jit  # planted
def skinny_gemm(
    a, b, c, N, K, stride_am, stride_bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    offs_m = tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a + offs_m[:, None] * stride_am + offs_k[None, :]
    b_ptrs = b + offs_n[None, :] * stride_bn + offs_k[:, None]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, K, BLOCK_K):
        acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
    out = c + offs_m[:, None] * N + offs_n[None, :]
    tl.store(out, acc)


def main(m=16, n=2048, k=16384):
    a = torch.empty(m, k, dtype=torch.bfloat16)
    b = torch.empty(n, k, dtype=torch.bfloat16)
    c = torch.empty(m, n)
    skinny_gemm[(n // 64,)](
        a, b, c, n, k, a.stride(0), b.stride(0), BLOCK_M=16, BLOCK_N=64, BLOCK_K=128
    )


if __name__ == "__main__":
    main()
