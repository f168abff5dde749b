import torch
import triton
import triton.language as tl


@triton.jit
def expert_kernel(x, weights, experts, out, N, K, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """One program multiplies one token by BLOCK_N columns of its expert's weights [N, K]."""
    token = tl.program_id(0)
    expert = tl.load(experts + token)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        offs_k = start + tl.arange(0, BLOCK_K)
        row = tl.load(x + token * K + offs_k, mask=offs_k < K, other=0.0).to(tl.float32)
        at = weights + expert.to(tl.int64) * N * K + offs_n[:, None] * K + offs_k[None, :]
        mask = (offs_n[:, None] < N) & (offs_k[None, :] < K)
        tile = tl.load(at, mask=mask, other=0.0).to(tl.float32)
        acc += tl.sum(tile * row[None, :], axis=1)
    tl.store(out + token * N + offs_n, acc.to(out.dtype.element_ty), mask=offs_n < N)


def moe(x, weights, experts):
    """Row i of the result is weights[experts[i]] @ x[i].

    x [T, K], weights [E, N, K], experts [T].
    """
    (T, K), N = x.shape, weights.shape[1]
    out = torch.empty((T, N), device=x.device, dtype=x.dtype)
    grid = (T, triton.cdiv(N, 64))
    expert_kernel[grid](x, weights, experts, out, N, K, BLOCK_N=64, BLOCK_K=64)
    return out
