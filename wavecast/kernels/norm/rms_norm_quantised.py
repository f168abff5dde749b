"""RMS norm whose result is quantised in the same pass: what the next matrix product reads."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import checks, choice, describe
from wavecast.kernels.describe import Sizes, sizes, widened
from wavecast.kernels.norm import rows as norm_rows
from wavecast.kernels.norm.description import signature
from wavecast.kernels.norm.rms_norm import rms_norm_reference
from wavecast.kernels.norm.rows import load_row, load_rows
from wavecast.kernels.quantise import formats
from wavecast.kernels.quantise.common import blocks_of
from wavecast.kernels.quantise.formats import fp8_of, integers_of, sizes_of
from wavecast.kernels.strides import rows_of
from wavecast.launch import gpu

TENSORS = signature("x", "weight", "residual?", results=("q",))
LIMITS = {
    torch.float8_e4m3fn: 448.0,
    torch.float8_e4m3fnuz: 240.0,
    torch.float8_e5m2: 57344.0,
    torch.int8: 127.0,
}
"""Dtypes it quantises to, with the largest value of each."""
_LEAST = tl.constexpr(1e-12)
"""Largest magnitude that a row of zeros is taken to have."""


@triton.jit
def rms_norm_quantised_kernel(
    x_ptr, residual_ptr, weight_ptr, q_ptr, scale_ptr, sum_ptr,
    rows, columns, groups, stride, residual_stride, share, eps, offset,
    BLOCK: tl.constexpr, ROWS: tl.constexpr, GROUP: tl.constexpr, LIMIT: tl.constexpr,
    NATIVE: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    if WIDE:
        row = row.to(tl.int64)
    row_mask = (row < rows)[:, None]
    offs_n = tl.arange(0, BLOCK)
    col_mask = offs_n < columns
    mask = row_mask & col_mask[None, :]
    offs = offs_n[None, :]
    out_row = row[:, None] * columns
    x = load_rows(
        x_ptr, residual_ptr, row[:, None] * stride, row[:, None] * residual_stride, offs, mask
    )
    if sum_ptr is not None:
        tl.store(sum_ptr + out_row + offs, x.to(sum_ptr.dtype.element_ty), mask=mask)
    y = x * tl.rsqrt(tl.sum(x * x, axis=1) * share + eps)[:, None]
    if weight_ptr is not None:
        y *= load_row(weight_ptr, offs_n, col_mask, offset)[None, :]
    if GROUP:
        y = tl.reshape(y, (ROWS, BLOCK // GROUP, GROUP))
        largest = tl.max(sizes_of(y), axis=2).to(tl.float32, bitcast=True)  # pyright: ignore[reportAttributeAccessIssue]
        largest = tl.where(largest < _LEAST, _LEAST, largest)
        group = tl.arange(0, BLOCK // GROUP)[None, :]
        group_mask = row_mask & (group < groups)
        scale = largest * (1.0 / LIMIT)
        tl.store(scale_ptr + row[:, None] * groups + group, scale, mask=group_mask)
        y = tl.reshape(y * (LIMIT / largest)[:, :, None], (ROWS, BLOCK))
    else:
        largest = tl.max(sizes_of(y), axis=1).to(tl.float32, bitcast=True)  # pyright: ignore[reportAttributeAccessIssue]
        largest = tl.where(largest < _LEAST, _LEAST, largest)
        tl.store(scale_ptr + row, largest * (1.0 / LIMIT), mask=row < rows)
        y *= (LIMIT / largest)[:, None]
    if q_ptr.dtype.element_ty == tl.int8:
        q = integers_of(y).to(tl.int8, bitcast=True)
    else:
        q = fp8_of(y, q_ptr.dtype.element_ty, LIMIT, NATIVE)
    tl.store(q_ptr + out_row + offs, q, mask=mask)


_AXES = {
    **norm_rows.rows_axes(norm_rows.WHOLE_ROW, ()),
    "BLOCK": "(max(next_power_of_2(columns), group),)",
    "GROUP": "(group,)",
}
QUANTISED = norm_rows.rows_kernel(
    rms_norm_quantised_kernel, axes=_AXES, contiguous=("weight",), **norm_rows.NORM_DEMAND
)


@TENSORS.checked
def rms_norm_quantised(
    x: Tensor, weight: Tensor | None = None, residual: Tensor | None = None,
    dtype: torch.dtype = torch.float8_e4m3fn, group: int = 0, eps: float = 1e-6,
    offset: float = 0.0,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """(q, scales, s): `rms_norm` of s = x + residual, quantised, so that q · scales is about it.

    `x`, `weight`, `residual`, `eps` and `offset` as in `rms_norm_residual`; of at most 16384
    columns. q is [..., columns] of `dtype`: float8_e4m3fn, float8_e4m3fnuz, float8_e5m2 or int8.
    scales are float32: [..., 1] or [..., groups] with one per `group` neighbouring columns (a
    power of two from 16; the last may be cut off): the largest magnitude over the largest value of
    `dtype`. s, rounded to the dtype of `x` before it is normalised, has no elements without a
    residual; nothing else is rounded before q. What has NaN has a scale of NaN, and codes of NaN
    (int8: 0). Raises ArgumentError.
    """
    name = "rms_norm_quantised"
    columns = x.shape[-1]
    checks.require(dtype in LIMITS, name, f"it does not quantise to {dtype}")
    checks.require(
        columns <= norm_rows.WHOLE_ROW, name, f"{columns} columns are over {norm_rows.WHOLE_ROW}"
    )
    power = group == 0 or (group >= 16 and group & (group - 1) == 0)
    checks.require(power, name, f"group is {group}, expected 0 or a power of two from 16")
    groups = triton.cdiv(columns, group) if group else 1
    q = torch.empty(x.shape, dtype=dtype, device=x.device)
    scales = torch.empty((*x.shape[:-1], groups), dtype=torch.float32, device=x.device)
    total = None if residual is None else torch.empty(x.shape, dtype=x.dtype, device=x.device)
    results = q, scales, x.new_empty((0,)) if total is None else total
    if not x.numel():
        return results
    problem = {
        "rows": x.numel() // columns,
        "columns": columns,
        "bytes": x.element_size(),
        "dtype": str(dtype).removeprefix("torch."),
        "group": group,
        "residual": residual is not None,
        "parameters": int(weight is not None),
    }
    operands = {"x": rows_of(x), "residual": None if residual is None else rows_of(residual)}
    operands |= {"weight": weight, "q": q, "scale": scales, "sum": total}
    numbers = {"groups": groups, "share": 1.0 / columns, "eps": eps, "offset": offset}
    native = formats.conversion(formats.FP8[dtype], gpu.launching()) if dtype in formats.FP8 else ""
    choice.run(QUANTISED, problem, **operands, **numbers, LIMIT=LIMITS[dtype], NATIVE=native)
    return results


def rms_norm_quantised_reference(
    x, weight=None, residual=None, dtype=torch.float8_e4m3fn, group=0, eps=1e-6, offset=0.0
):
    total = x if residual is None else (x + residual).contiguous()
    summed = x.new_empty((0,)) if residual is None else total
    columns, limit = x.shape[-1], LIMITS[dtype]
    if not x.numel():
        groups = -(-columns // group) if group else 1
        scales = torch.empty((*x.shape[:-1], groups), dtype=torch.float32, device=x.device)
        return torch.empty(x.shape, dtype=dtype, device=x.device), scales, summed
    parts = blocks_of(rms_norm_reference(widened(total), weight, eps, offset), group or columns)
    largest = parts.abs().amax(-1).clamp_min(_LEAST.value)
    q = (parts * (limit / largest)[..., None]).clamp(-limit, limit)
    if dtype == torch.int8:
        q = q.round().nan_to_num()
    q = q.flatten(-2)[..., :columns].to(dtype).contiguous()
    return q, (largest / limit).to(torch.float32), summed


def same(got: Any, expected: Any, sizes: Sizes) -> str:
    """Codes may be neighbours where float32 rounds otherwise than float64, which is rare."""
    q, scales, total = got
    right, right_scales, right_total = expected
    if q.dtype != right.dtype or q.shape != right.shape or scales.shape != right_scales.shape:
        return "dtypes or shapes differ"
    if bool(((scales - right_scales).abs() > 2e-6 * right_scales).any()):
        return "scales differ"
    if total.shape != right_total.shape or not torch.equal(total, right_total.to(total.dtype)):
        return "sums differ"
    apart = (_order(q) - _order(right)).abs()
    if int(apart.max()) > 1:
        return f"{int((apart > 1).sum())} of {q.numel()} are more than one code away"
    wrong = int((apart != 0).sum())
    return f"{wrong} of {q.numel()} codes differ" if wrong > 1 + q.numel() // 100 else ""


def _order(q: Tensor) -> Tensor:
    """Codes as numbers in the order of their values."""
    if q.dtype == torch.int8:
        return q.int()
    code = q.view(torch.uint8).int()
    return torch.where(code >= 128, 128 - code, code)


def _inputs(make, to="float8_e4m3fn", residual=True, **sizes):
    make_inputs = TENSORS.inputs(options={"to": "dtype"})
    return make_inputs(make, to=to, residual=residual, **sizes)


def _work(rows, columns, dtype, residual=True, **_):
    size, count = getattr(torch, dtype).itemsize, rows * columns
    written = count * (1 + size * residual)
    flops = {"vector_fp32": 8.0 * count}
    return describe.Work(flops, count * size * (1 + residual), written, "formula", "formula")


_SIZES = "rows columns dtype"
OPERATOR = describe.Operator(
    summary="addition, root mean square normalisation and quantisation in one pass",
    call=rms_norm_quantised,
    inputs=_inputs,
    work=_work,
    batch=describe.Batch(("x", "residual"), unless=lambda residual=None, **_: residual is None),
    cases=(
        *sizes(_SIZES, (5, 300, "bfloat16")),
        *sizes(f"{_SIZES} group", (3, 300, "float16", 128)),
        *sizes(f"{_SIZES} to residual", (9, 100, "float32", "int8", False)),
        *sizes(f"{_SIZES} to", (2, 7168, "bfloat16", "float8_e4m3fnuz")),
    ),
    thorough=(
        *sizes(f"{_SIZES} to group", (3, 100, "bfloat16", "float8_e5m2", 32)),
        *sizes(f"{_SIZES} to group", (3, 20, "float32", "int8", 64)),
        *sizes(f"{_SIZES} weight", (3, 100, "bfloat16", False)),
        *sizes(f"{_SIZES} offset", (3, 100, "bfloat16", 1.0)),
        *sizes(f"{_SIZES} to group", (70, 128, "bfloat16", "float8_e4m3fnuz", 16)),
    ),
    shapes=(
        *sizes(f"{_SIZES} group", (8192, 4096, "bfloat16"), (8192, 8192, "bfloat16", 128)),
        *sizes(f"{_SIZES} to", (8192, 8192, "bfloat16", "float8_e4m3fnuz")),
        *sizes(f"{_SIZES} to residual", (8192, 4096, "bfloat16", "int8", False)),
        *sizes(f"{_SIZES} group", (64, 7168, "bfloat16", 128)),
    ),
    compare=same,
    exact=("x", "residual"),
)
