"""SwiGLU into fp8, with a scale per row or per group of columns: nothing is stored in between."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import gpu
from wavecast.kernels.describe import (
    Axes,
    Batch,
    Demand,
    Device,
    KernelSpec,
    Operator,
    Problem,
    Settings,
    Sizes,
    StreamingKernel,
    Work,
    checks,
    choice,
    widened,
)
from wavecast.kernels.pointwise import gated
from wavecast.kernels.pointwise.elementwise import threads
from wavecast.kernels.pointwise.functions import activated
from wavecast.kernels.quantise.formats import (
    LEAST,
    codes_of,
    constants,
    fp8_name,
    operations,
    sizes_of,
    straddling,
)

_WHOLE_ROW = 16384
"""Columns a program holds at once; longer rows are read twice."""
_SILU = tl.constexpr("silu")
_WIDTHS = (0, 32, 64, 128, 256)


@triton.jit
def product(gate_ptr, up_ptr, offs, mask):
    """silu(gate) · up in float32."""
    gate = tl.load(gate_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    return activated(gate, _SILU) * up


@triton.jit
def at_least(size, least):
    """Absolute values given by their bits, `least` at least."""
    return tl.maximum(size, least.to(tl.uint32, bitcast=True)).to(tl.float32, bitcast=True)


@triton.jit
def silu_mul_token_kernel(
    gate_ptr, up_ptr, codes_ptr, scale_ptr, rows, columns, gate_stride, up_stride, least,
    BLOCK: tl.constexpr, WHOLE: tl.constexpr, WIDE: tl.constexpr,
    KIND: tl.constexpr, MANTISSA: tl.constexpr, BIAS: tl.constexpr, MOST: tl.constexpr,
    NATIVE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) if WIDE else tl.program_id(0)
    gate_ptr += row * gate_stride
    up_ptr += row * up_stride
    codes_ptr += row * columns
    # Lanes take 16 bytes of input in a row, not the 16 codes that stores would rather have.
    offs = tl.max_contiguous(
        tl.arange(0, BLOCK), 128 // gate_ptr.dtype.element_ty.primitive_bitwidth
    )
    most = tl.full((), MOST, tl.float32)
    if WHOLE:
        value = product(gate_ptr, up_ptr, offs, offs < columns)
        largest = at_least(tl.max(sizes_of(value), axis=0), least)
        code = codes_of(value * tl.div_rn(most, largest), KIND, MANTISSA, BIAS, MOST, NATIVE)
        tl.store(codes_ptr + offs, code, mask=offs < columns)
    else:
        found = tl.zeros((BLOCK,), tl.uint32)
        for start in range(0, columns, BLOCK):
            mask = offs < columns - start
            found = tl.maximum(found, sizes_of(product(gate_ptr, up_ptr, start + offs, mask)))
        largest = at_least(tl.max(found, axis=0), least)
        factor = tl.div_rn(most, largest)
        for start in range(0, columns, BLOCK):
            mask = offs < columns - start
            value = product(gate_ptr, up_ptr, start + offs, mask)
            code = codes_of(value * factor, KIND, MANTISSA, BIAS, MOST, NATIVE)
            tl.store(codes_ptr + start + offs, code, mask=mask)
    tl.store(scale_ptr + row, tl.div_rn(largest, most))


@triton.jit
def silu_mul_group_kernel(
    gate_ptr, up_ptr, codes_ptr, scale_ptr, count, columns, groups_per_row,
    gate_stride, up_stride, least,
    GROUPS: tl.constexpr, WIDTH: tl.constexpr, WIDE: tl.constexpr,
    KIND: tl.constexpr, MANTISSA: tl.constexpr, BIAS: tl.constexpr, MOST: tl.constexpr,
    NATIVE: tl.constexpr,
):  # fmt: skip
    """Groups are numbered row by row; those of a row that are cut off are shorter."""
    group = tl.program_id(0) * GROUPS + tl.arange(0, GROUPS)
    row = group // groups_per_row
    if WIDE:
        row = row.to(tl.int64)
    column = (group % groups_per_row * WIDTH)[:, None] + tl.arange(0, WIDTH)[None, :]
    mask = (group < count)[:, None] & (column < columns)
    gate = tl.load(gate_ptr + row[:, None] * gate_stride + column, mask=mask, other=0.0)
    up = tl.load(up_ptr + row[:, None] * up_stride + column, mask=mask, other=0.0)
    value = activated(gate.to(tl.float32), _SILU) * up.to(tl.float32)
    largest = at_least(tl.max(sizes_of(value), axis=1), least)
    most = tl.full((GROUPS,), MOST, tl.float32)
    tl.store(scale_ptr + group, tl.div_rn(largest, most), mask=group < count)
    factor = tl.div_rn(most, largest)[:, None]
    code = codes_of(value * factor, KIND, MANTISSA, BIAS, MOST, NATIVE)
    tl.store(codes_ptr + row[:, None] * columns + column, code, mask=mask)


def _token_axes(problem: Problem, device: Device) -> Axes:
    columns = min(triton.next_power_of_2(problem["columns"]), _WHOLE_ROW)
    whole = problem["columns"] <= _WHOLE_ROW
    return {
        "BLOCK": (columns,) if whole else (1024, 2048, 4096),
        "num_warps": (1, 2, 4, 8, 16, 32) if device.wave_lanes == 32 else (1, 2, 4, 8, 16),
        "num_stages": (1,),
    }


def _token_fits(problem: Problem, settings: Settings, device: Device) -> bool:
    """Many elements in a lane leave too few waves to hide their loads."""
    return settings["BLOCK"] <= 32 * threads(settings, device)


def _token_demand(problem: Problem, settings: Settings, device: Device) -> StreamingKernel:
    rows, columns = problem["rows"], problem["columns"]
    passes = 1 if columns <= _WHOLE_ROW else 2
    each = operations(problem["kind"], device) + 14.0 * passes
    return StreamingKernel(
        workgroups=rows,
        read=2 * rows * columns * problem["bytes"] * passes,
        written=rows * columns,
        elements=settings["BLOCK"],
        instructions=each * triton.cdiv(columns, settings["BLOCK"]),
        live_registers=4.0,
    )


def _group_fits(problem: Problem, settings: Settings, device: Device) -> bool:
    return 512 <= settings["GROUPS"] * problem["width"] <= 8192


def _group_demand(problem: Problem, settings: Settings, device: Device) -> Demand:
    elements, total = (n * problem["width"] for n in (settings["GROUPS"], problem["groups"]))
    found = StreamingKernel(
        workgroups=triton.cdiv(problem["groups"], settings["GROUPS"]),
        read=2 * total * problem["bytes"],
        written=total,
        elements=elements,
        instructions=16.0 + operations(problem["kind"], device),
        live_registers=4.0,
    )
    return found.slowed(straddling(elements, problem, settings, device))


TOKEN = KernelSpec(
    function=silu_mul_token_kernel,
    grid=lambda problem, settings: (problem["rows"],),
    axes=_token_axes,
    fits=_token_fits,
    demand=_token_demand,
    rounded=("rows",),
)
GROUP = KernelSpec(
    function=silu_mul_group_kernel,
    grid=lambda problem, settings: (triton.cdiv(problem["groups"], settings["GROUPS"]),),
    axes={"GROUPS": (4, 8, 16, 32, 64, 128), "num_warps": (4, 8), "num_stages": (1,)},
    fits=_group_fits,
    demand=_group_demand,
    rounded=("groups",),
)


def silu_mul_quantised(
    x: Tensor,
    up: Tensor | None = None,
    dtype: torch.dtype = torch.float8_e4m3fn,
    group: int = 0,
) -> tuple[Tensor, Tensor]:
    """`silu_mul(x, up)` of float32 precision in fp8: `silu(gate) · up ≈ codes.float() * scale`.

    `x` and `up` as for `silu_mul`; `dtype` an fp8 dtype. With `group` 0 each row has a scale, else
    each `group` (32, 64, 128, 256) columns, the last of a row perhaps fewer. Returns codes
    [..., columns] and scales of float32, [..., 1] or [..., ceil(columns / group)], as
    `quantise_fp8_token` and `quantise_fp8_group` do. Raises ArgumentError.
    """
    name = "silu_mul_quantised"
    columns = gated.check(name, x, up)
    kind = fp8_name(name, dtype)
    known = ", ".join(map(str, _WIDTHS))
    checks.require(group in _WIDTHS, name, f"groups of {group}; it takes {known}")
    groups_per_row = triton.cdiv(columns, group) if group else 1
    codes = torch.empty((*x.shape[:-1], columns), dtype=dtype, device=x.device)
    scale = torch.empty((*x.shape[:-1], groups_per_row), dtype=torch.float32, device=x.device)
    if not codes.numel():
        return codes, scale.fill_(LEAST / torch.finfo(dtype).max)
    gate, other = gated.halves(x, up, columns)
    given = {
        "gate": gate,
        "up": other,
        "codes": codes.view(torch.uint8),
        "scale": scale,
        "gate_stride": gate.stride(0),
        "up_stride": other.stride(0),
        "least": LEAST,
        **constants(kind, gpu.launching()),
    }
    problem = {"columns": columns, "bytes": x.element_size(), "kind": kind}
    if group:
        problem |= {"groups": scale.numel(), "width": group}
        count = {"count": scale.numel(), "groups_per_row": groups_per_row}
        choice.run(GROUP, problem, **given, **count, WIDTH=group)
    else:
        problem |= {"rows": gate.shape[0]}
        choice.run(TOKEN, problem, **given, WHOLE=columns <= _WHOLE_ROW)
    return codes, scale


def silu_mul_quantised_reference(x, up=None, dtype=torch.float8_e4m3fn, group=0):
    """In float32 at least, by PyTorch's cast."""
    gate, other = x.chunk(2, dim=-1) if up is None else (x, up)
    value = torch.nn.functional.silu(widened(gate)) * widened(other)
    columns, most = value.shape[-1], torch.finfo(dtype).max
    width = group or max(columns, 1)
    groups_per_row = (columns + width - 1) // width if group else 1
    padded = torch.nn.functional.pad(value, (0, groups_per_row * width - columns))
    parts = padded.reshape(*value.shape[:-1], groups_per_row, width)
    largest = parts.abs().amax(-1, keepdim=True).clamp_min(LEAST)
    scaled = (parts * (torch.full_like(largest, most) / largest)).clamp(-most, most)
    codes = scaled.reshape(padded.shape)[..., :columns].to(dtype)
    return codes.contiguous(), (largest / most).squeeze(-1).float().contiguous()


def near_codes(got: Sequence[Tensor], expected: Sequence[Tensor], sizes: Sizes) -> str:
    """What differs: scales by more than 1e-5 of them, any code by more than a step, or more than 1
    in 50 codes at all (those whose values lie between two of them are rounded either way)."""
    del sizes
    for index, (mine, right) in enumerate(zip(got, expected, strict=True)):
        if mine.dtype != right.dtype or mine.shape != right.shape:
            return f"result {index} is {mine.dtype} {tuple(mine.shape)}, expected {right.shape}"
    (codes, scale), (right_codes, right_scale) = got, expected
    if not torch.allclose(scale, right_scale, rtol=1e-5, atol=0.0, equal_nan=True):
        return f"scales are off by up to {float((scale / right_scale - 1).abs().max()):.3g}"
    mine, right = codes.double(), right_codes.double()
    form = torch.finfo(codes.dtype)
    step = (right.abs() * form.eps).clamp_min(form.smallest_normal * form.eps)
    differing = (mine != right) & ~(mine.isnan() & right.isnan())
    if bool((differing & ~((mine - right).abs() <= step)).any()):
        return f"{int((mine - right).abs().gt(step).sum())} codes are off by more than a step"
    if int(differing.sum()) > 2 + mine.numel() // 50:
        return f"{int(differing.sum())} of {mine.numel()} codes are off by a step"
    return ""


def _inputs(make, rows, columns, dtype, to, group=0, pair=False):
    width = columns if pair else 2 * columns
    return {
        "x": make.normal((rows, width), dtype, 2.0),
        "up": make.normal((rows, width), dtype) if pair else None,
        "dtype": make.dtype(to),
        "group": group,
    }


def _work(rows, columns, dtype, group=0, **_):
    size = getattr(torch, dtype).itemsize
    scales = 4.0 * rows * (triton.cdiv(columns, group) if group else 1)
    flops = {"vector_fp32": 8.0 * rows * columns}
    read, written = 2.0 * rows * columns * size, rows * columns + scales
    return Work(flops, read, written, "formula", "formula")


_OCP = {"dtype": "bfloat16", "to": "float8_e4m3fn"}
_FNUZ = {"dtype": "bfloat16", "to": "float8_e4m3fnuz"}

OPERATOR = Operator(
    summary="SwiGLU into fp8 with a scale per row or group",
    call=silu_mul_quantised,
    reference=silu_mul_quantised_reference,
    tensors=gated.TENSORS,
    inputs=_inputs,
    work=_work,
    batch=Batch(("x", "up")),
    cases=(
        {"rows": 5, "columns": 300, **_OCP},
        {"rows": 5, "columns": 300, **_FNUZ, "group": 128},
        {"rows": 3, "columns": 1000, **_OCP, "group": 64, "pair": True},
    ),
    thorough=(
        {"rows": 2, "columns": 17001, **_FNUZ},
        {"rows": 5, "columns": 130, "dtype": "float32", "to": "float8_e5m2", "group": 32},
        {"rows": 5, "columns": 300, "dtype": "float16", "to": "float8_e5m2fnuz", "pair": True},
        {"rows": 5, "columns": 300, **_OCP, "group": 256},
    ),
    shapes=(
        {"rows": 8192, "columns": 14336, **_OCP},
        {"rows": 8192, "columns": 14336, **_FNUZ},
        {"rows": 8192, "columns": 14336, **_OCP, "group": 128},
        {"rows": 8192, "columns": 14336, **_FNUZ, "group": 128},
        {"rows": 64, "columns": 14336, **_OCP, "group": 128},
    ),
    kernels=(TOKEN, GROUP),
    compare=near_codes,
    notes="It has no gradient.",
)
