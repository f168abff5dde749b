"""Activations y = f(x) of tensors of any shape: silu, gelu, relu_squared, and their gradients."""

from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from wavecast.kernels import checks, derivative
from wavecast.kernels.describe import Operator, Sizes, normal, sizes, vector_flops, widened
from wavecast.kernels.pointwise import elementwise, functions
from wavecast.kernels.pointwise.functions import activated, value_and_derivative

TENSORS = elementwise.tensors("x", result="y")
BACKWARD_TENSORS = elementwise.tensors("x", "dy", result="dx")


@triton.jit
def activation_kernel(
    x_ptr, y_ptr, count, NAME: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr
):
    pid = tl.program_id(0)
    start = (pid.to(tl.int64) if WIDE else pid) * BLOCK
    offs = tl.arange(0, BLOCK)
    mask = offs < count - start
    x = tl.load(x_ptr + start + offs, mask=mask, other=0.0).to(tl.float32)
    y = activated(x, NAME)
    tl.store(y_ptr + start + offs, y.to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def activation_backward_kernel(
    dy_ptr, x_ptr, dx_ptr, count, NAME: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr
):
    pid = tl.program_id(0)
    start = (pid.to(tl.int64) if WIDE else pid) * BLOCK
    offs = tl.arange(0, BLOCK)
    mask = offs < count - start
    x = tl.load(x_ptr + start + offs, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + start + offs, mask=mask, other=0.0).to(tl.float32)
    _, derivative = value_and_derivative(x, NAME)
    tl.store(dx_ptr + start + offs, (dy * derivative).to(dx_ptr.dtype.element_ty), mask=mask)


ACTIVATION = elementwise.flat_kernel(activation_kernel, instructions=14.0, live_registers=1.5)
BACKWARD = elementwise.flat_kernel(
    activation_backward_kernel, instructions=20.0, live_registers=2.5
)


@TENSORS.checked
def silu(x: Tensor) -> Tensor:
    """x · sigmoid(x) of float32, float16 or bfloat16 of any shape, in float32, returned in the
    shape and dtype of `x`. Raises ArgumentError."""
    return elementwise.run(ACTIVATION, "y", x, x=x, NAME="silu")


@BACKWARD_TENSORS.checked
def silu_backward(dy: Tensor, x: Tensor) -> Tensor:
    """The gradient of `silu` with respect to `x`, in its shape, which `dy` has too, and its dtype.
    Raises ArgumentError."""
    return elementwise.run(BACKWARD, "dx", x, dy=dy, x=x, NAME="silu")


@TENSORS.checked
def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """x · Φ(x) with the distribution function Φ of the normal distribution, of float32, float16 or
    bfloat16 of any shape, in float32 (to 8e-8 · |x|), returned in the shape and dtype of `x`.

    `approximate="tanh"` is the usual approximation by the hyperbolic tangent. Raises
    ArgumentError.
    """
    return elementwise.run(ACTIVATION, "y", x, x=x, NAME=gelu_name("gelu", approximate))


@BACKWARD_TENSORS.checked
def gelu_backward(dy: Tensor, x: Tensor, approximate: str = "none") -> Tensor:
    """The gradient of `gelu` with respect to `x`, in its shape, which `dy` has too, and its dtype.
    Raises ArgumentError."""
    name = gelu_name("gelu_backward", approximate)
    return elementwise.run(BACKWARD, "dx", x, dy=dy, x=x, NAME=name)


@TENSORS.checked
def relu_squared(x: Tensor) -> Tensor:
    """max(x, 0)² of float32, float16 or bfloat16 of any shape, in float32, returned in the shape
    and dtype of `x`. Raises ArgumentError."""
    return elementwise.run(ACTIVATION, "y", x, x=x, NAME="relu_squared")


@BACKWARD_TENSORS.checked
def relu_squared_backward(dy: Tensor, x: Tensor) -> Tensor:
    """The gradient of `relu_squared` with respect to `x`, in its shape, which `dy` has too, and its
    dtype. Raises ArgumentError."""
    return elementwise.run(BACKWARD, "dx", x, dy=dy, x=x, NAME="relu_squared")


def gelu_name(operator: str, approximate: str) -> str:
    """The function of `functions` that torch's argument names. Raises ArgumentError."""
    checks.one_of(operator, "approximate", approximate, ("none", "tanh"))
    return "gelu_tanh" if approximate == "tanh" else "gelu"


def reference(name: str) -> Callable[..., Tensor]:
    """f by torch, in float32 at least."""

    def value(x, approximate="none"):
        function = gelu_name(name, approximate) if name == "gelu" else name
        return functions.reference(widened(x), function).to(x.dtype).contiguous()

    return value


def backward_reference(name: str) -> Callable[..., Tensor]:
    """dy · f' by its formula, in float32 at least."""

    def gradient(dy, x, approximate="none"):
        function = gelu_name(name, approximate) if name == "gelu" else name
        wide = widened(x)
        dx = dy.to(wide.dtype) * functions.reference_derivative(wide, function)
        return dx.to(x.dtype).contiguous()

    return gradient


def _pair(
    forward: Callable[..., Any], backward: Callable[..., Any], summary: str, *options: Sizes
) -> tuple[Operator, Operator]:
    """An activation and its gradient, each size with every one of `options`."""

    def each(*rows: tuple[Any, ...]) -> tuple[Sizes, ...]:
        cases = sizes("rows columns dtype", *rows)
        return tuple({**case, **option} for case in cases for option in options or ({},))

    name = forward.__name__
    operator = Operator(
        summary=summary,
        call=forward,
        reference=reference(name),
        inputs=TENSORS.inputs(x=normal(2.0)),
        flops=vector_flops(5.0, "rows", "columns"),
        gradient=derivative.by_operator(
            forward, backward.__name__, grads=("dy",), of=("x",),
            saved=("x", "approximate") if options else ("x",),
        ),
        cases=each((3, 300, "bfloat16"), (5, 701, "float32")),
        thorough=each((33, 64, "float16")),
        shapes=each((8192, 16384, "bfloat16")),
    )  # fmt: skip
    return operator, derivative.operator(
        operator,
        backward,
        reference=backward_reference(name),
        inputs=BACKWARD_TENSORS.inputs(x=normal(2.0)),
        flops=vector_flops(10.0, "rows", "columns"),
    )


OPERATORS = (
    *_pair(silu, silu_backward, "x · sigmoid(x)"),
    *_pair(
        gelu,
        gelu_backward,
        "Gaussian error linear unit, by the error function or tanh",
        *({"approximate": "none"}, {"approximate": "tanh"}),
    ),
    *_pair(relu_squared, relu_squared_backward, "max(x, 0)²"),
)
