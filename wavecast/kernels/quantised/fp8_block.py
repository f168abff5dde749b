"""fp8 products with a scale per block: 1x128 of A, 128x128 of B."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, estimates, gpu, tiles
from wavecast.kernels.choice import launch
from wavecast.kernels.inputs import FP8, Make
from wavecast.kernels.operator import Operator, Sizes
from wavecast.kernels.quantise.formats import FP8 as FORMATS
from wavecast.kernels.quantise.formats import half_of, native, values_of
from wavecast.kernels.quantised import held, parts
from wavecast.kernels.quantised.held import halved_tile
from wavecast.kernels.quantised.turned import TURN, turned
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.kernels.strides import adjacent
from wavecast.kernels.tiles import store_tile, tile_of
from wavecast.model.bounds import Work

_BLOCK: Final = 128
"""Elements of K, and columns of B, that share a scale."""
_PART: Final = 3
"""Where the workspace stands among the kernel's arguments."""


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
    tile_row, tile_column = tile_of(tl.program_id(0), down, across, GROUP, XCDS)
    rows = tile_row * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_column * BLOCK_N + tl.arange(0, BLOCK_N)
    row = tl.minimum(rows, M - 1)
    column = tl.minimum(columns, N - 1)
    if WIDE:
        row, column = row.to(tl.int64), column.to(tl.int64)
        rows, columns = rows.to(tl.int64), columns.to(tl.int64)
    steps = tl.cdiv(K, 128)
    if SPLIT_K > 1:
        first = tl.program_id(1) * steps // SPLIT_K
        last = (tl.program_id(1) + 1) * steps // SPLIT_K
    else:
        first = 0
        last = steps
    tl.assume(last > first)  # so the product of the last step is not behind a branch
    UNIT: tl.constexpr = 4 if WORDS else 1  # pyright: ignore[reportAssignmentType]
    place = tl.arange(0, 128 // UNIT)
    from_a = a_ptr + row[:, None] * (a_row // UNIT) + place[None, :]
    if WORDS:
        from_b = b_ptr + column[:, None] * (b_column // UNIT) + place[None, :]
    else:
        from_b = b_ptr + column[None, :] * b_column + place[:, None]
    from_a_scale = a_scale_ptr + row * a_scale_row
    from_b_scale = b_scale_ptr + (tile_column * BLOCK_N // 128) * b_scale_column
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(first, last):
        if K_EVEN:
            a = tl.load(from_a + step * (128 // UNIT))
            b = tl.load(from_b + step * (128 // UNIT))
        else:
            left = place < K - step * 128
            a = tl.load(from_a + step * 128, mask=left[None, :], other=0.0)
            b = tl.load(from_b + step * 128, mask=left[:, None], other=0.0)
        scale = tl.load(from_a_scale + step * a_scale_step)
        scale = scale * (tl.load(from_b_scale + step * b_scale_step) * TIMES)
        if WORDS:
            a = halved_tile(a, BLOCK_M)
            b = tl.trans(halved_tile(b, BLOCK_N))
        elif WIDEN:
            a = half_of(values_of(a.to(tl.uint8, bitcast=True), KIND))
            b = half_of(values_of(b.to(tl.uint8, bitcast=True), KIND))
        total += tl.dot(a, b, out_dtype=tl.float32) * scale[:, None]
    inside = (rows < M)[:, None] & (columns < N)[None, :]
    at = rows[:, None] * N + columns[None, :]
    if SPLIT_K > 1:
        tl.store(part_ptr + tl.program_id(1) * M * N + at, total, mask=inside)
    else:
        store_tile(out_ptr, at, total, inside)


def matmul_fp8_block(
    a: torch.Tensor,
    b: torch.Tensor,
    a_scale: torch.Tensor,
    b_scale: torch.Tensor,
    out_dtype: torch.dtype = torch.bfloat16,
) -> torch.Tensor:
    """`a @ b.T` of fp8 operands scaled by blocks, as DeepSeek-V3 has them.

    `a` is [..., K] and `b` [N, K] of one fp8 dtype; `a_scale` [..., ceil(K / 128)] of float32 has a
    scale per 128 elements of a row of `a` (`quantise_fp8_group`), `b_scale`
    [ceil(N / 128), ceil(K / 128)] one per square of 128 of `b`. Each product over 128 elements is
    scaled and added up in float32. The result [..., N] is of `out_dtype`: bfloat16, float16 or
    float32. Raises ArgumentError.
    """
    _check(a, b, a_scale, b_scale, out_dtype)
    n, k = b.shape
    out = torch.empty((*a.shape[:-1], n), dtype=out_dtype, device=a.device)
    if not out.numel() or not k:
        return out.zero_()
    flat = a.reshape(-1, k)
    m = flat.shape[0]
    flat = adjacent(flat)
    b = adjacent(b)
    scale = a_scale.reshape(m, -1)
    device = gpu.launching()
    kind = FORMATS[a.dtype]
    times = 1.0
    early = held.early(m, device)
    if early and scale.stride(0) != 1:
        scale = turned(scale)
    words = held.in_words(a.dtype, m, n, device) and k % _BLOCK == 0
    if words:
        flat, b = held.words(flat), held.words(b)
        times = 4.0
    elif early:
        flat, times_a = held.multiplied(flat, device)
        b, times_b = held.multiplied(b, device)
        times = times_a * times_b
    format_ = "fp8" if words else parts.NAMES[flat.dtype]
    widened = flat.dtype == a.dtype and not native(kind, device)
    arguments: list[Any] = [
        *(flat, b, out, torch.empty(1, dtype=torch.float32, device=a.device)),
        *(scale, b_scale, m, n, k, *(one.stride(0) * (4 if words else 1) for one in (flat, b))),
        *(scale.stride(0), scale.stride(1), b_scale.stride(0), b_scale.stride(1)),
    ]
    taken: dict[str, Any] = {}

    def grid(settings: Settings) -> tuple[int, ...]:
        # The launch takes the arguments after it has the grid: the workspace of these settings.
        taken.update(settings)
        number = settings["SPLIT_K"]
        if number > 1:
            arguments[_PART] = torch.empty((number, m, n), dtype=torch.float32, device=a.device)
        count = triton.cdiv(m, settings["BLOCK_M"]) * triton.cdiv(n, settings["BLOCK_N"])
        return count, number

    wide = checks.wide(flat, b, out)
    launch(
        matmul_fp8_block_kernel,
        grid,
        arguments,
        TILES,
        {
            "m": m,
            "n": n,
            "k": k,
            "kind": kind,
            "bytes": out.element_size(),
            "wide": wide,
            "format": format_,
            "widened": widened,
            "words": words,
        },
        K_EVEN=k % _BLOCK == 0,
        KIND=kind,
        WIDEN=widened,
        WORDS=words,
        TIMES=times,
        WIDE=wide,
        XCDS=tiles.xcds(device),
    )
    if taken["SPLIT_K"] > 1:
        parts.add_parts(arguments[_PART], out)
    return out


def matmul_fp8_block_reference(
    a: torch.Tensor,
    b: torch.Tensor,
    a_scale: torch.Tensor,
    b_scale: torch.Tensor,
    out_dtype: torch.dtype = torch.bfloat16,
) -> torch.Tensor:
    """Operands scaled, then multiplied, in float32 at least."""
    kind = torch.promote_types(a_scale.dtype, torch.float32)
    n, k = b.shape
    each_a = a_scale.to(kind).repeat_interleave(_BLOCK, -1)[..., :k]
    each_b = b_scale.to(kind).repeat_interleave(_BLOCK, 0)[:n]
    each_b = each_b.repeat_interleave(_BLOCK, 1)[:, :k]
    total = (a.to(kind) * each_a) @ (b.to(kind) * each_b).T
    wide = torch.float64 if kind == torch.float64 else out_dtype
    return total.to(wide).contiguous()


def _check(
    a: torch.Tensor,
    b: torch.Tensor,
    a_scale: torch.Tensor,
    b_scale: torch.Tensor,
    out_dtype: torch.dtype,
) -> None:
    name = "matmul_fp8_block"
    checks.require(a.dim() > 0, name, "a is a scalar")
    checks.dtype_in(name, "a", a, FP8)
    checks.dtype_in(name, "b", b, (a.dtype,))
    checks.dtype_in(name, "a_scale", a_scale, (torch.float32,))
    checks.dtype_in(name, "b_scale", b_scale, (torch.float32,))
    k = a.shape[-1]
    checks.shape_is(name, "b", b, (-1, k))
    across = triton.cdiv(k, _BLOCK)
    checks.shape_is(name, "a_scale", a_scale, (*a.shape[:-1], across))
    checks.shape_is(name, "b_scale", b_scale, (triton.cdiv(b.shape[0], _BLOCK), across))
    known = ", ".join(str(one).removeprefix("torch.") for one in parts.OUTPUTS)
    checks.require(out_dtype in parts.OUTPUTS, name, f"out_dtype is none of {known}")
    checks.same_device(name, a=a, b=b, a_scale=a_scale, b_scale=b_scale)
    device = gpu.launching()
    known_there = device.target.startswith("gfx") or "fnuz" not in str(a.dtype)
    checks.require(known_there, name, f"{FORMATS[a.dtype]} is no format of {device.id}")


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    # Every wave changes the codes of its operands: the fewer share a tile, the less work.
    words = problem["words"]
    stages = (3,) if not device.target.startswith("gfx") else (2,)
    if device.target == "gfx950":
        stages = (2, 3)
    return {
        "BLOCK_M": parts.blocks(problem["m"], 16, 128 if words else 256),
        "BLOCK_N": (16, 32, 64, 128) if problem["m"] <= 64 else (64, 128),
        "SPLIT_K": parts.splits(problem),
        "GROUP": (8,),
        "num_warps": (1, 2, 4) if words else (1, 2, 4, 8),
        "num_stages": stages,
        "waves_per_eu": (0,),
        "matrix_instr_nonkdim": (16,) if device.limits().wave_lanes == 64 else (0,),
    }


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    rows, columns, stages = settings["BLOCK_M"], settings["BLOCK_N"], settings["num_stages"]
    size = 1 if problem["format"] == "fp8" and not problem["widened"] else 2
    staged = (rows + columns) * _BLOCK * size * tiles.buffers(settings, device)
    if staged > device.limits().lds_max_per_workgroup:
        return False
    # A third step lies in the LDS unless fewer workgroups then share a compute unit: large tiles
    # have one to themselves anyhow, and small ones room, but for what they widen.
    two = 64 < rows < 256 or problem["widened"]
    if device.target == "gfx950" and (stages == 3) == two:
        return False
    if not parts.shared_out(settings, device, rows, columns, 2):
        return False
    return parts.splits_fit(problem, settings["SPLIT_K"], _BLOCK)


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    rows, columns = settings["BLOCK_M"], settings["BLOCK_N"]
    if problem["m"] <= parts.SKINNY:
        return parts.skinny(problem, settings, device, problem["n"] * problem["k"], 1.0)
    return estimates.tile(
        device,
        settings,
        m=problem["m"],
        n=problem["n"],
        k=problem["k"],
        dtype="bf16" if problem["widened"] else problem["format"],
        weight="fp8" if problem["widened"] else "",
        rows=rows,
        columns=columns,
        depth=_BLOCK,
        splits=settings["SPLIT_K"],
        scaling="block",
    )


TILES = Space(
    kernel="matmul_fp8_block_kernel", axes=_axes, fits=_fits, seconds=_seconds, classes=("m",)
)


def _inputs(
    make: Make, m: int, n: int, k: int, dtype: str, out: str = "bfloat16"
) -> dict[str, Any]:
    across = triton.cdiv(k, _BLOCK)
    return {
        "a": make.normal((m, k), dtype, 8.0),
        "b": make.normal((n, k), dtype, 8.0),
        "a_scale": make.uniform((across, m), "float32", 0.01, 0.1).T,
        "b_scale": make.uniform((triton.cdiv(n, _BLOCK), across), "float32", 0.01, 0.1),
        "out_dtype": make.dtype(out),
    }


def _work(m: int, n: int, k: int, dtype: str, out: str = "bfloat16") -> Work:
    across = triton.cdiv(k, _BLOCK)
    scales = 4.0 * across * (m + triton.cdiv(n, _BLOCK))
    written = m * n * getattr(torch, out).itemsize
    return Work({"fp8": 2.0 * m * n * k}, (m + n) * k + scales, written, "formula", "formula")


def _cases(dtype: str) -> tuple[Sizes, ...]:
    return (
        {"m": 5, "n": 33, "k": 300, "dtype": dtype},
        {"m": 70, "n": 200, "k": 384, "dtype": dtype, "out": "float32"},
        {"m": 1, "n": 150, "k": 1024, "dtype": dtype},
    )


_DEEPSEEK = ((4096, 7168), (7168, 2048), (2112, 7168), (24576, 1536), (7168, 16384))

OPERATORS = (
    Operator(
        name="matmul_fp8_block",
        summary="fp8 product with scales per 1x128 of A and 128x128 of B",
        call=matmul_fp8_block,
        reference=matmul_fp8_block_reference,
        inputs=_inputs,
        work=_work,
        cases=_cases("float8_e4m3fn"),
        thorough=(
            *_cases("float8_e4m3fnuz"),
            *_cases("float8_e5m2")[1:],
            *_cases("float8_e5m2fnuz")[1:2],
            {"m": 130, "n": 260, "k": 256, "dtype": "float8_e4m3fn", "out": "float16"},
        ),
        shapes=(
            *(
                {"m": m, "n": n, "k": k, "dtype": "float8_e4m3fn"}
                for n, k in _DEEPSEEK
                for m in (1, 64, 1024, 4096)
            ),
            *(
                {"m": m, "n": 4096, "k": 7168, "dtype": "float8_e4m3fnuz"}
                for m in (1, 64, 1024, 4096)
            ),
        ),
        spaces=(TILES, parts.ADD, held.RECODE, TURN),
    ),
)
