"""Quantisation with a scale per row: fp8 and int8."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import choice, describe
from wavecast.kernels.describe import sizes, widened
from wavecast.kernels.quantise import common, formats
from wavecast.kernels.quantise.common import with_format
from wavecast.kernels.quantise.formats import codes_of, integers_of, sizes_of
from wavecast.kernels.strides import rows_of
from wavecast.launch import gpu

_WHOLE_ROW = 8192
"""Columns a program holds at once; longer rows are read twice."""
TENSORS = describe.Signature("x: [..., columns] float")


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
        maxima = tl.zeros((ROWS, BLOCK), tl.uint32)
        for start in range(0, columns, BLOCK):
            mask = row_mask[:, None] & (start + offs_n < columns)[None, :]
            x = tl.load(x_ptrs + start, mask=mask, other=0.0).to(tl.float32)
            maxima = tl.maximum(maxima, sizes_of(x))
        largest = tl.max(maxima, axis=1)
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


_PASSES = f"(1 + (columns > {_WHOLE_ROW}))"
TOKEN = formats.codes_kernel(
    quantise_token_kernel,
    grid="cdiv(rows, ROWS)",
    axes={
        "BLOCK": f"(next_power_of_2(columns),) if columns <= {_WHOLE_ROW} else (1024, 2048, 4096)",
        "ROWS": "(1, 2, 4, 8) if columns <= 1024 else (1,)",
        "num_warps": "(1, 2, 4, 8, 16, 32) if wave_lanes == 32 else (1, 2, 4, 8, 16)",
    },
    read=f"rows * columns * bytes * {_PASSES}",
    written="rows * columns",
    elements="ROWS * BLOCK",
    instructions=f"(codes + 3.0 * (columns > {_WHOLE_ROW})) * cdiv(columns, BLOCK)",
    live_registers=2.0,
    strides={"x": "stride"},
    rounded=("rows",),
)


def quantise_fp8_token(
    x: Tensor, dtype: torch.dtype = torch.float8_e4m3fn
) -> tuple[Tensor, Tensor]:
    """Rows in fp8, each with its own scale: `x ≈ codes.float() * scale`.

    `x` is [..., columns] of float32, float16 or bfloat16; `dtype` an fp8 dtype with greatest value
    `most`. Returns codes [..., columns] of `dtype` and scales [..., 1] of float32: with `largest`
    the largest absolute value of a row, 2^-100 at least, the scale is `largest / most` and codes
    are `x * (most / largest)` in float32, saturated and rounded to nearest, ties to even. A row
    with NaN has NaN everywhere. Raises ArgumentError.
    """
    return per_row("quantise_fp8_token", x, dtype, formats.fp8_name("quantise_fp8_token", dtype))


def quantise_fp8_token_reference(x, dtype=torch.float8_e4m3fn):
    scaled, scale = _scale_rows(x, torch.finfo(dtype).max)
    return scaled.to(dtype).contiguous(), scale


def quantise_int8_token(x: Tensor) -> tuple[Tensor, Tensor]:
    """Rows in int8, each with its own scale: `x ≈ codes.float() * scale`, no zero point.

    `x` is [..., columns] of float32, float16 or bfloat16. Returns codes [..., columns] from -127 to
    127 and scales [..., 1] of float32: with `largest` the largest absolute value of a row, 2^-100
    at least, the scale is `largest / 127` and codes are `x * (127 / largest)` in float32, rounded
    to nearest, ties to even. A row with NaN has scale NaN and zeros, one with infinity scale
    infinity and zeros. Raises ArgumentError.
    """
    return per_row("quantise_int8_token", x, torch.int8, "int8")


def quantise_int8_token_reference(x):
    scaled, scale = _scale_rows(x, 127.0)
    return scaled.round().nan_to_num().to(torch.int8).contiguous(), scale


def _scale_rows(x: Tensor, most: float) -> tuple[Tensor, Tensor]:
    wide = widened(x)
    if not x.shape[-1]:
        return wide, wide.new_full((*x.shape[:-1], 1), formats.LEAST / most, dtype=torch.float32)
    largest = wide.abs().amax(-1, keepdim=True).clamp_min(formats.LEAST)
    factor = torch.full_like(largest, most) / largest  # a number / a tensor rounds twice
    scaled = (wide * factor).clamp(-most, most)
    return scaled, (largest / most).float().contiguous()


def per_row(
    operator: str, x: Tensor, dtype: torch.dtype, kind: str, owners: Tensor | None = None,
    count: int = 0,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Codes and scales for `operator`. With `owners`, an int32 per row, rows of those that are none
    of `count` are neither read nor written: a mixture's tokens without an expert."""
    TENSORS.check(operator, {"x": x})
    columns = x.shape[-1]
    codes = torch.empty(x.shape, dtype=dtype, device=x.device)
    scale = torch.empty((*x.shape[:-1], 1), dtype=torch.float32, device=x.device)
    if not x.numel():
        return codes, scale.fill_(formats.LEAST / formats.most_of(kind))
    flat = rows_of(x)
    problem = {"rows": flat.shape[0], "columns": columns, "bytes": x.element_size(), "kind": kind}
    operands = {"x": flat, "codes": codes.view(torch.uint8), "scale": scale, "owners": owners}
    constants = {"WHOLE": columns <= _WHOLE_ROW, **formats.rounding(kind, gpu.launching())}
    choice.run(TOKEN, problem, **operands, num_owners=count, least=formats.LEAST, **constants)
    return codes, scale


_CASES = sizes(
    "rows columns dtype",
    *((5, 300, "bfloat16"), (3, 17, "float32"), (33, 64, "float16"), (2, 9000, "bfloat16")),
)

OPERATORS = common.operators(
    quantise_fp8_token,
    quantise_int8_token,
    "rows in {} with a scale each",
    cases=_CASES,
    thorough=(
        *with_format("float8_e4m3fnuz", *_CASES),
        *with_format("float8_e5m2", *_CASES[:2]),
        *with_format("float8_e5m2fnuz", *_CASES[:2]),
        *with_format("float8_e4m3fn", _CASES[3]),
    ),
    shapes=sizes("rows columns dtype", (8192, 4096, "bfloat16"), (64, 7168, "bfloat16")),
    tensors=TENSORS,
    inputs=TENSORS.inputs(options={"to": "dtype"}),
    work=common.work(lambda rows, columns, **_: rows * columns + 4.0 * rows),
    batch=describe.Batch(("x",)),
    exact=("x",),
)
