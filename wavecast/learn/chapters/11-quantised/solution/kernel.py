import torch
import triton
import triton.language as tl


@triton.jit
def matmul_w4_kernel(
    x, packed, scales, out, M, N, K, GROUP: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """One program computes a tile of x weightsᵀ; weights are unpacked in registers."""
    offs_m = tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        offs_k = start + tl.arange(0, BLOCK_K)
        offs_b = start // 2 + tl.arange(0, BLOCK_K // 2)
        left = tl.load(
            x + offs_m[:, None] * K + offs_k[None, :], mask=offs_m[:, None] < M, other=0.0
        )
        rows = offs_n[:, None] < N
        byte = tl.load(packed + offs_n[:, None] * (K // 2) + offs_b[None, :], mask=rows, other=0)
        at = scales + offs_n[:, None] * (K // GROUP) + offs_b[None, :] * 2 // GROUP
        scale = tl.load(at, mask=rows, other=0.0)
        low = ((byte & 15).to(tl.float32) - 8) * scale
        high = ((byte >> 4).to(tl.float32) - 8) * scale
        right = tl.join(low, high).reshape(BLOCK_N, BLOCK_K).to(tl.float16)
        acc = tl.dot(left, right.T, acc)
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tl.store(out + offs_m[:, None] * N + offs_n[None, :], acc.to(tl.float16), mask=mask)


def matmul_w4(x, packed, scales):
    """x [M, K] times the transpose of the weights [N, K], packed to [N, K / 2]; scales [N, K / 64].

    Byte j of a row has the numbers 2 j (low bits) and 2 j + 1 (high bits). M is at most 16, and K a
    multiple of 128.
    """
    (M, K), N = x.shape, packed.shape[0]
    out = torch.empty((M, N), device=x.device, dtype=torch.float16)
    matmul_w4_kernel[(triton.cdiv(N, 16),)](
        x, packed, scales, out, M, N, K, GROUP=64, BLOCK_M=16, BLOCK_N=16, BLOCK_K=128
    )
    return out
