import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q, k, v, out, N, scale, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """One program computes BLOCK_M rows of the output. It keeps, for each row, the largest score so
    far and the sum of powers relative to it, and rescales both and acc when a larger one comes."""
    head = tl.program_id(1)
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, D)
    q += head * N * D
    k += head * N * D
    v += head * N * D
    rows = tl.load(q + offs_m[:, None] * D + offs_d[None, :], mask=offs_m[:, None] < N, other=0.0)
    largest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, D), dtype=tl.float32)
    for start in range(0, N, BLOCK_N):
        offs_n = start + tl.arange(0, BLOCK_N)
        keys = tl.load(
            k + offs_n[None, :] * D + offs_d[:, None], mask=offs_n[None, :] < N, other=0.0
        )
        scores = tl.where(offs_n[None, :] < N, tl.dot(rows, keys) * scale, -float("inf"))
        now = tl.maximum(largest, tl.max(scores, axis=1))
        powers = tl.exp2((scores - now[:, None]) * 1.4426950408889634)
        shrink = tl.exp2((largest - now) * 1.4426950408889634)
        total = total * shrink + tl.sum(powers, axis=1)
        values = tl.load(
            v + offs_n[:, None] * D + offs_d[None, :], mask=offs_n[:, None] < N, other=0.0
        )
        acc = tl.dot(powers.to(tl.bfloat16), values, acc * shrink[:, None])
        largest = now
    at = out + head * N * D + offs_m[:, None] * D + offs_d[None, :]
    tl.store(at, (acc / total[:, None]).to(tl.bfloat16), mask=offs_m[:, None] < N)


def attention(q, k, v):
    heads, N, D = q.shape
    out = torch.empty_like(q)
    grid = (triton.cdiv(N, 128), heads)
    attention_kernel[grid](
        q, k, v, out, N, D**-0.5, D=D, BLOCK_M=128, BLOCK_N=64, num_warps=4, num_stages=1
    )
    return out
