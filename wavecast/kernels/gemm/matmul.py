"""Matrix product with what follows it: y = activation(a b + bias) · gate + residual."""

from __future__ import annotations

from typing import Any

import torch

from wavecast.kernels import checks
from wavecast.kernels.gemm import epilogue
from wavecast.kernels.gemm.epilogue import ACTIVATIONS
from wavecast.kernels.gemm.product import NAMES, PRECISIONS, Epilogue, product
from wavecast.kernels.gemm.space import REST, SUM, TILES, VECTOR
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Batch, Gradient, Operator, Tolerance
from wavecast.model.bounds import Work

OPERANDS = (torch.float32, torch.bfloat16, torch.float16, torch.int8)


def matmul(
    a: torch.Tensor,
    b: torch.Tensor,
    bias: torch.Tensor | None = None,
    residual: torch.Tensor | None = None,
    gate: torch.Tensor | None = None,
    activation: str = "none",
    out_dtype: torch.dtype | None = None,
    precision: str = "ieee",
) -> torch.Tensor:
    """`activation(a @ b + bias) * gate + residual`.

    `a` is [..., K] and `b` [K, N], of one dtype, with any strides, so that transposed operands need
    no copy. float32, float16 and bfloat16 are summed in float32, int8 in int32. `bias` is [N],
    `residual` and `gate` are [..., N] like the result, of any floating dtype. `activation` is one
    of none, relu, gelu, gelu_tanh and silu. The result is of `out_dtype`, by default that of `a`
    (int32 for int8), and contiguous.

    `precision` concerns float32: `ieee` multiplies it as it is, `tf32` rounds operands to ten bits
    of mantissa on GPUs with such matrix instructions (gfx942, NVIDIA) and to sixteen or more
    elsewhere (three products of bfloat16). Raises ArgumentError.
    """
    kind = _check("matmul", a, b, bias, residual, gate, activation, out_dtype, precision)
    n, k = b.shape[1], a.shape[-1]
    shape = (*a.shape[:-1], n)
    if not a.numel() or not b.numel():
        return matmul_reference(a, b, bias, residual, gate, activation, out_dtype, precision)
    out = torch.empty(shape, dtype=kind, device=a.device)
    rows = out.numel() // n
    product(
        a.reshape(1, rows, k),
        b.unsqueeze(0),
        out.view(1, rows, n),
        Epilogue(
            bias,
            None if residual is None else residual.reshape(rows, n),
            None if gate is None else gate.reshape(rows, n),
            activation,
        ),
        precision,
    )
    return out


def matmul_reference(
    a: torch.Tensor,
    b: torch.Tensor,
    bias: torch.Tensor | None = None,
    residual: torch.Tensor | None = None,
    gate: torch.Tensor | None = None,
    activation: str = "none",
    out_dtype: torch.dtype | None = None,
    precision: str = "ieee",
) -> torch.Tensor:
    """`torch.matmul`, in float32 at least; int8 in float64, where its sums are exact."""
    if a.dtype == torch.int8:
        total = torch.matmul(a.double(), b.double())
        kind = out_dtype or torch.int32
    else:
        wide = torch.promote_types(a.dtype, torch.float32)
        total = torch.matmul(a.to(wide), b.to(wide))
        kind = out_dtype or a.dtype
    return epilogue.reference(total, bias, residual, gate, activation).to(kind).contiguous()


def _check(
    operator: str,
    a: torch.Tensor,
    b: torch.Tensor,
    bias: torch.Tensor | None,
    residual: torch.Tensor | None,
    gate: torch.Tensor | None,
    activation: str,
    out_dtype: torch.dtype | None,
    precision: str,
) -> torch.dtype:
    """The dtype of the result."""
    kind = result_dtype(operator, a, b, out_dtype, precision)
    checks.require(a.dim() > 0, operator, "a is a scalar")
    checks.shape_is(operator, "b", b, (a.shape[-1], -1))
    shape = (*a.shape[:-1], b.shape[1])
    if bias is not None:
        checks.dtype_in(operator, "bias", bias, checks.FLOATS)
        checks.shape_is(operator, "bias", bias, shape[-1:])
    for name, tensor in (("residual", residual), ("gate", gate)):
        if tensor is not None:
            checks.dtype_in(operator, name, tensor, checks.FLOATS)
            checks.shape_is(operator, name, tensor, shape)
    checks.one_of(operator, "activation", activation, ACTIVATIONS)
    checks.same_device(operator, a=a, b=b, bias=bias, residual=residual, gate=gate)
    plain = bias is None and residual is None and gate is None and activation == "none"
    checks.require(
        plain or kind != torch.int32, operator, "int32 results take no bias, gate or activation"
    )
    return kind


def result_dtype(
    operator: str,
    a: torch.Tensor,
    b: torch.Tensor,
    out_dtype: torch.dtype | None,
    precision: str,
) -> torch.dtype:
    """The dtype of a product. Raises ArgumentError for operands it is not made of."""
    checks.dtype_in(operator, "a", a, OPERANDS)
    checks.dtype_in(operator, "b", b, (a.dtype,))
    checks.one_of(operator, "precision", precision, PRECISIONS)
    checks.same_device(operator, a=a, b=b)
    integers = a.dtype == torch.int8
    kind = out_dtype or (torch.int32 if integers else a.dtype)
    known = kind in checks.FLOATS or (integers and kind == torch.int32)
    checks.require(known, operator, f"no result of {kind} for operands of {a.dtype}")
    return kind


def _setup(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    a, b, bias, residual, gate, activation, _, precision = inputs
    ctx.save_for_backward(a, b, bias, gate)
    ctx.residual = None if residual is None else residual.dtype
    ctx.activation, ctx.precision = activation, precision


def _gradient(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
    """The sums before the activation are computed anew, in float32 at least."""
    a, b, bias, gate = ctx.saved_tensors
    ops = torch.ops.wavecast
    wanted = (*ctx.needs_input_grad, False, False)  # of the arguments given, perhaps two only
    dz, dgate = dy, None
    if gate is not None or ctx.activation != "none":
        kind = torch.promote_types(a.dtype, torch.float32)
        z = ops.matmul(a, b, bias, out_dtype=kind, precision=ctx.precision)
        dz, dgate = ops.matmul_epilogue_backward(dy, z, gate, ctx.activation)
    columns = b.shape[1]
    narrow = dz.to(a.dtype)
    da = db = dbias = dresidual = None
    if wanted[0]:
        da = ops.matmul(narrow, b.t(), precision=ctx.precision)
    if wanted[1]:
        flat = a.reshape(-1, a.shape[-1])
        db = ops.matmul(flat.t(), narrow.reshape(-1, columns), precision=ctx.precision)
    if wanted[2] and bias is not None:
        wide = torch.promote_types(dz.dtype, torch.float32)
        dbias = dz.reshape(-1, columns).sum(0, dtype=wide).to(bias.dtype)
    if wanted[3] and ctx.residual is not None:
        dresidual = dy.to(ctx.residual)
    return da, db, dbias, dresidual, dgate, None, None, None


def _inputs(
    make: Make,
    m: int,
    n: int,
    k: int,
    dtype: str,
    layout: str = "NT",
    bias: bool = False,
    residual: bool = False,
    gate: bool = False,
    activation: str = "none",
    out: str = "",
    precision: str = "ieee",
) -> dict[str, Any]:
    """`layout` is that of `a` and `b`: N as they are multiplied, T stored transposed. Values for
    tf32 are multiples of what it can hold, so that only sums are rounded."""

    def operand(rows: int, columns: int, transposed: bool) -> torch.Tensor:
        shape = (columns, rows) if transposed else (rows, columns)
        if dtype == "int8":
            made = make.integers(shape, -128, 128, dtype)
        elif precision == "tf32":
            made = make.normal(shape, "bfloat16").to(make.dtype(dtype))
        else:
            made = make.normal(shape, dtype)
        return made.t() if transposed else made

    further = dtype if dtype != "int8" else "float32"
    return {
        "a": operand(m, k, layout[0] == "T"),
        "b": operand(k, n, layout[1] == "T"),
        "bias": make.normal((n,), further) if bias else None,
        "residual": make.normal((m, n), further) if residual else None,
        "gate": make.normal((m, n), further) if gate else None,
        "activation": activation,
        "out_dtype": make.dtype(out) if out else None,
        "precision": precision,
    }


def _work(
    m: int,
    n: int,
    k: int,
    dtype: str,
    layout: str = "NT",
    bias: bool = False,
    residual: bool = False,
    gate: bool = False,
    activation: str = "none",
    out: str = "",
    precision: str = "ieee",
) -> Work:
    kind = getattr(torch, dtype)
    result = getattr(torch, out) if out else torch.int32 if dtype == "int8" else kind
    extra = torch.float32.itemsize if dtype == "int8" else kind.itemsize
    read = (m + n) * k * kind.itemsize + (n * bias + m * n * (residual + gate)) * extra
    name = "xf32" if precision == "tf32" else NAMES.get(kind, "fp64")
    return Work({name: 2.0 * m * n * k}, read, m * n * result.itemsize, "formula", "formula")


_CASES = (
    {
        "m": 5,
        "n": 17,
        "k": 19,
        "dtype": "float32",
        "layout": "NN",
        "bias": True,
        "residual": True,
        "gate": True,
        "activation": "silu",
    },
    {"m": 70, "n": 150, "k": 200, "dtype": "bfloat16", "bias": True, "activation": "gelu_tanh"},
    {"m": 3, "n": 200, "k": 1024, "dtype": "float16", "residual": True},
    {"m": 40, "n": 72, "k": 264, "dtype": "bfloat16", "layout": "TN"},
    {"m": 33, "n": 48, "k": 160, "dtype": "int8", "layout": "NN"},
)
_THOROUGH = (
    {"m": 144, "n": 96, "k": 256, "dtype": "bfloat16", "layout": "NN"},
    {"m": 96, "n": 130, "k": 128, "dtype": "float16", "layout": "TT", "activation": "relu"},
    {"m": 20, "n": 64, "k": 96, "dtype": "bfloat16", "activation": "gelu", "out": "float32"},
    {"m": 48, "n": 40, "k": 72, "dtype": "float32", "precision": "tf32", "layout": "NN"},
    {"m": 48, "n": 64, "k": 136, "dtype": "float32", "precision": "tf32"},
    {"m": 64, "n": 64, "k": 64, "dtype": "float32", "layout": "TN", "activation": "relu"},
    {"m": 17, "n": 64, "k": 136, "dtype": "int8", "out": "bfloat16", "bias": True},
    {"m": 64, "n": 32, "k": 64, "dtype": "int8", "layout": "TN"},
    {"m": 1, "n": 96, "k": 2048, "dtype": "bfloat16", "bias": True, "activation": "silu"},
    {"m": 1, "n": 257, "k": 515, "dtype": "float16", "layout": "NN", "gate": True},
)
_SIZES = (
    *((1, 4096, 4096), (16, 28672, 4096), (16, 4096, 14336), (64, 2112, 7168)),
    *((64, 8192, 28672), (512, 5120, 2880), (512, 6144, 4096), (4096, 10240, 8192)),
    *((4096, 2880, 4096), (4096, 7168, 2048), (8192, 28672, 4096)),
)
_SHAPES = (
    *({"m": m, "n": n, "k": k, "dtype": "bfloat16"} for m, n, k in _SIZES),
    {"m": 4096, "n": 4096, "k": 4096, "dtype": "bfloat16", "layout": "TN"},
)
OPERATORS = (
    Operator(
        name="matmul",
        summary="matrix product with bias, activation, gate and residual",
        call=matmul,
        reference=matmul_reference,
        inputs=_inputs,
        work=_work,
        batch=Batch(("a", "residual", "gate")),
        cases=_CASES,
        thorough=_THOROUGH,
        shapes=_SHAPES,
        spaces=(TILES, SUM, REST, VECTOR),
        gradient=Gradient(_setup, _gradient),
        tolerance=Tolerance(ulps=1.0, accumulated=4e-6),
        notes="tf32 is bfloat16x3 where the GPU has no instruction for it, which is more exact",
    ),
)
