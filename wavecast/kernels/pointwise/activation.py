"""Activations y = f(x) of tensors of any shape: silu, gelu, relu_squared, and their gradients."""

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
from wavecast.kernels.pointwise.functions import activated, sloped
from wavecast.kernels.space import Settings


@triton.jit
def activation_kernel(
    x_ptr, y_ptr, count, NAME: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr
):
    program = tl.program_id(0)
    start = (program.to(tl.int64) if WIDE else program) * BLOCK
    place = tl.arange(0, BLOCK)
    inside = place < count - start
    x = tl.load(x_ptr + start + place, mask=inside, other=0.0).to(tl.float32)
    y = activated(x, NAME)
    tl.store(y_ptr + start + place, y.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def activation_backward_kernel(
    dy_ptr, x_ptr, dx_ptr, count, NAME: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr
):
    program = tl.program_id(0)
    start = (program.to(tl.int64) if WIDE else program) * BLOCK
    place = tl.arange(0, BLOCK)
    inside = place < count - start
    x = tl.load(x_ptr + start + place, mask=inside, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + start + place, mask=inside, other=0.0).to(tl.float32)
    _, slope = sloped(x, NAME)
    tl.store(dx_ptr + start + place, (dy * slope).to(dx_ptr.dtype.element_ty), mask=inside)


def silu(x: torch.Tensor) -> torch.Tensor:
    """x · sigmoid(x), of float32, float16 or bfloat16, in float32, returned in the dtype of `x`.
    Raises ArgumentError."""
    return _forward("silu", x, "silu")


def silu_backward(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The gradient of `silu` with respect to `x`, in its dtype. Raises ArgumentError."""
    return _backward("silu_backward", dy, x, "silu")


def gelu(x: torch.Tensor, approximate: str = "none") -> torch.Tensor:
    """x · Φ(x) with the distribution function Φ of the normal distribution, of float32, float16 or
    bfloat16, in float32 (to 8e-8 · |x|), returned in the dtype of `x`.

    `approximate="tanh"` is the usual approximation by the hyperbolic tangent. Raises
    ArgumentError.
    """
    return _forward("gelu", x, gelu_name("gelu", approximate))


def gelu_backward(dy: torch.Tensor, x: torch.Tensor, approximate: str = "none") -> torch.Tensor:
    """The gradient of `gelu` with respect to `x`, in its dtype. Raises ArgumentError."""
    return _backward("gelu_backward", dy, x, gelu_name("gelu_backward", approximate))


def relu_squared(x: torch.Tensor) -> torch.Tensor:
    """max(x, 0)², of float32, float16 or bfloat16, in float32, returned in the dtype of `x`.
    Raises ArgumentError."""
    return _forward("relu_squared", x, "relu_squared")


def relu_squared_backward(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The gradient of `relu_squared` with respect to `x`, in its dtype. Raises ArgumentError."""
    return _backward("relu_squared_backward", dy, x, "relu_squared")


def gelu_name(operator: str, approximate: str) -> str:
    """The function of `functions` that torch's argument names. Raises ArgumentError."""
    checks.require(
        approximate in ("none", "tanh"),
        operator,
        f"approximate is {approximate!r}; it takes 'none' and 'tanh'",
    )
    return "gelu_tanh" if approximate == "tanh" else "gelu"


def _forward(operator: str, x: torch.Tensor, name: str) -> torch.Tensor:
    checks.dtype_in(operator, "x", x, checks.FLOATS)
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    count = x.numel()
    if count:
        size = x.element_size()
        launch(
            activation_kernel,
            _grid(count),
            (x.contiguous(), y, count),
            FORWARD,
            {"count": count, "read": size, "written": size, "name": name},
            NAME=name,
            WIDE=checks.wide(y),
        )
    return y


def _backward(operator: str, dy: torch.Tensor, x: torch.Tensor, name: str) -> torch.Tensor:
    checks.dtype_in(operator, "x", x, checks.FLOATS)
    checks.dtype_in(operator, "dy", dy, checks.FLOATS)
    checks.shape_is(operator, "dy", dy, x.shape)
    checks.same_device(operator, dy=dy, x=x)
    dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    count = x.numel()
    if count:
        moved = {"read": elementwise.bytes_of(dy, x), "written": x.element_size()}
        launch(
            activation_backward_kernel,
            _grid(count),
            (dy.contiguous(), x.contiguous(), dx, count),
            BACKWARD,
            {"count": count, **moved, "name": name, "mixed": dy.dtype != x.dtype},
            NAME=name,
            WIDE=checks.wide(dx),
        )
    return dx


def _grid(count: int) -> Any:
    def grid(settings: Settings) -> tuple[int, ...]:
        return (triton.cdiv(count, settings["BLOCK"]),)

    return grid


def _value(x: torch.Tensor, name: str) -> torch.Tensor:
    kind = torch.promote_types(x.dtype, torch.float32)
    return functions.reference(x.to(kind), name).to(x.dtype).contiguous()


def _slope(dy: torch.Tensor, x: torch.Tensor, name: str) -> torch.Tensor:
    kind = torch.promote_types(x.dtype, torch.float32)
    return (dy.to(kind) * functions.reference_slope(x.to(kind), name)).to(x.dtype).contiguous()


def silu_reference(x: torch.Tensor) -> torch.Tensor:
    """`torch.nn.functional.silu`, in float32 at least."""
    return _value(x, "silu")


def silu_backward_reference(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """By the formula, in float32 at least."""
    return _slope(dy, x, "silu")


def gelu_reference(x: torch.Tensor, approximate: str = "none") -> torch.Tensor:
    """`torch.nn.functional.gelu`, in float32 at least."""
    return _value(x, gelu_name("gelu", approximate))


def gelu_backward_reference(
    dy: torch.Tensor, x: torch.Tensor, approximate: str = "none"
) -> torch.Tensor:
    """By the formula, in float32 at least."""
    return _slope(dy, x, gelu_name("gelu_backward", approximate))


def relu_squared_reference(x: torch.Tensor) -> torch.Tensor:
    """The square of `torch.relu`, in float32 at least."""
    return _value(x, "relu_squared")


def relu_squared_backward_reference(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """By the formula, in float32 at least."""
    return _slope(dy, x, "relu_squared")


def _setup(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    del output
    ctx.save_for_backward(inputs[0])
    ctx.further = inputs[1:]


def _gradient(name: str) -> Gradient:
    def backward(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
        (x,) = ctx.saved_tensors
        call = getattr(torch.ops.wavecast, f"{name}_backward")
        return call(dy, x, *ctx.further), *(None for _ in ctx.further)

    return Gradient(_setup, backward)


FORWARD = elementwise.flat_space("activation_kernel", operations=14.0, held=1.5)
BACKWARD = elementwise.flat_space("activation_backward_kernel", operations=20.0, held=2.5)


def _inputs(make: Make, rows: int, columns: int, dtype: str, **named: Any) -> dict[str, Any]:
    return {"x": make.normal((rows, columns), dtype, 2.0), **named}


def _backward_inputs(make: Make, rows: int, columns: int, dtype: str, **named: Any) -> Any:
    return {
        "dy": make.normal((rows, columns), dtype),
        **_inputs(make, rows, columns, dtype, **named),
    }


def _elements(rows: int, columns: int, **_: Any) -> float:
    return rows * columns


_CASES = (
    {"rows": 3, "columns": 300, "dtype": "bfloat16"},
    {"rows": 5, "columns": 701, "dtype": "float32"},
)
_LARGE = {"rows": 8192, "columns": 16384, "dtype": "bfloat16"}
_HALF = {"rows": 33, "columns": 64, "dtype": "float16"}


def _pair(
    name: str,
    summary: str,
    calls: tuple[Any, Any, Any, Any],
    cases: tuple[dict[str, Any], ...],
    thorough: tuple[dict[str, Any], ...],
    shapes: tuple[dict[str, Any], ...],
) -> tuple[Operator, Operator]:
    forward, backward, reference, backward_reference = calls
    return (
        Operator(
            name=name,
            summary=summary,
            call=forward,
            reference=reference,
            inputs=_inputs,
            work=elementwise.work(_elements, 1, 1, 5.0),
            batch=Batch(("x",)),
            cases=cases,
            thorough=thorough,
            shapes=shapes,
            spaces=(FORWARD,),
            gradient=_gradient(name),
        ),
        Operator(
            name=f"{name}_backward",
            summary=f"gradient of {name}",
            call=backward,
            reference=backward_reference,
            gradient=by_reference(backward_reference),
            inputs=_backward_inputs,
            work=elementwise.work(_elements, 2, 1, 10.0),
            batch=Batch(("dy", "x")),
            cases=cases,
            thorough=thorough,
            shapes=shapes,
            spaces=(BACKWARD,),
        ),
    )


def _approximations(sizes: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    return tuple({**sizes, "approximate": kind} for kind in ("none", "tanh"))


OPERATORS = (
    *_pair(
        "silu",
        "x · sigmoid(x)",
        (silu, silu_backward, silu_reference, silu_backward_reference),
        _CASES,
        (_HALF,),
        (_LARGE,),
    ),
    *_pair(
        "gelu",
        "Gaussian error linear unit, by the error function or tanh",
        (gelu, gelu_backward, gelu_reference, gelu_backward_reference),
        (*_approximations(_CASES[0]), *_approximations(_CASES[1])),
        _approximations(_HALF),
        _approximations(_LARGE),
    ),
    *_pair(
        "relu_squared",
        "max(x, 0)²",
        (
            relu_squared,
            relu_squared_backward,
            relu_squared_reference,
            relu_squared_backward_reference,
        ),
        _CASES,
        (_HALF,),
        (_LARGE,),
    ),
)
