"""What the host does instead of kernels of vLLM: slots of a paged cache and copies of states, whose
kernels would follow addresses or assert that tensors are a GPU's, and the scan of Mamba's first
version, which vLLM has compiled for NVIDIA's GPUs alone.
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional


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


def copy_memory(src_ptrs: Tensor, dst_ptrs: Tensor, sizes: Tensor, BLOCK_SIZE: int = 0) -> None:
    """What vLLM's Triton kernel of the same arguments does: copy `sizes` bytes [copies] between
    addresses of this process, one after the other."""
    del BLOCK_SIZE
    copies = (src_ptrs.tolist(), dst_ptrs.tolist(), sizes.tolist())
    for source, target, size in zip(*copies, strict=True):
        ctypes.memmove(target, source, size)


def gather_initial_states(state: Tensor, indices: Tensor, has_initial_state: Tensor) -> Tensor:
    """What vLLM's function does, which asserts that tensors are a GPU's: rows `indices` [rows] of
    `state` [slots, …], zeros where a row has none yet."""
    rows = state[indices.long()]
    return rows.masked_fill(~has_initial_state.view(-1, *[1] * (state.ndim - 1)), 0)


def scatter_states(state: Tensor, src: Tensor, indices: Tensor) -> None:
    """Likewise: write `src` [rows, …] to the rows `indices` of `state`."""
    state[indices.long()] = src


def selective_scan_fwd(
    u: Tensor,
    delta: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    D_: Tensor | None,
    z_: Tensor | None,
    delta_bias_: Tensor | None,
    delta_softplus: bool,
    query_start_loc: Tensor | None,
    cache_indices: Tensor | None,
    has_initial_state: Tensor | None,
    ssm_states: Tensor,
    null_block_id: int,
    block_size: int = 1024,
    block_idx_first_scheduled_token: Tensor | None = None,
    *blocks: Any,
) -> None:
    """What vLLM's function of the same arguments does for sequences in one row: the recurrence of
    Mamba's first version [Gu and Dao 2023, algorithm 2], in float32 by PyTorch, token by token.

    `u` and `delta` are [columns, tokens], `A` [columns, states], `B` and `C` [groups, states,
    tokens], `ssm_states` [slots, columns, states]. The result overwrites `z_`, which gates it, or
    without it `delta`. Raises NotImplementedError for sequences of a batch and for states of
    prefixes.
    """
    del block_size, blocks
    if query_start_loc is None or cache_indices is None:
        raise NotImplementedError("a scan of sequences of one length")
    if block_idx_first_scheduled_token is not None:
        raise NotImplementedError("a scan that keeps the states of prefixes")
    steps = delta.float() if delta_bias_ is None else delta.float() + delta_bias_.float()[:, None]
    if delta_softplus:
        steps = functional.softplus(steps)
    inputs, repeats = u.float(), u.shape[0] // B.shape[0]
    rows = [part.float().repeat_interleave(repeats, dim=0) for part in (B, C)]
    output = torch.zeros_like(inputs)
    starts = query_start_loc.tolist()
    for number, slot in enumerate(cache_indices.tolist()):
        if slot == null_block_id:
            continue
        state = ssm_states[slot].float()
        if has_initial_state is None or not bool(has_initial_state[number]):
            state = torch.zeros_like(state)
        for token in range(starts[number], starts[number + 1]):
            step = steps[:, token, None]
            state = state * (step * A).exp() + step * inputs[:, token, None] * rows[0][..., token]
            output[:, token] = (state * rows[1][..., token]).sum(1)
        ssm_states[slot] = state.to(ssm_states.dtype)
    if D_ is not None:
        output += inputs * D_.float()[:, None]
    if z_ is None:
        delta.copy_(output)
    else:
        z_.copy_(output * functional.silu(z_.float()))


__all__ = [
    "copy_memory",
    "gather_initial_states",
    "scatter_states",
    "selective_scan_fwd",
    "slot_mapping",
]
