"""fp8 products with a scale per block: 1x128 of A, 128x128 of B."""

from typing import Final

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import checks, describe, tiles
from wavecast.kernels.describe import Axes, Demand, Device, Problem, Settings, Sizes, normal, sizes
from wavecast.kernels.quantise.formats import FP8, half_of, native, values_of
from wavecast.kernels.quantised import operands, parts
from wavecast.kernels.quantised.operands import halved_tile
from wavecast.kernels.strides import adjacent
from wavecast.kernels.tiles import store_tile, tile_of
from wavecast.launch import gpu

_BLOCK: Final = 128
"""Elements of K, and columns of B, that share a scale."""
TENSORS = describe.Signature(
    "a: [..., k] fp8",
    "b: [n, k] =a",
    "a_scale: [..., cdiv(k, 128)] float32",
    "b_scale: [cdiv(n, 128), cdiv(k, 128)] float32",
    returns=("out: [..., n]",),
    leading="m",
)


@triton.jit
def matmul_fp8_block_kernel(
    a_ptr, b_ptr, out_ptr, part_ptr, a_scale_ptr, b_scale_ptr, M, N, K,
    a_row, b_column, a_scale_row, a_scale_step, b_scale_column, b_scale_step,
    KIND: tl.constexpr, K_EVEN: tl.constexpr, WIDEN: tl.constexpr, WORDS: tl.constexpr,
    TIMES: tl.constexpr, WIDE: tl.constexpr, XCDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, SPLIT_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """A program computes a tile, or with SPLIT_K its part over some blocks of K, which goes to
    `part_ptr` [SPLIT_K, M, N]. BLOCK_N divides 128, so that a step has one scale of B.
    TIMES is a factor of all products. Operands are fp8, widened to bfloat16 here (WIDEN), or words
    of four e4m3fn codes (WORDS), which become those of half the value in e4m3fnuz."""
    down = tl.cdiv(M, BLOCK_M)
    across = tl.cdiv(N, BLOCK_N)
    pid_m, pid_n = tile_of(tl.program_id(0), down, across, GROUP, XCDS)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    a_rows = tl.minimum(offs_m, M - 1)
    b_columns = tl.minimum(offs_n, N - 1)
    if WIDE:
        a_rows, b_columns = a_rows.to(tl.int64), b_columns.to(tl.int64)
        offs_m, offs_n = offs_m.to(tl.int64), offs_n.to(tl.int64)
    steps = tl.cdiv(K, 128)
    if SPLIT_K > 1:
        first = tl.program_id(1) * steps // SPLIT_K
        last = (tl.program_id(1) + 1) * steps // SPLIT_K
    else:
        first = 0
        last = steps
    tl.assume(last > first)  # so the product of the last step is not behind a branch
    UNIT: tl.constexpr = 4 if WORDS else 1  # pyright: ignore[reportAssignmentType]
    offs_k = tl.arange(0, 128 // UNIT)
    a_ptrs = a_ptr + a_rows[:, None] * (a_row // UNIT) + offs_k[None, :]
    if WORDS:
        b_ptrs = b_ptr + b_columns[:, None] * (b_column // UNIT) + offs_k[None, :]
    else:
        b_ptrs = b_ptr + b_columns[None, :] * b_column + offs_k[:, None]
    a_scale_ptrs = a_scale_ptr + a_rows * a_scale_row
    b_scale_ptrs = b_scale_ptr + (pid_n * BLOCK_N // 128) * b_scale_column
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(first, last):
        if K_EVEN:
            a = tl.load(a_ptrs + step * (128 // UNIT))
            b = tl.load(b_ptrs + step * (128 // UNIT))
        else:
            k_mask = offs_k < K - step * 128
            a = tl.load(a_ptrs + step * 128, mask=k_mask[None, :], other=0.0)
            b = tl.load(b_ptrs + step * 128, mask=k_mask[:, None], other=0.0)
        scale = tl.load(a_scale_ptrs + step * a_scale_step)
        scale = scale * (tl.load(b_scale_ptrs + step * b_scale_step) * TIMES)
        if WORDS:
            a = halved_tile(a, BLOCK_M)
            b = tl.trans(halved_tile(b, BLOCK_N))
        elif WIDEN:
            a = half_of(values_of(a.to(tl.uint8, bitcast=True), KIND))
            b = half_of(values_of(b.to(tl.uint8, bitcast=True), KIND))
        acc += tl.dot(a, b, out_dtype=tl.float32) * scale[:, None]
    mask = (offs_m < M)[:, None] & (offs_n < N)[None, :]
    offs = offs_m[:, None] * N + offs_n[None, :]
    if SPLIT_K > 1:
        tl.store(part_ptr + tl.program_id(1) * M * N + offs, acc, mask=mask)
    else:
        store_tile(out_ptr, offs, acc, mask)


def matmul_fp8_block(
    a: Tensor, b: Tensor, a_scale: Tensor, b_scale: Tensor, out_dtype: torch.dtype = torch.bfloat16
) -> Tensor:
    """`a @ b.T` of fp8 operands scaled by blocks, as DeepSeek-V3 has them.

    `a` is [..., K] and `b` [N, K] of one fp8 dtype; `a_scale` [..., ceil(K / 128)] of float32 has a
    scale per 128 elements of a row of `a` (`quantise_fp8_group`), `b_scale`
    [ceil(N / 128), ceil(K / 128)] one per square of 128 of `b`. Each product over 128 elements is
    scaled and added up in float32. The result [..., N] is of `out_dtype`: bfloat16, float16 or
    float32. Raises ArgumentError.
    """
    tensors = {"a": a, "b": b, "a_scale": a_scale, "b_scale": b_scale}
    bound = TENSORS.check("matmul_fp8_block", tensors)
    parts.check_output("matmul_fp8_block", out_dtype)
    device, name = gpu.launching(), FP8[a.dtype]
    is_supported = device.vendor == "amd" or "fnuz" not in name
    checks.require(is_supported, "matmul_fp8_block", f"{device.id} does not support {name}")
    out = TENSORS.empty(tensors, bound, out=out_dtype)
    n, k = b.shape
    if not out.numel() or not k:
        return out.zero_()
    flat, b = adjacent(a.reshape(-1, k)), adjacent(b)
    m = flat.shape[0]
    scale = a_scale.reshape(m, -1)
    times = 1.0
    first = operands.recoded_first(m, device)
    if first and scale.stride(0) != 1:
        scale = operands.to_column_major(scale)
    words = operands.in_words(a.dtype, m, n, device) and k % _BLOCK == 0
    if words:
        flat, b = operands.words(flat), operands.words(b)
        times = 4.0
    elif first:
        flat, times_a = operands.recode(flat, device)
        b, times_b = operands.recode(b, device)
        times = times_a * times_b
    widened = flat.dtype == a.dtype and not native(name, device)
    problem = {
        "m": m,
        "n": n,
        "k": k,
        "kind": name,
        "bytes": out.element_size(),
        "wide": checks.wide(flat, b, out),
        "format": "fp8" if words else describe.short_name(flat.dtype),
        "widened": widened,
        "words": words,
    }
    tensors |= {"a": flat, "b": b, "a_scale": scale}
    unit = 4 if words else 1
    rows = {"a_row": flat.stride(0) * unit, "b_column": b.stride(0) * unit}
    constants = {"K_EVEN": k % _BLOCK == 0, "WIDEN": widened, "TIMES": times}
    parts.run(TILES, problem, out, **tensors, **rows, **constants)
    return out


def matmul_fp8_block_reference(a, b, a_scale, b_scale, out_dtype=torch.bfloat16):
    dtype = torch.promote_types(a_scale.dtype, torch.float32)
    n, k = b.shape
    each_a = a_scale.to(dtype).repeat_interleave(_BLOCK, -1)[..., :k]
    each_b = b_scale.to(dtype).repeat_interleave(_BLOCK, 0)[:n]
    each_b = each_b.repeat_interleave(_BLOCK, 1)[:, :k]
    y = (a.to(dtype) * each_a) @ (b.to(dtype) * each_b).T
    return y.to(dtype if dtype == torch.float64 else out_dtype).contiguous()


def _axes(problem: Problem, device: Device) -> Axes:
    # Every wave changes the codes of its operands: the fewer share a tile, the less work.
    words = problem["words"]
    stages = (2,) if device.vendor == "amd" else (3,)
    return {
        "BLOCK_M": tiles.blocks(problem["m"], 16, 128 if words else 256),
        "BLOCK_N": (16, 32, 64, 128) if problem["m"] <= 64 else (64, 128),
        "SPLIT_K": parts.splits(problem),
        "GROUP": (8,),
        "num_warps": (1, 2, 4) if words else (1, 2, 4, 8),
        "num_stages": (2, 3) if _stages_in_lds(device) else stages,
        "waves_per_eu": (0,),
        "matrix_instr_nonkdim": (16,) if device.wave_lanes == 64 else (0,),
    }


def _stages_in_lds(device: Device) -> bool:
    """Whether an AMD GPU loads steps to the LDS past registers, so that a third can be there."""
    return device.vendor == "amd" and device.capabilities.direct_to_lds


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    rows, columns, stages = settings["BLOCK_M"], settings["BLOCK_N"], settings["num_stages"]
    size = 1 if problem["format"] == "fp8" and not problem["widened"] else 2
    # A third step is in the LDS unless fewer workgroups then share a compute unit: large tiles
    # have one to themselves anyhow, and small ones room, but for what they widen.
    two = 64 < rows < 256 or problem["widened"]
    if _stages_in_lds(device) and (stages == 3) == two:
        return False
    return parts.fits(problem, settings, device, (rows + columns) * _BLOCK * size, 2, _BLOCK)


def _demand(problem: Problem, settings: Settings, device: Device) -> Demand:
    if problem["m"] <= parts.SKINNY:
        return parts.skinny(problem, settings, problem["n"] * problem["k"], 1.0)
    widened = problem["widened"]
    dtype, weight = ("bf16", "fp8") if widened else (problem["format"], "")
    return parts.tiled_product(problem, settings, dtype, _BLOCK, weight=weight, scaling="block")


TILES = parts.split_kernel(
    matmul_fp8_block_kernel,
    _axes,
    _fits,
    _demand,
    strides={
        "a_scale": "a_scale_row a_scale_step",
        "b_scale": "b_scale_column b_scale_step",
    },
)


def _cases(dtype: str) -> tuple[Sizes, ...]:
    rows = ((5, 33, 300, dtype), (70, 200, 384, dtype, "float32"), (1, 150, 1024, dtype))
    return sizes("m n k dtype out", *rows)


_DEEPSEEK = ((4096, 7168), (7168, 2048), (2112, 7168), (24576, 1536), (7168, 16384))
_ROWS = (1, 64, 1024, 4096)

OPERATOR = describe.Operator(
    summary="fp8 product with scales per 1x128 of A and 128x128 of B",
    call=matmul_fp8_block,
    tensors=TENSORS,
    inputs=TENSORS.inputs(
        options={"out": "out_dtype"},
        a=normal(8.0),
        b=normal(8.0),
        a_scale=lambda make, shape, dtype, _: make.uniform(shape[::-1], dtype, 0.01, 0.1).T,
        b_scale=describe.uniform(0.01, 0.1),
    ),
    work=parts.output_work(TENSORS, lambda m, n, k, **_: {"fp8": 2.0 * m * n * k}),
    cases=_cases("float8_e4m3fn"),
    thorough=(
        *_cases("float8_e4m3fnuz"),
        *_cases("float8_e5m2")[1:],
        *_cases("float8_e5m2fnuz")[1:2],
        *sizes("m n k dtype out", (130, 260, 256, "float8_e4m3fn", "float16")),
    ),
    shapes=sizes(
        "m n k dtype",
        *((m, n, k, "float8_e4m3fn") for n, k in _DEEPSEEK for m in _ROWS),
        *((m, 4096, 7168, "float8_e4m3fnuz") for m in _ROWS),
    ),
)
