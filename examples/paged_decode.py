"""One decoding step of grouped-query attention over a paged key-value cache.

Every sequence has its own length and its own list of cache pages. The sequence is split between
programs, and a second kernel joins the parts.
"""

import torch
import triton
import triton.language as tl

PAGE = 16


@triton.jit
def split_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    table_ptr,
    length_ptr,
    part_ptr,
    lse_ptr,
    scale,
    table_stride,
    HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    GROUP_PADDED: tl.constexpr,
    D: tl.constexpr,
    PAGE: tl.constexpr,
    BLOCK: tl.constexpr,
    SPLITS: tl.constexpr,
):
    sequence = tl.program_id(0)
    kv_head = tl.program_id(1)
    split = tl.program_id(2)
    length = tl.load(length_ptr + sequence)
    share = tl.cdiv(tl.cdiv(length, SPLITS), BLOCK) * BLOCK
    start = split * share
    end = min(start + share, length)

    member = tl.arange(0, GROUP_PADDED)
    lane = tl.arange(0, D)
    head = kv_head * GROUP + member
    valid = member < GROUP
    q_row = (sequence * HEADS * GROUP + head)[:, None] * D + lane[None, :]
    q = tl.load(q_ptr + q_row, mask=valid[:, None], other=0.0)

    best = tl.full((GROUP_PADDED,), -float("inf"), tl.float32)
    weight = tl.zeros((GROUP_PADDED,), tl.float32)
    total = tl.zeros((GROUP_PADDED, D), tl.float32)
    for first in range(start, end, BLOCK):
        token = first + tl.arange(0, BLOCK)
        present = token < end
        page = tl.load(table_ptr + sequence * table_stride + token // PAGE, mask=present, other=0)
        place = (page * PAGE + token % PAGE).to(tl.int64) * HEADS + kv_head
        k = tl.load(k_ptr + place[None, :] * D + lane[:, None], mask=present[None, :], other=0.0)
        score = tl.dot(q, k) * scale
        score = tl.where(present[None, :], score, -float("inf"))
        higher = tl.maximum(best, tl.max(score, axis=1))
        p = tl.exp(score - higher[:, None])
        fade = tl.exp(best - higher)
        v = tl.load(v_ptr + place[:, None] * D + lane[None, :], mask=present[:, None], other=0.0)
        total = total * fade[:, None] + tl.dot(p.to(v.dtype), v)
        weight = weight * fade + tl.sum(p, axis=1)
        best = higher

    slot = (sequence * HEADS * GROUP + head) * SPLITS + split
    used = weight > 0
    result = tl.where(used[:, None], total / tl.where(used, weight, 1.0)[:, None], 0.0)
    tl.store(part_ptr + slot[:, None] * D + lane[None, :], result, mask=valid[:, None])
    tl.store(lse_ptr + slot, tl.where(used, best + tl.log(weight), -float("inf")), mask=valid)


@triton.jit
def join_kernel(part_ptr, lse_ptr, out_ptr, D: tl.constexpr, SPLITS: tl.constexpr):
    row = tl.program_id(0)
    split = tl.arange(0, SPLITS)
    lane = tl.arange(0, D)
    lse = tl.load(lse_ptr + row * SPLITS + split)
    share = tl.exp(lse - tl.max(lse, axis=0))
    parts = tl.load(part_ptr + (row * SPLITS + split)[:, None] * D + lane[None, :])
    out = tl.sum(parts * share[:, None], axis=0) / tl.sum(share, axis=0)
    tl.store(out_ptr + row * D + lane, out.to(out_ptr.dtype.element_ty))


def paged_decode(q, k_cache, v_cache, table, lengths, splits=8):
    """q: [sequences, heads, D]; caches: [pages, PAGE, kv_heads, D]; table: pages per sequence."""
    sequences, heads, D = q.shape
    kv_heads = k_cache.shape[2]
    group = heads // kv_heads
    parts = torch.empty((sequences, heads, splits, D), device=q.device, dtype=torch.float32)
    lse = torch.empty((sequences, heads, splits), device=q.device, dtype=torch.float32)
    out = torch.empty_like(q)
    split_kernel[(sequences, kv_heads, splits)](
        q, k_cache, v_cache, table, lengths, parts, lse, D**-0.5, table.stride(0),
        HEADS=kv_heads, GROUP=group, GROUP_PADDED=max(16, triton.next_power_of_2(group)), D=D,
        PAGE=PAGE, BLOCK=64, SPLITS=splits, num_warps=4, num_stages=2,
    )  # fmt: skip
    join_kernel[(sequences * heads,)](parts, lse, out, D=D, SPLITS=splits, num_warps=2)
    return out


def reference(q, k_cache, v_cache, table, lengths):
    group = q.shape[1] // k_cache.shape[2]
    rows = []
    for sequence, length in enumerate(lengths.tolist()):
        pages = table[sequence, : triton.cdiv(length, PAGE)]
        k, v = (cache[pages].flatten(0, 1)[:length].float() for cache in (k_cache, v_cache))
        k, v = (tensor.repeat_interleave(group, dim=1) for tensor in (k, v))
        p = torch.einsum("hd,thd->ht", q[sequence].float() * q.shape[2] ** -0.5, k).softmax(-1)
        rows.append(torch.einsum("ht,thd->hd", p, v))
    return torch.stack(rows).to(q.dtype)


def main():
    torch.manual_seed(0)
    sequences, heads, kv_heads, D, longest = 7, 32, 8, 128, 1543
    pages = triton.cdiv(longest, PAGE)
    lengths = torch.randint(1, longest, (sequences,), device="cuda", dtype=torch.int32)
    order = torch.randperm(sequences * pages, device="cuda").to(torch.int32)
    table = order.reshape(sequences, pages)
    q = torch.randn((sequences, heads, D), device="cuda", dtype=torch.float16)
    shape = (sequences * pages, PAGE, kv_heads, D)
    k_cache = torch.randn(shape, device="cuda", dtype=torch.float16)
    v_cache = torch.randn(shape, device="cuda", dtype=torch.float16)
    out = paged_decode(q, k_cache, v_cache, table, lengths)
    expected = reference(q, k_cache, v_cache, table, lengths)
    torch.testing.assert_close(out, expected, atol=2e-3, rtol=1e-2)
    print("paged decode agrees with torch")


if __name__ == "__main__":
    main()
