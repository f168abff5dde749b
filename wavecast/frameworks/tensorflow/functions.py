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
from wavecast.frameworks.host_calls import binding
from wavecast.frameworks.host_calls.calls import HostCall, HostGradient
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
    def run(*args: Any, **kwargs: Any) -> Any:
        call, operands = binding.bind(name, args, kwargs, tf.convert_to_tensor, tf.is_tensor)
        unknown = [argument for argument, tensor in zip(call.tensors, operands, strict=True)
                   if not tensor.shape.is_fully_defined()]  # fmt: skip
        if unknown:
            raise UsageError(f"{name}: the shape of {unknown[0][0]} is not known when it is traced")
        results = _differentiable(call)(*operands)
        return results[0] if len(results) == 1 else tuple(results)

    return run


@functools.lru_cache(maxsize=1024)
def _differentiable(call: HostCall) -> Callable[..., list[Any]]:
    """The call as a function of its tensors, with its derivative where the operator has one."""

    def run(*operands: Any) -> list[Any]:
        return _on_host(
            call.run, call.shapes([_described(operand) for operand in operands]), operands
        )

    if call.operator.gradient is None:
        return run

    @tf.custom_gradient
    def differentiable(*operands: Any) -> Any:
        results = run(*operands)

        def backward(*grads: Any) -> list[Any]:
            shapes = tuple((len(result.shape), result.dtype.is_floating) for result in results)
            floats = tuple(n for n, operand in enumerate(operands) if operand.dtype.is_floating)
            dense = [grad for grad, (_, is_float) in zip(grads, shapes, strict=True) if is_float]
            signatures = [list(map(_described, some)) for some in (operands, results)]
            indices = HostGradient(call, floats, shapes).defined_arguments(*signatures)
            gradient = HostGradient(call, indices, shapes)
            outputs = [
                (tuple(operands[n].shape), operands[n].dtype.as_numpy_dtype) for n in indices
            ]
            gradients = _on_host(gradient.run, outputs, (*operands, *results, *dense))
            by_number = dict(zip(indices, gradients, strict=True))
            return [by_number.get(number) for number in range(len(operands))]

        return results, backward

    return differentiable


def _on_host(
    run: Callable[..., Any], results: Sequence[tuple[tuple[int, ...], Any]], operands: Sequence[Any]
) -> list[Any]:
    """A call of the host whose results have these shapes and dtypes."""
    if not results:
        return []

    def run_to_list(*values: Any) -> list[np.ndarray[Any, Any]]:
        return list(run(*values))

    outputs = tf.numpy_function(
        run_to_list, list(operands), [tf.as_dtype(dtype) for _, dtype in results]
    )
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]  # one, in eager mode
    return [
        tf.ensure_shape(output, shape) for output, (shape, _) in zip(outputs, results, strict=True)
    ]


class _described:
    """Shape and dtype of a tensor, in numpy's terms."""

    def __init__(self, tensor: Any) -> None:
        self.shape = tuple(tensor.shape)
        self.dtype = np.dtype(tensor.dtype.as_numpy_dtype)


__all__ = ["function"]
