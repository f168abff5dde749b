"""Calls of operators on arrays of the host: on an emulated GPU, or as their reference."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from wavecast.errors import UsageError
from wavecast.frameworks.host_calls import arrays
from wavecast.frameworks.torch.library import function
from wavecast.kernels import registry
from wavecast.kernels.operator import Operator
from wavecast.launch import gpu
from wavecast.runtimes.triton.device import device

_LOCK: Final = threading.Lock()
"""Frameworks run callbacks on several threads; an emulated GPU belongs to the process."""

Arrays = tuple[np.ndarray[Any, Any], ...]
Tensors = tuple[torch.Tensor, ...]


@dataclass(frozen=True, slots=True)
class HostCall:
    """A call of the operator `name` whose arrays come later.

    `arguments` are its values by name, in order, with None for the arrays; `tensors` names the
    arrays and says how many dimensions they have. `target` is the GPU to emulate, "" for the
    reference. Arguments that the operator writes are results, after those it returns.
    """

    name: str
    arguments: tuple[tuple[str, Any], ...]
    tensors: tuple[tuple[str, int], ...]
    target: str

    @property
    def operator(self) -> Operator:
        """The description of the operator."""
        return registry.operator(self.name)

    def results(self, *inputs: torch.Tensor) -> Tensors:
        """The results of the call on tensors, on the GPU or the fake tensors at hand. What it
        writes is copied first."""
        values = self.bound(inputs)
        for name in self.operator.mutates:
            values[name] = values[name].clone()
        output = function(self.name)(**values)
        results = output if isinstance(output, tuple) else () if output is None else (output,)
        return *results, *(values[name] for name in self.operator.mutates)

    def shapes(self, inputs: Sequence[Any]) -> list[tuple[tuple[int, ...], np.dtype[Any]]]:
        """Shapes and dtypes of the results, of arrays with these shapes and dtypes."""
        with FakeTensorMode():
            results = self.results(*map(_fake, inputs))
        return [(tuple(result.shape), arrays.numpy_dtype(result.dtype)) for result in results]

    def run(self, *inputs: Any) -> Arrays:
        """The results as arrays of numpy, in leading dimensions beyond the call's own, which
        `jax.vmap` adds, one for each."""
        ranks = [rank for _, rank in self.tensors]
        at_once = not self.operator.mutates
        return self.on_host(
            lambda tensors: _map_batch(self.results, tensors, ranks, at_once=at_once), inputs
        )

    def bound(self, inputs: Sequence[Any]) -> dict[str, Any]:
        """All arguments by name, with `inputs` in the order of `tensors`."""
        names = (name for name, _ in self.tensors)
        return {**dict(self.arguments), **dict(zip(names, inputs, strict=True))}

    def on_host(self, compute: Callable[[Sequence[torch.Tensor]], Tensors], inputs: Any) -> Arrays:
        """What `compute` makes of arrays of numpy, on the GPU of the call."""
        tensors = [arrays.tensor(np.asarray(array)) for array in inputs]
        with _LOCK, self._device():
            return tuple(arrays.array(tensor) for tensor in compute(tensors))

    def _device(self) -> AbstractContextManager[Any]:
        if gpu.emulated is not None:
            raise UsageError(
                "a call of another framework inside wavecast.device",
                hint="use the device of its module: wavecast.jax.device, say",
            )
        return device(self.target) if self.target else contextlib.nullcontext()


@dataclass(frozen=True, slots=True)
class HostGradient:
    """The gradients of a call with respect to the arrays with the numbers `needed`; `results` has
    the dimensions of every result, and whether it is of floats."""

    call: HostCall
    needed: tuple[int, ...]
    results: tuple[tuple[int, bool], ...]

    def run(self, *operands: Any) -> Arrays:
        """The gradients as arrays of numpy. `operands` are the arrays of the call, its results, and
        the gradients of those results that are of floats."""
        ranks = [rank for _, rank in self.call.tensors]
        ranks += [rank for rank, _ in self.results]
        ranks += [rank for rank, floats in self.results if floats]
        return self.call.on_host(
            lambda tensors: _map_batch(self._backward, tensors, ranks, at_once=False), operands
        )

    def defined_arguments(self, inputs: Sequence[Any], results: Sequence[Any]) -> tuple[int, ...]:
        """The numbers of `needed` that the operator has a gradient for, of arrays and results with
        these shapes and dtypes."""
        floats = [
            result for result, (_, is_float) in zip(results, self.results, strict=True) if is_float
        ]
        with FakeTensorMode():
            gradients = self._formula(*map(_fake, (*inputs, *results, *floats)))
        names = [self.call.tensors[number][0] for number in self.needed]
        return tuple(
            number
            for number, name in zip(self.needed, names, strict=True)
            if gradients.get(name) is not None
        )

    def _backward(self, *operands: torch.Tensor) -> Tensors:
        names = [self.call.tensors[number][0] for number in self.needed]
        gradients = self._formula(*operands)
        return tuple(
            self._gradient(name, gradients.get(name), operands[number])
            for name, number in zip(names, self.needed, strict=True)
        )

    def _formula(self, *operands: torch.Tensor) -> dict[str, Any]:
        """The gradients that the operator's formula has, by argument."""
        count = len(self.call.tensors)
        inputs, rest = operands[:count], operands[count:]
        results, gradients = rest[: len(self.results)], iter(rest[len(self.results) :])
        grads = [next(gradients) if floats else None for _, floats in self.results]
        values = self.call.bound(inputs)
        names = {self.call.tensors[number][0] for number in self.needed}
        ctx = _Context(tuple(name in names for name in values))
        formula = self.call.operator.gradient
        assert formula is not None
        output = results[0] if len(results) == 1 else results
        formula.setup(ctx=ctx, inputs=tuple(values.values()), output=output)
        input_grads = formula.backward(ctx, *grads)
        return dict(
            zip(
                values,
                input_grads if isinstance(input_grads, tuple) else (input_grads,),
                strict=False,
            )
        )

    def _gradient(self, name: str, gradient: Any, value: torch.Tensor) -> torch.Tensor:
        operator = self.call.operator
        assert operator.gradient is not None
        if gradient is None and name not in operator.gradient.constants:
            raise UsageError(f"{operator.name} has no gradient with respect to {name}")
        return torch.zeros_like(value) if gradient is None else gradient


def _fake(array: Any) -> torch.Tensor:
    """A tensor without values, of an array's shape and dtype."""
    return torch.empty(tuple(array.shape), dtype=arrays.torch_dtype(array.dtype))


def _map_batch(
    compute: Callable[..., Tensors],
    tensors: Sequence[torch.Tensor],
    ranks: Sequence[int],
    *,
    at_once: bool,
) -> Tensors:
    """`compute` over the leading dimensions that all tensors have beyond `ranks`; those of size 1
    are for every element of the others. With `at_once`, by `torch.vmap`."""
    if all(tensor.ndim == rank for tensor, rank in zip(tensors, ranks, strict=True)):
        return compute(*tensors)
    size = max(tensor.shape[0] for tensor in tensors)
    shared = [tensor.shape[0] != size or size == 1 for tensor in tensors]
    if (
        at_once
        and size > 1
        and all(tensor.ndim == n + 1 for tensor, n in zip(tensors, ranks, strict=True))
    ):
        dims = tuple(None if is_shared else 0 for is_shared in shared)
        operands = [
            tensor[0] if same else tensor for tensor, same in zip(tensors, shared, strict=True)
        ]
        return torch.vmap(compute, in_dims=dims)(*operands)
    outputs = [
        _map_batch(
            compute,
            [tensor[0 if same else number] for tensor, same in zip(tensors, shared, strict=True)],
            ranks,
            at_once=at_once,
        )
        for number in range(size)
    ]
    return tuple(torch.stack(parts) for parts in zip(*outputs, strict=True))


class _Context:
    """What `torch.library.register_autograd` passes to the functions of a gradient."""

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self.saved_tensors: tuple[Any, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for `backward`."""
        self.saved_tensors = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """All gradients are given."""
        del value

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Gradients of these are zeros."""
        del tensors


__all__ = ["HostCall", "HostGradient"]
