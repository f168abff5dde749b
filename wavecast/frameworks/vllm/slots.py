"""The slots of a paged cache that new tokens are written to."""

from __future__ import annotations

import torch
from torch import Tensor


def slot_mapping(
    num_tokens: int,
    max_num_tokens: int,
    query_start_loc_ptr: Tensor,
    positions_ptr: Tensor,
    block_table_ptr: Tensor,
    block_table_stride: int,
    slot_mapping_ptr: Tensor,
    KV_CACHE_BLOCK_SIZE: int,
    TOTAL_CP_WORLD_SIZE: int,
    TOTAL_CP_RANK: int,
    CP_KV_CACHE_INTERLEAVE_SIZE: int,
    PAD_ID: int,
    BLOCK_SIZE: int,
) -> None:
    """What vLLM's Triton kernel of the same arguments writes to `slot_mapping_ptr`.

    Token t of sequence s, which has rows `query_start_loc_ptr[s]` up to the next, goes to position
    `positions_ptr[t]` % block size of block `block_table_ptr[s, positions_ptr[t] // block size]`;
    tokens from `num_tokens` on get `PAD_ID`. Raises ValueError for a cache divided among GPUs.
    """
    del block_table_stride, TOTAL_CP_RANK, CP_KV_CACHE_INTERLEAVE_SIZE, BLOCK_SIZE
    if TOTAL_CP_WORLD_SIZE != 1:
        raise ValueError(f"a cache divided among {TOTAL_CP_WORLD_SIZE} GPUs")
    starts = query_start_loc_ptr.long()
    rows = torch.arange(num_tokens)
    sequence = torch.searchsorted(starts[1:].contiguous(), rows, right=True)
    position = positions_ptr[:num_tokens].long()
    block = block_table_ptr[sequence, position // KV_CACHE_BLOCK_SIZE].long()
    slots = block * KV_CACHE_BLOCK_SIZE + position % KV_CACHE_BLOCK_SIZE
    slot_mapping_ptr[:num_tokens] = slots
    slot_mapping_ptr[num_tokens:max_num_tokens] = PAD_ID


__all__ = ["slot_mapping"]
