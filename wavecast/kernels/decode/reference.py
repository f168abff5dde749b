"""Attention over a paged cache in plain torch."""

import torch
from torch import Tensor

from wavecast.kernels.decode.arguments import PagedOptions
from wavecast.kernels.references import wide_dtype


def reference_attention(
    q: Tensor, sequence: Tensor, position: Tensor, key_cache: Tensor, value_cache: Tensor,
    block_table: Tensor, scale: float | None, options: PagedOptions,
) -> Tensor:  # fmt: skip
    """Attention in plain torch: row i of `q` [rows, heads, head] is at `position[i]` of
    `sequence[i]` and sees the tokens up to it."""
    dtype = wide_dtype(q)
    rows, heads, head = q.shape
    qk_scale = head**-0.5 if scale is None else scale
    block_size, kv_heads = key_cache.shape[1:3]
    count = block_table.shape[1] * block_size
    if rows * heads * head == 0:
        return q.new_zeros(q.shape)
    token = torch.arange(count, device=q.device)
    mask = token[None, :] <= position[:, None]
    if options.window:
        mask = mask & (token[None, :] > position[:, None] - options.window)
    block = block_table.long()[:, token // block_size] if count else block_table.long()
    block_mask = torch.zeros_like(block, dtype=torch.bool)
    block_mask = block_mask.index_put((sequence[:, None], token[None, :]), mask, accumulate=True)
    block = torch.where(block_mask, block, 0)
    keys = _gather_tokens(key_cache, block, token, block_size, options.k_scale, dtype)
    values = _gather_tokens(value_cache, block, token, block_size, options.v_scale, dtype)
    keys = torch.where(block_mask[:, :, None, None], keys, 0.0)[sequence]
    values = torch.where(block_mask[:, :, None, None], values, 0.0)[sequence]
    q_of_group = q.to(dtype).reshape(rows, kv_heads, heads // kv_heads, head)
    score = torch.einsum("rkgd,rtkd->rkgt", q_of_group, keys).reshape(rows, heads, count) * qk_scale
    if options.soft_cap:
        score = options.soft_cap * torch.tanh(score / options.soft_cap)
    if options.alibi is not None:
        distance = (token[None, :] - position[:, None]).to(dtype)
        score = score + options.alibi.to(dtype)[None, :, None] * distance[:, None, :]
    score = score.masked_fill(~mask[:, None, :], float("-inf"))
    if options.sinks is not None:
        sinks = options.sinks.to(dtype)[None, :, None].expand(rows, heads, 1)
        score = torch.cat([score, sinks], dim=2)
    weight = torch.nan_to_num(torch.softmax(score, dim=2), nan=0.0)[:, :, :count]
    weight = weight.reshape(rows, kv_heads, heads // kv_heads, count)
    out = torch.einsum("rkgt,rtkd->rkgd", weight, values).reshape(q.shape)
    return out.to(q.dtype).contiguous()


def _gather_tokens(cache, block, token, block_size, scale, dtype):
    """The tokens of all sequences, [sequences, tokens, heads, head] in `dtype`."""
    out = cache[block, (token % block_size)[None, :]].to(dtype)
    if scale is not None:
        out = out * scale.to(dtype).reshape(1, 1, -1, 1)
    return out
