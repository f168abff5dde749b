"""What attention over a paged cache is given: its checks, its reference, and test data."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from wavecast.kernels import checks, gpu
from wavecast.kernels.decode.parts import CACHES, FP8, HALVES
from wavecast.kernels.inputs import Make

_INTEGERS = (torch.int32, torch.int64)
_UNSUPPORTED = (torch.float8_e4m3fnuz,)
"""Dtypes Triton has on AMD targets only."""


@dataclass(frozen=True, slots=True)
class Options:
    """Optional arguments, as kernels take them."""

    k_scale: torch.Tensor | None = None
    v_scale: torch.Tensor | None = None
    window: int = 0
    sinks: torch.Tensor | None = None
    soft_cap: float = 0.0
    alibi: torch.Tensor | None = None


def check(
    operator: str,
    q: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    block_table: torch.Tensor,
    lengths: torch.Tensor,
    options: Options,
) -> None:
    """Raise ArgumentError unless these fit together; `q` is [rows, heads, head]."""
    checks.require(q.dim() == 3, operator, f"q has {q.dim()} dimensions, not 3")
    checks.require(key_cache.dim() == 4, operator, f"key_cache has {key_cache.dim()}, not 4")
    heads, head = q.shape[1:]
    blocks, block_size, kv_heads = key_cache.shape[:3]
    checks.dtype_in(operator, "q", q, HALVES)
    cache_dtype(operator, "key_cache", key_cache, q)
    cache_dtype(operator, "value_cache", value_cache, q)
    checks.shape_is(operator, "key_cache", key_cache, (-1, -1, -1, head))
    checks.shape_is(operator, "value_cache", value_cache, (blocks, block_size, kv_heads, head))
    checks.require(block_size > 0 and kv_heads > 0 and head > 0, operator, "the cache is empty")
    checks.require(
        heads % kv_heads == 0, operator, f"{heads} heads do not share {kv_heads} of keys evenly"
    )
    checks.require(head <= 256, operator, f"heads of {head} elements; it takes up to 256")
    tables(operator, block_table, lengths)
    for name, tensor in (("k_scale", options.k_scale), ("v_scale", options.v_scale)):
        if tensor is not None:
            checks.dtype_in(operator, name, tensor, (torch.float32,))
            checks.require(
                tensor.numel() in (1, kv_heads), operator, f"{name} has not 1 or {kv_heads} values"
            )
    for name, tensor in (("sinks", options.sinks), ("alibi", options.alibi)):
        if tensor is not None:
            checks.dtype_in(operator, name, tensor, checks.FLOATS)
            checks.shape_is(operator, name, tensor, (heads,))
    checks.require(options.window >= 0, operator, "window is negative")
    checks.require(options.soft_cap >= 0, operator, "soft_cap is negative")
    checks.same_device(
        operator,
        q=q,
        key_cache=key_cache,
        value_cache=value_cache,
        block_table=block_table,
        lengths=lengths,
        k_scale=options.k_scale,
        v_scale=options.v_scale,
        sinks=options.sinks,
        alibi=options.alibi,
    )


def cache_dtype(operator: str, name: str, cache: torch.Tensor, q: torch.Tensor) -> None:
    """A cache is of the dtype of `q` or of one of 8 bits, its last dimension contiguous."""
    checks.dtype_in(operator, name, cache, CACHES)
    checks.require(
        cache.dtype == q.dtype or cache.dtype not in HALVES,
        operator,
        f"{name} is {cache.dtype} and q {q.dtype}: 16-bit caches have the dtype of q",
    )
    available(operator, name, cache.dtype)
    checks.require(
        cache.stride(-1) == 1 or cache.shape[-1] <= 1,
        operator,
        f"the last dimension of {name} is not contiguous",
    )


def available(operator: str, name: str, dtype: torch.dtype) -> None:
    """Raise ArgumentError for a dtype the GPU at hand has no code for."""
    if dtype in _UNSUPPORTED:
        target = gpu.launching().target
        kind = str(dtype).removeprefix("torch.")
        checks.require(target.startswith("gfx"), operator, f"{name} is {kind}: AMD GPUs only")


def tables(operator: str, block_table: torch.Tensor, lengths: torch.Tensor) -> None:
    """A block table and lengths belong together."""
    checks.dtype_in(operator, "block_table", block_table, _INTEGERS)
    checks.dtype_in(operator, "lengths", lengths, _INTEGERS)
    checks.require(lengths.dim() == 1, operator, f"lengths has {lengths.dim()} dimensions, not 1")
    checks.shape_is(operator, "block_table", block_table, (lengths.shape[0], -1))


def contiguous(tensor: torch.Tensor | None) -> torch.Tensor | None:
    """A tensor, if there is one, with contiguous memory."""
    return None if tensor is None else tensor.contiguous()


def spread(scale: torch.Tensor | None) -> tuple[torch.Tensor | None, int]:
    """A scale and its step from one head to the next, 0 where all share it."""
    if scale is None:
        return None, 0
    flat = scale.reshape(-1)
    return flat, 0 if flat.shape[0] == 1 else flat.stride(0)


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


def made_cache(
    make: Make, shape: tuple[int, ...], dtype: str, scaled: int
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """A cache of normal values and its scales, `scaled` of them (0: none)."""
    if dtype == "int8":
        cache = make.integers(shape, -127, 128, "int8") if make.values else None
        if cache is None:
            cache = torch.empty(shape, dtype=torch.int8, device=make.device)
        size = 0.01
    else:
        cache, size = make.normal(shape, dtype), 0.8
    scale = make.uniform((scaled,), "float32", size, 2 * size) if scaled else None
    return cache, scale


def made_lengths(make: Make, sequences: int, length: int, ragged: bool) -> torch.Tensor:
    """Lengths of sequences: `length` for all, or from 1 to `length` with the longest among them."""
    if not ragged:
        return make.tensor([length] * sequences, "int32")
    found = make.integers((sequences,), 1, length + 1, "int32")
    found[sequences // 2] = length
    return found


def made_table(make: Make, lengths: torch.Tensor, block_size: int) -> tuple[torch.Tensor, int]:
    """A table of blocks in random order, -1 where a sequence has none, and how many there are."""
    counts = (lengths + block_size - 1) // block_size
    width, total = int(counts.max()), int(counts.sum())
    order = make.permutation(total, "int32")
    used = torch.arange(width)[None, :] < counts.cpu()[:, None]
    table = torch.full(used.shape, -1, dtype=torch.int32)
    table[used] = order.cpu()
    return table.to(make.device), total


__all__ = [
    "FP8",
    "Options",
    "attended",
    "available",
    "cache_dtype",
    "check",
    "contiguous",
    "made_cache",
    "made_lengths",
    "made_table",
    "spread",
    "tables",
]
