"""Quantisation with a scale per row: fp8 and int8."""

from __future__ import annotations

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
    Signature,
    StreamingKernel,
    Work,
    choice,
    sizes,
    widened,
)
from wavecast.kernels.quantise.equal import same_codes, with_format
from wavecast.kernels.quantise.formats import (
    LEAST,
    codes_of,
    fp8_name,
    integers_of,
    most_of,
    operations,
    rounding,
    sizes_of,
    straddling,
)
from wavecast.kernels.strides import adjacent

_WHOLE_ROW = 8192
"""Columns a program holds at once; longer rows are read twice."""
TENSORS = Signature("x: [..., columns] float")


@triton.jit
def quantise_token_kernel(
    x_ptr, codes_ptr, scale_ptr, owners_ptr, rows, columns, stride, num_owners, least,
    BLOCK: tl.constexpr, ROWS: tl.constexpr, WHOLE: tl.constexpr, WIDE: tl.constexpr,
    KIND: tl.constexpr, MANTISSA: tl.constexpr, BIAS: tl.constexpr, MOST: tl.constexpr,
    NATIVE: tl.constexpr,
):  # fmt: skip
    """Rows whose owner (if `owners_ptr` has them) is none of `num_owners` are left out."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    offs_n = tl.arange(0, BLOCK)
    row_mask = row < rows
    if owners_ptr is not None:
        owner = tl.load(owners_ptr + row, mask=row_mask, other=-1)
        row_mask = (owner >= 0) & (owner < num_owners)
    row_offs = row.to(tl.int64) if WIDE else row
    x_ptrs = x_ptr + row_offs[:, None] * stride + offs_n[None, :]
    codes_ptrs = codes_ptr + row_offs[:, None] * columns + offs_n[None, :]
    if WHOLE:
        mask = row_mask[:, None] & (offs_n < columns)[None, :]
        x = tl.load(x_ptrs, mask=mask, other=0.0).to(tl.float32)
        largest = tl.max(sizes_of(x), axis=1)
    else:
        found = tl.zeros((ROWS, BLOCK), tl.uint32)
        for start in range(0, columns, BLOCK):
            mask = row_mask[:, None] & (start + offs_n < columns)[None, :]
            x = tl.load(x_ptrs + start, mask=mask, other=0.0).to(tl.float32)
            found = tl.maximum(found, sizes_of(x))
        largest = tl.max(found, axis=1)
    largest = tl.maximum(largest, least.to(tl.uint32, bitcast=True)).to(tl.float32, bitcast=True)
    most = tl.full((ROWS,), MOST, tl.float32)
    tl.store(scale_ptr + row, tl.div_rn(largest, most), mask=row_mask)
    factor = tl.div_rn(most, largest)[:, None]
    if WHOLE:
        if KIND == "int8":
            code = integers_of(x * factor)  # pyright: ignore[reportPossiblyUnboundVariable]
        else:
            code = codes_of(x * factor, KIND, MANTISSA, BIAS, MOST, NATIVE)  # pyright: ignore[reportPossiblyUnboundVariable]
        tl.store(codes_ptrs, code, mask=mask)  # pyright: ignore[reportPossiblyUnboundVariable]
    else:
        for start in range(0, columns, BLOCK):
            mask = row_mask[:, None] & (start + offs_n < columns)[None, :]
            x = tl.load(x_ptrs + start, mask=mask, other=0.0).to(tl.float32)
            if KIND == "int8":
                code = integers_of(x * factor)
            else:
                code = codes_of(x * factor, KIND, MANTISSA, BIAS, MOST, NATIVE)
            tl.store(codes_ptrs + start, code, mask=mask)


def _axes(problem: Problem, device: Device) -> Axes:
    columns = min(triton.next_power_of_2(problem["columns"]), _WHOLE_ROW)
    whole = problem["columns"] <= _WHOLE_ROW
    return {
        "BLOCK": (columns,) if whole else (1024, 2048, 4096),
        "ROWS": (1, 2, 4, 8) if columns <= 1024 else (1,),
        "num_warps": (1, 2, 4, 8, 16, 32) if device.wave_lanes == 32 else (1, 2, 4, 8, 16),
        "num_stages": (1,),
    }


def _demand(problem: Problem, settings: Settings, device: Device) -> Demand:
    rows, columns = problem["rows"], problem["columns"]
    passes = 1 if columns <= _WHOLE_ROW else 2
    elements = settings["ROWS"] * settings["BLOCK"]
    each = operations(problem["kind"], device) + 3.0 * (passes - 1)
    found = StreamingKernel(
        workgroups=triton.cdiv(rows, settings["ROWS"]),
        read=rows * columns * problem["bytes"] * passes,
        written=rows * columns,
        elements=elements,
        instructions=each * triton.cdiv(columns, settings["BLOCK"]),
        live_registers=2.0,
    )
    return found.slowed(straddling(elements, problem, settings, device))


TOKEN = KernelSpec(
    function=quantise_token_kernel,
    grid=lambda problem, settings: (triton.cdiv(problem["rows"], settings["ROWS"]),),
    axes=_axes,
    demand=_demand,
    rounded=("rows",),
)


def quantise_fp8_token(
    x: Tensor, dtype: torch.dtype = torch.float8_e4m3fn
) -> tuple[Tensor, Tensor]:
    """Rows in fp8, each with a scale of its own: `x ≈ codes.float() * scale`.

    `x` is [..., columns] of float32, float16 or bfloat16; `dtype` an fp8 dtype with greatest value
    `most`. Returns codes [..., columns] of `dtype` and scales [..., 1] of float32: with `largest`
    the largest absolute value of a row, 2^-100 at least, the scale is `largest / most` and codes
    are `x * (most / largest)` in float32, saturated and rounded to nearest, ties to even. A row
    with NaN has NaN everywhere. Raises ArgumentError.
    """
    return per_row("quantise_fp8_token", x, dtype, fp8_name("quantise_fp8_token", dtype))


def quantise_fp8_token_reference(x, dtype=torch.float8_e4m3fn):
    scaled, scale = _scaled(x, torch.finfo(dtype).max)
    return scaled.to(dtype).contiguous(), scale


def quantise_int8_token(x: Tensor) -> tuple[Tensor, Tensor]:
    """Rows in int8, each with a scale of its own: `x ≈ codes.float() * scale`, no zero point.

    `x` is [..., columns] of float32, float16 or bfloat16. Returns codes [..., columns] from -127 to
    127 and scales [..., 1] of float32: with `largest` the largest absolute value of a row, 2^-100
    at least, the scale is `largest / 127` and codes are `x * (127 / largest)` in float32, rounded
    to nearest, ties to even. A row with NaN has scale NaN and zeros, one with infinity scale
    infinity and zeros. Raises ArgumentError.
    """
    return per_row("quantise_int8_token", x, torch.int8, "int8")


def quantise_int8_token_reference(x):
    scaled, scale = _scaled(x, 127.0)
    return scaled.round().nan_to_num().to(torch.int8).contiguous(), scale


def _scaled(x: Tensor, most: float) -> tuple[Tensor, Tensor]:
    wide = widened(x)
    if not x.shape[-1]:
        return wide, wide.new_full((*x.shape[:-1], 1), LEAST / most, dtype=torch.float32)
    largest = wide.abs().amax(-1, keepdim=True).clamp_min(LEAST)
    factor = torch.full_like(largest, most) / largest  # a number / a tensor rounds twice
    scaled = (wide * factor).clamp(-most, most)
    return scaled, (largest / most).float().contiguous()


def per_row(
    operator: str,
    x: Tensor,
    dtype: torch.dtype,
    kind: str,
    owners: Tensor | None = None,
    count: int = 0,
) -> tuple[Tensor, Tensor]:
    """Codes and scales for `operator`. With `owners`, an int32 per row, rows of those that are none
    of `count` are neither read nor written: a mixture's tokens without an expert."""
    TENSORS.check(operator, {"x": x})
    columns = x.shape[-1]
    codes = torch.empty(x.shape, dtype=dtype, device=x.device)
    scale = torch.empty((*x.shape[:-1], 1), dtype=torch.float32, device=x.device)
    if not x.numel():
        return codes, scale.fill_(LEAST / most_of(kind))
    flat = adjacent(x.reshape(-1, columns))
    problem = {"rows": flat.shape[0], "columns": columns, "bytes": x.element_size(), "kind": kind}
    choice.run(
        TOKEN,
        problem,
        x=flat,
        codes=codes.view(torch.uint8),
        scale=scale,
        owners=owners,
        num_owners=count,
        stride=flat.stride(0),
        least=LEAST,
        WHOLE=columns <= _WHOLE_ROW,
        **rounding(kind, gpu.launching()),
    )
    return codes, scale


def _inputs(make, rows, columns, dtype, to=""):
    given = {"x": make.normal((rows, columns), dtype)}
    return {**given, "dtype": make.dtype(to)} if to else given


def _work(rows, columns, dtype, **_):
    size = getattr(torch, dtype).itemsize
    flops = {"vector_fp32": 2.0 * rows * columns}
    written = rows * columns + 4.0 * rows
    return Work(flops, rows * columns * size, written, "formula", "formula")


_CASES = sizes(
    "rows columns dtype",
    *((5, 300, "bfloat16"), (3, 17, "float32"), (33, 64, "float16"), (2, 9000, "bfloat16")),
)
_SHAPES = sizes("rows columns dtype", (8192, 4096, "bfloat16"), (64, 7168, "bfloat16"))

OPERATORS = (
    Operator(
        summary="rows in fp8 with a scale each",
        call=quantise_fp8_token,
        reference=quantise_fp8_token_reference,
        tensors=TENSORS,
        inputs=_inputs,
        work=_work,
        batch=Batch(("x",)),
        cases=(
            *with_format("float8_e4m3fn", *_CASES[:2]),
            *with_format("float8_e4m3fnuz", _CASES[2]),
            *with_format("float8_e5m2", _CASES[3]),
        ),
        thorough=(
            *with_format("float8_e4m3fnuz", *_CASES),
            *with_format("float8_e5m2", *_CASES[:2]),
            *with_format("float8_e5m2fnuz", *_CASES[:2]),
            *with_format("float8_e4m3fn", _CASES[3]),
        ),
        shapes=(*with_format("float8_e4m3fn", *_SHAPES), *with_format("float8_e4m3fnuz", *_SHAPES)),
        kernels=(TOKEN,),
        exact=("x",),
        compare=same_codes,
    ),
    Operator(
        summary="rows in int8 with a scale each",
        call=quantise_int8_token,
        reference=quantise_int8_token_reference,
        tensors=TENSORS,
        inputs=_inputs,
        work=_work,
        batch=Batch(("x",)),
        cases=_CASES,
        shapes=_SHAPES,
        kernels=(TOKEN,),
        exact=("x",),
        compare=same_codes,
    ),
)
