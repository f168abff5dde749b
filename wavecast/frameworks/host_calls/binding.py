"""The arguments of an operator's call in a framework, and the GPU that it is for."""

from __future__ import annotations

import contextlib
import contextvars
import inspect
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

import numpy as np

from wavecast import arch
from wavecast.errors import ArgumentError, UsageError
from wavecast.frameworks.host_calls import arrays
from wavecast.frameworks.host_calls.calls import HostCall
from wavecast.kernels import registry
from wavecast.kernels.operator import Operator

_target: Final[contextvars.ContextVar[str]] = contextvars.ContextVar("target", default="")
"""The GPU that calls are traced for, "" for none."""


@contextlib.contextmanager
def device(selector: str = "gfx942") -> Iterator[None]:
    """Calls that are traced in the block execute the machine code of this GPU on the CPU. Raises
    UnknownName for an unknown GPU."""
    token = _target.set(arch.load(selector).id)
    try:
        yield
    finally:
        _target.reset(token)


def names() -> tuple[str, ...]:
    """The names of all operators that take arrays: those that take no lists of tensors."""
    return tuple(
        name for name, operator in registry.operators().items() if not _has_lists(operator)
    )


@cache
def signature(name: str) -> tuple[inspect.Signature, tuple[str, ...]]:
    """The parameters of an operator by its name, and those of them that are tensors. Raises
    UsageError for an operator of lists of tensors."""
    operator = registry.operator(name)
    if _has_lists(operator):
        raise UsageError(f"{name} takes lists of tensors; only wavecast.ops has it")
    parameters = inspect.signature(operator.call, eval_str=True)
    tensors = (
        n for n, parameter in parameters.parameters.items() if "Tensor" in str(parameter.annotation)
    )
    return parameters, tuple(tensors)


def bind(
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    as_array: Callable[[Any], Any],
    is_array: Callable[[Any], bool],
) -> tuple[HostCall, tuple[Any, ...]]:
    """A call of an operator, and its arrays, which `as_array` makes of what is given for tensors.
    Raises ArgumentError for an array where a Python value is expected."""
    parameters, tensors = signature(name)
    bound = parameters.bind(*args, **kwargs)
    bound.apply_defaults()
    arguments = bound.arguments
    operands = {
        tensor: as_array(arguments[tensor]) for tensor in tensors if arguments[tensor] is not None
    }
    plain = []
    for argument, value in arguments.items():
        if argument not in operands and is_array(value):
            raise ArgumentError(f"{name}: {argument} must be a Python value, not an array")
        plain.append((argument, None if argument in operands else _plain(value)))
    ranks = tuple((tensor, len(value.shape)) for tensor, value in operands.items())
    return HostCall(name, tuple(plain), ranks, _target.get()), tuple(operands.values())


def _plain(value: Any) -> Any:
    """An argument that is not an array, as PyTorch takes it."""
    if isinstance(value, (type, np.dtype)):
        return arrays.torch_dtype(value)
    if hasattr(value, "as_numpy_dtype"):  # of TensorFlow
        return arrays.torch_dtype(value.as_numpy_dtype)
    if hasattr(value, "dtype"):  # of JAX
        return arrays.torch_dtype(value.dtype)
    return tuple(value) if isinstance(value, list) else value


def _has_lists(operator: Operator) -> bool:
    """Whether an operator takes lists of tensors; lists of numbers are plain arguments."""
    types = map(str, operator.call.__annotations__.values())
    return any("list" in annotation and "Tensor" in annotation for annotation in types)


__all__ = ["bind", "device", "names", "signature"]
