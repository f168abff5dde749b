"""Operators as `torch.ops.wavecast.*`.

On tensors of a GPU, and inside `wavecast.device(…)` or a capture, an operator launches its kernels;
on other tensors of the CPU its reference answers.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
from torch import Tensor
from torch._compile import _disable_dynamo

from wavecast.errors import ArgumentError
from wavecast.frameworks.torch import autograd, batching
from wavecast.frameworks.torch.replay import MISSED, RepeatedCalls, repeated_calls
from wavecast.kernels import registry
from wavecast.kernels.operator import Operator
from wavecast.kernels.refusal import refuse
from wavecast.launch import gpu
from wavecast.runtimes.imported import DTENSOR, DYNAMO, TRANSFORMERS, when_imported
from wavecast.runtimes.patching import Patches

NAMESPACE: Final = "wavecast"

_library: Final = torch.library.Library(NAMESPACE, "FRAGMENT")
_defined: Final[set[str]] = set()


def install() -> None:
    """Define every operator; those added later are defined as they come. Once per process."""
    if _defined:
        return
    for operator in registry.operators().values():
        define(operator)
    registry.listen(define)
    when_imported(Patches(), DTENSOR, "wavecast.frameworks.torch.sharding")
    when_imported(Patches(), DYNAMO, "wavecast.frameworks.torch.inductor_backend")
    when_imported(Patches(), TRANSFORMERS, "wavecast.frameworks.torch.huggingface_names")


def define(operator: Operator) -> None:
    """`torch.ops.wavecast.<name>`: implementation, fake, gradient, vmap."""
    _defined.add(operator.name)
    schema = torch.library.infer_schema(operator.call, mutates_args=operator.mutates)
    if (
        operator.mutates or "Tensor[]" in schema
    ):  # `autograd.kernel` takes single tensors, unchanged
        _custom(operator, schema)
        return
    qualified = f"{NAMESPACE}::{operator.name}"
    _library.define(f"{operator.name}{schema}", tags=(torch.Tag.pt2_compliant_tag,))
    overload = getattr(getattr(torch.ops, NAMESPACE), operator.name).default
    run = _implementation(operator, _fresh)
    _library.impl(operator.name, run, "CompositeExplicitAutograd")
    torch.library.register_fake(
        qualified, _fresh(operator.fake or operator.reference), lib=_library
    )
    repeated = repeated_calls(operator.name)
    differentiable = autograd.kernel(overload, operator.gradient, repeated.below)
    _library.impl(operator.name, differentiable, "Autograd", with_keyset=True)
    torch.library.register_vmap(qualified, batching.rule(operator), lib=_library)


def _custom(operator: Operator, schema: str) -> None:
    defined = torch.library.custom_op(
        f"{NAMESPACE}::{operator.name}",
        _implementation(operator, lambda function: function),
        mutates_args=operator.mutates,
        schema=schema,
    )
    defined.register_fake(operator.fake or operator.reference)
    if operator.gradient is not None:
        defined.register_autograd(operator.gradient.backward, setup_context=operator.gradient.setup)
    if not operator.mutates:
        defined.register_vmap(batching.rule(operator))


def function(name: str) -> Callable[..., Any]:
    """An operator as a Python function, with the documentation of its description."""
    install()
    operator = registry.operator(name)
    overload = getattr(getattr(torch.ops, NAMESPACE), name)
    repeated = repeated_calls(name)

    @functools.wraps(operator.call)
    def run(*args: Any, **kwargs: Any) -> Any:
        if not torch.compiler.is_dynamo_compiling():
            result = repeated.eager(args, kwargs)
            if result is not MISSED:
                return result
        return overload(*args, **kwargs)

    return run


def _implementation(
    operator: Operator, fresh: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Callable[..., Any]:
    """The kernel of an operator below PyTorch's dispatcher, with results made `fresh`."""
    repeated = RepeatedCalls(operator, fresh(operator.call))
    reference = fresh(operator.reference)

    @_disable_dynamo
    def prepare_and_run(
        key: tuple[Any, ...] | None, tensors: list[Tensor], args: Any, kwargs: dict[str, Any]
    ) -> Any:
        arguments = {**dict(zip(repeated.names, args, strict=False)), **kwargs}
        device = device_of(operator.name, arguments)
        if gpu.emulated is None and device.type == "cpu":
            refuse(operator, arguments)
            return reference(**arguments)
        with torch.cuda.device(device) if device.type == "cuda" else contextlib.nullcontext():
            return repeated.call(key, tensors, arguments)

    def implementation(*args: Any, **kwargs: Any) -> Any:
        key, tensors = repeated.replayable(args, kwargs)
        call = None if key is None else repeated.find(key)
        return prepare_and_run(key, tensors, args, kwargs) if call is None else call.run(tensors)

    return implementation


def device_of(operator: str, arguments: Mapping[str, Any]) -> torch.device:
    """Where all tensors of a call lie. Raises ArgumentError."""
    by_name = {
        name: tensor.device for name, value in arguments.items() for tensor in _tensors(value)
    }
    devices = set(by_name.values())
    if len(devices) > 1:
        summary = ", ".join(f"{name} on {device}" for name, device in by_name.items())
        raise ArgumentError(f"{operator}: tensors on several devices: {summary}")
    return devices.pop() if devices else torch.device("cpu")


def _fresh(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose results share no memory with its arguments, nor with each other: PyTorch
    relies on it. References may return an argument that they had nothing to do with."""

    def run(*args: Any, **kwargs: Any) -> Any:
        output = function(*args, **kwargs)
        storages = {
            tensor.untyped_storage()._cdata for tensor in _tensors((*args, *kwargs.values()))
        }

        def own(result: Tensor) -> Tensor:
            memory = result.untyped_storage()._cdata
            if memory in storages:
                return result.clone()
            storages.add(memory)
            return result

        return (
            own(output) if isinstance(output, Tensor) else tuple(own(element) for element in output)
        )

    return run


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [element for element in value if isinstance(element, Tensor)]
    return []


__all__ = ["NAMESPACE", "define", "device_of", "function", "install"]
