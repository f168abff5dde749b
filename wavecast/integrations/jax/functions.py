"""An operator of the kernel library as a function on JAX arrays."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# JAX is optional; a checker without it takes this package for it.

from __future__ import annotations

import contextvars
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax.custom_derivatives import CustomVJPPrimal, SymbolicZero
from torch._subclasses.fake_tensor import FakeTensorMode

from wavecast.errors import UsageError
from wavecast.integrations.jax import arrays
from wavecast.integrations.jax.host import HostCall, HostGradient
from wavecast.kernels.checks import ArgumentError
from wavecast.kernels.operator import Operator

target: Final[contextvars.ContextVar[str]] = contextvars.ContextVar("target", default="")
"""The GPU that calls are traced for, "" for none."""


def function(operator: Operator) -> Callable[..., Any]:
    """The operator on JAX arrays, with `jit`, `vmap`, `grad` and `shard_map`.

    Arguments are those of `wavecast.ops`: arrays for tensors, dtypes of JAX or PyTorch, Python
    values for the rest. It returns what the operator returns, and then the arguments it writes,
    which stay as they are. Raises UsageError for an operator of lists of tensors.
    """
    signature = inspect.signature(operator.call, eval_str=True)
    if any("list" in str(one.annotation) for one in signature.parameters.values()):
        raise UsageError(f"{operator.name} takes lists of tensors; wavecast.jax has no such form")
    tensors = [
        name for name, one in signature.parameters.items() if "Tensor" in str(one.annotation)
    ]

    @functools.wraps(operator.call)
    def run(*args: Any, **named: Any) -> Any:
        bound = signature.bind(*args, **named)
        bound.apply_defaults()
        given = bound.arguments
        found = {name: jnp.asarray(given[name]) for name in tensors if given[name] is not None}
        plain = tuple(
            (name, None if name in found else _plain(operator, name, value))
            for name, value in given.items()
        )
        ranks = tuple((name, one.ndim) for name, one in found.items())
        call = HostCall(operator.name, plain, ranks, target.get())
        results = _differentiable(call)(*found.values())
        return results[0] if len(results) == 1 else results

    return run


def _plain(operator: Operator, name: str, value: Any) -> Any:
    """An argument that is not an array, as PyTorch takes it. Raises ArgumentError for an array."""
    if isinstance(value, jax.Array):
        raise ArgumentError(f"{operator.name}: {name} must be a Python value, not an array")
    if isinstance(value, type) or hasattr(value, "dtype") or isinstance(value, np.dtype):
        return arrays.torch_dtype(value)
    return tuple(value) if isinstance(value, list) else value


@functools.lru_cache(maxsize=1024)
def _differentiable(call: HostCall) -> Callable[..., tuple[jax.Array, ...]]:
    """The call as a function of its arrays, with its derivative where the operator has one."""

    def run(*given: Any) -> tuple[jax.Array, ...]:
        return _callback(call.run, _results(call, given), given)

    if call.operator.gradient is None:
        return run
    differentiable = jax.custom_vjp(run)

    def forward(*given: CustomVJPPrimal) -> Any:
        values = [one.value for one in given]
        results = run(*values)
        needed = tuple(n for n, one in enumerate(given) if one.perturbed and _floats(one.value))
        return results, (_Static(needed), values, results)

    def backward(saved: Any, grads: Sequence[Any]) -> tuple[Any, ...]:
        needed, values, results = saved
        shapes = tuple((one.ndim, _floats(one)) for one in results)
        dense = [_dense(one) for one, (_, floats) in zip(grads, shapes, strict=True) if floats]
        wanted = [jax.ShapeDtypeStruct(values[n].shape, values[n].dtype) for n in needed.value]
        gradient = HostGradient(call, needed.value, shapes)
        found = _callback(gradient.run, wanted, (*values, *results, *dense))
        by_number = dict(zip(needed.value, found, strict=True))
        return tuple(by_number.get(number) for number in range(len(values)))

    differentiable.defvjp(forward, backward, symbolic_zeros=True)
    return differentiable


def _callback(
    run: Callable[..., Any], results: Sequence[jax.ShapeDtypeStruct], given: Sequence[Any]
) -> tuple[jax.Array, ...]:
    """A call of the host whose results have these shapes and dtypes."""

    def converted(*values: Any) -> tuple[Any, ...]:
        found = run(*values)
        return tuple(
            one.astype(to.dtype, copy=False) for one, to in zip(found, results, strict=True)
        )

    return jax.pure_callback(converted, tuple(results), *given, vmap_method="expand_dims")


def _results(call: HostCall, given: Sequence[Any]) -> list[jax.ShapeDtypeStruct]:
    """Shapes and dtypes of the results; int64 is what JAX makes of it."""
    with FakeTensorMode():
        fakes = [torch.empty(one.shape, dtype=arrays.torch_dtype(one.dtype)) for one in given]
        found = call.results(*fakes)
    return [
        jax.ShapeDtypeStruct(
            tuple(one.shape), jax.dtypes.canonicalize_dtype(arrays.numpy_dtype(one.dtype))
        )
        for one in found
    ]


@jax.tree_util.register_static
class _Static:
    """A value that is not an array, among those kept for the derivative."""

    def __init__(self, value: tuple[int, ...]) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Static) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


def _floats(value: Any) -> bool:
    return jnp.issubdtype(value.dtype, jnp.floating)


def _dense(grad: Any) -> Any:
    if isinstance(grad, SymbolicZero):
        return jnp.zeros(grad.shape, grad.dtype)
    return grad


__all__ = ["function", "target"]
