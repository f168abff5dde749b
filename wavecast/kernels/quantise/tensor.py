"""Quantisation with one scale for a whole tensor, given or found: fp8 and int8."""

from dataclasses import replace

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import checks, choice, describe
from wavecast.kernels.describe import sizes, widened
from wavecast.kernels.quantise import common, formats
from wavecast.kernels.quantise.common import with_format
from wavecast.kernels.quantise.formats import codes_of, integers_of, sizes_of
from wavecast.launch import gpu

_PARTS = 1024
"""The most parts whose largest values are found apart; every workgroup of the second pass reads
them all."""
_PART = 4096
"""Elements of a part, where there are few."""
TENSORS = describe.Signature("x: [...] float", "scale?: [_...] float32", leading="rows columns")


@triton.jit
def largest_kernel(
    x_ptr, part_max_ptr, count, iterations, BLOCK: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """The bits of each program's largest absolute value; programs take every n-th block."""
    start = tl.program_id(0) * BLOCK
    step = tl.num_programs(0) * BLOCK
    if WIDE:
        start = start.to(tl.int64)
    lane_max = tl.zeros((BLOCK,), tl.uint32)
    for _ in range(iterations):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offs, mask=offs < count, other=0.0).to(tl.float32)
        lane_max = tl.maximum(lane_max, sizes_of(x))
        start += step
    tl.store(part_max_ptr + tl.program_id(0), tl.max(lane_max, axis=0))


@triton.jit
def quantise_tensor_kernel(
    x_ptr, codes_ptr, static_ptr, part_max_ptr, scale_ptr, count, least,
    PARTS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr, KIND: tl.constexpr,
    MANTISSA: tl.constexpr, BIAS: tl.constexpr, MOST: tl.constexpr, NATIVE: tl.constexpr,
):  # fmt: skip
    """Codes by the scale at `static_ptr`, or (None) by the largest of the `PARTS` values that
    `largest_kernel` found. The first program stores the scale."""
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    if WIDE:
        offs = pid.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < count
    x = tl.load(x_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    index = tl.arange(0, 1)
    if static_ptr is not None:
        scale = tl.load(static_ptr + index)
        factor = tl.div_rn(tl.full((1,), 1.0, tl.float32), scale)
    else:
        part = tl.arange(0, triton.next_power_of_2(PARTS))  # pyright: ignore[reportArgumentType]
        lane_max = tl.load(part_max_ptr + part, mask=part < PARTS, other=0).to(tl.uint32)
        lane_max = tl.max(lane_max, axis=0, keep_dims=True)
        largest = tl.maximum(lane_max, least.to(tl.uint32, bitcast=True))
        largest = largest.to(tl.float32, bitcast=True)
        most = tl.full((1,), MOST, tl.float32)
        scale = tl.div_rn(largest, most)
        factor = tl.div_rn(most, largest)
    if pid == 0:
        tl.store(scale_ptr + index, scale)
    if KIND == "int8":
        code = integers_of(x * factor)
    else:
        code = codes_of(x * factor, KIND, MANTISSA, BIAS, MOST, NATIVE)
    tl.store(codes_ptr + offs, code, mask=mask)


def _parts(count: int) -> int:
    return min(_PARTS, triton.cdiv(count, _PART))


_COUNTED = f"min({_PARTS}, cdiv(count, {_PART}))"
LARGEST = describe.KernelSpec.streaming(
    largest_kernel,
    grid=_COUNTED,
    axes={"BLOCK": (4096, 8192), "num_warps": (4, 8, 16)},
    read="count * bytes",
    written=f"4 * {_COUNTED}",
    elements="BLOCK",
    instructions=f"3.0 * cdiv(count, {_COUNTED} * BLOCK)",
    live_registers=2.0,
    derived=lambda values: {
        "iterations": triton.cdiv(values["count"], _parts(values["count"]) * values["BLOCK"])
    },
    rounded=("count",),
)
TENSOR = formats.codes_kernel(
    quantise_tensor_kernel,
    grid="cdiv(count, BLOCK)",
    axes={"BLOCK": (1024, 2048, 4096, 8192, 16384), "num_warps": (2, 4, 8, 16)},
    read=f"count * bytes + (0 if given else 4 * {_COUNTED} * cdiv(count, BLOCK))",
    written="count",
    elements="BLOCK",
    instructions="codes",
    live_registers=2.0,
    rounded=("count",),
)


def quantise_fp8_tensor(
    x: Tensor, scale: Tensor | None = None, dtype: torch.dtype = torch.float8_e4m3fn
) -> tuple[Tensor, Tensor]:
    """A tensor in fp8 with one scale: `x ≈ codes.float() * scale`, as `scaled_matmul` takes it.

    `x` has any shape and is of float32, float16 or bfloat16; `dtype` is an fp8 dtype with greatest
    value `most`. `scale` is float32 of one element and positive (static quantisation), or None:
    then it is `largest / most` with `largest` the largest absolute value of `x`, 2^-100 at least,
    found on the GPU in a separate pass. Returns codes of `dtype` in the shape of `x`, and the
    scale [1] of float32. Codes are `x * (1 / scale)`, or `x * (most / largest)`, in float32,
    saturated and rounded to nearest, ties to even; NaN stays NaN, and without `scale` spreads to
    all. Raises ArgumentError.
    """
    return _whole(
        "quantise_fp8_tensor", x, scale, dtype, formats.fp8_name("quantise_fp8_tensor", dtype)
    )


def quantise_fp8_tensor_reference(x, scale=None, dtype=torch.float8_e4m3fn):
    scaled, scale = _scale_tensor(x, scale, torch.finfo(dtype).max)
    return scaled.to(dtype).contiguous(), scale


def quantise_int8_tensor(x: Tensor, scale: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """A tensor in int8 with one scale and no zero point: `x ≈ codes.float() * scale`, as
    `scaled_matmul` takes it.

    As `quantise_fp8_tensor`, with codes from -127 to 127, `most` being 127; the code of NaN is 0.
    Raises ArgumentError.
    """
    return _whole("quantise_int8_tensor", x, scale, torch.int8, "int8")


def quantise_int8_tensor_reference(x, scale=None):
    scaled, scale = _scale_tensor(x, scale, 127.0)
    return scaled.round().nan_to_num().to(torch.int8).contiguous(), scale


def _scale_tensor(x: Tensor, scale: Tensor | None, most: float) -> tuple[Tensor, Tensor]:
    wide = widened(x)
    if scale is not None:
        wide_scale = scale.reshape(1).to(wide.dtype)
        factor = torch.ones_like(wide_scale) / wide_scale
    elif not x.numel():
        return wide, wide.new_full((1,), formats.LEAST / most, dtype=torch.float32)
    else:
        largest = wide.abs().amax().reshape(1).clamp_min(formats.LEAST)
        wide_scale = largest / most
        factor = torch.full_like(largest, most) / largest  # a number / a tensor rounds twice
    return (wide * factor[0]).clamp(-most, most), wide_scale.float().clone()


def _whole(
    operator: str, x: Tensor, static_scale: Tensor | None, dtype: torch.dtype, kind: str
) -> tuple[Tensor, Tensor]:
    TENSORS.check(operator, {"x": x, "scale": static_scale})
    codes = torch.empty(x.shape, dtype=dtype, device=x.device)
    count = x.numel()
    if static_scale is not None:
        checks.require(static_scale.numel() == 1, operator, "scale has not one element")
    if not count:
        if static_scale is not None:
            return codes, static_scale.reshape(1).clone()
        least = formats.LEAST / formats.most_of(kind)
        return codes, torch.full((1,), least, dtype=torch.float32, device=x.device)
    x = x.contiguous()
    scale = torch.empty(1, dtype=torch.float32, device=x.device)
    size = {"count": count, "bytes": x.element_size()}
    part_max = scale
    if static_scale is None:
        part_max = torch.empty(_parts(count), dtype=torch.int32, device=x.device)
        choice.run(LARGEST, size, x=x, part_max=part_max)
    problem = {**size, "kind": kind, "given": static_scale is not None}
    scales = {"static": static_scale, "part_max": part_max, "scale": scale, "least": formats.LEAST}
    constants = {"PARTS": _parts(count), **formats.rounding(kind, gpu.launching())}
    choice.run(TENSOR, problem, x=x, codes=codes.view(torch.uint8), **scales, **constants)
    return codes, scale


def _inputs(make, rows, columns, dtype, static=False, **options):
    """`static`: a scale at which some values saturate."""
    make_inputs = TENSORS.inputs(absent=("scale",), options={"to": "dtype"})
    scale = make.uniform((1,), "float32", 0.004, 0.02) if static else None
    return {**make_inputs(make, rows=rows, columns=columns, dtype=dtype, **options), "scale": scale}


def _work(static=False, **sizes):
    """Found scales need every value before the first code: a tensor that no cache holds is read
    twice."""
    work = describe.streamed(1 if static else 2, 0, 2.0)(**sizes)
    return replace(work, bytes_written=sizes["rows"] * sizes["columns"] + 4.0)


_CASES = sizes(
    "rows columns dtype static",
    *((5, 300, "bfloat16"), (3, 17, "float32", True)),
    *((33, 640, "float16"), (9, 1001, "bfloat16", True)),
)

OPERATORS = common.operators(
    quantise_fp8_tensor,
    quantise_int8_tensor,
    "a tensor in {} with one scale, given or found",
    cases=_CASES,
    thorough=(
        *with_format("float8_e4m3fnuz", *_CASES[:2], _CASES[3]),
        *with_format("float8_e5m2", *_CASES[:3]),
        *with_format("float8_e5m2fnuz", *_CASES),
        *with_format("float8_e4m3fn", *_CASES[2:]),
    ),
    shapes=sizes(
        "rows columns dtype static",
        *((8192, 4096, "bfloat16", True), (8192, 4096, "bfloat16"), (64, 7168, "bfloat16")),
    ),
    tensors=TENSORS,
    inputs=_inputs,
    work=_work,
    exact=("x", "scale"),
)
