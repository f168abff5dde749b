"""Attention over a paged cache in plain torch."""

from __future__ import annotations

import torch

from wavecast.kernels.decode.arguments import Options


def attended(
    q: torch.Tensor,
    sequence: torch.Tensor,
    position: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    block_table: torch.Tensor,
    scale: float,
    options: Options,
) -> torch.Tensor:
    """Attention in plain torch: row i of `q` [rows, heads, head] is at `position[i]` of
    `sequence[i]` and sees the tokens up to it."""
    kind = torch.promote_types(q.dtype, torch.float32)
    rows, heads, head = q.shape
    block_size, kv_heads = key_cache.shape[1:3]
    count = block_table.shape[1] * block_size
    if rows * heads * head == 0:
        return q.new_zeros(q.shape)
    token = torch.arange(count, device=q.device)
    seen = token[None, :] <= position[:, None]
    if options.window:
        seen = seen & (token[None, :] > position[:, None] - options.window)
    place = block_table.long()[:, token // block_size] if count else block_table.long()
    used = torch.zeros_like(place, dtype=torch.bool)
    used = used.index_put((sequence[:, None], token[None, :]), seen, accumulate=True)
    place = torch.where(used, place, 0)
    keys = _gathered(key_cache, place, token, block_size, options.k_scale, kind)
    values = _gathered(value_cache, place, token, block_size, options.v_scale, kind)
    keys = torch.where(used[:, :, None, None], keys, 0.0)[sequence]
    values = torch.where(used[:, :, None, None], values, 0.0)[sequence]
    grouped = q.to(kind).reshape(rows, kv_heads, heads // kv_heads, head)
    score = torch.einsum("rkgd,rtkd->rkgt", grouped, keys).reshape(rows, heads, count) * scale
    if options.soft_cap:
        score = options.soft_cap * torch.tanh(score / options.soft_cap)
    if options.alibi is not None:
        distance = (token[None, :] - position[:, None]).to(kind)
        score = score + options.alibi.to(kind)[None, :, None] * distance[:, None, :]
    score = score.masked_fill(~seen[:, None, :], float("-inf"))
    if options.sinks is not None:
        sinks = options.sinks.to(kind)[None, :, None].expand(rows, heads, 1)
        score = torch.cat([score, sinks], dim=2)
    weight = torch.nan_to_num(torch.softmax(score, dim=2), nan=0.0)[:, :, :count]
    weight = weight.reshape(rows, kv_heads, heads // kv_heads, count)
    found = torch.einsum("rkgt,rtkd->rkgd", weight, values).reshape(q.shape)
    return found.to(q.dtype).contiguous()


def _gathered(
    cache: torch.Tensor,
    place: torch.Tensor,
    token: torch.Tensor,
    block_size: int,
    scale: torch.Tensor | None,
    kind: torch.dtype,
) -> torch.Tensor:
    """The tokens of all sequences, [sequences, tokens, heads, head] in `kind`."""
    found = cache[place, (token % block_size)[None, :]].to(kind)
    if scale is not None:
        found = found * scale.to(kind).reshape(1, 1, -1, 1)
    return found


__all__ = ["attended"]
