"""Products of operands in the OCP microscaling formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, estimates, gpu, tiles
from wavecast.kernels.choice import launch
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Operator, Sizes
from wavecast.kernels.quantise.widen import (
    CODES,
    dequantise_mx,
    dequantise_mx_reference,
    widened_mx,
)
from wavecast.kernels.quantised import parts
from wavecast.kernels.quantised.held import ROWS
from wavecast.kernels.quantised.turned import TURN, turned
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.kernels.strides import adjacent
from wavecast.kernels.tiles import store_tile, tile_of
from wavecast.model.bounds import Work

_NATIVE = ("gfx950", "sm_100")
"""Targets whose matrix instructions take scales."""
_PART: Final = 3
"""Where the workspace stands among the kernel's arguments."""
_SIZES: Final = {"e2m1": 0.5, "e4m3": 1.0, "e5m2": 1.0, "bf16": 2.0}
"""Bytes per element."""


@triton.jit
def matmul_mx_kernel(
    a_ptr, b_ptr, out_ptr, part_ptr, a_scale_ptr, b_scale_ptr, M, N, K, a_row, b_row,
    a_scale_row, a_scale_step, b_scale_row, b_scale_step,
    A_KIND: tl.constexpr, B_KIND: tl.constexpr, NATIVE: tl.constexpr, TURNED: tl.constexpr,
    K_EVEN: tl.constexpr,
    WIDE: tl.constexpr, XCDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    SPLIT_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """A program computes a tile, or with SPLIT_K its part over some steps of K, which goes to
    `part_ptr` [SPLIT_K, M, N]. Both operands lie along K; of kind `bf16` they have no scales. With
    TURNED scales lie along the rows, padded to whole tiles."""
    A_PACKED: tl.constexpr = 2 if A_KIND == "e2m1" else 1  # pyright: ignore[reportAssignmentType]
    B_PACKED: tl.constexpr = 2 if B_KIND == "e2m1" else 1  # pyright: ignore[reportAssignmentType]
    down = tl.cdiv(M, BLOCK_M)
    across = tl.cdiv(N, BLOCK_N)
    tile_row, tile_column = tile_of(tl.program_id(0), down, across, GROUP, XCDS)
    rows = tile_row * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_column * BLOCK_N + tl.arange(0, BLOCK_N)
    row = tl.minimum(rows, M - 1)
    column = tl.minimum(columns, N - 1)
    steps = tl.cdiv(K, BLOCK_K)
    if SPLIT_K > 1:
        first = tl.program_id(1) * steps // SPLIT_K
        last = (tl.program_id(1) + 1) * steps // SPLIT_K
    else:
        first = 0
        last = steps
    tl.assume(last > first)  # so the product of the last step is not behind a branch
    if WIDE:
        row, column = row.to(tl.int64), column.to(tl.int64)
        rows, columns = rows.to(tl.int64), columns.to(tl.int64)
    a_place = tl.arange(0, BLOCK_K // A_PACKED)
    b_place = tl.arange(0, BLOCK_K // B_PACKED)
    block = tl.arange(0, BLOCK_K // 32)
    if TURNED:
        a_scale_rows, b_scale_rows = rows, columns
    else:
        a_scale_rows, b_scale_rows = row * a_scale_row, column * b_scale_row
    from_a = a_ptr + row[:, None] * a_row + a_place[None, :]
    from_b = b_ptr + column[:, None] * b_row + b_place[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(first, last):
        start = step * BLOCK_K
        if K_EVEN:
            a = tl.load(from_a + start // A_PACKED)
            b = tl.load(from_b + start // B_PACKED)
        else:
            a_held = (start + a_place * A_PACKED < K)[None, :]
            b_held = (start + b_place * B_PACKED < K)[None, :]
            a = tl.load(from_a + start // A_PACKED, mask=a_held, other=0 if A_PACKED == 2 else 0.0)
            b = tl.load(from_b + start // B_PACKED, mask=b_held, other=0 if B_PACKED == 2 else 0.0)
        if A_KIND != "bf16":
            at = a_scale_rows[:, None] + (start // 32 + block[None, :]) * a_scale_step
            if K_EVEN:
                a_scale = tl.load(a_scale_ptr + at)
            else:
                a_scale = tl.load(a_scale_ptr + at, mask=(start + block * 32 < K)[None, :], other=0)
        if B_KIND != "bf16":
            at = b_scale_rows[:, None] + (start // 32 + block[None, :]) * b_scale_step
            if K_EVEN:
                b_scale = tl.load(b_scale_ptr + at)
            else:
                b_scale = tl.load(b_scale_ptr + at, mask=(start + block * 32 < K)[None, :], other=0)
        if NATIVE:
            total = tl.dot_scaled(a, a_scale, A_KIND, b.T, b_scale, B_KIND, total)  # pyright: ignore[reportPossiblyUnboundVariable]
        else:
            if A_KIND != "bf16":
                a = widened_mx(a, a_scale, A_KIND, BLOCK_M, BLOCK_K)  # pyright: ignore[reportPossiblyUnboundVariable]
            if B_KIND != "bf16":
                b = widened_mx(b, b_scale, B_KIND, BLOCK_N, BLOCK_K)  # pyright: ignore[reportPossiblyUnboundVariable]
            total = tl.dot(a, b.T, total, out_dtype=tl.float32)
    inside = (rows < M)[:, None] & (columns < N)[None, :]
    at = rows[:, None] * N + columns[None, :]
    if SPLIT_K > 1:
        tl.store(part_ptr + tl.program_id(1) * M * N + at, total, mask=inside)
    else:
        store_tile(out_ptr, at, total, inside)


def matmul_mx(
    a: torch.Tensor,
    b: torch.Tensor,
    a_scale: torch.Tensor,
    b_scale: torch.Tensor,
    out_dtype: torch.dtype = torch.bfloat16,
) -> torch.Tensor:
    """`a @ b.T` of operands in mxfp4 or mxfp8, each its own (`quantise_mxfp4`, `quantise_mxfp8`).

    mxfp4 is uint8 with two codes per byte along K, `a` [..., K / 2] and `b` [N, K / 2]; mxfp8 is
    float8_e4m3fn or float8_e5m2, `a` [..., K] and `b` [N, K]. `a_scale` [..., K / 32] and `b_scale`
    [N, K / 32] are uint8, where `s` stands for 2^(s - 127); K is a multiple of 32. Multiplied by
    scaled matrix instructions where there are such (gfx950), elsewhere as bfloat16; summed in
    float32. The result [..., N] is of `out_dtype`: bfloat16, float16 or float32. Raises
    ArgumentError.
    """
    k = _check(a, b, a_scale, b_scale, out_dtype)
    n = b.shape[0]
    out = torch.empty((*a.shape[:-1], n), dtype=out_dtype, device=a.device)
    if not out.numel() or not k:
        return out.zero_()
    flat, a_scale = a.reshape(-1, a.shape[-1]), a_scale.reshape(-1, a_scale.shape[-1])
    m = flat.shape[0]
    flat, b, a_scale, b_scale = (adjacent(one) for one in (flat, b, a_scale, b_scale))
    a_kind, b_kind = CODES[a.dtype], CODES[b.dtype]
    device = gpu.launching()
    native = device.target in _NATIVE
    if not native and m > ROWS:
        flat, b = dequantise_mx(flat, a_scale), dequantise_mx(b, b_scale)
        a_kind = b_kind = "bf16"
    turn = native and m > parts.SKINNY
    if turn:
        a_scale, b_scale = turned(a_scale), turned(b_scale)
    arguments: list[Any] = [
        *(flat, b, out, torch.empty(1, dtype=torch.float32, device=a.device)),
        *(a_scale, b_scale, m, n, k, flat.stride(0), b.stride(0)),
        *(*a_scale.stride(), *b_scale.stride()),
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
        matmul_mx_kernel,
        grid,
        arguments,
        TILES,
        {
            "m": m,
            "n": n,
            "k": k,
            "a": a_kind,
            "b": b_kind,
            "native": native,
            "even": k % 512 == 0,
            "wide": wide,
        },
        A_KIND=a_kind,
        B_KIND=b_kind,
        NATIVE=native,
        TURNED=turn,
        K_EVEN=k % 512 == 0,
        WIDE=wide,
        XCDS=tiles.xcds(device),
    )
    if taken["SPLIT_K"] > 1:
        parts.add_parts(arguments[_PART], out)
    return out


def matmul_mx_reference(
    a: torch.Tensor,
    b: torch.Tensor,
    a_scale: torch.Tensor,
    b_scale: torch.Tensor,
    out_dtype: torch.dtype = torch.bfloat16,
) -> torch.Tensor:
    """Operands widened, then multiplied, in float64, which holds all of them."""
    left = dequantise_mx_reference(a, a_scale, torch.float64)
    right = dequantise_mx_reference(b, b_scale, torch.float64)
    return (left @ right.T).to(out_dtype).contiguous()


def _check(
    a: torch.Tensor,
    b: torch.Tensor,
    a_scale: torch.Tensor,
    b_scale: torch.Tensor,
    out_dtype: torch.dtype,
) -> int:
    """K."""
    name = "matmul_mx"
    checks.require(a.dim() > 0, name, "a is a scalar")
    checks.dtype_in(name, "a", a, tuple(CODES))
    checks.dtype_in(name, "b", b, tuple(CODES))
    checks.dtype_in(name, "a_scale", a_scale, (torch.uint8,))
    checks.dtype_in(name, "b_scale", b_scale, (torch.uint8,))
    k = a.shape[-1] * (2 if a.dtype == torch.uint8 else 1)
    checks.require(k % 32 == 0, name, f"K is {k}, no multiple of 32")
    checks.shape_is(name, "b", b, (-1, k // 2 if b.dtype == torch.uint8 else k))
    checks.shape_is(name, "a_scale", a_scale, (*a.shape[:-1], k // 32))
    checks.shape_is(name, "b_scale", b_scale, (b.shape[0], k // 32))
    known = ", ".join(str(one).removeprefix("torch.") for one in parts.OUTPUTS)
    checks.require(out_dtype in parts.OUTPUTS, name, f"out_dtype is none of {known}")
    checks.same_device(name, a=a, b=b, a_scale=a_scale, b_scale=b_scale)
    return k


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    few = problem["m"] <= parts.SKINNY
    depths = ((256, 512) if few else (128, 256)) if problem["native"] else (64, 128)
    most = 256 if problem["native"] else parts.columns_at_most(device)
    return {
        "BLOCK_M": parts.blocks(problem["m"], 16, 256),
        "BLOCK_N": (16, 32, 64, 128) if few else parts.blocks(problem["n"], 64, most),
        "BLOCK_K": depths,
        "SPLIT_K": parts.splits(problem),
        "GROUP": (8,),
        "num_warps": (1, 2, 4, 8) if few else (4, 8),
        "num_stages": _stages(problem, device),
        "matrix_instr_nonkdim": (16,) if device.limits().wave_lanes == 64 else (0,),
        **(parts.packed(device) if problem["a"] == "bf16" else {}),
    }


def _stages(problem: Problem, device: Device) -> tuple[int, ...]:
    """Scaled products end soon: with many rows three steps in the LDS hide more of the memory."""
    if not device.target.startswith("gfx"):
        return (3,)
    return (2, 3) if problem["native"] and problem["m"] > parts.SKINNY else (2,)


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    rows, columns, depth = settings["BLOCK_M"], settings["BLOCK_N"], settings["BLOCK_K"]
    if problem["native"] or problem["a"] == "bf16":
        step = (rows * _SIZES[problem["a"]] + columns * _SIZES[problem["b"]]) * depth
        staged = step * tiles.buffers(settings, device)
        held = 1
    else:
        staged = (rows + columns) * depth * 2
        held = 2
        if max(rows, columns) * depth > 4096 * settings["num_warps"]:
            return False
    if staged > device.limits().lds_max_per_workgroup:
        return False
    if problem["native"] and rows * columns == 256:
        # scaled matrix instructions: two waves that do the same share the loads
        return settings["num_warps"] == 2 and parts.splits_fit(problem, settings["SPLIT_K"], depth)
    if not parts.shared_out(settings, device, rows, columns, held):
        return False
    return parts.splits_fit(problem, settings["SPLIT_K"], depth)


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    if problem["m"] <= parts.SKINNY:
        weights = problem["n"] * problem["k"] * _SIZES[problem["b"]]
        size = _SIZES[problem["a"]]
        return parts.skinny(problem, settings, device, weights, size, settings["BLOCK_K"])
    names = {"e2m1": "mxfp4", "e4m3": "mxfp8", "e5m2": "mxfp8", "bf16": "bf16"}
    return estimates.tile(
        device,
        settings,
        m=problem["m"],
        n=problem["n"],
        k=problem["k"],
        dtype=names[problem["a"]] if problem["native"] else "bf16",
        rows=settings["BLOCK_M"],
        columns=settings["BLOCK_N"],
        depth=settings["BLOCK_K"],
        splits=settings["SPLIT_K"],
    )


TILES = Space(kernel="matmul_mx_kernel", axes=_axes, fits=_fits, seconds=_seconds, classes=("m",))


def _operand(make: Make, rows: int, k: int, dtype: str) -> torch.Tensor:
    if dtype == "uint8":
        return make.integers((rows, k // 2), 0, 256, "uint8")
    return make.normal((rows, k), dtype, 8.0)


def _inputs(
    make: Make, m: int, n: int, k: int, a: str = "uint8", b: str = "uint8", out: str = "bfloat16"
) -> dict[str, Any]:
    return {
        "a": _operand(make, m, k, a),
        "b": _operand(make, n, k, b),
        "a_scale": make.integers((m, k // 32), 120, 130, "uint8"),
        "b_scale": make.integers((n, k // 32), 120, 130, "uint8"),
        "out_dtype": make.dtype(out),
    }


def _work(
    m: int, n: int, k: int, a: str = "uint8", b: str = "uint8", out: str = "bfloat16"
) -> Work:
    stored = {"uint8": 0.5 + 1 / 32}
    read = (m * stored.get(a, 1 + 1 / 32) + n * stored.get(b, 1 + 1 / 32)) * k
    rate = "fp4" if a == b == "uint8" else "fp8"
    written = m * n * getattr(torch, out).itemsize
    return Work({rate: 2.0 * m * n * k}, read, written, "formula", "formula")


_FP8 = "float8_e4m3fn"
_CASES: tuple[Sizes, ...] = (
    {"m": 5, "n": 33, "k": 288},
    {"m": 70, "n": 100, "k": 512, "out": "float32"},
    {"m": 20, "n": 70, "k": 320, "a": _FP8, "b": _FP8},
    {"m": 40, "n": 50, "k": 256, "a": "float8_e5m2", "b": "uint8", "out": "float16"},
)
_LLAMA = ((10240, 8192), (8192, 28672))

OPERATORS = (
    Operator(
        name="matmul_mx",
        summary="product of operands in mxfp4 and mxfp8",
        call=matmul_mx,
        reference=matmul_mx_reference,
        inputs=_inputs,
        work=_work,
        cases=_CASES,
        thorough=(
            {"m": 1, "n": 90, "k": 1024},
            {"m": 70, "n": 60, "k": 512, "a": "uint8", "b": _FP8},
            {"m": 130, "n": 140, "k": 256, "a": "float8_e5m2", "b": "float8_e5m2"},
        ),
        shapes=(
            *({"m": m, "n": n, "k": k} for n, k in _LLAMA for m in (16, 4096)),
            {"m": 4096, "n": 10240, "k": 8192, "a": _FP8, "b": _FP8},
        ),
        spaces=(TILES, parts.ADD, TURN),
        exact=("a", "b"),
    ),
)
