"""Writing keys and values of new tokens into a paged cache."""

from functools import partial
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import choice, describe
from wavecast.kernels.checks import check_no_overlap, require
from wavecast.kernels.decode.arguments import CACHE, scale_stride, usable
from wavecast.kernels.decode.parts import FP8
from wavecast.kernels.describe import Device, KernelSpec, Problem, Settings, Signature, Sizes, Work
from wavecast.kernels.quantise import formats
from wavecast.kernels.quantise.formats import fp8_of
from wavecast.kernels.strides import adjacent
from wavecast.launch import gpu

TENSORS = Signature(
    "key: [tokens, heads, head] float",
    "value: [tokens, heads, head_v] float",
    f"key_cache: [blocks, block_size, heads, head] float32|{CACHE}",
    f"value_cache: [blocks, block_size, heads, head_v] float32|{CACHE}",
    "slots: [tokens] index",
    "k_scale?: [_...] float32",
    "v_scale?: [_...] float32",
)
MLA_TENSORS = Signature(
    "latent: [tokens, latent] float",
    "rope: [tokens, rope] =latent",
    f"cache: [blocks, block_size, latent + rope] float32|{CACHE}",
    "slots: [tokens] index",
    "scale?: [_...] float32",
)


@triton.jit
def to_cache_dtype(
    x, inverse, LOW: tl.constexpr, HIGH: tl.constexpr, dtype: tl.constexpr, NATIVE: tl.constexpr
):
    """Values times `inverse` in the dtype of a cache: 8 bits saturate, integers round to even."""
    if dtype.primitive_bitwidth == 8:  # pyright: ignore[reportAttributeAccessIssue]
        wide = x.to(tl.float32) * inverse
        if dtype == tl.int8:
            clamped = tl.where(wide == wide, tl.minimum(tl.maximum(wide, LOW), HIGH), 0.0)
            # adding 1.5 · 2**23 leaves the integer, rounded to even, in the low bits
            rounded = (clamped + 12582912.0).to(tl.int32, bitcast=True)
            return rounded.to(tl.int8)
        else:
            return fp8_of(wide, dtype, HIGH, NATIVE)
    else:
        return x.to(dtype)


@triton.jit
def kv_cache_write_kernel(
    key_ptr, value_ptr, key_cache_ptr, value_cache_ptr, slots_ptr, k_scale_ptr, v_scale_ptr,
    tokens, heads, key_token, key_head, value_token, value_head,
    key_block, key_slot, key_row, value_block, value_slot, value_row, k_step, v_step,
    HEAD: tl.constexpr, VALUE: tl.constexpr, BLOCK_SIZE: tl.constexpr, K_SCALED: tl.constexpr,
    V_SCALED: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr, V_LOW: tl.constexpr,
    V_HIGH: tl.constexpr, NATIVE: tl.constexpr, V_NATIVE: tl.constexpr, PADDED: tl.constexpr,
    ROWS: tl.constexpr,
):  # fmt: skip
    """A program writes ROWS heads of tokens, counted token by token."""
    offs = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    token, head = offs // heads, offs % heads
    token_mask = token < tokens
    slot = tl.load(slots_ptr + token, mask=token_mask, other=-1).to(tl.int64)
    token_mask &= slot >= 0
    block, offs_n = slot // BLOCK_SIZE, slot % BLOCK_SIZE
    offs_d = tl.arange(0, PADDED)[None, :]
    inverse = 1.0
    if K_SCALED:
        inverse = (1.0 / tl.load(k_scale_ptr + head * k_step))[:, None]
    from_offs = token.to(tl.int64) * key_token + head * key_head
    to_offs = block * key_block + offs_n * key_slot + head * key_row
    mask = token_mask[:, None] & (offs_d < HEAD)
    x = tl.load(key_ptr + from_offs[:, None] + offs_d, mask=mask, other=0.0)
    x = to_cache_dtype(x, inverse, LOW, HIGH, key_cache_ptr.dtype.element_ty, NATIVE)
    tl.store(key_cache_ptr + to_offs[:, None] + offs_d, x, mask=mask)
    if VALUE:
        inverse = 1.0
        if V_SCALED:
            inverse = (1.0 / tl.load(v_scale_ptr + head * v_step))[:, None]
        from_offs = token.to(tl.int64) * value_token + head * value_head
        to_offs = block * value_block + offs_n * value_slot + head * value_row
        mask = token_mask[:, None] & (offs_d < VALUE)
        x = tl.load(value_ptr + from_offs[:, None] + offs_d, mask=mask, other=0.0)
        x = to_cache_dtype(x, inverse, V_LOW, V_HIGH, value_cache_ptr.dtype.element_ty, V_NATIVE)
        tl.store(value_cache_ptr + to_offs[:, None] + offs_d, x, mask=mask)


def write(
    key: Tensor, value: Tensor, key_cache: Tensor, value_cache: Tensor, slots: Tensor,
    k_scale: Tensor | None, v_scale: Tensor | None,
) -> None:  # fmt: skip
    """Launch the kernel over keys and values [tokens, heads, head] that are known to fit."""
    tokens, heads, head = key.shape
    head_v = value.shape[2]
    operands: dict[str, Any] = {"slots": slots.contiguous(), "tokens": tokens, "heads": heads}
    sides = (("key", key, key_cache, k_scale), ("value", value, value_cache, v_scale))
    for name, new, cache, scale in sides:
        scale, step = scale_stride(scale)
        new, letter = adjacent(new), name[0]
        low, high = limits(cache.dtype)
        prefix = "" if name == "key" else "V_"
        operands |= {name: new, f"{name}_cache": cache, f"{letter}_scale": scale}
        operands |= {f"{name}_token": new.stride(0), f"{name}_head": new.stride(1)}
        strides = f"{name}_block", f"{name}_slot", f"{name}_row"
        operands |= zip(strides, cache.stride()[:3], strict=True)
        operands |= {f"{letter}_step": step, f"{letter.upper()}_SCALED": scale is not None}
        operands |= {f"{prefix}LOW": low, f"{prefix}HIGH": high}
        operands |= {f"{prefix}NATIVE": _conversion(cache.dtype)}
    problem = {
        "rows": tokens * heads,
        "head": max(head, head_v),
        "bytes": key.element_size(),
        "cache": str(key_cache.dtype).removeprefix("torch."),
    }
    padded = triton.next_power_of_2(max(head, head_v))
    constants = {"HEAD": head, "VALUE": head_v, "BLOCK_SIZE": key_cache.shape[1]}
    choice.run(SPEC, problem, **operands, **constants, PADDED=padded)


def limits(dtype: torch.dtype) -> tuple[float, float]:
    """The least and greatest value of a dtype of 8 bits (others: not used)."""
    if dtype == torch.int8:
        return -128.0, 127.0
    if dtype in FP8:
        most = torch.finfo(dtype).max
        return -most, most
    return 0.0, 0.0


def _conversion(dtype: torch.dtype) -> str:
    """`formats.conversion` of the dtype of a cache."""
    return formats.conversion(formats.FP8[dtype], gpu.launching()) if dtype in FP8 else ""


def _demand(problem: Problem, settings: Settings, device: Device) -> describe.StreamingKernel:
    rows, head = problem["rows"], problem["head"]
    name = problem["cache"].removeprefix("float8_")
    narrow = name == "int8" or name in formats.FP8.values()
    return describe.StreamingKernel(
        workgroups=SPEC.programs(problem, settings)[0],
        read=2.0 * rows * head * problem["bytes"],
        written=2.0 * rows * head * (1 if narrow else problem["bytes"]),
        elements=settings["ROWS"] * triton.next_power_of_2(head),
        instructions=8.0 + 2 * formats.operations(name, device) if narrow else 6.0,
        live_registers=2.0,
    )


SPEC = KernelSpec(
    function=kv_cache_write_kernel,
    grid="cdiv(rows, ROWS)",
    axes={"ROWS": (1, 2, 4, 8, 16, 32), "num_warps": (1, 2, 4)},
    demand=_demand,
    rounded=("rows",),
)


@TENSORS.checked
def kv_cache_write(
    key: Tensor, value: Tensor, key_cache: Tensor, value_cache: Tensor, slots: Tensor,
    k_scale: Tensor | None = None, v_scale: Tensor | None = None,
) -> None:  # fmt: skip
    """Write keys and values of new tokens into a paged cache, in place.

    `key` is [tokens, heads, head] and `value` [tokens, heads, head of values] of float32, float16
    or bfloat16, the caches [blocks, block size, heads, …] of their dtype, or of float8_e4m3fn,
    float8_e4m3fnuz (AMD GPUs), float8_e5m2 or int8. Token t goes to slot `slots[t]` (int32 or
    int64): position slot % block size of block slot // block size; a negative slot writes nothing,
    and no slot may occur twice. Caches of 8 bits hold values divided by `k_scale` and `v_scale`
    (float32 of one value or one per head), saturated and rounded to even; NaN is 0 in int8. Any
    strides but contiguous heads. Raises ArgumentError.
    """
    heads = key.shape[1]
    _check_cache("kv_cache_write", "key", key, key_cache, k_scale, heads)
    _check_cache("kv_cache_write", "value", value, value_cache, v_scale, heads)
    if key.numel() or value.numel():
        write(key, value, key_cache, value_cache, slots, k_scale, v_scale)


def kv_cache_write_reference(key, value, key_cache, value_cache, slots, k_scale=None, v_scale=None):
    _write_by_index(key, key_cache, slots, k_scale)
    _write_by_index(value, value_cache, slots, v_scale)


@MLA_TENSORS.checked
def mla_cache_write(
    latent: Tensor, rope: Tensor, cache: Tensor, slots: Tensor, scale: Tensor | None = None,
) -> None:  # fmt: skip
    """Write the compressed keys and values of new tokens into a paged cache, in place.

    `latent` is [tokens, latent size] and `rope` [tokens, rope size] of float32, float16 or
    bfloat16, `cache` [blocks, block size, latent size + rope size], which has both in this order;
    dtypes, `slots` and `scale` (one value) are as in `kv_cache_write`. Raises ArgumentError.
    """
    _check_cache("mla_cache_write", "latent", latent, cache, scale, 1)
    if not cache.numel() or not latent.shape[0]:
        return
    size = latent.shape[1]
    parts = cache[..., :size].unsqueeze(2), cache[..., size:].unsqueeze(2)
    write(latent.unsqueeze(1), rope.unsqueeze(1), *parts, slots, scale, scale)


def mla_cache_write_reference(latent, rope, cache, slots, scale=None):
    _write_by_index(torch.cat([latent, rope], dim=1), cache, slots, scale)


def _check_cache(
    name: str, what: str, new: Tensor, cache: Tensor, scale: Tensor | None, heads: int
) -> None:
    """A cache has the dtype of what is written, or one of 8 bits and then perhaps a scale."""
    label, narrow = f"the cache of {what}", cache.element_size() == 1
    check_no_overlap(name, label, cache)
    fits = narrow or cache.dtype == new.dtype
    require(fits, name, f"{what} is {new.dtype}, its cache {cache.dtype}")
    usable(name, label, cache)
    if scale is not None:
        require(narrow, name, f"a cache of {cache.dtype} has no scale")
        fits = scale.numel() in (1, heads)
        require(fits, name, f"the scale of {what} has not 1 or {heads} values")


def _write_by_index(new: Tensor, cache: Tensor, slots: Tensor, scale: Tensor | None) -> None:
    """Write into a cache [blocks, block size, …]; a token that is skipped writes what is there."""
    if not cache.numel() or not new.numel():
        return
    wide = describe.widened(new)
    if scale is not None:
        shape = (1, -1, *([1] * (new.dim() - 2)))
        wide = wide * (1.0 / scale).to(wide.dtype).reshape(shape)
    if cache.element_size() == 1:
        low, high = limits(cache.dtype)
        wide = torch.clamp(wide, low, high)
        wide = wide.round().nan_to_num() if cache.dtype == torch.int8 else wide
    # the token that writes a slot, -1 where none does
    size = cache.shape[0] * cache.shape[1]
    writer = torch.full((size + 1,), -1, dtype=torch.long, device=new.device)
    writer[torch.where(slots >= 0, slots, size).long()] = torch.arange(
        new.shape[0], device=new.device
    )
    writer = writer[:size].reshape(cache.shape[:2])
    is_written = (writer >= 0).reshape(*writer.shape, *([1] * (cache.dim() - 2)))
    values = wide[writer.clamp(min=0)].to(cache.dtype)
    if cache.element_size() == 1:  # torch.where takes no fp8
        values, cache = values.view(torch.int8), cache.view(torch.int8)
    cache.copy_(torch.where(is_written, values, cache))


def _inputs(make, tokens, heads, head, dtype, block_size=16, cache="", scales=0):
    blocks = triton.cdiv(tokens, block_size) + 2
    shape = (blocks, block_size, heads, head)
    operands: dict[str, Any] = {
        "key": make.normal((tokens, heads, head), dtype, 2.0),
        "value": make.normal((tokens, heads, head), dtype, 2.0),
        "key_cache": torch.zeros(shape, dtype=make.dtype(cache or dtype), device=make.device),
        "value_cache": torch.zeros(shape, dtype=make.dtype(cache or dtype), device=make.device),
        "slots": _slots(make, tokens, blocks * block_size),
    }
    low = 0.05 if cache == "int8" else 0.01
    for name in ("k_scale", "v_scale"):
        operands[name] = make.uniform((scales,), "float32", low, 2 * low) if scales else None
    return operands


def _mla_inputs(make, tokens, latent, rope, dtype, block_size=16, cache="", scaled=False):
    blocks = triton.cdiv(tokens, block_size) + 2
    shape = (blocks, block_size, latent + rope)
    return {
        "latent": make.normal((tokens, latent), dtype, 2.0),
        "rope": make.normal((tokens, rope), dtype, 2.0),
        "cache": torch.zeros(shape, dtype=make.dtype(cache or dtype), device=make.device),
        "slots": _slots(make, tokens, blocks * block_size),
        "scale": make.uniform((1,), "float32", 0.01, 0.02) if scaled else None,
    }


def _slots(make, tokens, size):
    """Different slots in random order, every seventh token without one."""
    slots = make.permutation(size)[:tokens].clone()
    slots[3::7] = -1
    return slots


def _compare(got: Any, expected: Any, sizes: Sizes) -> str:
    """Caches agree but for a step of rounding, in float32 here and float64 there, of few values."""
    for cache, other in zip(got, expected, strict=True):
        actual, reference = cache.double(), other.double()
        if cache.dtype == torch.int8:
            tolerance = torch.ones_like(reference)
        else:
            eps = torch.finfo(cache.dtype).eps
            tolerance = eps * reference.abs() + torch.finfo(cache.dtype).smallest_normal * eps
        off = (actual - reference).abs()
        if bool((off > tolerance).any()):
            return f"{int((off > tolerance).sum())} of {off.numel()} are off by more than a step"
        if float((off > 0).double().mean()) > 0.001:
            return f"{int((off > 0).sum())} of {off.numel()} differ"
    return ""


def _work(tokens, dtype, cache="", **sizes):
    """The work for `head` elements in both caches, or for `latent` and `rope` ones in one."""
    if "heads" in sizes:
        count = 2.0 * tokens * sizes["heads"] * sizes["head"]
    else:
        count = 1.0 * tokens * (sizes["latent"] + sizes["rope"])
    read = count * getattr(torch, dtype).itemsize + 8.0 * tokens
    stored = count * getattr(torch, cache or dtype).itemsize
    return Work({"vector_fp32": count}, read, stored, "formula", "formula")


_small = partial(dict, tokens=21, heads=3, head=64)
_llama = partial(dict, tokens=256, heads=8, head=128, dtype="bfloat16")
_mla = partial(dict, tokens=21, latent=512, rope=64)

OPERATORS = (
    describe.Operator(
        summary="keys and values of new tokens into a paged cache",
        call=kv_cache_write,
        inputs=_inputs,
        work=_work,
        cases=(
            _small(dtype="bfloat16"),
            _small(dtype="float16", head=80, cache="int8", scales=3),
            _small(dtype="bfloat16", cache="float8_e4m3fn", scales=1),
        ),
        thorough=(
            _small(dtype="float32"),
            _small(dtype="float16", block_size=24),
            _small(dtype="float16", cache="float8_e4m3fnuz", scales=3),
            _small(dtype="float32", cache="float8_e5m2"),
            _small(dtype="bfloat16", cache="float8_e4m3fn"),
            _small(dtype="bfloat16", cache="int8", scales=1, head=256),
        ),
        shapes=(
            _llama(),
            _llama(tokens=8192),
            _llama(tokens=8192, cache="float8_e4m3fn", scales=1),
        ),
        mutates=("key_cache", "value_cache"),
        exact=("key_cache", "value_cache", "k_scale", "v_scale"),
        compare=_compare,
        notes="Where two tokens name one slot, either may end up there.",
    ),
    describe.Operator(
        summary="compressed keys and values of new tokens into a paged cache",
        call=mla_cache_write,
        inputs=_mla_inputs,
        work=_work,
        cases=(
            _mla(dtype="bfloat16"),
            _mla(dtype="float16", cache="float8_e4m3fnuz", scaled=True),
        ),
        thorough=(_mla(dtype="bfloat16", cache="float8_e4m3fn", latent=96),),
        shapes=({"tokens": 8192, "latent": 512, "rope": 64, "dtype": "bfloat16"},),
        mutates=("cache",),
        exact=("cache", "scale"),
        compare=_compare,
        notes="Where two tokens name one slot, either may end up there.",
    ),
)
