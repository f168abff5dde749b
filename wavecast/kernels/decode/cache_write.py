"""Writing keys and values of new tokens into a paged cache."""

from __future__ import annotations

from typing import Any

import torch
import triton

from wavecast.kernels import checks
from wavecast.kernels.decode.arguments import available
from wavecast.kernels.decode.cache_kernel import SPACE, limits, write
from wavecast.kernels.decode.parts import CACHES
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Operator, Sizes
from wavecast.model.bounds import Work


def kv_cache_write(
    key: torch.Tensor,
    value: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    slots: torch.Tensor,
    k_scale: torch.Tensor | None = None,
    v_scale: torch.Tensor | None = None,
) -> None:
    """Write keys and values of new tokens into a paged cache, in place.

    `key` is [tokens, heads, head] and `value` [tokens, heads, head of values] of float32, float16
    or bfloat16, the caches [blocks, block size, heads, …] of their dtype, or of float8_e4m3fn,
    float8_e4m3fnuz (AMD GPUs), float8_e5m2 or int8. Token t goes to slot `slots[t]` (int32 or
    int64): place slot % block size of block slot // block size; a negative slot writes nothing, and
    no slot may come twice. Caches of 8 bits hold values divided by `k_scale` and `v_scale` (float32
    of one value or one per head), saturated and rounded to even; NaN is 0 in int8. Any strides but
    contiguous heads. Raises ArgumentError.
    """
    name = "kv_cache_write"
    for what, tensor in (("key", key), ("value", value)):
        checks.require(tensor.dim() == 3, name, f"{what} has {tensor.dim()} dimensions, not 3")
    tokens, heads, head = key.shape
    checks.shape_is(name, "value", value, (tokens, heads, -1))
    checks.shape_is(name, "key_cache", key_cache, (-1, -1, heads, head))
    blocks, block_size = key_cache.shape[:2]
    checks.shape_is(name, "value_cache", value_cache, (blocks, block_size, heads, value.shape[2]))
    _check_slots(name, slots, tokens)
    _check_kind(name, "key", key, key_cache, k_scale, heads)
    _check_kind(name, "value", value, value_cache, v_scale, heads)
    checks.same_device(
        name,
        key=key,
        value=value,
        key_cache=key_cache,
        value_cache=value_cache,
        slots=slots,
        k_scale=k_scale,
        v_scale=v_scale,
    )
    if not key.numel() and not value.numel():
        return
    write(key, value, key_cache, value_cache, slots, k_scale, v_scale)


def kv_cache_write_reference(
    key: torch.Tensor,
    value: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    slots: torch.Tensor,
    k_scale: torch.Tensor | None = None,
    v_scale: torch.Tensor | None = None,
) -> None:
    """By index, a token that is skipped writing what is there already."""
    _written(key, key_cache, slots, k_scale)
    _written(value, value_cache, slots, v_scale)


def mla_cache_write(
    latent: torch.Tensor,
    rope: torch.Tensor,
    cache: torch.Tensor,
    slots: torch.Tensor,
    scale: torch.Tensor | None = None,
) -> None:
    """Write the compressed keys and values of new tokens into a paged cache, in place.

    `latent` is [tokens, latent size] and `rope` [tokens, rope size] of float32, float16 or
    bfloat16, `cache` [blocks, block size, latent size + rope size], where both stand in this order;
    dtypes, `slots` and `scale` (one value) are as in `kv_cache_write`. Raises ArgumentError.
    """
    name = "mla_cache_write"
    for what, tensor in (("latent", latent), ("rope", rope)):
        checks.require(tensor.dim() == 2, name, f"{what} has {tensor.dim()} dimensions, not 2")
    tokens, size = latent.shape
    checks.shape_is(name, "rope", rope, (tokens, -1))
    checks.shape_is(name, "cache", cache, (-1, -1, size + rope.shape[1]))
    checks.require(latent.dtype == rope.dtype, name, "latent and rope have different dtypes")
    _check_slots(name, slots, tokens)
    _check_kind(name, "latent", latent, cache, scale, 1)
    checks.same_device(name, latent=latent, rope=rope, cache=cache, slots=slots, scale=scale)
    if not cache.numel() or not tokens:
        return
    parts = cache[..., :size].unsqueeze(2), cache[..., size:].unsqueeze(2)
    write(latent.unsqueeze(1), rope.unsqueeze(1), *parts, slots, scale, scale)


def mla_cache_write_reference(
    latent: torch.Tensor,
    rope: torch.Tensor,
    cache: torch.Tensor,
    slots: torch.Tensor,
    scale: torch.Tensor | None = None,
) -> None:
    """By index."""
    _written(torch.cat([latent, rope], dim=1), cache, slots, scale)


def _check_slots(name: str, slots: torch.Tensor, tokens: int) -> None:
    checks.dtype_in(name, "slots", slots, (torch.int32, torch.int64))
    checks.shape_is(name, "slots", slots, (tokens,))


def _check_kind(
    name: str,
    what: str,
    new: torch.Tensor,
    cache: torch.Tensor,
    scale: torch.Tensor | None,
    heads: int,
) -> None:
    """A cache has the dtype of what is written, or one of 8 bits and then perhaps a scale."""
    checks.dtype_in(name, what, new, checks.FLOATS)
    checks.dtype_in(name, f"the cache of {what}", cache, (torch.float32, *CACHES))
    checks.written(name, f"the cache of {what}", cache)
    small = cache.element_size() == 1
    checks.require(
        small or cache.dtype == new.dtype, name, f"{what} is {new.dtype}, its cache {cache.dtype}"
    )
    available(name, f"the cache of {what}", cache.dtype)
    checks.require(
        cache.stride(-1) == 1 or cache.shape[-1] <= 1,
        name,
        f"the last dimension of the cache of {what} is not contiguous",
    )
    if scale is not None:
        checks.require(small, name, f"a cache of {cache.dtype} has no scale")
        checks.dtype_in(name, f"the scale of {what}", scale, (torch.float32,))
        checks.require(
            scale.numel() in (1, heads), name, f"the scale of {what} has not 1 or {heads} values"
        )


def _written(
    new: torch.Tensor, cache: torch.Tensor, slots: torch.Tensor, scale: torch.Tensor | None
) -> None:
    """Write into a cache [blocks, block size, …] in plain torch."""
    if not cache.numel() or not new.numel():
        return
    kind = torch.promote_types(new.dtype, torch.float32)
    wide = new.to(kind)
    if scale is not None:
        shape = (1, -1, *([1] * (new.dim() - 2)))
        wide = wide * (1.0 / scale).to(kind).reshape(shape)
    if cache.element_size() == 1:
        low, high = limits(cache.dtype)
        wide = torch.clamp(wide, low, high)
        wide = wide.round().nan_to_num() if cache.dtype == torch.int8 else wide
    # the number of the token that writes a slot, -1 where none does
    size = cache.shape[0] * cache.shape[1]
    writer = torch.full((size + 1,), -1, dtype=torch.long, device=new.device)
    writer[torch.where(slots >= 0, slots, size).long()] = torch.arange(
        new.shape[0], device=new.device
    )
    writer = writer[:size].reshape(cache.shape[:2])
    written = (writer >= 0).reshape(*writer.shape, *([1] * (cache.dim() - 2)))
    taken = wide[writer.clamp(min=0)].to(cache.dtype)
    if cache.element_size() == 1:  # torch.where takes no fp8
        taken, cache = taken.view(torch.int8), cache.view(torch.int8)
    cache.copy_(torch.where(written, taken, cache))


def _inputs(
    make: Make,
    tokens: int,
    heads: int,
    head: int,
    dtype: str,
    block_size: int = 16,
    cache: str = "",
    scales: int = 0,
) -> dict[str, Any]:
    kind = make.dtype(cache or dtype)
    blocks = triton.cdiv(tokens, block_size) + 2
    shape = (blocks, block_size, heads, head)
    given: dict[str, Any] = {
        "key": make.normal((tokens, heads, head), dtype, 2.0),
        "value": make.normal((tokens, heads, head), dtype, 2.0),
        "key_cache": torch.zeros(shape, dtype=kind, device=make.device),
        "value_cache": torch.zeros(shape, dtype=kind, device=make.device),
        "slots": _slots(make, tokens, blocks * block_size),
    }
    size = 0.05 if cache == "int8" else 0.01
    for name in ("k_scale", "v_scale"):
        given[name] = make.uniform((scales,), "float32", size, 2 * size) if scales else None
    return given


def _mla_inputs(
    make: Make,
    tokens: int,
    latent: int,
    rope: int,
    dtype: str,
    block_size: int = 16,
    cache: str = "",
    scaled: bool = False,
) -> dict[str, Any]:
    blocks = triton.cdiv(tokens, block_size) + 2
    shape = (blocks, block_size, latent + rope)
    kind = make.dtype(cache or dtype)
    return {
        "latent": make.normal((tokens, latent), dtype, 2.0),
        "rope": make.normal((tokens, rope), dtype, 2.0),
        "cache": torch.zeros(shape, dtype=kind, device=make.device),
        "slots": _slots(make, tokens, blocks * block_size),
        "scale": make.uniform((1,), "float32", 0.01, 0.02) if scaled else None,
    }


def _slots(make: Make, tokens: int, size: int) -> torch.Tensor:
    """Different slots in random order, every seventh token without one."""
    slots = make.permutation(size)[:tokens].clone()
    slots[3::7] = -1
    return slots


def _compare(got: Any, expected: Any, sizes: Sizes) -> str:
    """Caches agree but for a step of rounding, in float32 here and float64 there, of few values."""
    for one, other in zip(got, expected, strict=True):
        found, right = one.double(), other.double()
        if one.dtype == torch.int8:
            allowed = torch.ones_like(right)
        else:
            eps = torch.finfo(one.dtype).eps
            allowed = eps * right.abs() + torch.finfo(one.dtype).smallest_normal * eps
        off = (found - right).abs()
        if bool((off > allowed).any()):
            return f"{int((off > allowed).sum())} of {off.numel()} are off by more than a step"
        if float((off > 0).double().mean()) > 0.001:
            return f"{int((off > 0).sum())} of {off.numel()} differ"
    return ""


def _work(tokens: int, heads: int, head: int, dtype: str, cache: str = "", **_: Any) -> Work:
    count = 2.0 * tokens * heads * head
    return _copied(count, dtype, cache, tokens)


def _mla_work(tokens: int, latent: int, rope: int, dtype: str, cache: str = "", **_: Any) -> Work:
    return _copied(1.0 * tokens * (latent + rope), dtype, cache, tokens)


def _copied(count: float, dtype: str, cache: str, tokens: int) -> Work:
    read = count * getattr(torch, dtype).itemsize + 8.0 * tokens
    written = count * getattr(torch, cache or dtype).itemsize
    return Work({"vector_fp32": count}, read, written, "formula", "formula")


_SMALL = {"tokens": 21, "heads": 3, "head": 64}
_MLA = {"tokens": 21, "latent": 512, "rope": 64}

OPERATORS = (
    Operator(
        name="kv_cache_write",
        summary="keys and values of new tokens into a paged cache",
        call=kv_cache_write,
        reference=kv_cache_write_reference,
        inputs=_inputs,
        work=_work,
        cases=(
            {**_SMALL, "dtype": "bfloat16"},
            {**_SMALL, "dtype": "float16", "head": 80, "cache": "int8", "scales": 3},
            {**_SMALL, "dtype": "bfloat16", "cache": "float8_e4m3fn", "scales": 1},
        ),
        thorough=(
            {**_SMALL, "dtype": "float32"},
            {**_SMALL, "dtype": "float16", "block_size": 24},
            {**_SMALL, "dtype": "float16", "cache": "float8_e4m3fnuz", "scales": 3},
            {**_SMALL, "dtype": "float32", "cache": "float8_e5m2"},
            {**_SMALL, "dtype": "bfloat16", "cache": "float8_e4m3fn"},
            {**_SMALL, "dtype": "bfloat16", "cache": "int8", "scales": 1, "head": 256},
        ),
        shapes=(
            {"tokens": 256, "heads": 8, "head": 128, "dtype": "bfloat16"},
            {"tokens": 8192, "heads": 8, "head": 128, "dtype": "bfloat16"},
            {
                "tokens": 8192,
                "heads": 8,
                "head": 128,
                "dtype": "bfloat16",
                "cache": "float8_e4m3fn",
                "scales": 1,
            },
        ),
        spaces=(SPACE,),
        mutates=("key_cache", "value_cache"),
        exact=("key_cache", "value_cache", "k_scale", "v_scale"),
        compare=_compare,
        notes="Where two tokens name one slot, either may end up there.",
    ),
    Operator(
        name="mla_cache_write",
        summary="compressed keys and values of new tokens into a paged cache",
        call=mla_cache_write,
        reference=mla_cache_write_reference,
        inputs=_mla_inputs,
        work=_mla_work,
        cases=(
            {**_MLA, "dtype": "bfloat16"},
            {**_MLA, "dtype": "float16", "cache": "float8_e4m3fnuz", "scaled": True},
        ),
        thorough=({**_MLA, "dtype": "bfloat16", "cache": "float8_e4m3fn", "latent": 96},),
        shapes=({"tokens": 8192, "latent": 512, "rope": 64, "dtype": "bfloat16"},),
        spaces=(SPACE,),
        mutates=("cache",),
        exact=("cache", "scale"),
        compare=_compare,
        notes="Where two tokens name one slot, either may end up there.",
    ),
)
