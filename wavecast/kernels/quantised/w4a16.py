"""Products of 16-bit activations with weights of four bits."""

# What pyright does not know of Triton: unrolled loops and indices.
# pyright: reportGeneralTypeIssues=false, reportArgumentType=false

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast import dtypes
from wavecast.kernels import checks, describe, tiles
from wavecast.kernels.describe import Axes, Demand, Device, Make, Problem, Settings, integers, sizes
from wavecast.kernels.quantised import parts
from wavecast.kernels.quantised.int4 import pack_codes, product_of_codes
from wavecast.kernels.strides import adjacent
from wavecast.kernels.tiles import store_tile, tile_of

_GROUPS = (32, 64, 128)
TENSORS = describe.Signature(
    "x: [..., k] half",
    "weight: [n, k / 2] uint8",
    "scale: [k / group, n] float",
    "zero?: [k / group, n] uint8",
    returns=("out: [..., n] =x",),
    leading="m",
)


@triton.jit
def matmul_w4a16_kernel(
    x_ptr, w_ptr, out_ptr, part_ptr, scale_ptr, zero_ptr, M, N, K, x_row, w_row,
    GROUP_K: tl.constexpr, PACKED: tl.constexpr, N_EVEN: tl.constexpr, WIDE: tl.constexpr,
    XCDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUPS: tl.constexpr,
    SPLIT_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """A program computes a tile, or with SPLIT_K its part over some steps of K, which goes to
    `part_ptr` [SPLIT_K, M, N]. A step is GROUPS groups of weights, which come as
    integers of PACKED codes (`int4`)."""
    INTEGERS: tl.constexpr = GROUP_K // PACKED  # pyright: ignore[reportAssignmentType]
    down = tl.cdiv(M, BLOCK_M)
    across = tl.cdiv(N, BLOCK_N)
    pid_m, pid_n = tile_of(tl.program_id(0), down, across, GROUP, XCDS)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    x_rows = tl.minimum(offs_m, M - 1)
    w_columns = offs_n if N_EVEN else tl.minimum(offs_n, N - 1)
    steps = K // (GROUP_K * GROUPS)
    if SPLIT_K > 1:
        first = tl.program_id(1) * steps // SPLIT_K
        last = (tl.program_id(1) + 1) * steps // SPLIT_K
    else:
        first = 0
        last = steps
    tl.assume(last > first)  # so no product of the last step is behind a branch
    if WIDE:
        x_rows, w_columns = x_rows.to(tl.int64), w_columns.to(tl.int64)
        offs_m, offs_n = offs_m.to(tl.int64), offs_n.to(tl.int64)
    x_ptrs = x_ptr + x_rows[:, None] * x_row + tl.arange(0, GROUP_K)[None, :]
    w_ptrs = w_ptr + w_columns[None, :] * w_row + tl.arange(0, INTEGERS)[:, None]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(first, last):
        for i in tl.static_range(GROUPS):
            group = step * GROUPS + i
            x = tl.load(x_ptrs + group * GROUP_K)
            codes = tl.load(w_ptrs + group * INTEGERS)
            scale = tl.load(scale_ptr + group * N + w_columns).to(tl.float32)
            if zero_ptr is not None:
                zero = tl.load(zero_ptr + group * N + w_columns).to(tl.float32)
            else:
                zero = tl.full((BLOCK_N,), 8.0, tl.float32)
            product = product_of_codes(x, codes, zero, PACKED)
            acc += product * scale[None, :]
    mask = (offs_m < M)[:, None] & (offs_n < N)[None, :]
    offs = offs_m[:, None] * N + offs_n[None, :]
    if SPLIT_K > 1:
        tl.store(part_ptr + tl.program_id(1) * M * N + offs, acc, mask=mask)
    else:
        store_tile(out_ptr, offs, acc, mask)


def matmul_w4a16(
    x: Tensor, weight: Tensor, scale: Tensor, zero: Tensor | None = None, group: int = 128
) -> Tensor:
    """`x @ w.T` with weights of four bits: `w = (code - zero) * scale`.

    `x` is [..., K] of bfloat16 or float16. `weight` [N, K / 2] of uint8 has two codes from 0 to 15
    per byte, that of the even element of K in the low four bits. `scale` [K / group, N] of
    bfloat16, float16 or float32 and `zero` [K / group, N] of uint8 from 0 to 15 (None: 8
    everywhere) belong to `group` elements of K: 32, 64 or 128, of which K is a multiple. Summed in
    float32; the result [..., N] is of the dtype of `x`. Raises ArgumentError.
    """
    name = "matmul_w4a16"
    tensors = {"x": x, "weight": weight, "scale": scale, "zero": zero}
    k = x.shape[-1] if x.dim() else 0
    checks.require(group in _GROUPS, name, f"groups of {group}; it takes 32, 64 and 128")
    checks.require(k % group == 0, name, f"x has {k} columns, no multiple of groups of {group}")
    bound = TENSORS.check(name, tensors, group=group)
    out = TENSORS.empty(tensors, bound)
    if not out.numel() or not k:
        return out.zero_()
    flat = adjacent(x.reshape(-1, k))
    number, weight = pack_codes(weight, group)
    n = bound["n"]
    problem = {
        "m": flat.shape[0],
        "n": n,
        "k": k,
        "group": group,
        "dtype": describe.short_name(x.dtype),
        "scale": scale.element_size(),
        "zero": zero is not None,
        "wide": checks.wide(flat, weight, out),
    }
    constants = {"GROUP_K": group, "PACKED": number, "N_EVEN": n % 256 == 0}
    parts.run(TILES, problem, out, x=flat, w=weight, scale=scale, zero=zero, **constants)
    return out


def matmul_w4a16_reference(x, weight, scale, zero=None, group=128):
    dtype = describe.wide_dtype(x)
    code = torch.stack((weight & 15, weight >> 4), -1).flatten(1).to(dtype)
    shift = 8.0 if zero is None else zero.to(dtype).T.repeat_interleave(group, 1)
    wide = (code - shift) * scale.to(dtype).T.repeat_interleave(group, 1)
    return (x.to(dtype) @ wide.T).to(x.dtype).contiguous()


def _axes(problem: Problem, device: Device) -> Axes:
    few = problem["m"] <= parts.SKINNY
    return {
        "BLOCK_M": tiles.blocks(problem["m"], 16, 128),
        "BLOCK_N": (32, 64, 128, 256) if few else (64, 128, 256),
        "GROUPS": tuple(n for n in (1, 2, 4) if problem["k"] // problem["group"] % n == 0),
        "SPLIT_K": parts.splits(problem),
        "GROUP": (8,),
        "num_warps": (1, 2, 4, 8),
        "num_stages": (2,) if device.vendor == "amd" else (3,),
        "matrix_instr_nonkdim": (16,) if device.wave_lanes == 64 else (0,),
    }


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    rows, columns = settings["BLOCK_M"], settings["BLOCK_N"]
    depth = problem["group"] * settings["GROUPS"]
    if not 64 <= depth <= 256 and settings["GROUPS"] > 1:
        return False
    return parts.fits(problem, settings, device, (rows * 2 + columns // 2) * depth, 3, depth)


def _demand(problem: Problem, settings: Settings, device: Device) -> Demand:
    group = problem["group"]
    if problem["m"] <= parts.SKINNY:
        return parts.skinny(problem, settings, problem["n"] * problem["k"] / 2, 2.0, group)
    depth = group * settings["GROUPS"]
    return parts.tiled_product(problem, settings, problem["dtype"], depth, weight="int4")


TILES = parts.split_kernel(
    matmul_w4a16_kernel,
    _axes,
    _fits,
    _demand,
    strides={"x": "x_row", "w": "w_row"},
    contiguous=("scale", "zero"),
)


def _adapt_sizes(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` of the sizes of the signature, taking those of cases."""

    def wrapper(*make: Make, group: int = 128, zeros: bool = True, **sizes: Any) -> Any:
        return function(*make, group=group, zero=zeros, **sizes)

    return wrapper


_LLAMA = ((28672, 4096), (4096, 14336))

OPERATOR = describe.Operator(
    summary="product of 16-bit activations with weights of four bits",
    call=matmul_w4a16,
    tensors=TENSORS,
    inputs=_adapt_sizes(
        TENSORS.inputs(
            ("group",),
            weight=integers(0, 256),
            scale=describe.uniform(0.01, 0.1),
            zero=integers(0, 16),
        )
    ),
    work=_adapt_sizes(
        TENSORS.work(lambda m, n, k, dtype, **_: {dtypes.lookup(dtype).short: 2.0 * m * n * k})
    ),
    cases=(
        {"m": 5, "n": 33, "k": 256, "dtype": "bfloat16"},
        {"m": 70, "n": 100, "k": 384, "dtype": "float16"},
        {"m": 1, "n": 150, "k": 1024, "dtype": "bfloat16", "zeros": False},
        {"m": 20, "n": 70, "k": 160, "dtype": "bfloat16", "group": 32},
    ),
    thorough=(
        {"m": 130, "n": 260, "k": 256, "dtype": "float16", "zeros": False},
        {"m": 3, "n": 40, "k": 192, "dtype": "float16", "group": 64},
    ),
    shapes=sizes(
        "m n k dtype",
        *((m, n, k, "bfloat16") for n, k in _LLAMA for m in (1, 16, 256)),
    ),
)
