"""The kernel that writes keys and values of new tokens into a paged cache, and its launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import estimates, gpu
from wavecast.kernels.choice import launch
from wavecast.kernels.decode.arguments import spread
from wavecast.kernels.decode.parts import FP8
from wavecast.kernels.quantise import formats
from wavecast.kernels.quantise.formats import fp8_of
from wavecast.kernels.space import Problem, Settings, Space


@triton.jit
def stored(
    x, inverse, LOW: tl.constexpr, HIGH: tl.constexpr, kind: tl.constexpr, NATIVE: tl.constexpr
):
    """Values times `inverse` in the dtype of a cache: 8 bits saturate, integers round to even."""
    if kind.primitive_bitwidth == 8:  # pyright: ignore[reportAttributeAccessIssue]
        wide = x.to(tl.float32) * inverse
        if kind == tl.int8:
            bounded = tl.where(wide == wide, tl.minimum(tl.maximum(wide, LOW), HIGH), 0.0)
            # adding 1.5 · 2**23 leaves the integer, rounded to even, in the low bits
            whole = (bounded + 12582912.0).to(tl.int32, bitcast=True)
            return whole.to(tl.int8)
        else:
            return fp8_of(wide, kind, HIGH, NATIVE)
    else:
        return x.to(kind)


@triton.jit
def kv_cache_write_kernel(
    key_ptr, value_ptr, key_cache, value_cache, slot_ptr, k_scale_ptr, v_scale_ptr,
    tokens, heads, key_token, key_head, value_token, value_head,
    key_block, key_place, key_row, value_block, value_place, value_row, k_step, v_step,
    HEAD: tl.constexpr, VALUE: tl.constexpr, BLOCK_SIZE: tl.constexpr, K_SCALED: tl.constexpr,
    V_SCALED: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr, V_LOW: tl.constexpr,
    V_HIGH: tl.constexpr, NATIVE: tl.constexpr, V_NATIVE: tl.constexpr, PADDED: tl.constexpr,
    ROWS: tl.constexpr,
):  # fmt: skip
    """A program writes ROWS heads of tokens, counted token by token."""
    number = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    token, head = number // heads, number % heads
    inside = token < tokens
    slot = tl.load(slot_ptr + token, mask=inside, other=-1).to(tl.int64)
    inside &= slot >= 0
    block, at = slot // BLOCK_SIZE, slot % BLOCK_SIZE
    place = tl.arange(0, PADDED)[None, :]
    inverse = 1.0
    if K_SCALED:
        inverse = (1.0 / tl.load(k_scale_ptr + head * k_step))[:, None]
    from_key = token.to(tl.int64) * key_token + head * key_head
    to_key = block * key_block + at * key_place + head * key_row
    kept = inside[:, None] & (place < HEAD)
    x = tl.load(key_ptr + from_key[:, None] + place, mask=kept, other=0.0)
    x = stored(x, inverse, LOW, HIGH, key_cache.dtype.element_ty, NATIVE)
    tl.store(key_cache + to_key[:, None] + place, x, mask=kept)
    if VALUE:
        inverse = 1.0
        if V_SCALED:
            inverse = (1.0 / tl.load(v_scale_ptr + head * v_step))[:, None]
        from_value = token.to(tl.int64) * value_token + head * value_head
        to_value = block * value_block + at * value_place + head * value_row
        kept = inside[:, None] & (place < VALUE)
        x = tl.load(value_ptr + from_value[:, None] + place, mask=kept, other=0.0)
        x = stored(x, inverse, V_LOW, V_HIGH, value_cache.dtype.element_ty, V_NATIVE)
        tl.store(value_cache + to_value[:, None] + place, x, mask=kept)


def write(
    key: torch.Tensor,
    value: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    slots: torch.Tensor,
    k_scale: torch.Tensor | None,
    v_scale: torch.Tensor | None,
) -> None:
    """Launch the kernel over keys and values [tokens, heads, head] that are known to fit."""
    key = key if key.stride(2) == 1 else key.contiguous()
    value = value if value.stride(2) == 1 else value.contiguous()
    tokens, heads, head = key.shape
    k_scale, k_step = spread(k_scale)
    v_scale, v_step = spread(v_scale)
    launch(
        kv_cache_write_kernel,
        lambda settings: (triton.cdiv(tokens * heads, settings["ROWS"]),),
        (
            *(key, value, key_cache, value_cache, slots.contiguous(), k_scale, v_scale),
            *(tokens, heads, *key.stride()[:2], *value.stride()[:2]),
            *(*key_cache.stride()[:3], *value_cache.stride()[:3], k_step, v_step),
        ),
        SPACE,
        {
            "rows": tokens * heads,
            "head": max(head, value.shape[2]),
            "bytes": key.element_size(),
            "cache": str(key_cache.dtype).removeprefix("torch."),
        },
        HEAD=head,
        VALUE=value.shape[2],
        BLOCK_SIZE=key_cache.shape[1],
        K_SCALED=k_scale is not None,
        V_SCALED=v_scale is not None,
        **dict(zip(("LOW", "HIGH"), limits(key_cache.dtype), strict=True)),
        **dict(zip(("V_LOW", "V_HIGH"), limits(value_cache.dtype), strict=True)),
        NATIVE=_way(key_cache.dtype),
        V_NATIVE=_way(value_cache.dtype),
        PADDED=triton.next_power_of_2(max(head, value.shape[2])),
    )


def limits(dtype: torch.dtype) -> tuple[float, float]:
    """The least and greatest value of a dtype of 8 bits (others: not used)."""
    if dtype == torch.int8:
        return -128.0, 127.0
    if dtype in FP8:
        most = torch.finfo(dtype).max
        return -most, most
    return 0.0, 0.0


def _way(dtype: torch.dtype) -> str:
    """`formats.way` of the dtype of a cache."""
    return formats.way(formats.FP8[dtype], gpu.launching()) if dtype in FP8 else ""


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    return {"ROWS": (1, 2, 4, 8, 16, 32), "num_warps": (1, 2, 4), "num_stages": (1,)}


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    rows, head = problem["rows"], problem["head"]
    kind = problem["cache"].removeprefix("float8_")
    small = kind == "int8" or kind in formats.FORMATS
    return estimates.streaming(
        device,
        settings,
        workgroups=triton.cdiv(rows, settings["ROWS"]),
        read=2.0 * rows * head * problem["bytes"],
        written=2.0 * rows * head * (1 if small else problem["bytes"]),
        elements=settings["ROWS"] * triton.next_power_of_2(head),
        operations=8.0 + 2 * formats.operations(kind, device) if small else 6.0,
        held=2.0,
    )


SPACE = Space(
    kernel="kv_cache_write_kernel",
    axes=_axes,
    seconds=_seconds,
    classes=("rows",),
)


__all__ = ["SPACE", "kv_cache_write_kernel", "limits", "write"]
