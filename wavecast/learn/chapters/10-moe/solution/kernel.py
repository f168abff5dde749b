import torch
import triton
import triton.language as tl


@triton.jit
def expert_kernel(
    x, weights, tokens, tile_experts, out, T, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """One program multiplies up to BLOCK_M tokens of one expert by BLOCK_N columns of its weights.

    `tokens` has the tokens in the order of their experts, each expert's padded to whole tiles with
    T; `tile_experts` has the expert of each tile.
    """
    pid = tl.program_id(0)
    expert = tl.load(tile_experts + pid)
    rows = tl.load(tokens + pid * BLOCK_M + tl.arange(0, BLOCK_M))
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    weights += expert.to(tl.int64) * N * K
    for start in range(0, K, BLOCK_K):
        offs_k = start + tl.arange(0, BLOCK_K)
        left = tl.load(
            x + rows[:, None] * K + offs_k[None, :],
            mask=(rows[:, None] < T) & (offs_k[None, :] < K),
            other=0.0,
        )
        right = tl.load(
            weights + offs_n[None, :] * K + offs_k[:, None],
            mask=(offs_n[None, :] < N) & (offs_k[:, None] < K),
            other=0.0,
        )
        acc = tl.dot(left, right, acc)
    at = out + rows[:, None] * N + offs_n[None, :]
    tl.store(at, acc.to(out.dtype.element_ty), mask=(rows[:, None] < T) & (offs_n[None, :] < N))


def moe(x, weights, experts):
    """Row i of the result is weights[experts[i]] @ x[i].

    x [T, K], weights [E, N, K], experts [T].
    """
    block = 32
    (T, K), (E, N, _) = x.shape, weights.shape
    counts = torch.bincount(experts, minlength=E)
    tiles = (counts + block - 1) // block
    first = torch.cumsum(tiles, 0) - tiles  # the first tile of each expert
    order = torch.argsort(experts, stable=True)
    rank = torch.arange(T, device=x.device) - (torch.cumsum(counts, 0) - counts)[experts[order]]
    tokens = torch.full((int(tiles.sum()) * block,), T, device=x.device, dtype=torch.int32)
    tokens[first[experts[order]] * block + rank] = order.to(torch.int32)
    tile_experts = torch.repeat_interleave(torch.arange(E, device=x.device), tiles).to(torch.int32)
    out = torch.empty((T, N), device=x.device, dtype=x.dtype)
    grid = (len(tile_experts), triton.cdiv(N, 128))
    expert_kernel[grid](
        x, weights, tokens, tile_experts, out, T, N, K, BLOCK_M=block, BLOCK_N=128, BLOCK_K=64
    )
    return out
