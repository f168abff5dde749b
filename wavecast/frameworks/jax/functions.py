"""An operator of the kernel library as a function on JAX arrays."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# JAX is optional; a checker without it takes this package for it.

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import CustomVJPPrimal, SymbolicZero

from wavecast.frameworks.host_calls import binding
from wavecast.frameworks.host_calls.calls import HostCall, HostGradient
from wavecast.kernels import registry


def function(name: str) -> Callable[..., Any]:
    """An operator on JAX arrays, with `jit`, `vmap`, `grad` and `shard_map`.

    Arguments are those of `wavecast.ops`: arrays for tensors, dtypes of JAX or PyTorch, Python
    values for the rest. It returns what the operator returns, and then the arguments it writes,
    which stay as they are. Raises UsageError for an operator of lists of tensors.
    """
    binding.signature(name)

    @functools.wraps(registry.operator(name).call)
    def run(*args: Any, **kwargs: Any) -> Any:
        call, operands = binding.bind(name, args, kwargs, jnp.asarray, _is_array)
        results = _differentiable(call)(*operands)
        return results[0] if len(results) == 1 else results

    return run


def _is_array(value: Any) -> bool:
    return isinstance(value, jax.Array)


@functools.lru_cache(maxsize=1024)
def _differentiable(call: HostCall) -> Callable[..., tuple[jax.Array, ...]]:
    """The call as a function of its arrays, with its derivative where the operator has one."""

    def run(*operands: Any) -> tuple[jax.Array, ...]:
        return _callback(call.run, _results(call, operands), operands)

    if call.operator.gradient is None:
        return run
    differentiable = jax.custom_vjp(run)

    def forward(*primals: CustomVJPPrimal) -> Any:
        values = [primal.value for primal in primals]
        results = run(*values)
        indices = tuple(
            n for n, primal in enumerate(primals) if primal.perturbed and _floats(primal.value)
        )
        return results, (_Static(indices), values, results)

    def backward(saved: Any, grads: Sequence[Any]) -> tuple[Any, ...]:
        indices, values, results = saved
        shapes = tuple((result.ndim, _floats(result)) for result in results)
        dense = [_dense(grad) for grad, (_, floats) in zip(grads, shapes, strict=True) if floats]
        structs = [jax.ShapeDtypeStruct(values[n].shape, values[n].dtype) for n in indices.value]
        gradient = HostGradient(call, indices.value, shapes)
        gradients = _callback(gradient.run, structs, (*values, *results, *dense))
        by_number = dict(zip(indices.value, gradients, strict=True))
        return tuple(by_number.get(number) for number in range(len(values)))

    differentiable.defvjp(forward, backward, symbolic_zeros=True)
    return differentiable


def _callback(
    run: Callable[..., Any], results: Sequence[jax.ShapeDtypeStruct], operands: Sequence[Any]
) -> tuple[jax.Array, ...]:
    """A call of the host whose results have these shapes and dtypes."""

    def run_and_cast(*values: Any) -> tuple[Any, ...]:
        outputs = run(*values)
        return tuple(
            output.astype(to.dtype, copy=False) for output, to in zip(outputs, results, strict=True)
        )

    return jax.pure_callback(run_and_cast, tuple(results), *operands, vmap_method="expand_dims")


def _results(call: HostCall, operands: Sequence[Any]) -> list[jax.ShapeDtypeStruct]:
    """Shapes and dtypes of the results; int64 is what JAX makes of it."""
    return [
        jax.ShapeDtypeStruct(shape, jax.dtypes.canonicalize_dtype(dtype))
        for shape, dtype in call.shapes(operands)
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


__all__ = ["function"]
