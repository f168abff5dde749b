"""Quantisation with one scale for a whole tensor, given or found: fp8 and int8."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
import triton
import triton.language as tl

from wavecast.arch import Device
from wavecast.kernels import checks, estimates, gpu
from wavecast.kernels.choice import launch
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Operator, Sizes
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
from wavecast.model.bounds import Work

_PARTS: Final = 1024
"""The most parts whose largest values are found apart; every workgroup of the second pass reads
them all."""
_PART: Final = 4096
"""Elements of a part, where there are few."""


@triton.jit
def largest_kernel(
    x_ptr, found_ptr, count, rounds, BLOCK: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """The bits of each program's largest absolute value; programs take blocks in turns."""
    first = tl.program_id(0) * BLOCK
    step = tl.num_programs(0) * BLOCK
    if WIDE:
        first = first.to(tl.int64)
    found = tl.zeros((BLOCK,), tl.uint32)
    for _ in range(rounds):
        at = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < count, other=0.0).to(tl.float32)
        found = tl.maximum(found, sizes_of(x))
        first += step
    tl.store(found_ptr + tl.program_id(0), tl.max(found, axis=0))


@triton.jit
def quantise_tensor_kernel(
    x_ptr, codes_ptr, given_ptr, found_ptr, scale_ptr, count, least,
    PARTS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr, KIND: tl.constexpr,
    MANTISSA: tl.constexpr, BIAS: tl.constexpr, MOST: tl.constexpr, NATIVE: tl.constexpr,
):  # fmt: skip
    """Codes by the scale at `given_ptr`, or (None) by the largest of the `PARTS` values that
    `largest_kernel` found. The first program stores the scale."""
    number = tl.program_id(0)
    at = number * BLOCK + tl.arange(0, BLOCK)
    if WIDE:
        at = number.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
    one = tl.arange(0, 1)
    if given_ptr is not None:
        scale = tl.load(given_ptr + one)
        factor = tl.div_rn(tl.full((1,), 1.0, tl.float32), scale)
    else:
        part = tl.arange(0, triton.next_power_of_2(PARTS))  # pyright: ignore[reportArgumentType]
        found = tl.load(found_ptr + part, mask=part < PARTS, other=0).to(tl.uint32)
        found = tl.max(found, axis=0, keep_dims=True)
        largest = tl.maximum(found, least.to(tl.uint32, bitcast=True))
        largest = largest.to(tl.float32, bitcast=True)
        most = tl.full((1,), MOST, tl.float32)
        scale = tl.div_rn(largest, most)
        factor = tl.div_rn(most, largest)
    if number == 0:
        tl.store(scale_ptr + one, scale)
    if KIND == "int8":
        code = integers_of(x * factor)
    else:
        code = codes_of(x * factor, KIND, MANTISSA, BIAS, MOST, NATIVE)
    tl.store(codes_ptr + at, code, mask=inside)


def quantise_fp8_tensor(
    x: torch.Tensor,
    scale: torch.Tensor | None = None,
    dtype: torch.dtype = torch.float8_e4m3fn,
) -> tuple[torch.Tensor, torch.Tensor]:
    """A tensor in fp8 with one scale: `x ≈ codes.float() * scale`, as `scaled_matmul` takes it.

    `x` has any shape and is of float32, float16 or bfloat16; `dtype` is an fp8 dtype with greatest
    value `most`. `scale` is float32 of one element and positive (static quantisation), or None:
    then it is `largest / most` with `largest` the largest absolute value of `x`, 2^-100 at least,
    found on the GPU in a pass of its own. Returns codes of `dtype` in the shape of `x`, and the
    scale [1] of float32. Codes are `x * (1 / scale)`, or `x * (most / largest)`, in float32,
    saturated and rounded to nearest, ties to even; NaN stays NaN, and without `scale` spreads to
    all. Raises ArgumentError.
    """
    return _whole("quantise_fp8_tensor", x, scale, dtype, fp8_name("quantise_fp8_tensor", dtype))


def quantise_fp8_tensor_reference(
    x: torch.Tensor,
    scale: torch.Tensor | None = None,
    dtype: torch.dtype = torch.float8_e4m3fn,
) -> tuple[torch.Tensor, torch.Tensor]:
    """In float32 at least, by PyTorch's cast."""
    scaled, scale = _scaled(x, scale, torch.finfo(dtype).max)
    return scaled.to(dtype).contiguous(), scale


def quantise_int8_tensor(
    x: torch.Tensor, scale: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """A tensor in int8 with one scale and no zero point: `x ≈ codes.float() * scale`, as
    `scaled_matmul` takes it.

    As `quantise_fp8_tensor`, with codes from -127 to 127, `most` being 127; the code of NaN is 0.
    Raises ArgumentError.
    """
    return _whole("quantise_int8_tensor", x, scale, torch.int8, "int8")


def quantise_int8_tensor_reference(
    x: torch.Tensor, scale: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """In float32 at least."""
    scaled, scale = _scaled(x, scale, 127.0)
    return scaled.round().nan_to_num().to(torch.int8).contiguous(), scale


def _scaled(
    x: torch.Tensor, scale: torch.Tensor | None, most: float
) -> tuple[torch.Tensor, torch.Tensor]:
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    if scale is not None:
        known = scale.reshape(1).to(wide.dtype)
        factor = torch.ones_like(known) / known
    elif not x.numel():
        return wide, wide.new_full((1,), LEAST / most, dtype=torch.float32)
    else:
        largest = wide.abs().amax().reshape(1).clamp_min(LEAST)
        known = largest / most
        factor = torch.full_like(largest, most) / largest  # a number / a tensor rounds twice
    return (wide * factor[0]).clamp(-most, most), known.float().clone()


def _whole(
    operator: str, x: torch.Tensor, given: torch.Tensor | None, dtype: torch.dtype, kind: str
) -> tuple[torch.Tensor, torch.Tensor]:
    checks.dtype_in(operator, "x", x, checks.FLOATS)
    if given is not None:
        checks.dtype_in(operator, "scale", given, (torch.float32,))
        checks.require(given.numel() == 1, operator, "scale has not one element")
        checks.same_device(operator, x=x, scale=given)
    codes = torch.empty(x.shape, dtype=dtype, device=x.device)
    count = x.numel()
    if not count:
        if given is not None:
            return codes, given.reshape(1).clone()
        least = LEAST / most_of(kind)
        return codes, torch.full((1,), least, dtype=torch.float32, device=x.device)
    x = x.contiguous()
    scale = torch.empty(1, dtype=torch.float32, device=x.device)
    wide = checks.wide(x)
    problem = {"count": count, "bytes": x.element_size(), "kind": kind, "given": given is not None}
    parts = min(_PARTS, triton.cdiv(count, _PART))
    found = scale
    if given is None:
        found = torch.empty(parts, dtype=torch.int32, device=x.device)
        arguments: list[Any] = [x, found, count, 0]

        def grid(settings: Settings) -> tuple[int, ...]:
            # The launch takes the arguments after it has the grid: the rounds of these settings.
            arguments[-1] = triton.cdiv(count, parts * settings["BLOCK"])
            return (parts,)

        launch(
            largest_kernel,
            grid,
            arguments,
            LARGEST,
            {"count": count, "bytes": x.element_size()},
            WIDE=wide,
        )
    launch(
        quantise_tensor_kernel,
        lambda settings: (triton.cdiv(count, settings["BLOCK"]),),
        (x, codes.view(torch.uint8), given, found, scale, count, LEAST),
        TENSOR,
        problem,
        PARTS=parts,
        WIDE=wide,
        **rounding(kind, gpu.launching()),
    )
    return codes, scale


def _axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    return {
        "BLOCK": (1024, 2048, 4096, 8192, 16384),
        "num_warps": (2, 4, 8, 16),
        "num_stages": (1,),
    }


def _seconds(problem: Problem, settings: Settings, device: Device) -> float:
    count, block = problem["count"], settings["BLOCK"]
    workgroups = triton.cdiv(count, block)
    again = 0 if problem["given"] else 4 * min(_PARTS, triton.cdiv(count, _PART)) * workgroups
    return straddling(block, problem, settings, device) * estimates.streaming(
        device,
        settings,
        workgroups=workgroups,
        read=count * problem["bytes"] + again,
        written=count,
        elements=block,
        operations=operations(problem["kind"], device),
        held=2.0,
    )


def _largest_axes(problem: Problem, device: Device) -> Mapping[str, Sequence[Any]]:
    return {"BLOCK": (4096, 8192), "num_warps": (4, 8, 16), "num_stages": (1,)}


def _largest_seconds(problem: Problem, settings: Settings, device: Device) -> float:
    count = problem["count"]
    parts = min(_PARTS, triton.cdiv(count, _PART))
    return estimates.streaming(
        device,
        settings,
        workgroups=parts,
        read=count * problem["bytes"],
        written=4 * parts,
        elements=settings["BLOCK"],
        operations=3.0 * triton.cdiv(count, parts * settings["BLOCK"]),
        held=2.0,
    )


LARGEST = Space(
    kernel="largest_kernel", axes=_largest_axes, seconds=_largest_seconds, classes=("count",)
)
TENSOR = Space(kernel="quantise_tensor_kernel", axes=_axes, seconds=_seconds, classes=("count",))


def _inputs(
    make: Make, rows: int, columns: int, dtype: str, to: str = "", static: bool = False
) -> dict[str, Any]:
    """`static`: a scale at which some values saturate."""
    given: dict[str, Any] = {
        "x": make.normal((rows, columns), dtype),
        "scale": make.uniform((1,), "float32", 0.004, 0.02) if static else None,
    }
    return {**given, "dtype": make.dtype(to)} if to else given


def _work(rows: int, columns: int, dtype: str, to: str = "", static: bool = False) -> Work:
    """Found scales need every value before the first code: a tensor that no cache holds is read
    twice."""
    count = rows * columns
    read = count * getattr(torch, dtype).itemsize * (1 if static else 2)
    flops = {"vector_fp32": 2.0 * count}
    return Work(flops, read, count + 4.0, "formula", "formula")


def _with(to: str, *sizes: Sizes) -> tuple[Sizes, ...]:
    return tuple({**one, "to": to} for one in sizes)


_CASES = (
    {"rows": 5, "columns": 300, "dtype": "bfloat16"},
    {"rows": 3, "columns": 17, "dtype": "float32", "static": True},
    {"rows": 33, "columns": 640, "dtype": "float16"},
    {"rows": 9, "columns": 1001, "dtype": "bfloat16", "static": True},
)
_SHAPES = (
    {"rows": 8192, "columns": 4096, "dtype": "bfloat16", "static": True},
    {"rows": 8192, "columns": 4096, "dtype": "bfloat16"},
    {"rows": 64, "columns": 7168, "dtype": "bfloat16"},
)

OPERATORS = (
    Operator(
        name="quantise_fp8_tensor",
        summary="a tensor in fp8 with one scale, given or found",
        call=quantise_fp8_tensor,
        reference=quantise_fp8_tensor_reference,
        inputs=_inputs,
        work=_work,
        cases=(
            *_with("float8_e4m3fn", *_CASES[:2]),
            *_with("float8_e4m3fnuz", _CASES[2]),
            *_with("float8_e5m2", _CASES[3]),
        ),
        thorough=(
            *_with("float8_e4m3fnuz", *_CASES[:2], _CASES[3]),
            *_with("float8_e5m2", *_CASES[:3]),
            *_with("float8_e5m2fnuz", *_CASES),
            *_with("float8_e4m3fn", *_CASES[2:]),
        ),
        shapes=(*_with("float8_e4m3fn", *_SHAPES), *_with("float8_e4m3fnuz", *_SHAPES)),
        spaces=(LARGEST, TENSOR),
        exact=("x", "scale"),
        compare=same_codes,
    ),
    Operator(
        name="quantise_int8_tensor",
        summary="a tensor in int8 with one scale, given or found",
        call=quantise_int8_tensor,
        reference=quantise_int8_tensor_reference,
        inputs=_inputs,
        work=_work,
        cases=_CASES,
        shapes=_SHAPES,
        spaces=(LARGEST, TENSOR),
        exact=("x", "scale"),
        compare=same_codes,
    ),
)
