"""Values of the OCP microscaling formats as bfloat16, which holds nearly all of them exactly."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import checks, choice, describe
from wavecast.kernels.describe import Device, Problem, Settings, coefficient, sizes
from wavecast.kernels.quantise.formats import values_of

CODES = {torch.uint8: "e2m1", torch.float8_e4m3fn: "e4m3", torch.float8_e5m2: "e5m2"}
"""Formats of elements, as Triton names them, by the dtype that holds their codes."""
FP4 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
"""The values of the codes of e2m1 without sign."""
TENSORS = describe.Signature(
    "codes: [..., _] uint8|float8_e4m3fn|float8_e5m2", "scale: [..., _] uint8"
)


@triton.jit
def widened_mx(codes, scale, KIND: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """bfloat16 [ROWS, COLUMNS] of codes [ROWS, COLUMNS], or [ROWS, COLUMNS / 2] of e2m1, and scales
    [ROWS, COLUMNS / 32]."""
    if KIND == "e2m1":
        code = tl.reshape(tl.join(codes & 15, codes >> 4), (ROWS, COLUMNS)).to(tl.uint32)
        size = ((code & 7) << 22).to(tl.float32, bitcast=True)
        tiny = tl.full((1, 1), 0x7E800000, tl.uint32).to(tl.float32, bitcast=True)
        signed = (size * tiny).to(tl.uint32, bitcast=True) | ((code >> 3) << 31)
        value = signed.to(tl.float32, bitcast=True)
    else:
        KNOWN: tl.constexpr = "e4m3fn" if KIND == "e4m3" else KIND  # pyright: ignore[reportAssignmentType]
        value = values_of(codes.to(tl.uint8, bitcast=True), KNOWN)
    bits = scale.to(tl.uint32) << 23
    bits = tl.where(scale == 0, 0x400000, bits)
    bits = tl.where(scale == 255, 0x7FC00000, bits)
    power = bits.to(tl.float32, bitcast=True)[:, :, None]
    blocks = tl.reshape(value, (ROWS, COLUMNS // 32, 32)) * power
    return tl.reshape(blocks, (ROWS, COLUMNS)).to(tl.bfloat16)


@triton.jit
def dequantise_mx_kernel(
    codes_ptr, scale_ptr, out_ptr, rows, columns, blocks_per_row,
    KIND: tl.constexpr, WIDE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    PACKED: tl.constexpr = 2 if KIND == "e2m1" else 1  # pyright: ignore[reportAssignmentType]
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    if WIDE:
        row = row.to(tl.int64)
    start = tl.program_id(0) * COLUMNS
    code_offs = start // PACKED + tl.arange(0, COLUMNS // PACKED)
    row_mask = (row < rows)[:, None]
    codes = tl.load(
        codes_ptr + row[:, None] * (columns // PACKED) + code_offs[None, :],
        mask=row_mask & (code_offs * PACKED < columns)[None, :],
        other=0.0 if KIND != "e2m1" else 0,
    )
    block = start // 32 + tl.arange(0, COLUMNS // 32)
    scale = tl.load(
        scale_ptr + row[:, None] * blocks_per_row + block[None, :],
        mask=row_mask & (block < blocks_per_row)[None, :],
        other=0,
    )
    value = widened_mx(codes, scale, KIND, ROWS, COLUMNS)
    offs = start + tl.arange(0, COLUMNS)
    out_ptrs = out_ptr + row[:, None] * columns + offs[None, :]
    tl.store(
        out_ptrs, value.to(out_ptr.dtype.element_ty), mask=row_mask & (offs < columns)[None, :]
    )


def _slowdown(kernel: Any, problem: Problem, settings: Settings, device: Device) -> float:
    lane = kernel.elements / (settings["num_warps"] * device.wave_lanes)
    best = coefficient("ranking", "widen_lane_elements").of(device)
    penalty = coefficient("ranking", "widen_lane_elements_penalty").of(device)
    return 1.0 + penalty * abs(lane - best) / best


WIDEN = describe.KernelSpec.streaming(
    dequantise_mx_kernel,
    grid="cdiv(columns, COLUMNS), cdiv(rows, ROWS)",
    axes={"ROWS": (1, 4, 16), "COLUMNS": (256, 512, 1024, 2048), "num_warps": (4, 8)},
    read="rows * columns / 2",
    written="rows * columns * bytes",
    elements="ROWS * COLUMNS",
    instructions=10.0,
    live_registers=2.0,
    slowed=_slowdown,
    contiguous=("codes", "scale"),
    rounded=("rows",),
)


@TENSORS.checked
def dequantise_mx(codes: Tensor, scale: Tensor, dtype: torch.dtype = torch.bfloat16) -> Tensor:
    """The values of mxfp4 or mxfp8 (`quantise_mxfp4`, `quantise_mxfp8`).

    `codes` is [..., columns / 2] of uint8 (mxfp4) or [..., columns] of float8_e4m3fn or float8_e5m2
    (mxfp8), `scale` [..., ceil(columns / 32)] of uint8. Returns [..., columns] of `dtype`:
    bfloat16, float16 or float32, by way of bfloat16, which rounds only values below 2^-126.
    Raises ArgumentError.
    """
    name = "dequantise_mx"
    names = ", ".join(str(float_dtype).removeprefix("torch.") for float_dtype in checks.FLOATS)
    checks.require(dtype in checks.FLOATS, name, f"dtype is none of {names}")
    columns = codes.shape[-1] * (2 if codes.dtype == torch.uint8 else 1)
    blocks_per_row = triton.cdiv(columns, 32)
    checks.shape_is(name, "scale", scale, (*codes.shape[:-1], blocks_per_row))
    out = torch.empty((*codes.shape[:-1], columns), dtype=dtype, device=codes.device)
    if not out.numel():
        return out
    kind = CODES[codes.dtype]
    rows = out.numel() // columns
    problem = {"rows": rows, "columns": columns, "kind": kind, "bytes": out.element_size()}
    choice.run(WIDEN, problem, codes=codes, scale=scale, out=out, blocks_per_row=blocks_per_row)
    return out


def dequantise_mx_reference(codes, scale, dtype=torch.bfloat16):
    """By the values of codes, in float64, which holds all of them."""
    if codes.dtype == torch.uint8:
        both = torch.stack((codes & 15, codes >> 4), -1).flatten(-2)
        values = torch.tensor(FP4, dtype=torch.float64, device=codes.device)
        wide = values[(both & 7).long()] * (1.0 - 2.0 * (both >> 3).double())
    else:
        wide = codes.double()
    power = torch.exp2(scale.double() - 127.0)
    power = torch.where(scale == 255, torch.nan, power)
    each = power.repeat_interleave(32, -1)[..., : wide.shape[-1]]
    return (wide * each).to(dtype).contiguous()


def _inputs(make, rows, columns, codes, dtype):
    packed = codes == "uint8"
    return {
        "codes": make.integers((rows, columns // 2), 0, 256, "uint8")
        if packed
        else make.normal((rows, columns), codes, 8.0),
        "scale": make.integers((rows, triton.cdiv(columns, 32)), 110, 140, "uint8"),
        "dtype": make.dtype(dtype),
    }


def _work(rows, columns, codes, dtype):
    size = getattr(torch, dtype).itemsize
    read = rows * columns * (0.5 if codes == "uint8" else 1.0) + rows * triton.cdiv(columns, 32)
    flops = {"vector_fp32": 1.0 * rows * columns}
    return describe.Work(flops, read, rows * columns * size, "formula", "formula")


OPERATOR = describe.Operator(
    summary="the values of mxfp4 and mxfp8",
    call=dequantise_mx,
    inputs=_inputs,
    work=_work,
    cases=sizes(
        "rows columns codes dtype",
        (5, 300, "uint8", "bfloat16"),
        (19, 64, "float8_e4m3fn", "float32"),
        (3, 1100, "float8_e5m2", "bfloat16"),
    ),
    thorough=sizes("rows columns codes dtype", (3, 100, "uint8", "float16")),
    shapes=sizes("rows columns codes dtype", (8192, 4096, "uint8", "bfloat16")),
    tolerance=describe.Tolerance(ulps=0.0, accumulated=0.0),
    exact=("codes",),
)
