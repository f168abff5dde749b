"""Causal attention without the score matrix in memory, forward and backward, fp16."""

import torch
import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()
LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def tile(base, row, lane, length, D: tl.constexpr):
    """Rows `row` of a [length, D] matrix; rows past the end are zeros."""
    return tl.load(base + row[:, None] * D + lane[None, :], mask=row[:, None] < length, other=0.0)


@triton.jit
def forward_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    lse_ptr,
    length,
    scale,
    D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    block = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    q_ptr += head * length * D
    k_ptr += head * length * D
    v_ptr += head * length * D
    row = block * BLOCK_M + tl.arange(0, BLOCK_M)
    lane = tl.arange(0, D)
    q = tile(q_ptr, row, lane, length, D)

    best = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    weight = tl.zeros((BLOCK_M,), tl.float32)
    total = tl.zeros((BLOCK_M, D), tl.float32)
    last = min(length, (block + 1) * BLOCK_M)
    for first in range(0, last, BLOCK_N):
        column = first + tl.arange(0, BLOCK_N)
        k = tile(k_ptr, column, lane, length, D)
        score = tl.dot(q, tl.trans(k)) * (scale * LOG2E)
        seen = (row[:, None] >= column[None, :]) & (column[None, :] < length)
        score = tl.where(seen, score, -1.0e30)
        higher = tl.maximum(best, tl.max(score, axis=1))
        p = tl.exp2(score - higher[:, None])
        fade = tl.exp2(best - higher)
        v = tile(v_ptr, column, lane, length, D)
        total = tl.dot(p.to(v.dtype), v, total * fade[:, None])
        weight = weight * fade + tl.sum(p, axis=1)
        best = higher

    inside = row < length
    out = out_ptr + head * length * D + row[:, None] * D + lane[None, :]
    tl.store(out, (total / weight[:, None]).to(out_ptr.dtype.element_ty), mask=inside[:, None])
    tl.store(lse_ptr + head * length + row, best + tl.log2(weight), mask=inside)


@triton.jit
def delta_kernel(out_ptr, dout_ptr, delta_ptr, rows, D: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    lane = tl.arange(0, D)
    out = tile(out_ptr, row, lane, rows, D).to(tl.float32)
    dout = tile(dout_ptr, row, lane, rows, D).to(tl.float32)
    tl.store(delta_ptr + row, tl.sum(out * dout, axis=1), mask=row < rows)


@triton.jit
def backward_kv_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    dout_ptr,
    lse_ptr,
    delta_ptr,
    dk_ptr,
    dv_ptr,
    length,
    scale,
    D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    block = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    matrix = head * length * D
    column = block * BLOCK_N + tl.arange(0, BLOCK_N)
    lane = tl.arange(0, D)
    k = tile(k_ptr + matrix, column, lane, length, D)
    v = tile(v_ptr + matrix, column, lane, length, D)
    dk = tl.zeros((BLOCK_N, D), tl.float32)
    dv = tl.zeros((BLOCK_N, D), tl.float32)
    # The first query that sees this block of keys is in the block on the diagonal.
    for first in range(block * BLOCK_N // BLOCK_M * BLOCK_M, length, BLOCK_M):
        row = first + tl.arange(0, BLOCK_M)
        inside = row < length
        q = tile(q_ptr + matrix, row, lane, length, D)
        dout = tile(dout_ptr + matrix, row, lane, length, D)
        lse = tl.load(lse_ptr + head * length + row, mask=inside, other=0.0)
        delta = tl.load(delta_ptr + head * length + row, mask=inside, other=0.0)
        score = tl.dot(q, tl.trans(k)) * (scale * LOG2E)
        seen = (row[:, None] >= column[None, :]) & inside[:, None]
        p = tl.where(seen, tl.exp2(score - lse[:, None]), 0.0)
        dv = tl.dot(tl.trans(p.to(dout.dtype)), dout, dv)
        dp = tl.dot(dout, tl.trans(v))
        ds = p * (dp - delta[:, None])
        dk = tl.dot(tl.trans(ds.to(q.dtype)), q, dk)
    place = matrix + column[:, None] * D + lane[None, :]
    kept = column[:, None] < length
    tl.store(dk_ptr + place, (dk * scale).to(dk_ptr.dtype.element_ty), mask=kept)
    tl.store(dv_ptr + place, dv.to(dv_ptr.dtype.element_ty), mask=kept)


@triton.jit
def backward_q_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    dout_ptr,
    lse_ptr,
    delta_ptr,
    dq_ptr,
    length,
    scale,
    D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    block = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    matrix = head * length * D
    row = block * BLOCK_M + tl.arange(0, BLOCK_M)
    lane = tl.arange(0, D)
    inside = row < length
    q = tile(q_ptr + matrix, row, lane, length, D)
    dout = tile(dout_ptr + matrix, row, lane, length, D)
    lse = tl.load(lse_ptr + head * length + row, mask=inside, other=0.0)
    delta = tl.load(delta_ptr + head * length + row, mask=inside, other=0.0)
    dq = tl.zeros((BLOCK_M, D), tl.float32)
    for first in range(0, min(length, (block + 1) * BLOCK_M), BLOCK_N):
        column = first + tl.arange(0, BLOCK_N)
        k = tile(k_ptr + matrix, column, lane, length, D)
        v = tile(v_ptr + matrix, column, lane, length, D)
        score = tl.dot(q, tl.trans(k)) * (scale * LOG2E)
        seen = (row[:, None] >= column[None, :]) & (column[None, :] < length)
        p = tl.where(seen, tl.exp2(score - lse[:, None]), 0.0)
        ds = p * (tl.dot(dout, tl.trans(v)) - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq)
    place = matrix + row[:, None] * D + lane[None, :]
    tl.store(dq_ptr + place, (dq * scale).to(dq_ptr.dtype.element_ty), mask=inside[:, None])


class Attention(torch.autograd.Function):
    """softmax(q k^T / sqrt(D), causal) v for [batch, heads, length, D] tensors."""

    @staticmethod
    def forward(ctx, q, k, v):
        batch, heads, length, D = q.shape
        out = torch.empty_like(q)
        lse = torch.empty((batch, heads, length), device=q.device, dtype=torch.float32)
        grid = (triton.cdiv(length, 128), batch * heads)
        forward_kernel[grid](
            q, k, v, out, lse, length, D**-0.5, D=D, BLOCK_M=128, BLOCK_N=64,
            num_warps=4, num_stages=1,
        )  # fmt: skip
        ctx.save_for_backward(q, k, v, out, lse)
        return out

    @staticmethod
    def backward(ctx, dout):
        q, k, v, out, lse = ctx.saved_tensors
        batch, heads, length, D = q.shape
        dout = dout.contiguous()
        dq, dk, dv = (torch.empty_like(tensor) for tensor in (q, k, v))
        delta = torch.empty_like(lse)
        rows = batch * heads * length
        delta_kernel[(triton.cdiv(rows, 64),)](out, dout, delta, rows, D=D, BLOCK=64)
        grid = (triton.cdiv(length, 64), batch * heads)
        shared = {"D": D, "BLOCK_M": 64, "BLOCK_N": 64, "num_warps": 4, "num_stages": 1}
        backward_kv_kernel[grid](q, k, v, dout, lse, delta, dk, dv, length, D**-0.5, **shared)
        backward_q_kernel[grid](q, k, v, dout, lse, delta, dq, length, D**-0.5, **shared)
        return dq, dk, dv


def main():
    torch.manual_seed(0)
    shape = (2, 4, 517, 64)
    q, k, v = (
        torch.randn(shape, device=DEVICE, dtype=torch.float16, requires_grad=True) for _ in range(3)
    )
    dout = torch.randn(shape, device=DEVICE, dtype=torch.float16)
    out = Attention.apply(q, k, v)
    out.backward(dout)
    ours = [tensor.grad.clone() for tensor in (q, k, v)]

    exact = [tensor.detach().float().requires_grad_() for tensor in (q, k, v)]
    expected = torch.nn.functional.scaled_dot_product_attention(*exact, is_causal=True)
    expected.backward(dout.float())
    torch.testing.assert_close(out.float(), expected, atol=1e-2, rtol=1e-2)
    for gradient, tensor in zip(ours, exact, strict=True):
        torch.testing.assert_close(gradient.float(), tensor.grad, atol=3e-2, rtol=1e-2)
    print("attention and its gradients agree with torch")


if __name__ == "__main__":
    main()
