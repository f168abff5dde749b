"""Operators as `torch.ops.wavecast.*`.

On tensors of a GPU, and inside `wavecast.device(…)` or a capture, an operator launches its kernels;
on other tensors of the CPU its reference answers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from wavecast.integrations.torch import batching
from wavecast.kernels import gpu, registry
from wavecast.kernels.operator import Operator

NAMESPACE = "wavecast"

_defined: dict[str, Any] = {}


def install() -> None:
    """Define every operator; those added later are defined as they come. Once per process."""
    if _defined:
        return
    for operator in registry.operators().values():
        define(operator)
    registry.listen(define)


def define(operator: Operator) -> None:
    """`torch.ops.wavecast.<name>`: implementation, fake, gradient, vmap."""
    schema = torch.library.infer_schema(operator.call, mutates_args=operator.mutates)
    defined = torch.library.custom_op(
        f"{NAMESPACE}::{operator.name}",
        _implementation(operator),
        mutates_args=operator.mutates,
        schema=schema,
    )
    defined.register_fake(operator.fake or _fake(operator))
    if operator.gradient is not None:
        defined.register_autograd(operator.gradient.backward, setup_context=operator.gradient.setup)
    if not operator.mutates:
        defined.register_vmap(batching.rule(operator))
    _defined[operator.name] = defined


def function(name: str) -> Callable[..., Any]:
    """An operator as a Python function, with the documentation of its description."""
    install()
    operator = registry.operator(name)
    overload = getattr(getattr(torch.ops, NAMESPACE), name)

    @functools.wraps(operator.call)
    def run(*args: Any, **named: Any) -> Any:
        return overload(*args, **named)

    return run


def _implementation(operator: Operator) -> Callable[..., Any]:
    def implementation(*args: Any, **named: Any) -> Any:
        if gpu.current(*_tensors(args), *_tensors(named.values())) is None:
            return operator.reference(*args, **named)
        return operator.call(*args, **named)

    return implementation


def _fake(operator: Operator) -> Callable[..., Any]:
    """Shapes and dtypes by the reference; what it writes in place does not matter."""

    def fake(*args: Any, **named: Any) -> Any:
        return operator.reference(*args, **named)

    return fake


def _tensors(values: Any) -> list[torch.Tensor]:
    found = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += [one for one in value if isinstance(one, torch.Tensor)]
    return found


__all__ = ["NAMESPACE", "define", "function", "install"]
