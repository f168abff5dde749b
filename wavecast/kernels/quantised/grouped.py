"""Products of groups of rows with a matrix each, whose sizes only the GPU knows."""

import functools
from collections.abc import Mapping
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast import dtypes
from wavecast.kernels import checks, choice, describe, tiles
from wavecast.kernels.describe import Axes, Demand, Device, Make, Problem, Settings, sizes
from wavecast.kernels.quantised import parts
from wavecast.kernels.strides import adjacent
from wavecast.kernels.tiles import store_tile, tile_of

TENSORS, PLAIN = (
    describe.Signature(
        "a: [m, k] half",
        f"b: [groups, {matrix}] =a",
        "offsets: [groups + 1] int32|int64",
        returns=("out: [m, n] =a",),
    )
    for matrix in ("n, k", "k, n")
)
"""With `transposed` matrices, and without."""
OUTER_TENSORS = describe.Signature(
    "a: [rows, m] half",
    "b: [rows, n] =a",
    "offsets: [groups + 1] int32|int64",
    returns=("out: [groups, m, n] =a",),
)


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
    pid_m, pid_n = tile_of(tl.program_id(0), down, across, GROUP, XCDS)
    ids = tl.arange(0, LISTED)
    starts = tl.load(offsets_ptr + ids, mask=ids < groups, other=0).to(tl.int32)
    ends = tl.load(offsets_ptr + ids + 1, mask=ids < groups, other=0).to(tl.int32)
    tiles_per_group = (ends - starts + BLOCK_M - 1) // BLOCK_M
    tiles_through = tl.cumsum(tiles_per_group, 0)
    group = tl.sum((tiles_through <= pid_m).to(tl.int32), 0)
    group = tl.minimum(group, groups)
    first_tile = tl.sum(tl.where(ids < group, tiles_per_group, 0), 0)
    in_group = group < groups
    start = tl.load(offsets_ptr + group).to(tl.int32)
    end = tl.load(offsets_ptr + group + 1, mask=in_group, other=0).to(tl.int32)
    end = tl.where(in_group, end, M)
    first = start + (pid_m - first_tile) * BLOCK_M
    if first >= end:
        return
    offs_m = first + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    a_rows = tl.minimum(offs_m, M - 1)
    b_columns = offs_n if N_EVEN else tl.minimum(offs_n, N - 1)
    matrix = tl.minimum(group, groups - 1)
    if WIDE:
        a_rows, b_columns, matrix = a_rows.to(tl.int64), b_columns.to(tl.int64), matrix.to(tl.int64)
        offs_m, offs_n = offs_m.to(tl.int64), offs_n.to(tl.int64)
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + a_rows[:, None] * a_row + offs_k[None, :]
    b_ptrs = b_ptr + matrix * b_group + offs_k[:, None] * b_step + b_columns[None, :] * b_column
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(tl.cdiv(K, BLOCK_K)):
        if K_EVEN:
            a = tl.load(a_ptrs)
            b = tl.load(b_ptrs)
        else:
            k_mask = offs_k < K - step * BLOCK_K
            a = tl.load(a_ptrs, mask=k_mask[None, :], other=0.0)
            b = tl.load(b_ptrs, mask=k_mask[:, None], other=0.0)
        acc = tl.dot(a, b, acc, out_dtype=tl.float32)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * b_step
    acc = tl.where(in_group, acc, 0.0)
    mask = (offs_m < end)[:, None] & (offs_n < N)[None, :]
    offs = offs_m[:, None] * N + offs_n[None, :]
    store_tile(out_ptr, offs, acc, mask)


@triton.jit
def grouped_outer_kernel(
    a_ptr, b_ptr, offsets_ptr, out_ptr, M, N, a_row, b_row,
    WIDE: tl.constexpr, XCDS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """out[g] [M, N] is a[g].T @ b[g], with a [rows, M] and b [rows, N] of the group's rows."""
    down = tl.cdiv(M, BLOCK_M)
    across = tl.cdiv(N, BLOCK_N)
    pid_m, pid_n = tile_of(tl.program_id(0), down, across, GROUP, XCDS)
    group = tl.program_id(1)
    start = tl.load(offsets_ptr + group).to(tl.int32)
    end = tl.load(offsets_ptr + group + 1).to(tl.int32)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    if WIDE:
        group = group.to(tl.int64)
        offs_m, offs_n = offs_m.to(tl.int64), offs_n.to(tl.int64)
        offs_k = offs_k.to(tl.int64)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(start, end, BLOCK_K):
        offs = step + offs_k
        k_mask = offs < end
        a = tl.load(
            a_ptr + offs_m[:, None] + offs[None, :] * a_row,
            mask=(offs_m < M)[:, None] & k_mask[None, :],
            other=0.0,
        )
        b = tl.load(
            b_ptr + offs[:, None] * b_row + offs_n[None, :],
            mask=k_mask[:, None] & (offs_n < N)[None, :],
            other=0.0,
        )
        acc = tl.dot(a, b, acc, out_dtype=tl.float32)
    mask = (offs_m < M)[:, None] & (offs_n < N)[None, :]
    offs = offs_m[:, None] * N + offs_n[None, :]
    store_tile(out_ptr + group * M * N, offs, acc, mask)


def grouped_matmul(a: Tensor, b: Tensor, offsets: Tensor, transposed: bool = True) -> Tensor:
    """Rows of `a` times the matrix of their group, as experts of a mixture have them.

    `a` is [M, K] with its rows sorted by group; `b` [G, N, K] (`transposed`, as `nn.Linear` keeps
    weights) or [G, K, N], of the same dtype, bfloat16 or float16, with any strides. `offsets`
    [G + 1] of int32 or int64 on the same GPU says where groups begin and end: rows `offsets[g]` to
    `offsets[g + 1]` belong to group g; it begins with 0, does not fall and is at most M, which is
    not checked, so that nothing waits for the GPU. Returns [M, N] in the dtype of `a`, with zeros
    in rows beyond the last group. Raises ArgumentError.
    """
    signature = TENSORS if transposed else PLAIN
    tensors = {"a": a, "b": b, "offsets": offsets}
    bound = signature.check("grouped_matmul", tensors)
    out = signature.empty(tensors, bound)
    n, k, groups = bound["n"], bound["k"], bound["groups"]
    if not out.numel() or not k or not groups:
        return out.zero_()
    a = adjacent(a)
    if 1 not in b.stride()[1:]:
        b = b.contiguous()
    b_step, b_column = b.stride()[:0:-1] if transposed else b.stride()[1:]
    problem = {
        **_problem(a, n, k, groups, checks.wide(a, b, out)),
        "along_k": b_step == 1,
        "even": k % 64 == 0 and n % 256 == 0,
    }
    tensors |= {"a": a, "b": b, "out": out}
    strides = {"b_group": b.stride(0), "b_step": b_step, "b_column": b_column}
    even = {"N_EVEN": n % 256 == 0, "K_EVEN": k % 64 == 0}
    choice.run(TILES, problem, **tensors, **strides, **even, LISTED=triton.next_power_of_2(groups))
    return out


def grouped_matmul_reference(a, b, offsets, transposed=True):
    wide = a.to(describe.wide_dtype(a))
    matrices = b.to(wide.dtype).mT if transposed else b.to(wide.dtype)
    y = wide.new_zeros((a.shape[0], matrices.shape[2]))
    for group in range(b.shape[0]):
        y = y + _rows_of(wide, offsets, group) @ matrices[group]
    return y.to(a.dtype).contiguous()


def grouped_outer(a: Tensor, b: Tensor, offsets: Tensor) -> Tensor:
    """`a[rows].T @ b[rows]` over the rows of each group: the gradient of a grouped product with
    respect to its matrices.

    `a` is [rows, M] and `b` [rows, N] of one dtype, bfloat16 or float16, with rows sorted by group;
    `offsets` [G + 1] as `grouped_matmul` takes it. Returns [G, M, N] in the dtype of `a`, summed in
    float32; an empty group has zeros. Raises ArgumentError.
    """
    tensors = {"a": a, "b": b, "offsets": offsets}
    checks.require(offsets.numel() > 0, "grouped_outer", "offsets is empty, expected G + 1")
    bound = OUTER_TENSORS.check("grouped_outer", tensors, groups=offsets.numel() - 1)
    out = OUTER_TENSORS.empty(tensors, bound)
    if not out.numel() or not bound["rows"]:
        return out.zero_()
    a, b = adjacent(a), adjacent(b)
    groups, m, n = out.shape
    problem = _problem(a, n, a.shape[0], groups, checks.wide(a, b, out)) | {"m": m}
    choice.run(OUTER, problem, a=a, b=b, offsets=offsets, out=out)
    return out


def grouped_outer_reference(a, b, offsets):
    wide, other = a.to(describe.wide_dtype(a)), b.to(describe.wide_dtype(a))
    groups = range(offsets.shape[0] - 1)
    products = [_rows_of(wide, offsets, group).T @ other for group in groups]
    y = torch.stack(products) if products else wide.new_zeros((0, a.shape[1], b.shape[1]))
    return y.to(a.dtype).contiguous()


def _rows_of(a: Tensor, offsets: Tensor, group: int) -> Tensor:
    """`a` with zeros in the rows of other groups."""
    row = torch.arange(a.shape[0], device=a.device)[:, None]
    return torch.where((row >= offsets[group]) & (row < offsets[group + 1]), a, 0.0)


def _problem(a: Tensor, n: int, k: int, groups: int, wide: bool) -> dict[str, Any]:
    dtype = describe.short_name(a.dtype)
    return {"m": a.shape[0], "n": n, "k": k, "groups": groups, "dtype": dtype, "wide": wide}


def _axes(problem: Problem, device: Device) -> Axes:
    per_group = triton.cdiv(problem["m"], max(1, problem["groups"]))
    return {
        "BLOCK_M": tiles.blocks(2 * per_group, 16, 256),
        "BLOCK_N": tiles.blocks(problem["n"], 32, parts.most_columns(device)),
        "GROUP": (8,),
        "num_warps": (4, 8) if problem["m"] * problem["n"] >= 4096 else (1, 2),
        "num_stages": (2,) if device.vendor == "amd" else (3,),
        **parts.half_axes(device),
    }


def _outer_axes(problem: Problem, device: Device) -> Axes:
    return {**_axes(problem, device), "BLOCK_M": tiles.blocks(problem["m"], 32, 256)}


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    rows, columns, depth = (settings[f"BLOCK_{axis}"] for axis in "MNK")
    staged = (rows + columns) * depth * 2 * tiles.buffers(settings, device)
    if staged > device.limits().lds_max_per_workgroup:
        return False
    if rows * columns > 8192 * settings["num_warps"]:
        return False
    return parts.fits_lanes(settings, device, 1)


def _demand(problem: Problem, settings: Settings, device: Device) -> Demand:
    number = problem["groups"]
    each, more = divmod(problem["m"], number)
    groups = tuple(each + (group < more) for group in range(number))
    return parts.tiled_product(
        problem, settings, problem["dtype"], settings["BLOCK_K"], groups=groups
    )


def _outer_demand(problem: Problem, settings: Settings, device: Device) -> Demand:
    groups, dtype = problem["groups"], problem["dtype"]
    k = max(1, problem["k"] // groups)
    return parts.tiled_product(problem, settings, dtype, settings["BLOCK_K"], k=k, batch=groups)


_SHARED: dict[str, Any] = {"fits": _fits, "contiguous": ("offsets",)}
TILES = describe.KernelSpec(
    function=grouped_matmul_kernel,
    grid="(cdiv(m, BLOCK_M) + groups) * cdiv(n, BLOCK_N)",
    axes=_axes,
    demand=_demand,
    strides={"a": "a_row"},
    rounded=("m",),
    **_SHARED,
)
OUTER = describe.KernelSpec(
    function=grouped_outer_kernel,
    grid="cdiv(m, BLOCK_M) * cdiv(n, BLOCK_N), groups",
    axes=_outer_axes,
    demand=_outer_demand,
    strides={"a": "a_row", "b": "b_row"},
    rounded=("k",),
    **_SHARED,
)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:3])
    ctx.options = inputs[3:]


def _backward(ctx: Any, dy: Tensor) -> tuple[Any, ...]:
    a, b, offsets = ctx.saved_tensors
    (transposed,) = ctx.options
    da = torch.ops.wavecast.grouped_matmul(dy, b, offsets, not transposed)
    first, second = (dy, a) if transposed else (a, dy)
    return da, torch.ops.wavecast.grouped_outer(first, second, offsets), None, None


def _outer_backward(ctx: Any, dy: Tensor) -> tuple[Any, ...]:
    a, b, offsets = ctx.saved_tensors
    da = torch.ops.wavecast.grouped_matmul(b, dy, offsets, True)
    return da, torch.ops.wavecast.grouped_matmul(a, dy, offsets, False), None


def _offsets(
    make: Make, shape: Any, dtype: Any, sizes: Mapping[str, Any], short: int, even: bool
) -> Tensor:
    """Groups of uneven sizes, or `even` ones; the last `short` rows belong to none."""
    rows, groups = sizes.get("rows", sizes["m"]), sizes["groups"]
    if even:
        return (torch.arange(groups + 1) * (rows // groups)).int().to(make.device)
    end = rows - short
    inner = make.integers((groups - 1,), 0, end + 1, "int64").cpu().sort().values
    ends = torch.tensor([0]), inner, torch.tensor([end])
    return torch.cat(ends).int().to(make.device)


def _inputs(
    make: Make, transposed: bool = True, short: int = 0, even: bool = False, **sizes: Any
) -> dict[str, Any]:
    signature = TENSORS if transposed else PLAIN
    offsets = functools.partial(_offsets, short=short, even=even)
    return {**signature.inputs(offsets=offsets)(make, **sizes), "transposed": transposed}


def _outer_inputs(make: Make, even: bool = False, **sizes: Any) -> dict[str, Any]:
    offsets = functools.partial(_offsets, short=3, even=even)
    return OUTER_TENSORS.inputs(offsets=offsets)(make, **sizes)


def _flops(m: int, n: int, dtype: str, k: int = 0, rows: int = 0, **_: Any) -> dict[str, float]:
    return {dtypes.lookup(dtype).short: 2.0 * m * n * (k or rows)}


_EXPERTS = {"groups": 128, "dtype": "bfloat16", "even": True}

OPERATORS = (
    describe.Operator(
        summary="rows sorted by group times a matrix per group",
        call=grouped_matmul,
        tensors=TENSORS,
        inputs=_inputs,
        flops=_flops,
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
        gradient=describe.Gradient(_setup, _backward),
    ),
    describe.Operator(
        summary="transposed rows of each group times other rows of it",
        call=grouped_outer,
        tensors=OUTER_TENSORS,
        inputs=_outer_inputs,
        flops=_flops,
        cases=sizes(
            "m n rows groups dtype",
            (6, 5, 9, 3, "bfloat16"),
            (70, 150, 200, 3, "bfloat16"),
            (33, 64, 90, 5, "float16"),
        ),
        shapes=({"m": 3072, "n": 4096, "rows": 32768, **_EXPERTS},),
        gradient=describe.Gradient(_setup, _outer_backward),
    ),
)
