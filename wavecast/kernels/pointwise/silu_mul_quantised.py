"""SwiGLU into fp8, with a scale per row or per group of columns: nothing is stored in between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, estimates, gpu
from wavecast.kernels.choice import launch
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Batch, Operator, Sizes
from wavecast.kernels.pointwise import gated
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
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.model.bounds import Work

_WHOLE_ROW = 16384
"""Columns a program holds at once; longer rows are walked twice."""
_SILU = tl.constexpr("silu")
_WIDTHS = (0, 32, 64, 128, 256)


@triton.jit
def product(gate_ptr, up_ptr, place, inside):
    """silu(gate) · up in float32."""
    gate = tl.load(gate_ptr + place, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + place, mask=inside, other=0.0).to(tl.float32)
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
    place = tl.max_contiguous(
        tl.arange(0, BLOCK), 128 // gate_ptr.dtype.element_ty.primitive_bitwidth
    )
    most = tl.full((), MOST, tl.float32)
    if WHOLE:
        value = product(gate_ptr, up_ptr, place, place < columns)
        largest = at_least(tl.max(sizes_of(value), axis=0), least)
        code = codes_of(value * tl.div_rn(most, largest), KIND, MANTISSA, BIAS, MOST, NATIVE)
        tl.store(codes_ptr + place, code, mask=place < columns)
    else:
        found = tl.zeros((BLOCK,), tl.uint32)
        for start in range(0, columns, BLOCK):
            inside = place < columns - start
            found = tl.maximum(found, sizes_of(product(gate_ptr, up_ptr, start + place, inside)))
        largest = at_least(tl.max(found, axis=0), least)
        factor = tl.div_rn(most, largest)
        for start in range(0, columns, BLOCK):
            inside = place < columns - start
            value = product(gate_ptr, up_ptr, start + place, inside)
            code = codes_of(value * factor, KIND, MANTISSA, BIAS, MOST, NATIVE)
            tl.store(codes_ptr + start + place, code, mask=inside)
    tl.store(scale_ptr + row, tl.div_rn(largest, most))


@triton.jit
def silu_mul_group_kernel(
    gate_ptr, up_ptr, codes_ptr, scale_ptr, count, columns, across, gate_stride, up_stride, least,
    GROUPS: tl.constexpr, WIDTH: tl.constexpr, WIDE: tl.constexpr,
    KIND: tl.constexpr, MANTISSA: tl.constexpr, BIAS: tl.constexpr, MOST: tl.constexpr,
    NATIVE: tl.constexpr,
):  # fmt: skip
    """Groups are numbered row by row; those of a row that are cut off are shorter."""
    group = tl.program_id(0) * GROUPS + tl.arange(0, GROUPS)
    row = group // across
    if WIDE:
        row = row.to(tl.int64)
    column = (group % across * WIDTH)[:, None] + tl.arange(0, WIDTH)[None, :]
    inside = (group < count)[:, None] & (column < columns)
    gate = tl.load(gate_ptr + row[:, None] * gate_stride + column, mask=inside, other=0.0)
    up = tl.load(up_ptr + row[:, None] * up_stride + column, mask=inside, other=0.0)
    value = activated(gate.to(tl.float32), _SILU) * up.to(tl.float32)
    largest = at_least(tl.max(sizes_of(value), axis=1), least)
    most = tl.full((GROUPS,), MOST, tl.float32)
    tl.store(scale_ptr + group, tl.div_rn(largest, most), mask=group < count)
    factor = tl.div_rn(most, largest)[:, None]
    code = codes_of(value * factor, KIND, MANTISSA, BIAS, MOST, NATIVE)
    tl.store(codes_ptr + row[:, None] * columns + column, code, mask=inside)


def silu_mul_quantised(
    x: torch.Tensor,
    up: torch.Tensor | None = None,
    dtype: torch.dtype = torch.float8_e4m3fn,
    group: int = 0,
) -> tuple[torch.Tensor, torch.Tensor]:
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
    leading = x.shape[:-1]
    across = triton.cdiv(columns, group) if group else 1
    codes = torch.empty((*leading, columns), dtype=dtype, device=x.device)
    least = LEAST / torch.finfo(dtype).max
    if not codes.numel():
        return codes, torch.full((*leading, across), least, dtype=torch.float32, device=x.device)
    scale = torch.empty((*leading, across), dtype=torch.float32, device=x.device)
    gate, other = gated.halves(x, up, columns)
    rows = gate.shape[0]
    named = {"WIDE": checks.wide(x, up, codes), **constants(kind, gpu.launching())}
    tensors = gate, other, codes.view(torch.uint8), scale
    strides = gate.stride(0), other.stride(0), LEAST
    problem = {"columns": columns, "bytes": x.element_size(), "kind": kind}
    if group:
        count = rows * across
        launch(
            silu_mul_group_kernel,
            lambda settings: (triton.cdiv(count, settings["GROUPS"]),),
            (*tensors, count, columns, across, *strides),
            GROUP,
            {"groups": count, "width": group, **problem},
            WIDTH=group,
            **named,
        )
    else:
        launch(
            silu_mul_token_kernel,
            lambda _: (rows,),
            (*tensors, rows, columns, *strides),
            TOKEN,
            {"rows": rows, **problem},
            WHOLE=columns <= _WHOLE_ROW,
            **named,
        )
    return codes, scale


def silu_mul_quantised_reference(
    x: torch.Tensor,
    up: torch.Tensor | None = None,
    dtype: torch.dtype = torch.float8_e4m3fn,
    group: int = 0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """In float32 at least, by PyTorch's cast."""
    kind = torch.promote_types(x.dtype, torch.float32)
    gate, other = x.chunk(2, dim=-1) if up is None else (x, up)
    value = torch.nn.functional.silu(gate.to(kind)) * other.to(kind)
    columns, most = value.shape[-1], torch.finfo(dtype).max
    width = group or max(columns, 1)
    across = (columns + width - 1) // width if group else 1
    padded = torch.nn.functional.pad(value, (0, across * width - columns))
    parts = padded.reshape(*value.shape[:-1], across, width)
    largest = parts.abs().amax(-1, keepdim=True).clamp_min(LEAST)
    scaled = (parts * (torch.full_like(largest, most) / largest)).clamp(-most, most)
    codes = scaled.reshape(padded.shape)[..., :columns].to(dtype)
    return codes.contiguous(), (largest / most).squeeze(-1).float().contiguous()


def near_codes(got: Sequence[torch.Tensor], expected: Sequence[torch.Tensor], sizes: Sizes) -> str:
    """What differs: scales by more than 1e-5 of them, any code by more than a step, or more than 1
    in 50 codes at all (those whose values lie between two of them are rounded either way)."""
    del sizes
    for place, (mine, right) in enumerate(zip(got, expected, strict=True)):
        if mine.dtype != right.dtype or mine.shape != right.shape:
            return f"result {place} is {mine.dtype} {tuple(mine.shape)}, expected {right.shape}"
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


def _token_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    columns = min(triton.next_power_of_2(problem["columns"]), _WHOLE_ROW)
    whole = problem["columns"] <= _WHOLE_ROW
    warps = (1, 2, 4, 8, 16, 32) if device.limits().wave_lanes == 32 else (1, 2, 4, 8, 16)
    return {
        "BLOCK": (columns,) if whole else (1024, 2048, 4096),
        "num_warps": warps,
        "num_stages": (1,),
    }


def _token_fits(problem: Problem, settings: Settings, device: Device) -> bool:
    """Many elements in a lane leave too few waves to hide their loads."""
    del problem
    lanes = settings["num_warps"] * device.limits().wave_lanes
    return settings["BLOCK"] <= 32 * lanes


def _token_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    rows, columns = problem["rows"], problem["columns"]
    passes = 1 if columns <= _WHOLE_ROW else 2
    codes = operations(problem["kind"], device)
    return estimates.streaming(
        device,
        settings,
        workgroups=rows,
        read=2 * rows * columns * problem["bytes"] * passes,
        written=rows * columns,
        elements=settings["BLOCK"],
        operations=(codes + 14.0 * passes) * triton.cdiv(columns, settings["BLOCK"]),
        held=4.0,
    )


def _group_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    del problem, device
    return {"GROUPS": (4, 8, 16, 32, 64, 128), "num_warps": (4, 8), "num_stages": (1,)}


def _group_fits(problem: Problem, settings: Settings, device: Device) -> bool:
    del device
    return 512 <= settings["GROUPS"] * problem["width"] <= 8192


def _group_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    elements = settings["GROUPS"] * problem["width"]
    total = problem["groups"] * problem["width"]
    return straddling(elements, problem, settings, device) * estimates.streaming(
        device,
        settings,
        workgroups=triton.cdiv(problem["groups"], settings["GROUPS"]),
        read=2 * total * problem["bytes"],
        written=total,
        elements=elements,
        operations=16.0 + operations(problem["kind"], device),
        held=4.0,
    )


TOKEN = Space(
    kernel="silu_mul_token_kernel",
    axes=_token_axes,
    fits=_token_fits,
    seconds=_token_seconds,
    classes=("rows",),
)
GROUP = Space(
    kernel="silu_mul_group_kernel",
    axes=_group_axes,
    fits=_group_fits,
    seconds=_group_seconds,
    classes=("groups",),
)


def _inputs(
    make: Make, rows: int, columns: int, dtype: str, to: str, group: int = 0, pair: bool = False
) -> dict[str, Any]:
    width = columns if pair else 2 * columns
    return {
        "x": make.normal((rows, width), dtype, 2.0),
        "up": make.normal((rows, width), dtype) if pair else None,
        "dtype": make.dtype(to),
        "group": group,
    }


def _work(rows: int, columns: int, dtype: str, group: int = 0, **_: Any) -> Work:
    size = getattr(torch, dtype).itemsize
    scales = 4.0 * rows * (triton.cdiv(columns, group) if group else 1)
    flops = {"vector_fp32": 8.0 * rows * columns}
    read, written = 2.0 * rows * columns * size, rows * columns + scales
    return Work(flops, read, written, "formula", "formula")


_OCP = {"dtype": "bfloat16", "to": "float8_e4m3fn"}
_FNUZ = {"dtype": "bfloat16", "to": "float8_e4m3fnuz"}

OPERATORS = (
    Operator(
        name="silu_mul_quantised",
        summary="SwiGLU into fp8 with a scale per row or group",
        call=silu_mul_quantised,
        reference=silu_mul_quantised_reference,
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
        spaces=(TOKEN, GROUP),
        compare=near_codes,
        notes="It has no gradient.",
    ),
)
