"""Product of 8-bit operands with float32 scales, the result rounded to 8 bits again if wanted."""

from __future__ import annotations

from typing import Any

import torch

from wavecast.kernels import checks, gpu
from wavecast.kernels.gemm import epilogue
from wavecast.kernels.gemm.epilogue import ACTIVATIONS
from wavecast.kernels.gemm.product import FP8, NAMES, Epilogue, multiplies, product, refuse
from wavecast.kernels.gemm.space import REST, SUM, TILES
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Operator, Tolerance
from wavecast.kernels.quantised import operands
from wavecast.model.bounds import Work

OPERANDS = (*FP8, torch.int8)


def scaled_matmul(
    a: torch.Tensor,
    b: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    bias: torch.Tensor | None = None,
    residual: torch.Tensor | None = None,
    gate: torch.Tensor | None = None,
    activation: str = "none",
    out_dtype: torch.dtype = torch.bfloat16,
    out_scale: torch.Tensor | None = None,
) -> torch.Tensor:
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
    name = "scaled_matmul"
    _check(name, a, b, scale_a, scale_b, bias, residual, gate, activation, out_dtype, out_scale)
    n, k = b.shape[1], a.shape[-1]
    if not a.numel() or not b.numel():
        return scaled_matmul_reference(
            a, b, scale_a, scale_b, bias, residual, gate, activation, out_dtype, out_scale
        )
    refuse(name, a.dtype, b.dtype, out_dtype)
    out = torch.empty((*a.shape[:-1], n), dtype=out_dtype, device=a.device)
    rows = out.numel() // n
    left, right, scale_a = _multiplied(a.reshape(rows, k), b, scale_a)
    product(
        left.unsqueeze(0),
        right.unsqueeze(0),
        out.view(1, rows, n),
        Epilogue(
            bias,
            None if residual is None else residual.reshape(rows, n),
            None if gate is None else gate.reshape(rows, n),
            activation,
            scale_a,
            scale_b,
            out_scale,
        ),
    )
    return out


def scaled_matmul_reference(
    a: torch.Tensor,
    b: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    bias: torch.Tensor | None = None,
    residual: torch.Tensor | None = None,
    gate: torch.Tensor | None = None,
    activation: str = "none",
    out_dtype: torch.dtype = torch.bfloat16,
    out_scale: torch.Tensor | None = None,
) -> torch.Tensor:
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


def _multiplied(
    a: torch.Tensor, b: torch.Tensor, scale_a: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Operands as the GPU multiplies them, and the scale of `a` that belongs to those: where many
    rows read fp8 the GPU does not know, that is recoded once."""
    device = gpu.launching()
    known = a.dtype not in FP8 or multiplies(a.dtype, device)
    if known or a.dtype != b.dtype or not operands.recoded_first(a.shape[0], device):
        return a, b, scale_a
    left, factor = operands.recoded(a, device)
    rows = b.stride(0) == 1 and b.stride(1) != 1
    right, other = operands.recoded(b.t() if rows else b, device)
    if factor * other != 1.0:
        scale_a = scale_a * (factor * other)
    return left, right.t() if rows else right, scale_a


def _check(
    operator: str,
    a: torch.Tensor,
    b: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    bias: torch.Tensor | None,
    residual: torch.Tensor | None,
    gate: torch.Tensor | None,
    activation: str,
    out_dtype: torch.dtype,
    out_scale: torch.Tensor | None,
) -> None:
    checks.require(a.dim() > 0, operator, "a is a scalar")
    checks.dtype_in(operator, "a", a, OPERANDS)
    checks.dtype_in(operator, "b", b, _partners(a.dtype))
    checks.shape_is(operator, "b", b, (a.shape[-1], -1))
    shape = (*a.shape[:-1], b.shape[1])
    rows = 1
    for size in a.shape[:-1]:
        rows *= size
    for name, scale, count in (("scale_a", scale_a, rows), ("scale_b", scale_b, b.shape[1])):
        checks.dtype_in(operator, name, scale, (torch.float32,))
        checks.require(
            scale.numel() in (1, count),
            operator,
            f"{name} has {scale.numel()} elements; it takes 1 or {count}",
        )
    if bias is not None:
        checks.dtype_in(operator, "bias", bias, checks.FLOATS)
        checks.shape_is(operator, "bias", bias, shape[-1:])
    for name, tensor in (("residual", residual), ("gate", gate)):
        if tensor is not None:
            checks.dtype_in(operator, name, tensor, checks.FLOATS)
            checks.shape_is(operator, name, tensor, shape)
    checks.one_of(operator, "activation", activation, ACTIVATIONS)
    known = (*checks.FLOATS, *FP8)
    checks.require(out_dtype in known, operator, f"no result of {out_dtype}")
    if out_scale is not None:
        checks.dtype_in(operator, "out_scale", out_scale, (torch.float32,))
        checks.require(out_scale.numel() == 1, operator, "out_scale has not one element")
    eight = out_dtype in FP8
    checks.require(
        eight == (out_scale is not None), operator, "out_scale goes with an 8-bit out_dtype"
    )
    checks.same_device(
        operator, a=a, b=b, scale_a=scale_a, scale_b=scale_b, bias=bias, residual=residual,
        gate=gate, out_scale=out_scale,
    )  # fmt: skip


def _partners(kind: torch.dtype) -> tuple[torch.dtype, ...]:
    """What multiplies with an operand."""
    for family in (
        (torch.float8_e4m3fn, torch.float8_e5m2),
        (torch.float8_e4m3fnuz, torch.float8_e5m2fnuz),
    ):
        if kind in family:
            return family
    return (kind,)


def _inputs(
    make: Make,
    m: int,
    n: int,
    k: int,
    dtype: str,
    other: str = "",
    layout: str = "NT",
    scales: str = "rows",
    bias: bool = False,
    residual: bool = False,
    gate: bool = False,
    activation: str = "none",
    out: str = "bfloat16",
) -> dict[str, Any]:
    """`other` is the dtype of `b` where it is another; `scales` are `rows` or `tensor`."""

    def operand(rows: int, columns: int, kind: str, transposed: bool) -> torch.Tensor:
        shape = (columns, rows) if transposed else (rows, columns)
        if kind == "int8":
            made = make.integers(shape, -128, 128, kind)
        else:
            made = make.normal(shape, kind)
        return made.t() if transposed else made

    each = scales == "rows"
    eight = make.dtype(out) in FP8
    return {
        "a": operand(m, k, dtype, layout[0] == "T"),
        "b": operand(k, n, other or dtype, layout[1] == "T"),
        "scale_a": make.uniform((m, 1) if each else (1,), "float32", 0.01, 0.1),
        "scale_b": make.uniform((1, n) if each else (1,), "float32", 0.01, 0.1),
        "bias": make.normal((n,), "bfloat16") if bias else None,
        "residual": make.normal((m, n), "bfloat16") if residual else None,
        "gate": make.normal((m, n), "bfloat16") if gate else None,
        "activation": activation,
        "out_dtype": make.dtype(out),
        "out_scale": make.uniform((1,), "float32", 0.001, 0.01) if eight else None,
    }


def _work(
    m: int,
    n: int,
    k: int,
    dtype: str,
    other: str = "",
    layout: str = "NT",
    scales: str = "rows",
    bias: bool = False,
    residual: bool = False,
    gate: bool = False,
    activation: str = "none",
    out: str = "bfloat16",
) -> Work:
    read = (m + n) * k + 4 * (m + n if scales == "rows" else 2)
    read += 2 * (n * bias + m * n * (residual + gate))
    written = m * n * getattr(torch, out).itemsize
    flops = {NAMES[getattr(torch, dtype)]: 2.0 * m * n * k}
    return Work(flops, read, written, "formula", "formula")


_CASES = (
    {"m": 5, "n": 48, "k": 160, "dtype": "float8_e4m3fn", "bias": True, "activation": "silu"},
    {"m": 70, "n": 130, "k": 288, "dtype": "float8_e4m3fnuz", "scales": "tensor"},
    {"m": 33, "n": 64, "k": 136, "dtype": "int8", "residual": True, "out": "float32"},
    {"m": 20, "n": 96, "k": 64, "dtype": "float8_e4m3fn", "out": "float8_e4m3fn", "gate": True},
)
_THOROUGH = (
    {"m": 24, "n": 32, "k": 96, "dtype": "float8_e5m2", "layout": "NN", "out": "float16"},
    {"m": 24, "n": 32, "k": 96, "dtype": "float8_e5m2fnuz", "layout": "TN"},
    {"m": 24, "n": 32, "k": 96, "dtype": "float8_e4m3fn", "other": "float8_e5m2"},
    {"m": 24, "n": 32, "k": 96, "dtype": "float8_e5m2fnuz", "other": "float8_e4m3fnuz"},
    {"m": 100, "n": 72, "k": 160, "dtype": "float8_e4m3fn", "layout": "NN", "bias": True},
    {"m": 72, "n": 40, "k": 96, "dtype": "float8_e4m3fn", "layout": "TN", "scales": "tensor"},
    {"m": 40, "n": 72, "k": 128, "dtype": "float8_e4m3fnuz", "out": "float8_e4m3fnuz"},
    {"m": 3, "n": 64, "k": 2048, "dtype": "float8_e4m3fn", "out": "float8_e5m2"},
    {"m": 3, "n": 64, "k": 96, "dtype": "float8_e4m3fnuz", "out": "float8_e5m2fnuz"},
)
_SIZES = (
    *((16, 28672, 4096), (64, 8192, 28672), (512, 7168, 2048)),
    *((4096, 10240, 8192), (4096, 4096, 7168)),
)
_SHAPES = (
    *({"m": m, "n": n, "k": k, "dtype": "float8_e4m3fn"} for m, n, k in _SIZES),
    {"m": 4096, "n": 10240, "k": 8192, "dtype": "float8_e4m3fnuz"},
)

OPERATORS = (
    Operator(
        name="scaled_matmul",
        summary="product of 8-bit operands with scales per tensor or per row and column",
        call=scaled_matmul,
        reference=scaled_matmul_reference,
        inputs=_inputs,
        work=_work,
        cases=_CASES,
        thorough=_THOROUGH,
        shapes=_SHAPES,
        spaces=(TILES, SUM, REST),
        kernels=(operands.RECODE,),
        tolerance=Tolerance(ulps=1.0, accumulated=4e-6),
        notes="on NVIDIA GPUs sums of 8-bit floats are kept in float32 every 128 elements of K",
    ),
)
