"""Quantisation with a scale per row: fp8 and int8."""

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
from wavecast.kernels.quantise.equal import same_codes
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
from wavecast.kernels.space import Problem, Settings, Space
from wavecast.kernels.strides import adjacent
from wavecast.model.bounds import Work

_WHOLE_ROW = 8192
"""Columns a program holds at once; longer rows are walked twice."""


@triton.jit
def quantise_token_kernel(
    x_ptr, codes_ptr, scale_ptr, owners_ptr, rows, columns, stride, owners, least,
    BLOCK: tl.constexpr, ROWS: tl.constexpr, WHOLE: tl.constexpr, WIDE: tl.constexpr,
    KIND: tl.constexpr, MANTISSA: tl.constexpr, BIAS: tl.constexpr, MOST: tl.constexpr,
    NATIVE: tl.constexpr,
):  # fmt: skip
    """Rows whose owner (if `owners_ptr` has them) is none of `owners` are left out."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    place = tl.arange(0, BLOCK)
    valid = row < rows
    if owners_ptr is not None:
        owner = tl.load(owners_ptr + row, mask=valid, other=-1)
        valid = (owner >= 0) & (owner < owners)
    at = row.to(tl.int64) if WIDE else row
    from_row = x_ptr + at[:, None] * stride + place[None, :]
    to_row = codes_ptr + at[:, None] * columns + place[None, :]
    if WHOLE:
        inside = valid[:, None] & (place < columns)[None, :]
        x = tl.load(from_row, mask=inside, other=0.0).to(tl.float32)
        largest = tl.max(sizes_of(x), axis=1)
    else:
        found = tl.zeros((ROWS, BLOCK), tl.uint32)
        for start in range(0, columns, BLOCK):
            inside = valid[:, None] & (start + place < columns)[None, :]
            x = tl.load(from_row + start, mask=inside, other=0.0).to(tl.float32)
            found = tl.maximum(found, sizes_of(x))
        largest = tl.max(found, axis=1)
    largest = tl.maximum(largest, least.to(tl.uint32, bitcast=True)).to(tl.float32, bitcast=True)
    most = tl.full((ROWS,), MOST, tl.float32)
    tl.store(scale_ptr + row, tl.div_rn(largest, most), mask=valid)
    factor = tl.div_rn(most, largest)[:, None]
    if WHOLE:
        if KIND == "int8":
            code = integers_of(x * factor)  # pyright: ignore[reportPossiblyUnboundVariable]
        else:
            code = codes_of(x * factor, KIND, MANTISSA, BIAS, MOST, NATIVE)  # pyright: ignore[reportPossiblyUnboundVariable]
        tl.store(to_row, code, mask=inside)  # pyright: ignore[reportPossiblyUnboundVariable]
    else:
        for start in range(0, columns, BLOCK):
            inside = valid[:, None] & (start + place < columns)[None, :]
            x = tl.load(from_row + start, mask=inside, other=0.0).to(tl.float32)
            if KIND == "int8":
                code = integers_of(x * factor)
            else:
                code = codes_of(x * factor, KIND, MANTISSA, BIAS, MOST, NATIVE)
            tl.store(to_row + start, code, mask=inside)


def quantise_fp8_token(
    x: torch.Tensor, dtype: torch.dtype = torch.float8_e4m3fn
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows in fp8, each with a scale of its own: `x ≈ codes.float() * scale`.

    `x` is [..., columns] of float32, float16 or bfloat16; `dtype` an fp8 dtype with greatest value
    `most`. Returns codes [..., columns] of `dtype` and scales [..., 1] of float32: with `largest`
    the largest absolute value of a row, 2^-100 at least, the scale is `largest / most` and codes
    are `x * (most / largest)` in float32, saturated and rounded to nearest, ties to even. A row
    with NaN has NaN everywhere. Raises ArgumentError.
    """
    return per_row("quantise_fp8_token", x, dtype, fp8_name("quantise_fp8_token", dtype))


def quantise_fp8_token_reference(
    x: torch.Tensor, dtype: torch.dtype = torch.float8_e4m3fn
) -> tuple[torch.Tensor, torch.Tensor]:
    """In float32 at least, by PyTorch's cast."""
    scaled, scale = _scaled(x, torch.finfo(dtype).max)
    return scaled.to(dtype).contiguous(), scale


def quantise_int8_token(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows in int8, each with a scale of its own: `x ≈ codes.float() * scale`, no zero point.

    `x` is [..., columns] of float32, float16 or bfloat16. Returns codes [..., columns] from -127 to
    127 and scales [..., 1] of float32: with `largest` the largest absolute value of a row, 2^-100
    at least, the scale is `largest / 127` and codes are `x * (127 / largest)` in float32, rounded
    to nearest, ties to even. A row with NaN has scale NaN and zeros, one with infinity scale
    infinity and zeros. Raises ArgumentError.
    """
    return per_row("quantise_int8_token", x, torch.int8, "int8")


def quantise_int8_token_reference(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """In float32 at least."""
    scaled, scale = _scaled(x, 127.0)
    return scaled.round().nan_to_num().to(torch.int8).contiguous(), scale


def _scaled(x: torch.Tensor, most: float) -> tuple[torch.Tensor, torch.Tensor]:
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    if not x.shape[-1]:
        return wide, wide.new_full((*x.shape[:-1], 1), LEAST / most, dtype=torch.float32)
    largest = wide.abs().amax(-1, keepdim=True).clamp_min(LEAST)
    factor = torch.full_like(largest, most) / largest  # a number / a tensor rounds twice
    scaled = (wide * factor).clamp(-most, most)
    return scaled, (largest / most).float().contiguous()


def per_row(
    operator: str,
    x: torch.Tensor,
    dtype: torch.dtype,
    kind: str,
    owners: torch.Tensor | None = None,
    count: int = 0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes and scales for `operator`. With `owners`, an int32 per row, rows of those that are none
    of `count` are neither read nor written: a mixture's tokens without an expert."""
    checks.require(x.dim() > 0, operator, "x is a scalar")
    checks.dtype_in(operator, "x", x, checks.FLOATS)
    columns = x.shape[-1]
    codes = torch.empty(x.shape, dtype=dtype, device=x.device)
    if not x.numel():
        shape = (*x.shape[:-1], 1)
        least = LEAST / most_of(kind)
        return codes, torch.full(shape, least, dtype=torch.float32, device=x.device)
    scale = torch.empty((*x.shape[:-1], 1), dtype=torch.float32, device=x.device)
    flat = x.reshape(-1, columns)
    flat = adjacent(flat)
    rows = flat.shape[0]
    launch(
        quantise_token_kernel,
        lambda settings: (triton.cdiv(rows, settings["ROWS"]),),
        (
            *(flat, codes.view(torch.uint8), scale, owners),
            *(rows, columns, flat.stride(0), count, LEAST),
        ),
        TOKEN,
        {"rows": rows, "columns": columns, "bytes": x.element_size(), "kind": kind},
        WHOLE=columns <= _WHOLE_ROW,
        WIDE=checks.wide(flat, codes),
        **rounding(kind, gpu.launching()),
    )
    return codes, scale


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    columns = min(triton.next_power_of_2(problem["columns"]), _WHOLE_ROW)
    whole = problem["columns"] <= _WHOLE_ROW
    return {
        "BLOCK": (columns,) if whole else (1024, 2048, 4096),
        "ROWS": (1, 2, 4, 8) if columns <= 1024 else (1,),
        "num_warps": (1, 2, 4, 8, 16, 32) if device.limits().wave_lanes == 32 else (1, 2, 4, 8, 16),
        "num_stages": (1,),
    }


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    rows, columns = problem["rows"], problem["columns"]
    passes = 1 if columns <= _WHOLE_ROW else 2
    return straddling(settings["ROWS"] * settings["BLOCK"], problem, settings, device) * (
        estimates.streaming(
            device,
            settings,
            workgroups=triton.cdiv(rows, settings["ROWS"]),
            read=rows * columns * problem["bytes"] * passes,
            written=rows * columns,
            elements=settings["ROWS"] * settings["BLOCK"],
            operations=(operations(problem["kind"], device) + 3.0 * (passes - 1))
            * triton.cdiv(columns, settings["BLOCK"]),
            held=2.0,
        )
    )


TOKEN = Space(kernel="quantise_token_kernel", axes=_axes, seconds=_seconds, classes=("rows",))


def _inputs(make: Make, rows: int, columns: int, dtype: str, to: str = "") -> dict[str, Any]:
    given: dict[str, Any] = {"x": make.normal((rows, columns), dtype)}
    return {**given, "dtype": make.dtype(to)} if to else given


def _work(rows: int, columns: int, dtype: str, to: str = "") -> Work:
    size = getattr(torch, dtype).itemsize
    flops = {"vector_fp32": 2.0 * rows * columns}
    written = rows * columns + 4.0 * rows
    return Work(flops, rows * columns * size, written, "formula", "formula")


def _with(to: str, *sizes: Sizes) -> tuple[Sizes, ...]:
    return tuple({**one, "to": to} for one in sizes)


_CASES = (
    {"rows": 5, "columns": 300, "dtype": "bfloat16"},
    {"rows": 3, "columns": 17, "dtype": "float32"},
    {"rows": 33, "columns": 64, "dtype": "float16"},
    {"rows": 2, "columns": 9000, "dtype": "bfloat16"},
)
_SHAPES = (
    {"rows": 8192, "columns": 4096, "dtype": "bfloat16"},
    {"rows": 64, "columns": 7168, "dtype": "bfloat16"},
)

OPERATORS = (
    Operator(
        name="quantise_fp8_token",
        summary="rows in fp8 with a scale each",
        call=quantise_fp8_token,
        reference=quantise_fp8_token_reference,
        inputs=_inputs,
        work=_work,
        batch=Batch(("x",)),
        cases=(
            *_with("float8_e4m3fn", *_CASES[:2]),
            *_with("float8_e4m3fnuz", _CASES[2]),
            *_with("float8_e5m2", _CASES[3]),
        ),
        thorough=(
            *_with("float8_e4m3fnuz", *_CASES),
            *_with("float8_e5m2", *_CASES[:2]),
            *_with("float8_e5m2fnuz", *_CASES[:2]),
            *_with("float8_e4m3fn", _CASES[3]),
        ),
        shapes=(*_with("float8_e4m3fn", *_SHAPES), *_with("float8_e4m3fnuz", *_SHAPES)),
        spaces=(TOKEN,),
        exact=("x",),
        compare=same_codes,
    ),
    Operator(
        name="quantise_int8_token",
        summary="rows in int8 with a scale each",
        call=quantise_int8_token,
        reference=quantise_int8_token_reference,
        inputs=_inputs,
        work=_work,
        batch=Batch(("x",)),
        cases=_CASES,
        shapes=_SHAPES,
        spaces=(TOKEN,),
        exact=("x",),
        compare=same_codes,
    ),
)
