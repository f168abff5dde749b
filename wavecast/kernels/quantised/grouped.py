"""Products of groups of rows with a matrix each, whose sizes only the GPU knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, estimates, gpu, tiles
from wavecast.kernels.choice import launch
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Gradient, Operator, Tolerance
from wavecast.kernels.quantised import parts
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.kernels.strides import adjacent
from wavecast.kernels.tiles import store_tile, tile_of
from wavecast.model.bounds import Work

_OPERANDS = (torch.bfloat16, torch.float16)
_OFFSETS = (torch.int32, torch.int64)


@triton.jit
def grouped_matmul_kernel(
    a_ptr, b_ptr, offsets_ptr, out_ptr, M, N, K, groups, a_row, b_group, b_step, b_column,
    N_EVEN: tl.constexpr, K_EVEN: tl.constexpr, WIDE: tl.constexpr,
    XCDS: tl.constexpr, LISTED: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """There are programs for the most tiles that groups can have: cdiv(M, BLOCK_M) + groups down.
    Each finds the group its tile is of by the tiles of those before, or ends; the row of tiles
    after the last writes zeros to rows beyond the last group."""
    down = tl.cdiv(M, BLOCK_M) + groups
    across = tl.cdiv(N, BLOCK_N)
    tile_row, tile_column = tile_of(tl.program_id(0), down, across, GROUP, XCDS)
    listed = tl.arange(0, LISTED)
    starts = tl.load(offsets_ptr + listed, mask=listed < groups, other=0).to(tl.int32)
    ends = tl.load(offsets_ptr + listed + 1, mask=listed < groups, other=0).to(tl.int32)
    heights = (ends - starts + BLOCK_M - 1) // BLOCK_M
    behind = tl.cumsum(heights, 0)
    group = tl.sum((behind <= tile_row).to(tl.int32), 0)
    group = tl.minimum(group, groups)
    before = tl.sum(tl.where(listed < group, heights, 0), 0)
    own = group < groups
    start = tl.load(offsets_ptr + group).to(tl.int32)
    end = tl.load(offsets_ptr + group + 1, mask=own, other=0).to(tl.int32)
    end = tl.where(own, end, M)
    first = start + (tile_row - before) * BLOCK_M
    if first >= end:
        return
    rows = first + tl.arange(0, BLOCK_M)
    columns = tile_column * BLOCK_N + tl.arange(0, BLOCK_N)
    row = tl.minimum(rows, M - 1)
    column = columns if N_EVEN else tl.minimum(columns, N - 1)
    matrix = tl.minimum(group, groups - 1)
    if WIDE:
        row, column, matrix = row.to(tl.int64), column.to(tl.int64), matrix.to(tl.int64)
        rows, columns = rows.to(tl.int64), columns.to(tl.int64)
    place = tl.arange(0, BLOCK_K)
    from_a = a_ptr + row[:, None] * a_row + place[None, :]
    from_b = b_ptr + matrix * b_group + place[:, None] * b_step + column[None, :] * b_column
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(tl.cdiv(K, BLOCK_K)):
        if K_EVEN:
            a = tl.load(from_a)
            b = tl.load(from_b)
        else:
            left = place < K - step * BLOCK_K
            a = tl.load(from_a, mask=left[None, :], other=0.0)
            b = tl.load(from_b, mask=left[:, None], other=0.0)
        total = tl.dot(a, b, total, out_dtype=tl.float32)
        from_a += BLOCK_K
        from_b += BLOCK_K * b_step
    total = tl.where(own, total, 0.0)
    inside = (rows < end)[:, None] & (columns < N)[None, :]
    at = rows[:, None] * N + columns[None, :]
    store_tile(out_ptr, at, total, inside)


@triton.jit
def grouped_outer_kernel(
    a_ptr, b_ptr, offsets_ptr, out_ptr, M, N, a_row, b_row,
    WIDE: tl.constexpr, XCDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """out[g] [M, N] is a[g].T @ b[g], with a [rows, M] and b [rows, N] of the group's rows."""
    down = tl.cdiv(M, BLOCK_M)
    across = tl.cdiv(N, BLOCK_N)
    tile_row, tile_column = tile_of(tl.program_id(0), down, across, GROUP, XCDS)
    group = tl.program_id(1)
    start = tl.load(offsets_ptr + group).to(tl.int32)
    end = tl.load(offsets_ptr + group + 1).to(tl.int32)
    rows = tile_row * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_column * BLOCK_N + tl.arange(0, BLOCK_N)
    place = tl.arange(0, BLOCK_K)
    if WIDE:
        group = group.to(tl.int64)
        rows, columns = rows.to(tl.int64), columns.to(tl.int64)
        place = place.to(tl.int64)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(start, end, BLOCK_K):
        at = step + place
        held = at < end
        a = tl.load(
            a_ptr + rows[:, None] + at[None, :] * a_row,
            mask=(rows < M)[:, None] & held[None, :],
            other=0.0,
        )
        b = tl.load(
            b_ptr + at[:, None] * b_row + columns[None, :],
            mask=held[:, None] & (columns < N)[None, :],
            other=0.0,
        )
        total = tl.dot(a, b, total, out_dtype=tl.float32)
    inside = (rows < M)[:, None] & (columns < N)[None, :]
    at = rows[:, None] * N + columns[None, :]
    store_tile(out_ptr + group * M * N, at, total, inside)


def grouped_matmul(
    a: torch.Tensor, b: torch.Tensor, offsets: torch.Tensor, transposed: bool = True
) -> torch.Tensor:
    """Rows of `a` times the matrix of their group, as experts of a mixture have them.

    `a` is [M, K] with its rows sorted by group; `b` [G, N, K] (`transposed`, as `nn.Linear` keeps
    weights) or [G, K, N], of the same dtype, bfloat16 or float16, with any strides. `offsets`
    [G + 1] of int32 or int64 on the same GPU says where groups begin and end: rows `offsets[g]` to
    `offsets[g + 1]` belong to group g; it begins with 0, does not fall and is at most M, which is
    not checked, so that nothing waits for the GPU. Returns [M, N] in the dtype of `a`, with zeros
    in rows beyond the last group. Raises ArgumentError.
    """
    n = _check("grouped_matmul", a, b, offsets, transposed)
    m, k = a.shape
    groups = b.shape[0]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    if not out.numel() or not k or not groups:
        return out.zero_()
    a = adjacent(a)
    step, column = (b.stride(2), b.stride(1)) if transposed else (b.stride(1), b.stride(2))
    along_k = step == 1
    if not along_k and column != 1:
        b = b.contiguous()
        step, column = (b.stride(2), b.stride(1)) if transposed else (b.stride(1), b.stride(2))
        along_k = step == 1
    wide = checks.wide(a, b, out)
    launch(
        grouped_matmul_kernel,
        lambda s: ((triton.cdiv(m, s["BLOCK_M"]) + groups) * triton.cdiv(n, s["BLOCK_N"]),),
        (
            *(a, b, offsets.contiguous(), out, m, n, k, groups),
            *(a.stride(0), b.stride(0), step, column),
        ),
        TILES,
        {
            **_problem(m, n, k, groups, a, wide),
            "along_k": along_k,
            "even": k % 64 == 0 and n % 256 == 0,
        },
        N_EVEN=n % 256 == 0,
        K_EVEN=k % 64 == 0,
        WIDE=wide,
        XCDS=tiles.xcds(gpu.launching()),
        LISTED=triton.next_power_of_2(groups),
    )
    return out


def grouped_matmul_reference(
    a: torch.Tensor, b: torch.Tensor, offsets: torch.Tensor, transposed: bool = True
) -> torch.Tensor:
    """A product per group, its rows picked by a mask, in float32 at least."""
    kind = torch.promote_types(a.dtype, torch.float32)
    matrices = b.to(kind).mT if transposed else b.to(kind)
    place = torch.arange(a.shape[0], device=a.device)[:, None]
    total = a.new_zeros((a.shape[0], matrices.shape[2]), dtype=kind)
    for group in range(b.shape[0]):
        held = (place >= offsets[group]) & (place < offsets[group + 1])
        total = total + torch.where(held, a.to(kind), 0.0) @ matrices[group]
    return total.to(a.dtype).contiguous()


def grouped_outer(a: torch.Tensor, b: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """`a[rows].T @ b[rows]` over the rows of each group: the gradient of a grouped product with
    respect to its matrices.

    `a` is [rows, M] and `b` [rows, N] of one dtype, bfloat16 or float16, with rows sorted by group;
    `offsets` [G + 1] as `grouped_matmul` takes it. Returns [G, M, N] in the dtype of `a`, summed in
    float32; an empty group has zeros. Raises ArgumentError.
    """
    name = "grouped_outer"
    checks.dtype_in(name, "a", a, _OPERANDS)
    checks.dtype_in(name, "b", b, (a.dtype,))
    checks.shape_is(name, "a", a, (-1, -1))
    checks.shape_is(name, "b", b, (a.shape[0], -1))
    groups = _check_offsets(name, offsets)
    checks.same_device(name, a=a, b=b, offsets=offsets)
    rows, m = a.shape
    n = b.shape[1]
    out = torch.empty((groups, m, n), dtype=a.dtype, device=a.device)
    if not out.numel() or not rows:
        return out.zero_()
    a = adjacent(a)
    b = adjacent(b)
    wide = checks.wide(a, b, out)
    launch(
        grouped_outer_kernel,
        lambda s: (triton.cdiv(m, s["BLOCK_M"]) * triton.cdiv(n, s["BLOCK_N"]), groups),
        (a, b, offsets.contiguous(), out, m, n, a.stride(0), b.stride(0)),
        OUTER,
        _problem(m, n, rows, groups, a, wide),
        WIDE=wide,
        XCDS=tiles.xcds(gpu.launching()),
    )
    return out


def grouped_outer_reference(
    a: torch.Tensor, b: torch.Tensor, offsets: torch.Tensor
) -> torch.Tensor:
    """A product per group, its rows picked by a mask, in float32 at least."""
    kind = torch.promote_types(a.dtype, torch.float32)
    place = torch.arange(a.shape[0], device=a.device)[:, None]
    found = []
    for group in range(offsets.shape[0] - 1):
        held = (place >= offsets[group]) & (place < offsets[group + 1])
        found.append(torch.where(held, a.to(kind), 0.0).T @ b.to(kind))
    total = torch.stack(found) if found else a.new_zeros((0, a.shape[1], b.shape[1]))
    return total.to(a.dtype).contiguous()


def _check(
    name: str, a: torch.Tensor, b: torch.Tensor, offsets: torch.Tensor, transposed: bool
) -> int:
    """Columns of the result."""
    checks.dtype_in(name, "a", a, _OPERANDS)
    checks.dtype_in(name, "b", b, (a.dtype,))
    checks.shape_is(name, "a", a, (-1, -1))
    k = a.shape[1]
    checks.shape_is(name, "b", b, (-1, -1, k) if transposed else (-1, k, -1))
    groups = _check_offsets(name, offsets)
    checks.shape_is(name, "offsets", offsets, (b.shape[0] + 1,))
    checks.require(groups == b.shape[0], name, "offsets do not fit the groups of b")
    checks.same_device(name, a=a, b=b, offsets=offsets)
    return b.shape[1] if transposed else b.shape[2]


def _check_offsets(name: str, offsets: torch.Tensor) -> int:
    """Groups."""
    checks.dtype_in(name, "offsets", offsets, _OFFSETS)
    checks.require(
        offsets.dim() == 1 and len(offsets) > 0, name, "offsets has not one dimension of G + 1"
    )
    return len(offsets) - 1


def _problem(m: int, n: int, k: int, groups: int, a: torch.Tensor, wide: bool) -> dict[str, Any]:
    return {
        "m": m,
        "n": n,
        "k": k,
        "groups": groups,
        "dtype": parts.NAMES[a.dtype],
        "wide": wide,
    }


def _setup(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    a, b, offsets, transposed = inputs
    ctx.save_for_backward(a, b, offsets)
    ctx.transposed = transposed


def _gradient(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
    a, b, offsets = ctx.saved_tensors
    operators = torch.ops.wavecast
    da = operators.grouped_matmul(dy, b, offsets, not ctx.transposed)
    first, second = (dy, a) if ctx.transposed else (a, dy)
    return da, operators.grouped_outer(first, second, offsets), None, None


def _outer_setup(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _outer_gradient(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
    a, b, offsets = ctx.saved_tensors
    operators = torch.ops.wavecast
    da = operators.grouped_matmul(b, dy, offsets, True)
    return da, operators.grouped_matmul(a, dy, offsets, False), None


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    amd = device.target.startswith("gfx")
    per_group = triton.cdiv(problem["m"], max(1, problem["groups"]))
    return {
        "BLOCK_M": parts.blocks(2 * per_group, 16, 256),
        "BLOCK_N": parts.blocks(problem["n"], 32, parts.columns_at_most(device)),
        "GROUP": (8,),
        "num_warps": (4, 8) if problem["m"] * problem["n"] >= 4096 else (1, 2),
        "num_stages": (2,) if amd else (3,),
        **parts.packed(device),
    }


def _outer_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    found = dict(_axes(problem, device))
    found["BLOCK_M"] = parts.blocks(problem["m"], 32, 256)
    return found


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    rows, columns, depth = settings["BLOCK_M"], settings["BLOCK_N"], settings["BLOCK_K"]
    staged = (rows + columns) * depth * 2 * parts.buffers(settings, device)
    if staged > device.limits().lds_max_per_workgroup:
        return False
    if rows * columns > 8192 * settings["num_warps"]:
        return False
    return parts.shared_out(settings, device, rows, columns, 1)


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    groups = problem["groups"]
    each, more = divmod(problem["m"], groups)
    return estimates.tile(
        device,
        settings,
        m=problem["m"],
        n=problem["n"],
        k=problem["k"],
        groups=tuple(each + (number < more) for number in range(groups)),
        dtype=problem["dtype"],
        rows=settings["BLOCK_M"],
        columns=settings["BLOCK_N"],
        depth=settings["BLOCK_K"],
    )


def _outer_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    return estimates.tile(
        device,
        settings,
        m=problem["m"],
        n=problem["n"],
        k=max(1, problem["k"] // problem["groups"]),
        batch=problem["groups"],
        dtype=problem["dtype"],
        rows=settings["BLOCK_M"],
        columns=settings["BLOCK_N"],
        depth=settings["BLOCK_K"],
    )


TILES = Space(
    kernel="grouped_matmul_kernel", axes=_axes, fits=_fits, seconds=_seconds, classes=("m",)
)
OUTER = Space(
    kernel="grouped_outer_kernel",
    axes=_outer_axes,
    fits=_fits,
    seconds=_outer_seconds,
    classes=("k",),
)


def _offsets(make: Make, m: int, groups: int, short: int = 0) -> torch.Tensor:
    """Groups of uneven sizes; the last `short` rows belong to none."""
    inner = make.integers((groups - 1,), 0, m - short + 1, "int64").cpu().sort().values
    ends = torch.tensor([m - short])
    return torch.cat((torch.zeros(1, dtype=torch.int64), inner, ends)).int().to(make.device)


def _even(make: Make, m: int, groups: int) -> torch.Tensor:
    found = torch.arange(groups + 1) * (m // groups)
    return found.int().to(make.device)


def _inputs(
    make: Make,
    m: int,
    n: int,
    k: int,
    groups: int,
    dtype: str,
    transposed: bool = True,
    short: int = 0,
    even: bool = False,
) -> dict[str, Any]:
    shape = (groups, n, k) if transposed else (groups, k, n)
    return {
        "a": make.normal((m, k), dtype),
        "b": make.normal(shape, dtype),
        "offsets": _even(make, m, groups) if even else _offsets(make, m, groups, short),
        "transposed": transposed,
    }


def _outer_inputs(
    make: Make, m: int, n: int, rows: int, groups: int, dtype: str, even: bool = False
) -> dict[str, Any]:
    return {
        "a": make.normal((rows, m), dtype),
        "b": make.normal((rows, n), dtype),
        "offsets": _even(make, rows, groups) if even else _offsets(make, rows, groups, 3),
    }


def _rate(dtype: str) -> str:
    return {"bfloat16": "bf16", "float16": "fp16"}.get(dtype, "fp32")


def _work(
    m: int,
    n: int,
    k: int,
    groups: int,
    dtype: str,
    transposed: bool = True,
    short: int = 0,
    even: bool = False,
) -> Work:
    size = getattr(torch, dtype).itemsize
    read = (m * k + groups * n * k) * size
    return Work({_rate(dtype): 2.0 * m * n * k}, read, m * n * size, "formula", "formula")


def _outer_work(m: int, n: int, rows: int, groups: int, dtype: str, even: bool = False) -> Work:
    size = getattr(torch, dtype).itemsize
    flops = {_rate(dtype): 2.0 * m * n * rows}
    return Work(flops, rows * (m + n) * size, groups * m * n * size, "formula", "formula")


_EXPERTS = {"groups": 128, "dtype": "bfloat16", "even": True}

OPERATORS = (
    Operator(
        name="grouped_matmul",
        summary="rows sorted by group times a matrix per group",
        call=grouped_matmul,
        reference=grouped_matmul_reference,
        inputs=_inputs,
        work=_work,
        cases=(
            {"m": 7, "n": 5, "k": 6, "groups": 3, "dtype": "bfloat16", "short": 1},
            {"m": 90, "n": 150, "k": 100, "groups": 5, "dtype": "bfloat16", "short": 20},
            {"m": 70, "n": 96, "k": 256, "groups": 4, "dtype": "float16", "transposed": False},
        ),
        thorough=(
            {"m": 300, "n": 40, "k": 72, "groups": 2, "dtype": "float16"},
            {"m": 40, "n": 70, "k": 33, "groups": 9, "dtype": "bfloat16", "transposed": False},
        ),
        shapes=({"m": 32768, "n": 3072, "k": 4096, **_EXPERTS},),
        spaces=(TILES,),
        gradient=Gradient(_setup, _gradient),
    ),
    Operator(
        name="grouped_outer",
        summary="transposed rows of each group times other rows of it",
        call=grouped_outer,
        reference=grouped_outer_reference,
        inputs=_outer_inputs,
        work=_outer_work,
        cases=(
            {"m": 6, "n": 5, "rows": 9, "groups": 3, "dtype": "bfloat16"},
            {"m": 70, "n": 150, "rows": 200, "groups": 3, "dtype": "bfloat16"},
            {"m": 33, "n": 64, "rows": 90, "groups": 5, "dtype": "float16"},
        ),
        shapes=({"m": 3072, "n": 4096, "rows": 32768, **_EXPERTS},),
        spaces=(OUTER,),
        tolerance=Tolerance(ulps=1.0, accumulated=2e-6),
        gradient=Gradient(_outer_setup, _outer_gradient),
    ),
)
