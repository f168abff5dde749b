"""An operator of the kernel library as a function on tensors of TensorFlow."""

# pyright: reportMissingImports=false, reportMissingModuleSource=false, reportAttributeAccessIssue=false
# TensorFlow is optional; a checker without it takes this package for it.

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from wavecast.errors import UsageError
from wavecast.integrations.host_calls import binding
from wavecast.integrations.host_calls.calls import HostCall, HostGradient
from wavecast.kernels import registry


def function(name: str) -> Callable[..., Any]:
    """An operator on tensors of TensorFlow, in eager mode and in `tf.function`, with gradients.

    Arguments are those of `wavecast.ops`: tensors for tensors, dtypes of TensorFlow or PyTorch,
    Python values for the rest. It returns what the operator returns, and then the arguments it
    writes, which stay as they are. Raises UsageError for an operator of lists of tensors.
    """
    binding.signature(name)

    @tf.autograph.experimental.do_not_convert
    @functools.wraps(registry.operator(name).call)
    def run(*args: Any, **named: Any) -> Any:
        call, given = binding.bind(name, args, named, tf.convert_to_tensor, tf.is_tensor)
        unknown = [one for one, tensor in zip(call.tensors, given, strict=True)
                   if not tensor.shape.is_fully_defined()]  # fmt: skip
        if unknown:
            raise UsageError(f"{name}: the shape of {unknown[0][0]} is not known when it is traced")
        results = _differentiable(call)(*given)
        return results[0] if len(results) == 1 else tuple(results)

    return run


@functools.lru_cache(maxsize=1024)
def _differentiable(call: HostCall) -> Callable[..., list[Any]]:
    """The call as a function of its tensors, with its derivative where the operator has one."""

    def run(*given: Any) -> list[Any]:
        return _on_host(call.run, call.shapes([_described(one) for one in given]), given)

    if call.operator.gradient is None:
        return run

    @tf.custom_gradient
    def differentiable(*given: Any) -> Any:
        results = run(*given)

        def backward(*grads: Any) -> list[Any]:
            shapes = tuple((len(one.shape), one.dtype.is_floating) for one in results)
            floats = tuple(n for n, one in enumerate(given) if one.dtype.is_floating)
            dense = [one for one, (_, is_float) in zip(grads, shapes, strict=True) if is_float]
            described = [list(map(_described, some)) for some in (given, results)]
            needed = HostGradient(call, floats, shapes).defined(*described)
            gradient = HostGradient(call, needed, shapes)
            wanted = [(tuple(given[n].shape), given[n].dtype.as_numpy_dtype) for n in needed]
            found = _on_host(gradient.run, wanted, (*given, *results, *dense))
            by_number = dict(zip(needed, found, strict=True))
            return [by_number.get(number) for number in range(len(given))]

        return results, backward

    return differentiable


def _on_host(
    run: Callable[..., Any], results: Sequence[tuple[tuple[int, ...], Any]], given: Sequence[Any]
) -> list[Any]:
    """A call of the host whose results have these shapes and dtypes."""
    if not results:
        return []

    def listed(*values: Any) -> list[np.ndarray[Any, Any]]:
        return list(run(*values))

    found = tf.numpy_function(listed, list(given), [tf.as_dtype(dtype) for _, dtype in results])
    found = found if isinstance(found, (list, tuple)) else [found]  # one, in eager mode
    return [tf.ensure_shape(one, shape) for one, (shape, _) in zip(found, results, strict=True)]


class _described:
    """Shape and dtype of a tensor, in numpy's terms."""

    def __init__(self, tensor: Any) -> None:
        self.shape = tuple(tensor.shape)
        self.dtype = np.dtype(tensor.dtype.as_numpy_dtype)


__all__ = ["function"]
