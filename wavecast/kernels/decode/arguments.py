"""What attention over a paged cache is given: checks, and the form that kernels take it in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import triton

from wavecast.kernels import checks, gpu
from wavecast.kernels.decode.parts import CACHES, HALVES
from wavecast.kernels.strides import adjacent, contiguous

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
    checks.shape_is(operator, "key_cache", key_cache, (-1, -1, -1, -1))
    checks.shape_is(operator, "value_cache", value_cache, (-1, -1, -1, -1))
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


def spread(scale: torch.Tensor | None) -> tuple[torch.Tensor | None, int]:
    """A scale and its step from one head to the next, 0 where all share it."""
    if scale is None:
        return None, 0
    flat = scale.reshape(-1)
    return flat, 0 if flat.shape[0] == 1 else flat.stride(0)


@dataclass(frozen=True, slots=True)
class Paged:
    """What kernels over a paged cache are given alike: tensors as they take them, and of the launch
    the scalar arguments, the constants and what a configuration depends on."""

    q: torch.Tensor
    block_table: torch.Tensor
    k_scale: torch.Tensor | None
    v_scale: torch.Tensor | None
    sinks: torch.Tensor | None
    alibi: torch.Tensor | None
    factors: tuple[float, float, int]
    strides: tuple[int, ...]
    constants: Mapping[str, Any]
    problem: Mapping[str, Any]

    @staticmethod
    def of(
        q: torch.Tensor,
        key_cache: torch.Tensor,
        value_cache: torch.Tensor,
        block_table: torch.Tensor,
        scale: float | None,
        options: Options,
    ) -> Paged:
        """From arguments that `check` has let pass."""
        head = q.shape[2]
        block_size, kv_heads = key_cache.shape[1:3]
        k_scale, k_step = spread(options.k_scale)
        v_scale, v_step = spread(options.v_scale)
        wide = checks.wide(key_cache, value_cache)
        plain = options.alibi is None, options.soft_cap <= 0
        return Paged(
            q=q if q.stride(2) == 1 else q.contiguous(),
            block_table=adjacent(block_table),
            k_scale=k_scale,
            v_scale=v_scale,
            sinks=contiguous(options.sinks),
            alibi=contiguous(options.alibi),
            factors=(head**-0.5 if scale is None else scale, options.soft_cap, options.window),
            strides=(*key_cache.stride()[:3], *value_cache.stride()[:3], k_step, v_step),
            constants={
                "HEAD": head,
                "PADDED": triton.next_power_of_2(head),
                "BLOCK_SIZE": block_size,
                "WINDOW": options.window > 0,
                "SINKS": options.sinks is not None,
                "SLOPES": options.alibi is not None,
                "CAPPED": options.soft_cap > 0,
                "K_SCALED": k_scale is not None,
                "V_SCALED": v_scale is not None,
                "WIDE": wide,
            },
            problem={
                "kv_heads": kv_heads,
                "head": head,
                "block_size": block_size,
                "dtype": str(q.dtype).removeprefix("torch."),
                "cache": str(key_cache.dtype).removeprefix("torch."),
                "extras": plain.count(False),
                "wide": wide,
            },
        )


__all__ = [
    "Options",
    "Paged",
    "available",
    "cache_dtype",
    "check",
    "spread",
    "tables",
]
