"""A mixture-of-experts layer: routed tokens sorted by expert, then one grouped matrix product.

Every tile of BLOCK_M rows belongs to one expert, so the token list is padded per expert. The first
product fuses SiLU gating, the second the routing weight.
"""

import torch
import triton
import triton.language as tl

BLOCK_M = 64


@triton.jit
def experts_kernel(
    a_ptr,
    w_ptr,
    c_ptr,
    slot_ptr,
    expert_ptr,
    gate_ptr,
    slots,
    N,
    K,
    TOP_K: tl.constexpr,
    GATED: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    block = tl.program_id(0)
    expert = tl.load(expert_ptr + block).to(tl.int64)
    slot = tl.load(slot_ptr + block * BLOCK_M + tl.arange(0, BLOCK_M))
    used = slot < slots
    # The first product reads a token's row once per expert; the second has a row per slot.
    source = slot // TOP_K if GATED else slot
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)

    width = 2 * N if GATED else N
    a = a_ptr + source[:, None].to(tl.int64) * K + inner[None, :]
    w = w_ptr + expert * width * K + column[None, :] * K + inner[:, None]
    wanted = column[None, :] < N
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    linear = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        left = K - start
        x = tl.load(a, mask=used[:, None] & (inner[None, :] < left), other=0.0)
        y = tl.load(w, mask=wanted & (inner[:, None] < left), other=0.0)
        total = tl.dot(x, y, total)
        if GATED:
            z = tl.load(w + N * K, mask=wanted & (inner[:, None] < left), other=0.0)
            linear = tl.dot(x, z, linear)
        a += BLOCK_K
        w += BLOCK_K

    if GATED:
        total = total * tl.sigmoid(total) * linear
    else:
        total = total * tl.load(gate_ptr + slot, mask=used, other=0.0)[:, None]
    c = c_ptr + slot[:, None].to(tl.int64) * N + column[None, :]
    tl.store(c, total.to(c_ptr.dtype.element_ty), mask=used[:, None] & wanted)


def by_expert(chosen, experts):
    """Slots sorted by expert, each expert's list padded to tiles, and the expert of each tile."""
    flat = chosen.flatten()
    counts = torch.bincount(flat, minlength=experts)
    padded = (counts + BLOCK_M - 1) // BLOCK_M * BLOCK_M
    starts = padded.cumsum(0) - padded
    order = flat.argsort(stable=True)
    rank = torch.arange(flat.numel(), device=flat.device) - (counts.cumsum(0) - counts)[flat[order]]
    slots = torch.full((int(padded.sum()),), flat.numel(), device=flat.device, dtype=torch.int32)
    slots[starts[flat[order]] + rank] = order.to(torch.int32)
    owners = torch.arange(experts, device=flat.device, dtype=torch.int32)
    return slots, owners.repeat_interleave(padded // BLOCK_M)


def fused_moe(x, w_up, w_down, router, top_k):
    """x: [tokens, hidden]; w_up: [experts, 2*inner, hidden]; w_down: [experts, hidden, inner]."""
    tokens, hidden = x.shape
    experts, inner = w_up.shape[0], w_up.shape[1] // 2
    gates, chosen = torch.softmax(x.float() @ router.float(), dim=-1).topk(top_k, dim=-1)
    gates = (gates / gates.sum(-1, keepdim=True)).contiguous()
    slots, owners = by_expert(chosen, experts)
    middle = torch.empty((tokens * top_k, inner), device=x.device, dtype=x.dtype)
    parts = torch.empty((tokens * top_k, hidden), device=x.device, dtype=x.dtype)
    for a, w, c, N, K, gated in (
        (x, w_up, middle, inner, hidden, True),
        (middle, w_down, parts, hidden, inner, False),
    ):
        grid = (owners.numel(), triton.cdiv(N, 64))
        experts_kernel[grid](
            a, w, c, slots, owners, gates, tokens * top_k, N, K, TOP_K=top_k, GATED=gated,
            BLOCK_M=BLOCK_M, BLOCK_N=64, BLOCK_K=64, num_warps=4, num_stages=2,
        )  # fmt: skip
    return parts.view(tokens, top_k, hidden).sum(dim=1), gates, chosen


def reference(x, w_up, w_down, gates, chosen):
    out = torch.zeros_like(x, dtype=torch.float32)
    inner = w_up.shape[1] // 2
    for expert in range(w_up.shape[0]):
        token, place = (chosen == expert).nonzero(as_tuple=True)
        up = x[token].float() @ w_up[expert].float().T
        middle = torch.nn.functional.silu(up[:, :inner]) * up[:, inner:]
        down = middle.to(x.dtype).float() @ w_down[expert].float().T
        out.index_add_(0, token, down * gates[token, place, None])
    return out.to(x.dtype)


def main():
    torch.manual_seed(0)
    tokens, hidden, inner, experts, top_k = 301, 512, 360, 8, 2
    options = {"device": "cuda", "dtype": torch.bfloat16}
    x = torch.randn((tokens, hidden), **options)
    w_up = torch.randn((experts, 2 * inner, hidden), **options) * hidden**-0.5
    w_down = torch.randn((experts, hidden, inner), **options) * inner**-0.5
    router = torch.randn((hidden, experts), **options) * hidden**-0.5
    out, gates, chosen = fused_moe(x, w_up, w_down, router, top_k)
    expected = reference(x, w_up, w_down, gates, chosen)
    torch.testing.assert_close(out, expected, atol=3e-2, rtol=3e-2)
    print("mixture of experts agrees with torch")


if __name__ == "__main__":
    main()
