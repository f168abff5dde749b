import torch
import triton
import triton.language as tl


@triton.jit
def dequantise_kernel(packed, scales, weights, K, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    """One program converts BLOCK packed bytes of a row: two numbers of 4 bits each, offset by 8."""
    row = tl.program_id(0)
    offs = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < K // 2
    byte = tl.load(packed + row * (K // 2) + offs, mask=mask, other=0)
    scale = tl.load(scales + row * (K // GROUP) + offs * 2 // GROUP, mask=mask, other=0.0)
    low = ((byte & 15).to(tl.float32) - 8) * scale
    high = ((byte >> 4).to(tl.float32) - 8) * scale
    tl.store(weights + row * K + offs * 2, low.to(tl.float16), mask=mask)
    tl.store(weights + row * K + offs * 2 + 1, high.to(tl.float16), mask=mask)


@triton.jit
def matmul_kernel(
    x, weights, out, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """One program computes a tile of x weightsᵀ."""
    offs_m = tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        offs_k = start + tl.arange(0, BLOCK_K)
        left = tl.load(
            x + offs_m[:, None] * K + offs_k[None, :], mask=offs_m[:, None] < M, other=0.0
        )
        right = tl.load(
            weights + offs_n[None, :] * K + offs_k[:, None], mask=offs_n[None, :] < N, other=0.0
        )
        acc = tl.dot(left, right, acc)
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tl.store(out + offs_m[:, None] * N + offs_n[None, :], acc.to(tl.float16), mask=mask)


def matmul_w4(x, packed, scales):
    """x [M, K] times the transpose of the weights [N, K], packed to [N, K / 2]; scales [N, K / 64].

    Byte j of a row has the numbers 2 j (low bits) and 2 j + 1 (high bits). M is at most 16, and K a
    multiple of 128.
    """
    (M, K), N = x.shape, packed.shape[0]
    weights = torch.empty((N, K), device=x.device, dtype=torch.float16)
    grid = (N, triton.cdiv(K // 2, 1024))
    dequantise_kernel[grid](packed, scales, weights, K, GROUP=64, BLOCK=1024)
    out = torch.empty((M, N), device=x.device, dtype=torch.float16)
    matmul_kernel[(triton.cdiv(N, 16),)](
        x, weights, out, M, N, K, BLOCK_M=16, BLOCK_N=16, BLOCK_K=128
    )
    return out
