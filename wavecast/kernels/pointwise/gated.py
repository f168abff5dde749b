"""Gated activations y = f(gate) · up: silu_mul (SwiGLU), gelu_mul (GeGLU), and their gradients."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from wavecast.kernels import checks
from wavecast.kernels.choice import launch
from wavecast.kernels.derivative import by_reference
from wavecast.kernels.inputs import Make
from wavecast.kernels.operator import Batch, Gradient, Operator
from wavecast.kernels.pointwise import elementwise, functions
from wavecast.kernels.pointwise.activation import gelu_name
from wavecast.kernels.pointwise.functions import activated, sloped
from wavecast.kernels.space import Settings


@triton.jit
def gated_kernel(
    gate_ptr, up_ptr, y_ptr, rows, columns, gate_stride, up_stride,
    NAME: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    across = tl.cdiv(columns, BLOCK)
    first = tl.program_id(0) // across * ROWS
    start = tl.program_id(0) % across * BLOCK
    down = tl.arange(0, ROWS)[:, None]
    along = tl.arange(0, BLOCK)[None, :]
    inside = (down < rows - first) & (along < columns - start)
    if WIDE:
        first = first.to(tl.int64)
    gate_ptr += first * gate_stride + start
    up_ptr += first * up_stride + start
    y_ptr += first * columns + start
    gate = tl.load(gate_ptr + down * gate_stride + along, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + down * up_stride + along, mask=inside, other=0.0).to(tl.float32)
    y = activated(gate, NAME) * up
    tl.store(y_ptr + down * columns + along, y.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def gated_backward_kernel(
    dy_ptr, gate_ptr, up_ptr, dgate_ptr, dup_ptr, rows, columns,
    dy_stride, gate_stride, up_stride, out_stride,
    NAME: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    across = tl.cdiv(columns, BLOCK)
    first = tl.program_id(0) // across * ROWS
    start = tl.program_id(0) % across * BLOCK
    down = tl.arange(0, ROWS)[:, None]
    along = tl.arange(0, BLOCK)[None, :]
    inside = (down < rows - first) & (along < columns - start)
    if WIDE:
        first = first.to(tl.int64)
    dy_ptr += first * dy_stride + start
    gate_ptr += first * gate_stride + start
    up_ptr += first * up_stride + start
    dgate_ptr += first * out_stride + start
    dup_ptr += first * out_stride + start
    dy = tl.load(dy_ptr + down * dy_stride + along, mask=inside, other=0.0).to(tl.float32)
    gate = tl.load(gate_ptr + down * gate_stride + along, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + down * up_stride + along, mask=inside, other=0.0).to(tl.float32)
    value, slope = sloped(gate, NAME)
    out = down * out_stride + along
    tl.store(dgate_ptr + out, (dy * up * slope).to(dgate_ptr.dtype.element_ty), mask=inside)
    tl.store(dup_ptr + out, (dy * value).to(dup_ptr.dtype.element_ty), mask=inside)


def silu_mul(x: torch.Tensor, up: torch.Tensor | None = None) -> torch.Tensor:
    """SwiGLU: silu(gate) · up, in float32, returned in the dtype of `x`.

    `x` is [..., 2 · columns], gate and up side by side; or, where `up` is given, the gate, and both
    are [..., columns]. float32, float16 or bfloat16. Raises ArgumentError.
    """
    return _forward("silu_mul", x, up, "silu")


def silu_mul_backward(
    dy: torch.Tensor, x: torch.Tensor, up: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients of `silu_mul` with respect to `x` and `up`, in the dtype of `x`; the second is
    empty where `up` is not given. Raises ArgumentError."""
    return _backward("silu_mul_backward", dy, x, up, "silu")


def gelu_mul(
    x: torch.Tensor, up: torch.Tensor | None = None, approximate: str = "none"
) -> torch.Tensor:
    """GeGLU: gelu(gate) · up, in float32, returned in the dtype of `x`.

    `x` is [..., 2 · columns], gate and up side by side; or, where `up` is given, the gate, and both
    are [..., columns]. float32, float16 or bfloat16; `approximate` as for `gelu`. Raises
    ArgumentError.
    """
    return _forward("gelu_mul", x, up, gelu_name("gelu_mul", approximate))


def gelu_mul_backward(
    dy: torch.Tensor, x: torch.Tensor, up: torch.Tensor | None = None, approximate: str = "none"
) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients of `gelu_mul` with respect to `x` and `up`, in the dtype of `x`; the second is
    empty where `up` is not given. Raises ArgumentError."""
    name = gelu_name("gelu_mul_backward", approximate)
    return _backward("gelu_mul_backward", dy, x, up, name)


def check(operator: str, x: torch.Tensor, up: torch.Tensor | None) -> int:
    """The columns of a gated activation's result. Raises ArgumentError."""
    checks.require(x.dim() > 0, operator, "x is a scalar")
    checks.dtype_in(operator, "x", x, checks.FLOATS)
    if up is not None:
        checks.require(up.dtype == x.dtype, operator, f"up is {up.dtype} and x is {x.dtype}")
        checks.shape_is(operator, "up", up, x.shape)
        checks.same_device(operator, x=x, up=up)
        return x.shape[-1]
    checks.require(
        x.shape[-1] % 2 == 0, operator, f"the last dimension of x is {x.shape[-1]}, expected even"
    )
    return x.shape[-1] // 2


def halves(
    x: torch.Tensor, up: torch.Tensor | None, columns: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gate and up as [rows, columns], their columns side by side."""
    flat = elementwise.rows_of(x)
    if up is None:
        return flat[:, :columns], flat[:, columns:]
    return flat, elementwise.rows_of(up)


def _forward(operator: str, x: torch.Tensor, up: torch.Tensor | None, name: str) -> torch.Tensor:
    columns = check(operator, x, up)
    y = torch.empty((*x.shape[:-1], columns), dtype=x.dtype, device=x.device)
    if not y.numel():
        return y
    gate, other = halves(x, up, columns)
    rows, size = gate.shape[0], x.element_size()
    launch(
        gated_kernel,
        _grid(rows, columns),
        (gate, other, y, rows, columns, gate.stride(0), other.stride(0)),
        FORWARD,
        {"rows": rows, "columns": columns, "read": 2 * size, "written": size, "name": name},
        NAME=name,
        WIDE=checks.wide(x, up, y),
    )
    return y


def _backward(
    operator: str, dy: torch.Tensor, x: torch.Tensor, up: torch.Tensor | None, name: str
) -> tuple[torch.Tensor, torch.Tensor]:
    columns = check(operator, x, up)
    checks.dtype_in(operator, "dy", dy, checks.FLOATS)
    checks.shape_is(operator, "dy", dy, (*x.shape[:-1], columns))
    checks.same_device(operator, dy=dy, x=x)
    dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    dup = torch.empty(x.shape if up is not None else (0,), dtype=x.dtype, device=x.device)
    if not dy.numel():
        return dx, dup
    gate, other = halves(x, up, columns)
    dgate, dother = halves(dx, dup if up is not None else None, columns)
    slopes = elementwise.rows_of(dy)
    rows, size = gate.shape[0], x.element_size()
    steps = slopes.stride(0), gate.stride(0), other.stride(0), dgate.stride(0)
    moved = {"read": 2 * size + dy.element_size(), "written": 2 * size}
    launch(
        gated_backward_kernel,
        _grid(rows, columns),
        (slopes, gate, other, dgate, dother, rows, columns, *steps),
        BACKWARD,
        {"rows": rows, "columns": columns, **moved, "name": name},
        NAME=name,
        WIDE=checks.wide(x, up, dy),
    )
    return dx, dup


def _grid(rows: int, columns: int) -> Any:
    def grid(settings: Settings) -> tuple[int, ...]:
        across = triton.cdiv(columns, settings["BLOCK"])
        return (triton.cdiv(rows, settings["ROWS"]) * across,)

    return grid


def _split(x: torch.Tensor, up: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
    kind = torch.promote_types(x.dtype, torch.float32)
    gate, other = x.chunk(2, dim=-1) if up is None else (x, up)
    return gate.to(kind), other.to(kind)


def _value(x: torch.Tensor, up: torch.Tensor | None, name: str) -> torch.Tensor:
    gate, other = _split(x, up)
    return (functions.reference(gate, name) * other).to(x.dtype).contiguous()


def _slopes(
    dy: torch.Tensor, x: torch.Tensor, up: torch.Tensor | None, name: str
) -> tuple[torch.Tensor, torch.Tensor]:
    gate, other = _split(x, up)
    wide = dy.to(gate.dtype)
    dgate = (wide * other * functions.reference_slope(gate, name)).to(x.dtype)
    dup = (wide * functions.reference(gate, name)).to(x.dtype)
    if up is None:
        return torch.cat([dgate, dup], dim=-1), dup.new_empty((0,))
    return dgate.contiguous(), dup.contiguous()


def silu_mul_reference(x: torch.Tensor, up: torch.Tensor | None = None) -> torch.Tensor:
    """`torch.nn.functional.silu` times up, in float32 at least."""
    return _value(x, up, "silu")


def silu_mul_backward_reference(
    dy: torch.Tensor, x: torch.Tensor, up: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """By the formula, in float32 at least."""
    return _slopes(dy, x, up, "silu")


def gelu_mul_reference(
    x: torch.Tensor, up: torch.Tensor | None = None, approximate: str = "none"
) -> torch.Tensor:
    """`torch.nn.functional.gelu` times up, in float32 at least."""
    return _value(x, up, gelu_name("gelu_mul", approximate))


def gelu_mul_backward_reference(
    dy: torch.Tensor, x: torch.Tensor, up: torch.Tensor | None = None, approximate: str = "none"
) -> tuple[torch.Tensor, torch.Tensor]:
    """By the formula, in float32 at least."""
    return _slopes(dy, x, up, gelu_name("gelu_mul_backward", approximate))


def _setup(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    del output
    ctx.save_for_backward(*inputs[:2])
    ctx.further = inputs[2:]


def _gradient(name: str) -> Gradient:
    def backward(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
        x, up = ctx.saved_tensors
        call = getattr(torch.ops.wavecast, f"{name}_backward")
        dx, dup = call(dy, x, up, *ctx.further)
        return dx, (None if up is None else dup), *(None for _ in ctx.further)

    return Gradient(_setup, backward)


FORWARD = elementwise.row_space("gated_kernel", operations=16.0, held=2.5)
BACKWARD = elementwise.row_space("gated_backward_kernel", operations=30.0, held=5.0)


def _inputs(
    make: Make, rows: int, columns: int, dtype: str, pair: bool = False, **named: Any
) -> dict[str, Any]:
    if pair:
        up = make.normal((rows, columns), dtype)
        return {"x": make.normal((rows, columns), dtype, 2.0), "up": up, **named}
    return {"x": make.normal((rows, 2 * columns), dtype, 2.0), "up": None, **named}


def _backward_inputs(make: Make, rows: int, columns: int, dtype: str, **named: Any) -> Any:
    dy = make.normal((rows, columns), dtype)
    return {"dy": dy, **_inputs(make, rows, columns, dtype, **named)}


def _elements(rows: int, columns: int, **_: Any) -> float:
    return rows * columns


_CASES = (
    {"rows": 5, "columns": 37, "dtype": "float32"},
    {"rows": 3, "columns": 300, "dtype": "bfloat16"},
    {"rows": 2, "columns": 2500, "dtype": "bfloat16", "pair": True},
)
_THOROUGH = (
    {"rows": 33, "columns": 64, "dtype": "float16"},
    {"rows": 17, "columns": 129, "dtype": "float32", "pair": True},
)
_SHAPES = (
    {"rows": 8192, "columns": 14336, "dtype": "bfloat16"},
    {"rows": 64, "columns": 14336, "dtype": "bfloat16"},
)


def _pair(
    name: str, summary: str, calls: tuple[Any, Any, Any, Any], flags: tuple[dict[str, Any], ...]
) -> tuple[Operator, Operator]:
    def flagged(sizes: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
        return tuple({**one, **flag} for one in sizes for flag in flags)

    forward, backward, reference, backward_reference = calls
    return (
        Operator(
            name=name,
            summary=summary,
            call=forward,
            reference=reference,
            inputs=_inputs,
            work=elementwise.work(_elements, 2, 1, 6.0),
            batch=Batch(("x", "up")),
            cases=flagged(_CASES),
            thorough=flagged(_THOROUGH),
            shapes=flagged(_SHAPES),
            spaces=(FORWARD,),
            gradient=_gradient(name),
        ),
        Operator(
            name=f"{name}_backward",
            summary=f"gradients of {name}",
            call=backward,
            reference=backward_reference,
            gradient=by_reference(backward_reference),
            inputs=_backward_inputs,
            work=elementwise.work(_elements, 3, 2, 12.0),
            batch=Batch(("dy", "x", "up"), unless=lambda up=None, **_: up is None),
            cases=flagged(_CASES),
            thorough=flagged(_THOROUGH),
            shapes=flagged(_SHAPES[:1]),
            spaces=(BACKWARD,),
        ),
    )


OPERATORS = (
    *_pair(
        "silu_mul",
        "SwiGLU: silu(gate) · up",
        (silu_mul, silu_mul_backward, silu_mul_reference, silu_mul_backward_reference),
        ({},),
    ),
    *_pair(
        "gelu_mul",
        "GeGLU: gelu(gate) · up",
        (gelu_mul, gelu_mul_backward, gelu_mul_reference, gelu_mul_backward_reference),
        ({"approximate": "none"}, {"approximate": "tanh"}),
    ),
)
