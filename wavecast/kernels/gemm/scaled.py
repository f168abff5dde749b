"""Product of 8-bit operands with float32 scales, the result rounded to 8 bits again if wanted."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from wavecast.kernels import checks
from wavecast.kernels.describe import Make, Operator, Signature, Sizes, Tolerance, Work, sizes
from wavecast.kernels.gemm import epilogue
from wavecast.kernels.gemm.epilogue import ACTIVATIONS
from wavecast.kernels.gemm.matmul import FURTHER
from wavecast.kernels.gemm.product import (
    Epilogue,
    flops,
    matrices,
    multiplies,
    product,
    refuse,
)
from wavecast.kernels.quantised import operands
from wavecast.launch import gpu
from wavecast.launch.inputs import FP8

TENSORS = Signature(
    "a: [..., k] fp8|int8",
    "b: [k, n] fp8|int8",
    "bias?: [n] float",
    "residual?: [..., n] float",
    "gate?: [..., n] float",
    returns=("y: [..., n]",),
    leading="m",
)
_FAMILIES = (
    (torch.float8_e4m3fn, torch.float8_e5m2),
    (torch.float8_e4m3fnuz, torch.float8_e5m2fnuz),
)
"""Formats that multiply with each other."""


def scaled_matmul(
    a: Tensor, b: Tensor, scale_a: Tensor, scale_b: Tensor, bias: Tensor | None = None,
    residual: Tensor | None = None, gate: Tensor | None = None, activation: str = "none",
    out_dtype: torch.dtype = torch.bfloat16, out_scale: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """`(activation((a @ b) * scale_a * scale_b + bias) * gate + residual) / out_scale`.

    `a` is [..., K] and `b` [K, N], with any strides, of float8_e4m3fn, float8_e4m3fnuz,
    float8_e5m2, float8_e5m2fnuz or int8. Both are of one dtype, or e4m3 and e5m2 of one kind. The
    scales are float32: of one element, or one per row of `a` ([rows], or [..., 1] like its rows)
    and column of `b` ([N] or [1, N]). `bias`, `residual`, `gate` and `activation` are those of
    `matmul`.

    The result is of `out_dtype`: a floating dtype, or with `out_scale` (float32, one element) an
    8-bit one, to which larger magnitudes saturate. Formats the matrix instructions of a GPU do not
    take are widened to bfloat16, exactly, or get the codes of one they take (e4m3fn on gfx942), of
    many rows before the product; NVIDIA GPUs take no fnuz. Raises ArgumentError.
    """
    _check(dict(locals()))
    k, n = b.shape
    if not a.numel() or not b.numel():
        return scaled_matmul_reference(
            a, b, scale_a, scale_b, bias, residual, gate, activation, out_dtype, out_scale
        )
    refuse("scaled_matmul", a.dtype, b.dtype, out_dtype)
    out = torch.empty((*a.shape[:-1], n), dtype=out_dtype, device=a.device)
    left, right, scale_a = _native_operands(a.reshape(-1, k), b, scale_a)
    after = Epilogue(bias, residual, gate, activation, scale_a, scale_b, out_scale)
    return product(left.unsqueeze(0), right.unsqueeze(0), out, after)


def scaled_matmul_reference(
    a, b, scale_a, scale_b, bias=None, residual=None, gate=None, activation="none",
    out_dtype=torch.bfloat16, out_scale=None,
):  # fmt: skip
    """In float64, where products of 8-bit values are exact; saturated by hand."""
    rows = a.reshape(-1, a.shape[-1]).double()
    total = (rows @ b.double()) * scale_a.double().reshape(-1, 1)
    total = total * scale_b.double().reshape(1, -1)
    total = total.reshape(*a.shape[:-1], b.shape[1])
    total = epilogue.reference(total, bias, residual, gate, activation)
    if out_scale is not None:
        total = total / out_scale.double()
    if out_dtype in FP8:
        limit = torch.finfo(out_dtype).max
        total = total.clamp(-limit, limit)
    return total.float().to(out_dtype).contiguous()


def _native_operands(a: Tensor, b: Tensor, scale_a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Operands as the GPU multiplies them, and the scale of `a` that belongs to those: where many
    rows read fp8 the GPU does not know, that is recoded once."""
    device = gpu.launching()
    is_native = a.dtype not in FP8 or multiplies(a.dtype, device)
    if is_native or a.dtype != b.dtype or not operands.recoded_first(a.shape[0], device):
        return a, b, scale_a
    left, factor = operands.recode(a, device)
    rows = b.stride(0) == 1 and b.stride(1) != 1
    right, other = operands.recode(b.t() if rows else b, device)
    if factor * other != 1.0:
        scale_a = scale_a * (factor * other)
    return left, right.t() if rows else right, scale_a


def _check(arguments: dict[str, Any]) -> None:
    name, a, b = "scaled_matmul", arguments["a"], arguments["b"]
    TENSORS.check(name, arguments)
    partners = next((family for family in _FAMILIES if a.dtype in family), (a.dtype,))
    checks.dtype_in(name, "b", b, partners)
    counts = {"scale_a": math.prod(a.shape[:-1]), "scale_b": b.shape[1], "out_scale": 1}
    scales = {term: arguments[term] for term in counts if arguments[term] is not None}
    for which, scale in scales.items():
        checks.dtype_in(name, which, scale, (torch.float32,))
        lengths = sorted({1, counts[which]})
        text = f"{which} has {scale.numel()} elements; it takes {' or '.join(map(str, lengths))}"
        checks.require(scale.numel() in lengths, name, text)
    checks.same_device(name, a=a, **scales)
    checks.one_of(name, "activation", arguments["activation"], ACTIVATIONS)
    out_dtype = arguments["out_dtype"]
    checks.require(out_dtype in (*checks.FLOATS, *FP8), name, f"no result of {out_dtype}")
    scaled = (out_dtype in FP8) == ("out_scale" in scales)
    checks.require(scaled, name, "out_scale goes with an 8-bit out_dtype")


def _sizes(case: Sizes) -> dict[str, Any]:
    """Sizes with the dtypes of tensors; `other` is that of `b` where it is another."""
    operand_sizes = {
        name: value for name, value in case.items() if name not in ("layout", "scales", "other")
    }
    operand_sizes |= dict.fromkeys([f"{name}_dtype" for name in FURTHER], "bfloat16")
    out = operand_sizes.pop("out", "bfloat16")
    return {**operand_sizes, "b_dtype": case.get("other") or case["dtype"], "y_dtype": out}


def _inputs(make: Make, layout: str = "NT", scales: str = "rows", **case: Any) -> dict[str, Any]:
    """`layout` is that of `matmul`; `scales` are `rows` or `tensor`."""

    def operand(stored: str, make: Make, shape: Any, dtype: Any, operand_sizes: Sizes) -> Tensor:
        return matrices(make, str(dtype).removeprefix("torch."), shape, stored == "T")

    a, b = (partial(operand, stored) for stored in layout)
    arguments = TENSORS.inputs(absent=FURTHER, a=a, b=b)(make, **_sizes(case))
    out_dtype, rows = make.dtype(case.get("out", "bfloat16")), scales == "rows"
    for name, shape in (("scale_a", (case["m"], 1)), ("scale_b", (1, case["n"]))):
        arguments[name] = make.uniform(shape if rows else (1,), "float32", 0.01, 0.1)
    scaled = out_dtype in FP8
    arguments["out_scale"] = make.uniform((1,), "float32", 0.001, 0.01) if scaled else None
    return {**arguments, "out_dtype": out_dtype}


def _work(scales: str = "rows", **case: Any) -> Work:
    m, n, k = (case[name] for name in "mnk")
    rate = flops(m * n * k, case["dtype"])
    work = TENSORS.work(lambda **_: rate, absent=FURTHER)(**_sizes(case))
    scale_bytes = 4 * (m + n if scales == "rows" else 2)
    return replace(work, bytes_read=(work.bytes_read or 0.0) + scale_bytes)


OPERATOR = Operator(
    summary="product of 8-bit operands with scales per tensor or per row and column",
    call=scaled_matmul,
    inputs=_inputs,
    work=_work,
    tolerance=Tolerance(ulps=1.0, accumulated=4e-6),
    notes="on NVIDIA GPUs sums of 8-bit floats are kept in float32 every 128 elements of K",
    cases=(
        *sizes("m n k dtype bias activation", (5, 48, 160, "float8_e4m3fn", True, "silu")),
        *sizes("m n k dtype scales", (70, 130, 288, "float8_e4m3fnuz", "tensor")),
        *sizes("m n k dtype residual out", (33, 64, 136, "int8", True, "float32")),
        *sizes("m n k dtype out gate", (20, 96, 64, "float8_e4m3fn", "float8_e4m3fn", True)),
    ),
    thorough=(
        *sizes("m n k dtype layout out", (24, 32, 96, "float8_e5m2", "NN", "float16")),
        *sizes("m n k dtype layout", (24, 32, 96, "float8_e5m2fnuz", "TN")),
        *sizes(
            "m n k dtype other",
            (24, 32, 96, "float8_e4m3fn", "float8_e5m2"),
            (24, 32, 96, "float8_e5m2fnuz", "float8_e4m3fnuz"),
        ),
        *sizes("m n k dtype layout bias", (100, 72, 160, "float8_e4m3fn", "NN", True)),
        *sizes("m n k dtype layout scales", (72, 40, 96, "float8_e4m3fn", "TN", "tensor")),
        *sizes(
            "m n k dtype out",
            (40, 72, 128, "float8_e4m3fnuz", "float8_e4m3fnuz"),
            (3, 64, 2048, "float8_e4m3fn", "float8_e5m2"),
            (3, 64, 96, "float8_e4m3fnuz", "float8_e5m2fnuz"),
        ),
    ),
    shapes=sizes(
        "m n k dtype",
        (16, 28672, 4096, "float8_e4m3fn"),
        (64, 8192, 28672, "float8_e4m3fn"),
        (512, 7168, 2048, "float8_e4m3fn"),
        (4096, 10240, 8192, "float8_e4m3fn"),
        (4096, 4096, 7168, "float8_e4m3fn"),
        (4096, 10240, 8192, "float8_e4m3fnuz"),
    ),
)
