"""Gated activations y = f(gate) · up: silu_mul (SwiGLU), gelu_mul (GeGLU), and their gradients."""

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import checks, choice, derivative
from wavecast.kernels.describe import Batch, Operator, Signature, Sizes, sizes, streamed, widened
from wavecast.kernels.pointwise import elementwise, functions
from wavecast.kernels.pointwise.activation import gelu_name
from wavecast.kernels.pointwise.functions import activated, value_and_derivative
from wavecast.kernels.strides import rows_of

TENSORS = Signature("x: [..., _] float", "up?: [..., _] =x", returns=("y: [..., columns] =x",))
BACKWARD_TENSORS = Signature(
    *("x: [..., _] float", "up?: [..., _] =x", "dy: [..., columns] float"),
    returns=("dx: [..., _] =x", "dup?: [..., columns] =x"),
)


@triton.jit
def gated_kernel(
    gate_ptr, up_ptr, y_ptr, rows, columns, gate_stride, up_stride,
    NAME: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    tiles_n = tl.cdiv(columns, BLOCK)
    start_m = tl.program_id(0) // tiles_n * ROWS
    start_n = tl.program_id(0) % tiles_n * BLOCK
    offs_m = tl.arange(0, ROWS)[:, None]
    offs_n = tl.arange(0, BLOCK)[None, :]
    mask = (offs_m < rows - start_m) & (offs_n < columns - start_n)
    if WIDE:
        start_m = start_m.to(tl.int64)
    gate_ptr += start_m * gate_stride + start_n
    up_ptr += start_m * up_stride + start_n
    y_ptr += start_m * columns + start_n
    gate = tl.load(gate_ptr + offs_m * gate_stride + offs_n, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + offs_m * up_stride + offs_n, mask=mask, other=0.0).to(tl.float32)
    y = activated(gate, NAME) * up
    tl.store(y_ptr + offs_m * columns + offs_n, y.to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def gated_backward_kernel(
    dy_ptr, gate_ptr, up_ptr, dgate_ptr, dup_ptr, rows, columns,
    dy_stride, gate_stride, up_stride, out_stride,
    NAME: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    tiles_n = tl.cdiv(columns, BLOCK)
    start_m = tl.program_id(0) // tiles_n * ROWS
    start_n = tl.program_id(0) % tiles_n * BLOCK
    offs_m = tl.arange(0, ROWS)[:, None]
    offs_n = tl.arange(0, BLOCK)[None, :]
    mask = (offs_m < rows - start_m) & (offs_n < columns - start_n)
    if WIDE:
        start_m = start_m.to(tl.int64)
    dy_ptr += start_m * dy_stride + start_n
    gate_ptr += start_m * gate_stride + start_n
    up_ptr += start_m * up_stride + start_n
    dgate_ptr += start_m * out_stride + start_n
    dup_ptr += start_m * out_stride + start_n
    dy = tl.load(dy_ptr + offs_m * dy_stride + offs_n, mask=mask, other=0.0).to(tl.float32)
    gate = tl.load(gate_ptr + offs_m * gate_stride + offs_n, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + offs_m * up_stride + offs_n, mask=mask, other=0.0).to(tl.float32)
    value, derivative = value_and_derivative(gate, NAME)
    out = offs_m * out_stride + offs_n
    tl.store(dgate_ptr + out, (dy * up * derivative).to(dgate_ptr.dtype.element_ty), mask=mask)
    tl.store(dup_ptr + out, (dy * value).to(dup_ptr.dtype.element_ty), mask=mask)


_STRIDES = {"gate": "gate_stride", "up": "up_stride"}
GATED = elementwise.row_kernel(
    gated_kernel, instructions=16.0, live_registers=2.5, strides=_STRIDES
)
BACKWARD = elementwise.row_kernel(
    gated_backward_kernel,
    instructions=30.0,
    live_registers=5.0,
    strides=_STRIDES | {"dy": "dy_stride", "dgate": "out_stride"},
)


def silu_mul(x: Tensor, up: Tensor | None = None) -> Tensor:
    """SwiGLU: silu(gate) · up, in float32, returned in the dtype of `x`.

    `x` is [..., 2 · columns], gate and up next to each other; or, where `up` is given, the gate,
    and both are [..., columns]. float32, float16 or bfloat16. Raises ArgumentError.
    """
    return _forward("silu_mul", x, up, "silu")


def silu_mul_backward(dy: Tensor, x: Tensor, up: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The gradients of `silu_mul` for `dy` [..., columns] with respect to `x` and `up`, in their
    shapes and the dtype of `x`; the second is empty where `up` is not given. Raises
    ArgumentError."""
    return _backward("silu_mul_backward", dy, x, up, "silu")


def gelu_mul(x: Tensor, up: Tensor | None = None, approximate: str = "none") -> Tensor:
    """GeGLU: gelu(gate) · up, in float32, returned in the dtype of `x`.

    `x` is [..., 2 · columns], gate and up next to each other; or, where `up` is given, the gate,
    and both are [..., columns]. float32, float16 or bfloat16; `approximate` as for `gelu`. Raises
    ArgumentError.
    """
    return _forward("gelu_mul", x, up, gelu_name("gelu_mul", approximate))


def gelu_mul_backward(
    dy: Tensor, x: Tensor, up: Tensor | None = None, approximate: str = "none"
) -> tuple[Tensor, Tensor]:
    """The gradients of `gelu_mul` for `dy` [..., columns] with respect to `x` and `up`, in their
    shapes and the dtype of `x`; the second is empty where `up` is not given. Raises
    ArgumentError."""
    name = gelu_name("gelu_mul_backward", approximate)
    return _backward("gelu_mul_backward", dy, x, up, name)


def check(operator: str, x: Tensor, up: Tensor | None) -> int:
    """The columns of a gated activation's result. Raises ArgumentError."""
    TENSORS.check(operator, {"x": x, "up": up})
    if up is not None:
        checks.shape_is(operator, "up", up, x.shape)
        return x.shape[-1]
    size = x.shape[-1]
    checks.require(size % 2 == 0, operator, f"the last dimension of x is {size}, expected even")
    return size // 2


def halves(x: Tensor, up: Tensor | None, columns: int) -> tuple[Tensor, Tensor]:
    """Gate and up as [rows, columns] with contiguous columns."""
    flat = rows_of(x)
    return (flat[:, :columns], flat[:, columns:]) if up is None else (flat, rows_of(up))


def _forward(operator: str, x: Tensor, up: Tensor | None, name: str) -> Tensor:
    columns = check(operator, x, up)
    y = torch.empty((*x.shape[:-1], columns), dtype=x.dtype, device=x.device)
    if not y.numel():
        return y
    gate, other = halves(x, up, columns)
    problem = {"rows": gate.shape[0], "columns": columns, "name": name}
    problem |= elementwise.traffic_entries((gate, other), (y,))
    choice.run(GATED, problem, gate=gate, up=other, y=y)
    return y


def _backward(
    operator: str, dy: Tensor, x: Tensor, up: Tensor | None, name: str
) -> tuple[Tensor, Tensor]:
    columns = check(operator, x, up)
    BACKWARD_TENSORS.check(operator, {"x": x, "up": up, "dy": dy}, columns=columns)
    dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    dup = torch.empty(x.shape if up is not None else (0,), dtype=x.dtype, device=x.device)
    if not dy.numel():
        return dx, dup
    gate, other = halves(x, up, columns)
    dgate, dother = halves(dx, dup if up is not None else None, columns)
    operands = {"dy": rows_of(dy), "gate": gate, "up": other, "dgate": dgate, "dup": dother}
    problem = {"rows": gate.shape[0], "columns": columns, "name": name}
    problem |= elementwise.traffic_entries((gate, other, dy), (dgate, dother))
    choice.run(BACKWARD, problem, **operands)
    return dx, dup


def _split(x: Tensor, up: Tensor | None) -> tuple[Tensor, Tensor]:
    gate, other = x.chunk(2, dim=-1) if up is None else (x, up)
    return widened(gate), widened(other)


def _value(x: Tensor, up: Tensor | None, name: str) -> Tensor:
    gate, other = _split(x, up)
    return (functions.reference(gate, name) * other).to(x.dtype).contiguous()


def _gradients(dy: Tensor, x: Tensor, up: Tensor | None, name: str) -> tuple[Tensor, Tensor]:
    gate, other = _split(x, up)
    wide = dy.to(gate.dtype)
    dgate = (wide * other * functions.reference_derivative(gate, name)).to(x.dtype)
    dup = (wide * functions.reference(gate, name)).to(x.dtype)
    if up is None:
        return torch.cat([dgate, dup], dim=-1), dup.new_empty((0,))
    return dgate.contiguous(), dup.contiguous()


def silu_mul_reference(x, up=None):
    return _value(x, up, "silu")


def silu_mul_backward_reference(dy, x, up=None):
    return _gradients(dy, x, up, "silu")


def gelu_mul_reference(x, up=None, approximate="none"):
    return _value(x, up, gelu_name("gelu_mul", approximate))


def gelu_mul_backward_reference(dy, x, up=None, approximate="none"):
    return _gradients(dy, x, up, gelu_name("gelu_mul_backward", approximate))


def inputs(make, rows, columns, dtype, pair=False, **options):
    """The arguments of a call: gate and up in one tensor, or a `pair`."""
    up = make.normal((rows, columns), dtype) if pair else None
    x = make.normal((rows, columns if pair else 2 * columns), dtype, 2.0)
    return {"x": x, "up": up, **options}


def _backward_inputs(make, rows, columns, dtype, **options):
    dy = make.normal((rows, columns), dtype)
    return {"dy": dy, **inputs(make, rows, columns, dtype, **options)}


def _pair(
    forward: Callable[..., Any], backward: Callable[..., Any], summary: str, *options: Sizes
) -> tuple[Operator, Operator]:
    """A gated activation and its gradients, each size with every one of `options`."""

    def each(names: str, *rows: tuple[Any, ...]) -> tuple[Sizes, ...]:
        cases = sizes(names, *rows)
        return tuple({**case, **option} for case in cases for option in options or ({},))

    operator = Operator(
        summary=summary,
        call=forward,
        tensors=TENSORS,
        inputs=inputs,
        work=streamed(2, 1, 6.0),
        batch=Batch(("x", "up")),
        cases=each(
            "rows columns dtype pair",
            *((5, 37, "float32"), (3, 300, "bfloat16"), (2, 2500, "bfloat16", True)),
        ),
        thorough=each("rows columns dtype pair", (33, 64, "float16"), (17, 129, "float32", True)),
        shapes=each("rows columns dtype", (8192, 14336, "bfloat16"), (64, 14336, "bfloat16")),
        gradient=derivative.by_operator(
            forward, backward.__name__, grads=("dy",), of=("x", "up"),
            saved=("x", "up", "approximate") if options else ("x", "up"),
        ),
    )  # fmt: skip
    return operator, derivative.operator(
        operator,
        backward,
        tensors=BACKWARD_TENSORS,
        inputs=_backward_inputs,
        work=streamed(3, 2, 12.0),
        batch=Batch(("dy", "x", "up"), unless=lambda up=None, **_: up is None),
        shapes=operator.shapes[: max(1, len(options))],
    )


OPERATORS = (
    *_pair(silu_mul, silu_mul_backward, "SwiGLU: silu(gate) · up"),
    *_pair(
        gelu_mul,
        gelu_mul_backward,
        "GeGLU: gelu(gate) · up",
        *({"approximate": "none"}, {"approximate": "tanh"}),
    ),
)
