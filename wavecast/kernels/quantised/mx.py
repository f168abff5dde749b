"""Products of operands in the OCP microscaling formats."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import checks, describe, tiles
from wavecast.kernels.describe import Axes, Demand, Device, Make, Problem, Settings, integers, sizes
from wavecast.kernels.quantise import widen
from wavecast.kernels.quantise.widen import widened_mx
from wavecast.kernels.quantised import operands, parts
from wavecast.kernels.strides import adjacent
from wavecast.kernels.tiles import store_tile, tile_of
from wavecast.launch import gpu

_SIZES: Final = {"e2m1": 0.5, "e4m3": 1.0, "e5m2": 1.0, "bf16": 2.0}
"""Bytes per element."""
_RATES: Final = {"e2m1": "mxfp4", "e4m3": "mxfp8", "e5m2": "mxfp8", "bf16": "bf16"}
_OPERAND = "uint8|float8_e4m3fn|float8_e5m2"
TENSORS = describe.Signature(
    f"a: [..., k / a_packed] {_OPERAND}",
    f"b: [n, k / b_packed] {_OPERAND}",
    "a_scale: [..., k / 32] uint8",
    "b_scale: [n, k / 32] uint8",
    returns=("out: [..., n]",),
    leading="m",
)


@triton.jit
def matmul_mx_kernel(
    a_ptr, b_ptr, out_ptr, part_ptr, a_scale_ptr, b_scale_ptr, M, N, K, a_row, b_row,
    a_scale_row, a_scale_step, b_scale_row, b_scale_step,
    A_FORMAT: tl.constexpr, B_FORMAT: tl.constexpr, NATIVE: tl.constexpr,
    TRANSPOSED_SCALES: tl.constexpr, K_EVEN: tl.constexpr, WIDE: tl.constexpr, XCDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    SPLIT_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """A program computes a tile, or with SPLIT_K its part over some steps of K, which goes to
    `part_ptr` [SPLIT_K, M, N]. Both operands lie along K; in format `bf16` they have no scales.
    With TRANSPOSED_SCALES scales lie along the rows, padded to whole tiles."""
    A_PACKED: tl.constexpr = 2 if A_FORMAT == "e2m1" else 1  # pyright: ignore[reportAssignmentType]
    B_PACKED: tl.constexpr = 2 if B_FORMAT == "e2m1" else 1  # pyright: ignore[reportAssignmentType]
    down = tl.cdiv(M, BLOCK_M)
    across = tl.cdiv(N, BLOCK_N)
    pid_m, pid_n = tile_of(tl.program_id(0), down, across, GROUP, XCDS)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    a_rows = tl.minimum(offs_m, M - 1)
    b_columns = tl.minimum(offs_n, N - 1)
    steps = tl.cdiv(K, BLOCK_K)
    if SPLIT_K > 1:
        first = tl.program_id(1) * steps // SPLIT_K
        last = (tl.program_id(1) + 1) * steps // SPLIT_K
    else:
        first = 0
        last = steps
    tl.assume(last > first)  # so the product of the last step is not behind a branch
    if WIDE:
        a_rows, b_columns = a_rows.to(tl.int64), b_columns.to(tl.int64)
        offs_m, offs_n = offs_m.to(tl.int64), offs_n.to(tl.int64)
    a_offs_k = tl.arange(0, BLOCK_K // A_PACKED)
    b_offs_k = tl.arange(0, BLOCK_K // B_PACKED)
    blocks = tl.arange(0, BLOCK_K // 32)
    if TRANSPOSED_SCALES:
        a_scale_rows, b_scale_rows = offs_m, offs_n
    else:
        a_scale_rows, b_scale_rows = a_rows * a_scale_row, b_columns * b_scale_row
    a_ptrs = a_ptr + a_rows[:, None] * a_row + a_offs_k[None, :]
    b_ptrs = b_ptr + b_columns[:, None] * b_row + b_offs_k[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(first, last):
        start = step * BLOCK_K
        if K_EVEN:
            a = tl.load(a_ptrs + start // A_PACKED)
            b = tl.load(b_ptrs + start // B_PACKED)
        else:
            a_mask = (start + a_offs_k * A_PACKED < K)[None, :]
            b_mask = (start + b_offs_k * B_PACKED < K)[None, :]
            a = tl.load(a_ptrs + start // A_PACKED, mask=a_mask, other=0 if A_PACKED == 2 else 0.0)
            b = tl.load(b_ptrs + start // B_PACKED, mask=b_mask, other=0 if B_PACKED == 2 else 0.0)
        if A_FORMAT != "bf16":
            offs = a_scale_rows[:, None] + (start // 32 + blocks[None, :]) * a_scale_step
            if K_EVEN:
                a_scale = tl.load(a_scale_ptr + offs)
            else:
                a_scale = tl.load(
                    a_scale_ptr + offs, mask=(start + blocks * 32 < K)[None, :], other=0
                )
        if B_FORMAT != "bf16":
            offs = b_scale_rows[:, None] + (start // 32 + blocks[None, :]) * b_scale_step
            if K_EVEN:
                b_scale = tl.load(b_scale_ptr + offs)
            else:
                b_scale = tl.load(
                    b_scale_ptr + offs, mask=(start + blocks * 32 < K)[None, :], other=0
                )
        if NATIVE:
            acc = tl.dot_scaled(a, a_scale, A_FORMAT, b.T, b_scale, B_FORMAT, acc)  # pyright: ignore[reportPossiblyUnboundVariable]
        else:
            if A_FORMAT != "bf16":
                a = widened_mx(a, a_scale, A_FORMAT, BLOCK_M, BLOCK_K)  # pyright: ignore[reportPossiblyUnboundVariable]
            if B_FORMAT != "bf16":
                b = widened_mx(b, b_scale, B_FORMAT, BLOCK_N, BLOCK_K)  # pyright: ignore[reportPossiblyUnboundVariable]
            acc = tl.dot(a, b.T, acc, out_dtype=tl.float32)
    mask = (offs_m < M)[:, None] & (offs_n < N)[None, :]
    offs = offs_m[:, None] * N + offs_n[None, :]
    if SPLIT_K > 1:
        tl.store(part_ptr + tl.program_id(1) * M * N + offs, acc, mask=mask)
    else:
        store_tile(out_ptr, offs, acc, mask)


def matmul_mx(
    a: Tensor, b: Tensor, a_scale: Tensor, b_scale: Tensor, out_dtype: torch.dtype = torch.bfloat16
) -> Tensor:
    """`a @ b.T` of operands in mxfp4 or mxfp8, each its own (`quantise_mxfp4`, `quantise_mxfp8`).

    mxfp4 is uint8 with two codes per byte along K, `a` [..., K / 2] and `b` [N, K / 2]; mxfp8 is
    float8_e4m3fn or float8_e5m2, `a` [..., K] and `b` [N, K]. `a_scale` [..., K / 32] and `b_scale`
    [N, K / 32] are uint8, where `s` stands for 2^(s - 127); K is a multiple of 32. Multiplied by
    scaled matrix instructions where there are such (gfx950), elsewhere as bfloat16; summed in
    float32. The result [..., N] is of `out_dtype`: bfloat16, float16 or float32. Raises
    ArgumentError.
    """
    checks.require(a.dim() > 0, "matmul_mx", "a is a scalar")
    tensors = {"a": a, "b": b, "a_scale": a_scale, "b_scale": b_scale}
    checks.dtype_in("matmul_mx", "a", a, TENSORS.arguments[0].allowed_dtypes(tensors))
    packed = {f"{name}_packed": _codes_per_element(tensors[name].dtype) for name in "ab"}
    n, k = b.shape[0] if b.dim() else 0, a.shape[-1] * packed["a_packed"]
    checks.require(k % 32 == 0, "matmul_mx", f"K is {k}, no multiple of 32")
    bound = TENSORS.check("matmul_mx", tensors, k=k, **packed)
    parts.check_output("matmul_mx", out_dtype)
    out = TENSORS.empty(tensors, bound, out=out_dtype)
    if not out.numel() or not k:
        return out.zero_()
    flat, a_scale = a.reshape(-1, a.shape[-1]), a_scale.reshape(-1, a_scale.shape[-1])
    m = flat.shape[0]
    flat, b, a_scale, b_scale = (adjacent(tensor) for tensor in (flat, b, a_scale, b_scale))
    a_format, b_format = widen.CODES[a.dtype], widen.CODES[b.dtype]
    device = gpu.launching()
    native = device.capabilities.matrix_mx
    if not native and not operands.widened_in_tiles(m, device):
        flat, b = widen.dequantise_mx(flat, a_scale), widen.dequantise_mx(b, b_scale)
        a_format = b_format = "bf16"
    transposed = native and m > parts.SKINNY
    if transposed:
        a_scale, b_scale = operands.to_column_major(a_scale), operands.to_column_major(b_scale)
    problem = {
        "m": m,
        "n": n,
        "k": k,
        "a": a_format,
        "b": b_format,
        "native": native,
        "even": k % 512 == 0,
        "wide": checks.wide(flat, b, out),
    }
    tensors = {"a": flat, "b": b, "a_scale": a_scale, "b_scale": b_scale}
    formats = {"A_FORMAT": a_format, "B_FORMAT": b_format, "TRANSPOSED_SCALES": transposed}
    parts.run(TILES, problem, out, **tensors, **formats, K_EVEN=k % 512 == 0)
    return out


def matmul_mx_reference(a, b, a_scale, b_scale, out_dtype=torch.bfloat16):
    left = widen.dequantise_mx_reference(a, a_scale, torch.float64)  # holds all values exactly
    right = widen.dequantise_mx_reference(b, b_scale, torch.float64)
    return (left @ right.T).to(out_dtype).contiguous()


def _codes_per_element(dtype: torch.dtype) -> int:
    """Codes per element of a tensor."""
    return 2 if dtype == torch.uint8 else 1


def _axes(problem: Problem, device: Device) -> Axes:
    few, native = problem["m"] <= parts.SKINNY, problem["native"]
    most = 256 if native else parts.most_columns(device)
    stages = (2,) if device.vendor == "amd" else (3,)
    if device.vendor == "amd" and native and not few:
        stages = (2, 3)  # scaled products end soon: a third step in the LDS hides the memory
    depths = ((256, 512) if few else (128, 256)) if native else (64, 128)
    return {
        "BLOCK_M": tiles.blocks(problem["m"], 16, 256),
        "BLOCK_N": (16, 32, 64, 128) if few else tiles.blocks(problem["n"], 64, most),
        "BLOCK_K": depths,
        "SPLIT_K": parts.splits(problem),
        "GROUP": (8,),
        "num_warps": (1, 2, 4, 8) if few else (4, 8),
        "num_stages": stages,
        "matrix_instr_nonkdim": (16,) if device.wave_lanes == 64 else (0,),
        **(parts.half_axes(device) if problem["a"] == "bf16" else {}),
    }


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    rows, columns, depth = (settings[f"BLOCK_{axis}"] for axis in "MNK")
    if problem["native"] or problem["a"] == "bf16":
        step = (rows * _SIZES[problem["a"]] + columns * _SIZES[problem["b"]]) * depth
        staged, sums = step * tiles.buffers(settings, device), 1
    else:
        staged, sums = (rows + columns) * depth * 2, 2
        if max(rows, columns) * depth > 4096 * settings["num_warps"]:
            return False
    if staged > device.limits().lds_max_per_workgroup:
        return False
    if problem["native"] and rows * columns == 256:
        # scaled matrix instructions: two waves that do the same share the loads
        lanes = settings["num_warps"] == 2
    else:
        lanes = parts.fits_lanes(settings, device, sums)
    return lanes and parts.splits_fit(problem, settings, depth)


def _demand(problem: Problem, settings: Settings, device: Device) -> Demand:
    a, b, depth = problem["a"], problem["b"], settings["BLOCK_K"]
    if problem["m"] <= parts.SKINNY:
        weights = problem["n"] * problem["k"] * _SIZES[b]
        return parts.skinny(problem, settings, weights, _SIZES[a], depth)
    return parts.tiled_product(problem, settings, _RATES[a] if problem["native"] else "bf16", depth)


TILES = parts.split_kernel(
    matmul_mx_kernel,
    _axes,
    _fits,
    _demand,
    strides={
        "a": "a_row",
        "b": "b_row",
        "a_scale": "a_scale_row a_scale_step",
        "b_scale": "b_scale_row b_scale_step",
    },
)


def _codes(make: Make, shape: tuple[int, ...], dtype: torch.dtype, _: Mapping[str, Any]) -> Tensor:
    if dtype == torch.uint8:
        return make.integers(shape, 0, 256, dtype)
    return make.normal(shape, dtype, 8.0)


def _flops(m: int, n: int, k: int, a_dtype: str, b_dtype: str, **_: Any) -> dict[str, float]:
    return {"fp4" if a_dtype == b_dtype == "uint8" else "fp8": 2.0 * m * n * k}


def _adapt_sizes(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` of the sizes of the signature, taking those of cases, where `a` and `b` are dtypes
    of operands."""

    def wrapper(*make: Make, a: str = "uint8", b: str = "uint8", **sizes: Any) -> Any:
        for name, dtype in (("a", a), ("b", b)):
            sizes |= {
                f"{name}_dtype": dtype,
                f"{name}_packed": _codes_per_element(getattr(torch, dtype)),
            }
        return function(*make, **sizes)

    return wrapper


_SCALES = integers(120, 130)
_FP8 = "float8_e4m3fn"
_LLAMA = ((10240, 8192), (8192, 28672))

OPERATOR = describe.Operator(
    summary="product of operands in mxfp4 and mxfp8",
    call=matmul_mx,
    tensors=TENSORS,
    inputs=_adapt_sizes(
        TENSORS.inputs(
            options={"out": "out_dtype"}, a=_codes, b=_codes, a_scale=_SCALES, b_scale=_SCALES
        )
    ),
    work=_adapt_sizes(parts.output_work(TENSORS, _flops)),
    cases=(
        {"m": 5, "n": 33, "k": 288},
        {"m": 70, "n": 100, "k": 512, "out": "float32"},
        {"m": 20, "n": 70, "k": 320, "a": _FP8, "b": _FP8},
        {"m": 40, "n": 50, "k": 256, "a": "float8_e5m2", "b": "uint8", "out": "float16"},
    ),
    thorough=(
        {"m": 1, "n": 90, "k": 1024},
        {"m": 70, "n": 60, "k": 512, "a": "uint8", "b": _FP8},
        {"m": 130, "n": 140, "k": 256, "a": "float8_e5m2", "b": "float8_e5m2"},
    ),
    shapes=(
        *sizes("m n k", *((m, n, k) for n, k in _LLAMA for m in (16, 4096))),
        {"m": 4096, "n": 10240, "k": 8192, "a": _FP8, "b": _FP8},
    ),
    exact=("a", "b"),
)
