"""Quantisation to fp8 with a scale per group of columns."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import gpu
from wavecast.kernels.describe import (
    Batch,
    Demand,
    Device,
    KernelSpec,
    Operator,
    Problem,
    Settings,
    Signature,
    Sizes,
    StreamingKernel,
    Work,
    checks,
    choice,
    widened,
)
from wavecast.kernels.quantise.equal import same_codes
from wavecast.kernels.quantise.formats import (
    LEAST,
    codes_of,
    constants,
    fp8_name,
    operations,
    sizes_of,
    straddling,
)
from wavecast.kernels.strides import adjacent

_WIDTHS = (32, 64, 128, 256)
"""Columns of a group."""
TENSORS = Signature("x: [..., columns] float")


@triton.jit
def quantise_group_kernel(
    x_ptr, codes_ptr, scale_ptr, count, columns, groups_per_row, stride, least,
    GROUPS: tl.constexpr, WIDTH: tl.constexpr, POWERS: tl.constexpr, WIDE: tl.constexpr,
    KIND: tl.constexpr, MANTISSA: tl.constexpr, BIAS: tl.constexpr, MOST: tl.constexpr,
    NATIVE: tl.constexpr,
):  # fmt: skip
    """Groups are numbered row by row; those of a row that are cut off are shorter."""
    group = tl.program_id(0).to(tl.int64) * GROUPS + tl.arange(0, GROUPS)
    if not WIDE:
        group = group.to(tl.int32)
    row = group // groups_per_row
    start = (group % groups_per_row) * WIDTH
    column = start[:, None] + tl.arange(0, WIDTH)[None, :]
    mask = (group < count)[:, None] & (column < columns)
    x = tl.load(x_ptr + row[:, None] * stride + column, mask=mask, other=0.0).to(tl.float32)
    largest = tl.maximum(tl.max(sizes_of(x), axis=1), least.to(tl.uint32, bitcast=True))
    largest = largest.to(tl.float32, bitcast=True)
    most = tl.full((GROUPS,), MOST, tl.float32)
    scale = tl.div_rn(largest, most)
    if POWERS:
        power = ((scale.to(tl.uint32, bitcast=True) + 0x7FFFFF) >> 23) << 23
        power = tl.where(scale < float("inf"), power, 0x7FC00000)
        scale = power.to(tl.float32, bitcast=True)
        factor = ((254 << 23) - power).to(tl.float32, bitcast=True)
        factor = tl.where(scale != scale, scale, factor)
    else:
        factor = tl.div_rn(most, largest)
    tl.store(scale_ptr + group, scale, mask=group < count)
    code = codes_of(x * factor[:, None], KIND, MANTISSA, BIAS, MOST, NATIVE)
    tl.store(codes_ptr + row[:, None] * columns + column, code, mask=mask)


def _fits(problem: Problem, settings: Settings, device: Device) -> bool:
    return 512 <= settings["GROUPS"] * problem["width"] <= 16384


def _demand(problem: Problem, settings: Settings, device: Device) -> Demand:
    elements, total = (n * problem["width"] for n in (settings["GROUPS"], problem["groups"]))
    found = StreamingKernel(
        workgroups=triton.cdiv(problem["groups"], settings["GROUPS"]),
        read=total * problem["bytes"],
        written=total,
        elements=elements,
        instructions=2.0 + operations(problem["kind"], device),
        live_registers=2.0,
    )
    return found.slowed(straddling(elements, problem, settings, device))


GROUP = KernelSpec(
    function=quantise_group_kernel,
    grid=lambda problem, settings: (triton.cdiv(problem["groups"], settings["GROUPS"]),),
    axes={"GROUPS": (4, 8, 16, 32, 64, 128), "num_warps": (4, 8), "num_stages": (1,)},
    fits=_fits,
    demand=_demand,
    rounded=("groups",),
)


@TENSORS.checked
def quantise_fp8_group(
    x: Tensor,
    dtype: torch.dtype = torch.float8_e4m3fn,
    group: int = 128,
    powers: bool = False,
) -> tuple[Tensor, Tensor]:
    """Groups of columns in fp8, each with a scale of its own.

    `x` is [..., columns] of float32, float16 or bfloat16; `dtype` an fp8 dtype with greatest value
    `most`; `group` 32, 64, 128 or 256 (the last group of a row may be shorter). Returns codes
    [..., columns] of `dtype` and scales [..., ceil(columns / group)] of float32: with `largest` the
    largest absolute value of a group, 2^-100 at least, the scale is `largest / most` and codes are
    `x * (most / largest)` in float32, saturated and rounded to nearest, ties to even. With
    `powers` the scale is the power of two above or equal, and codes are `x / scale`. A group with
    NaN has NaN everywhere. Raises ArgumentError.
    """
    operator = "quantise_fp8_group"
    kind = fp8_name(operator, dtype)
    checks.require(group in _WIDTHS, operator, f"groups of {group}; it takes 32, 64, 128 and 256")
    columns = x.shape[-1]
    groups_per_row = triton.cdiv(columns, group)
    codes = torch.empty(x.shape, dtype=dtype, device=x.device)
    scale = torch.empty((*x.shape[:-1], groups_per_row), dtype=torch.float32, device=x.device)
    if not x.numel():
        return codes, scale
    flat = adjacent(x.reshape(-1, columns))
    count = scale.numel()
    choice.run(
        GROUP,
        {"groups": count, "width": group, "bytes": x.element_size(), "kind": kind},
        x=flat,
        codes=codes.view(torch.uint8),
        scale=scale,
        count=count,
        columns=columns,
        groups_per_row=groups_per_row,
        stride=flat.stride(0),
        least=LEAST,
        WIDTH=group,
        POWERS=powers,
        **constants(kind, gpu.launching()),
    )
    return codes, scale


def quantise_fp8_group_reference(x, dtype=torch.float8_e4m3fn, group=128, powers=False):
    """In float32 at least, by PyTorch's cast."""
    most = torch.finfo(dtype).max
    wide = widened(x)
    columns = x.shape[-1]
    groups_per_row = (columns + group - 1) // group
    padded = torch.nn.functional.pad(wide, (0, groups_per_row * group - columns))
    parts = padded.reshape(*x.shape[:-1], groups_per_row, group)
    largest = parts.abs().amax(-1, keepdim=True).clamp_min(LEAST)
    scale = largest / most
    if powers:
        mantissa, exponent = torch.frexp(scale)
        exponent = torch.where(mantissa == 0.5, exponent - 1, exponent)
        power = torch.ldexp(torch.ones_like(scale), exponent)
        scale = torch.where(scale.isfinite(), power, torch.nan)
        scaled = parts / scale
    else:
        scaled = parts * (torch.full_like(largest, most) / largest)
    codes = scaled.clamp(-most, most).reshape(padded.shape)[..., :columns].to(dtype)
    return codes.contiguous(), scale.squeeze(-1).float().contiguous()


def _inputs(make, rows, columns, dtype, to, group=128, powers=False):
    x = make.normal((rows, columns), dtype)
    return {"x": x, "dtype": make.dtype(to), "group": group, "powers": powers}


def _work(rows, columns, dtype, group=128, **_):
    size = getattr(torch, dtype).itemsize
    flops = {"vector_fp32": 2.0 * rows * columns}
    written = rows * columns + 4.0 * rows * triton.cdiv(columns, group)
    return Work(flops, rows * columns * size, written, "formula", "formula")


_OCP = {"dtype": "bfloat16", "to": "float8_e4m3fn"}
_FNUZ = {"dtype": "bfloat16", "to": "float8_e4m3fnuz"}
_CASES: tuple[Sizes, ...] = (
    {"rows": 5, "columns": 300, **_OCP},
    {"rows": 3, "columns": 17, "dtype": "float32", "to": "float8_e4m3fn", "powers": True},
    {"rows": 33, "columns": 256, "dtype": "float16", "to": "float8_e4m3fnuz"},
    {"rows": 7, "columns": 1000, "dtype": "bfloat16", "to": "float8_e5m2", "group": 64},
)

OPERATORS = (
    Operator(
        summary="groups of columns in fp8 with a scale each",
        call=quantise_fp8_group,
        reference=quantise_fp8_group_reference,
        tensors=TENSORS,
        inputs=_inputs,
        work=_work,
        batch=Batch(("x",)),
        cases=_CASES,
        thorough=(
            {"rows": 5, "columns": 300, **_FNUZ, "group": 32, "powers": True},
            {"rows": 5, "columns": 300, "dtype": "float32", "to": "float8_e5m2fnuz", "group": 256},
            {"rows": 5, "columns": 300, "dtype": "float16", "to": "float8_e5m2", "powers": True},
        ),
        shapes=(
            {"rows": 8192, "columns": 4096, **_OCP},
            {"rows": 64, "columns": 7168, **_OCP},
            {"rows": 8192, "columns": 4096, **_FNUZ},
            {"rows": 64, "columns": 7168, **_FNUZ},
        ),
        kernels=(GROUP,),
        exact=("x",),
        compare=same_codes,
    ),
)
