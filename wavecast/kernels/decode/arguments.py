"""What attention over a paged cache is given: checks, and the form that kernels take it in."""

from dataclasses import dataclass
from typing import Any, Final

import torch
import triton
from torch import Tensor

from wavecast.kernels import checks
from wavecast.kernels.checks import require
from wavecast.kernels.decode.parts import HALVES
from wavecast.kernels.describe import Device, Signature
from wavecast.kernels.strides import adjacent
from wavecast.launch import gpu

CACHE = "float16|bfloat16|float8_e4m3fn|float8_e4m3fnuz|float8_e5m2|int8"
"""Dtypes of a cache, in a signature."""
LARGEST_HEAD = 512
_WIDE_HEAD: Final = 256
"""Elements of a head beyond which a program takes a part of the values, where a lane has 256
registers."""
STRIDES: Final = {
    "q": "q_row q_head",
    "key_cache": "key_block key_token key_head",
    "value_cache": "value_block value_token value_head",
    "block_table": "table_stride",
}
"""Strides that kernels over a paged cache take."""
CONTIGUOUS: Final = ("lengths", "sinks", "alibi")
"""Tensors that they take contiguous."""


@dataclass(frozen=True, slots=True)
class PagedOptions:
    """Optional arguments of attention over a paged cache."""

    k_scale: Tensor | None = None
    v_scale: Tensor | None = None
    window: int = 0
    sinks: Tensor | None = None
    soft_cap: float = 0.0
    alibi: Tensor | None = None


def signature(rows: str, *more: str) -> Signature:
    """The tensors of attention of `rows` queries over a paged cache; `more` are further lines."""
    return Signature(
        f"q: [{rows}, heads, head] half",
        f"key_cache: [blocks, block_size, kv_heads, head] {CACHE}",
        f"value_cache: [blocks, block_size, kv_heads, head] {CACHE}",
        "lengths: [sequences] index",
        *more,
        "block_table: [sequences, _] index",
        "k_scale?: [_...] float32",
        "v_scale?: [_...] float32",
        "sinks?: [heads] float",
        "alibi?: [heads] float",
        returns=(f"out: [{rows}, heads, head] =q",),
    )


def check(
    operator: str, q: Tensor, key_cache: Tensor, value_cache: Tensor, options: PagedOptions
) -> None:
    """Raise ArgumentError for values that no signature refuses."""
    heads, head = q.shape[1:]
    block_size, kv_heads = key_cache.shape[1:3]
    cache_dtype(operator, "key_cache", key_cache, q)
    cache_dtype(operator, "value_cache", value_cache, q)
    require(block_size > 0 and kv_heads > 0 and head > 0, operator, "the cache is empty")
    fits = heads % kv_heads == 0
    require(fits, operator, f"{heads} heads do not share {kv_heads} of keys evenly")
    require(
        head <= LARGEST_HEAD, operator, f"heads of {head} elements; it takes up to {LARGEST_HEAD}"
    )
    for name, scale in (("k_scale", options.k_scale), ("v_scale", options.v_scale)):
        fits = scale is None or scale.numel() in (1, kv_heads)
        require(fits, operator, f"{name} has not 1 or {kv_heads} values")
    require(options.window >= 0, operator, "window is negative")
    require(options.soft_cap >= 0, operator, "soft_cap is negative")


def cache_dtype(operator: str, name: str, cache: Tensor, q: Tensor) -> None:
    """A cache is of the dtype of `q` or of one of 8 bits, its last dimension contiguous."""
    require(
        cache.dtype == q.dtype or cache.dtype not in HALVES,
        operator,
        f"{name} is {cache.dtype} and q {q.dtype}: 16-bit caches have the dtype of q",
    )
    usable(operator, name, cache)


def usable(operator: str, name: str, cache: Tensor) -> None:
    """Raise ArgumentError for a cache of a dtype that the GPU at hand has no code for, or with a
    last dimension that is not contiguous."""
    amd_only = cache.dtype == torch.float8_e4m3fnuz
    fits = not amd_only or gpu.launching().vendor == "amd"
    require(fits, operator, f"{name} is float8_e4m3fnuz: AMD GPUs only")
    fits = cache.stride(-1) == 1 or cache.shape[-1] <= 1
    require(fits, operator, f"the last dimension of {name} is not contiguous")


def scale_stride(scale: Tensor | None) -> tuple[Tensor | None, int]:
    """A scale and its stride from one head to the next, 0 where all share it."""
    if scale is None:
        return None, 0
    flat = scale.reshape(-1)
    return flat, 0 if flat.shape[0] == 1 else flat.stride(0)


def problem_of(
    q: Tensor, key_cache: Tensor, value_cache: Tensor, options: PagedOptions
) -> dict[str, Any]:
    """What the configuration of a kernel over a paged cache depends on."""
    block_size, kv_heads = key_cache.shape[1:3]
    return {
        "kv_heads": kv_heads,
        "head": q.shape[2],
        "pieces": pieces(q.shape[2], gpu.launching()),
        "block_size": block_size,
        "dtype": str(q.dtype).removeprefix("torch."),
        "cache": str(key_cache.dtype).removeprefix("torch."),
        "extras": (options.alibi is not None) + (options.soft_cap > 0),
        "wide": checks.wide(key_cache, value_cache),
    }


def shared_arguments(
    q: Tensor, key_cache: Tensor, value_cache: Tensor, block_table: Tensor, lengths: Tensor,
    scale: float | None, options: PagedOptions,
) -> dict[str, Any]:  # fmt: skip
    """Arguments that kernels over a paged cache share, by name."""
    k_scale, k_step = scale_stride(options.k_scale)
    v_scale, v_step = scale_stride(options.v_scale)
    tensors = {"q": adjacent(q), "key_cache": key_cache, "value_cache": value_cache}
    tensors |= {"block_table": adjacent(block_table), "lengths": lengths}
    return {
        **tensors,
        "k_scale": k_scale,
        "v_scale": v_scale,
        "k_step": k_step,
        "v_step": v_step,
        "sinks": options.sinks,
        "alibi": options.alibi,
        "scale": q.shape[2] ** -0.5 if scale is None else scale,
        "soft_cap": options.soft_cap,
        "window": options.window,
        "PADDED": triton.next_power_of_2(q.shape[2]),
        "VALUE": triton.next_power_of_2(q.shape[2]) // pieces(q.shape[2], gpu.launching()),
        "WINDOW": options.window > 0,
        "SINKS": options.sinks is not None,
        "ALIBI": options.alibi is not None,
        "CAPPED": options.soft_cap > 0,
        "K_SCALED": k_scale is not None,
        "V_SCALED": v_scale is not None,
    }


def pieces(head: int, device: Device) -> int:
    """Programs among which the values of a head are divided, each of which computes all scores:
    sums of 16 rows over 512 elements take all registers of a lane that has 256."""
    return 1 if cdna(device) else max(1, triton.next_power_of_2(head) // _WIDE_HEAD)


def chunks(head: int, device: Device) -> tuple[int, ...]:
    """In how many elements at a time queries may be multiplied: all, or fewer of wide heads where a
    lane has 256 registers."""
    padded = triton.next_power_of_2(head)
    whole = 128 // device.capabilities.matrix_operand_copies
    return (padded,) if padded <= whole or cdna(device) else (padded, 64)


def cdna(device: Device) -> bool:
    """Whether a device has the matrix instructions of CDNA."""
    return device.capabilities.matrix_unit == "mfma"


def compiler_options(device: Device) -> dict[str, tuple[int, ...]]:
    """Axes for Triton's compiler: small matrix instructions for few rows, and operands of two of
    them read from LDS at once where the target needs to be told."""
    axes: dict[str, tuple[int, ...]] = {"waves_per_eu": (0,)}
    if cdna(device):
        axes["matrix_instr_nonkdim"] = (16,)
    if device.capabilities.matrix_half_k:
        axes["kpack"] = (2,)
    return axes
