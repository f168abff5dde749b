import torch
import triton
import triton.language as tl


@triton.jit
def scores_kernel(q, k, s, N, scale, D: tl.constexpr, BLOCK: tl.constexpr):
    """s = q kᵀ · scale, one tile per program; the third axis of the grid are heads."""
    head = tl.program_id(2)
    offs_m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    offs_n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    offs_d = tl.arange(0, D)
    q += head * N * D
    k += head * N * D
    left = tl.load(q + offs_m[:, None] * D + offs_d[None, :], mask=offs_m[:, None] < N, other=0.0)
    right = tl.load(k + offs_n[None, :] * D + offs_d[:, None], mask=offs_n[None, :] < N, other=0.0)
    mask = (offs_m[:, None] < N) & (offs_n[None, :] < N)
    at = s + head.to(tl.int64) * N * N + offs_m[:, None] * N + offs_n[None, :]
    tl.store(at, tl.dot(left, right) * scale, mask=mask)


@triton.jit
def softmax_kernel(s, N, BLOCK: tl.constexpr):
    """The softmax of each row, in s itself."""
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK)
    values = tl.load(s + row * N + offs, mask=offs < N, other=-float("inf"))
    powers = tl.exp(values - tl.max(values))
    tl.store(s + row * N + offs, powers / tl.sum(powers), mask=offs < N)


@triton.jit
def output_kernel(s, v, out, N, D: tl.constexpr, BLOCK: tl.constexpr):
    """out = s v"""
    head = tl.program_id(1)
    offs_m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    offs_d = tl.arange(0, D)
    acc = tl.zeros((BLOCK, D), dtype=tl.float32)
    s += head.to(tl.int64) * N * N
    v += head * N * D
    for start in range(0, N, BLOCK):
        offs_n = start + tl.arange(0, BLOCK)
        mask = (offs_m[:, None] < N) & (offs_n[None, :] < N)
        weights = tl.load(s + offs_m[:, None] * N + offs_n[None, :], mask=mask, other=0.0)
        values = tl.load(
            v + offs_n[:, None] * D + offs_d[None, :], mask=offs_n[:, None] < N, other=0.0
        )
        acc = tl.dot(weights.to(tl.bfloat16), values, acc)
    at = out + head * N * D + offs_m[:, None] * D + offs_d[None, :]
    tl.store(at, acc.to(tl.bfloat16), mask=offs_m[:, None] < N)


def attention(q, k, v):
    heads, N, D = q.shape
    s = torch.empty((heads, N, N), device=q.device)
    out = torch.empty_like(q)
    tiles = triton.cdiv(N, 64)
    scores_kernel[(tiles, tiles, heads)](q, k, s, N, D**-0.5, D=D, BLOCK=64)
    softmax_kernel[(heads * N,)](s, N, BLOCK=triton.next_power_of_2(N))
    output_kernel[(tiles, heads)](s, v, out, N, D=D, BLOCK=64)
    return out
