"""Quantisation to fp8 with a scale per group of columns."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import checks, choice, describe
from wavecast.kernels.describe import sizes, widened
from wavecast.kernels.quantise import common, formats
from wavecast.kernels.quantise.formats import codes_of, sizes_of
from wavecast.kernels.strides import rows_of
from wavecast.launch import gpu

_WIDTHS = (32, 64, 128, 256)
"""Columns of a group."""
TENSORS = describe.Signature("x: [..., columns] float")


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


GROUP = formats.codes_kernel(
    quantise_group_kernel,
    grid="cdiv(groups, GROUPS)",
    axes={"GROUPS": (4, 8, 16, 32, 64, 128), "num_warps": (4, 8)},
    fits="512 <= GROUPS * width <= 16384",
    read="groups * width * bytes",
    written="groups * width",
    elements="GROUPS * width",
    instructions="2.0 + codes",
    live_registers=2.0,
    strides={"x": "stride"},
    rounded=("groups",),
)


@TENSORS.checked
def quantise_fp8_group(
    x: Tensor, dtype: torch.dtype = torch.float8_e4m3fn, group: int = 128, powers: bool = False
) -> tuple[Tensor, Tensor]:
    """Groups of columns in fp8, each with its own scale.

    `x` is [..., columns] of float32, float16 or bfloat16; `dtype` an fp8 dtype with greatest value
    `most`; `group` 32, 64, 128 or 256 (the last group of a row may be shorter). Returns codes
    [..., columns] of `dtype` and scales [..., ceil(columns / group)] of float32: with `largest` the
    largest absolute value of a group, 2^-100 at least, the scale is `largest / most` and codes are
    `x * (most / largest)` in float32, saturated and rounded to nearest, ties to even. With
    `powers` the scale is the power of two above or equal, and codes are `x / scale`. A group with
    NaN has NaN everywhere. Raises ArgumentError.
    """
    operator = "quantise_fp8_group"
    kind = formats.fp8_name(operator, dtype)
    checks.require(group in _WIDTHS, operator, f"groups of {group}; it takes 32, 64, 128 and 256")
    columns = x.shape[-1]
    groups_per_row = triton.cdiv(columns, group)
    codes = torch.empty(x.shape, dtype=dtype, device=x.device)
    scale = torch.empty((*x.shape[:-1], groups_per_row), dtype=torch.float32, device=x.device)
    if not x.numel():
        return codes, scale
    count = scale.numel()
    problem = {"groups": count, "width": group, "bytes": x.element_size(), "kind": kind}
    operands = {"x": rows_of(x), "codes": codes.view(torch.uint8), "scale": scale}
    shape = {"count": count, "columns": columns, "groups_per_row": groups_per_row}
    constants = {"POWERS": powers, **formats.constants(kind, gpu.launching())}
    choice.run(GROUP, problem, **operands, **shape, least=formats.LEAST, **constants)
    return codes, scale


def quantise_fp8_group_reference(x, dtype=torch.float8_e4m3fn, group=128, powers=False):
    """In float32 at least, by PyTorch's cast."""
    most = torch.finfo(dtype).max
    parts = common.blocks_of(widened(x), group)
    largest = parts.abs().amax(-1, keepdim=True).clamp_min(formats.LEAST)
    scale = largest / most
    if powers:
        mantissa, exponent = torch.frexp(scale)
        exponent = torch.where(mantissa == 0.5, exponent - 1, exponent)
        power = torch.ldexp(torch.ones_like(scale), exponent)
        scale = torch.where(scale.isfinite(), power, torch.nan)
        scaled = parts / scale
    else:
        scaled = parts * (torch.full_like(largest, most) / largest)
    codes = scaled.clamp(-most, most).flatten(-2)[..., : x.shape[-1]].to(dtype)
    return codes.contiguous(), scale.squeeze(-1).float().contiguous()


def _written_bytes(rows, columns, group=128, **_):
    return rows * columns + 4.0 * rows * triton.cdiv(columns, group)


_SIZES = "rows columns dtype to"

OPERATORS = (
    describe.Operator(
        summary="groups of columns in fp8 with a scale each",
        call=quantise_fp8_group,
        inputs=TENSORS.inputs(options={"to": "dtype"}),
        work=common.work(_written_bytes),
        batch=describe.Batch(("x",)),
        cases=(
            *sizes(_SIZES, (5, 300, "bfloat16", "float8_e4m3fn")),
            *sizes(f"{_SIZES} powers", (3, 17, "float32", "float8_e4m3fn", True)),
            *sizes(_SIZES, (33, 256, "float16", "float8_e4m3fnuz")),
            *sizes(f"{_SIZES} group", (7, 1000, "bfloat16", "float8_e5m2", 64)),
        ),
        thorough=(
            *sizes(f"{_SIZES} group powers", (5, 300, "bfloat16", "float8_e4m3fnuz", 32, True)),
            *sizes(f"{_SIZES} group", (5, 300, "float32", "float8_e5m2fnuz", 256)),
            *sizes(f"{_SIZES} powers", (5, 300, "float16", "float8_e5m2", True)),
        ),
        shapes=sizes(
            _SIZES,
            *((8192, 4096, "bfloat16", "float8_e4m3fn"), (64, 7168, "bfloat16", "float8_e4m3fn")),
            *(
                (8192, 4096, "bfloat16", "float8_e4m3fnuz"),
                (64, 7168, "bfloat16", "float8_e4m3fnuz"),
            ),
        ),
        exact=("x",),
        compare=common.same_codes,
    ),
)
