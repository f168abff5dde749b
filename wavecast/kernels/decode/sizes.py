"""Test data of attention over a paged cache, and the sizes its operators are tested with."""

from functools import partial

import torch
from torch import Tensor

from wavecast.dtypes import lookup
from wavecast.kernels.describe import Make, Work

llama = partial(dict, kv_heads=8, head=128, dtype="bfloat16", block_size=16)
"""The cache of Llama 3 and its like."""


def paged_inputs(
    make, lengths, rows, heads, kv_heads, head, dtype, block_size=16, cache="", scales=0, window=0,
    sinks=False, soft_cap=0.0, alibi=False,
):  # fmt: skip
    """Arguments of an operator whose `rows` queries attend to sequences of `lengths`."""
    table, blocks = made_table(make, lengths, block_size)
    shape = (blocks, block_size, kv_heads, head)
    key_cache, k_scale = made_cache(make, shape, cache or dtype, scales)
    value_cache, v_scale = made_cache(make, shape, cache or dtype, scales)
    return {
        "q": make.normal((rows, heads, head), dtype),
        "key_cache": key_cache,
        "value_cache": value_cache,
        "block_table": table,
        "lengths": lengths,
        "scale": None,
        "k_scale": k_scale,
        "v_scale": v_scale,
        "window": window,
        "sinks": make.normal((heads,), "float32") if sinks else None,
        "soft_cap": soft_cap,
        "alibi": make.uniform((heads,), "float32", 0.01, 0.5) if alibi else None,
    }


def paged_work(rows, read, scores, heads, kv_heads, head, dtype, cache="", **_):
    """`rows` queries that see `scores` tokens in all, of `read` that lie in the cache."""
    size = getattr(torch, cache or dtype).itemsize
    bytes_written = 1.0 * rows * heads * head * getattr(torch, dtype).itemsize
    bytes_read = 2.0 * read * kv_heads * head * size + bytes_written
    return Work(
        {lookup(dtype).rate: 4.0 * scores * heads * head},
        bytes_read,
        bytes_written,
        "formula",
        "formula",
    )


def made_cache(
    make: Make, shape: tuple[int, ...], dtype: str, scaled: int
) -> tuple[Tensor, Tensor | None]:
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


def made_lengths(make: Make, sequences: int, length: int, ragged: bool) -> Tensor:
    """Lengths of sequences: `length` for all, or from 1 to `length` with the longest among them."""
    if not ragged:
        return make.tensor([length] * sequences, "int32")
    lengths = make.integers((sequences,), 1, length + 1, "int32")
    lengths[sequences // 2] = length
    return lengths


def made_table(make: Make, lengths: Tensor, block_size: int) -> tuple[Tensor, int]:
    """A table of blocks in random order, -1 where a sequence has none, and how many there are."""
    counts = (lengths + block_size - 1) // block_size
    width, total = int(counts.max()), int(counts.sum())
    order = make.permutation(total, "int32")
    mask = torch.arange(width)[None, :] < counts.cpu()[:, None]
    table = torch.full(mask.shape, -1, dtype=torch.int32)
    table[mask] = order.cpu()
    return table.to(make.device), total
