"""Derivatives in plain PyTorch: those of an operator's reference.

Operators that compute gradients have their own this way, so that gradients can be differentiated
again. That is right to any order, but no kernel: it takes the memory that the reference takes.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, get_type_hints

import torch
from torch import Tensor

from wavecast.kernels.operator import Gradient, Operator


def operator(of: Operator, call: Callable[..., Any], **fields: Any) -> Operator:
    """The operator `call` that computes the gradients of another. It is tested with the sizes of
    `of` and can be differentiated again (`by_reference`). `fields` are fields of `Operator`."""
    what = "gradient" if get_type_hints(call)["return"] is Tensor else "gradients"
    sizes = {name: getattr(of, name) for name in ("cases", "thorough", "shapes")}
    gradient = Operator(call=call, **{"summary": f"{what} of {of.name}", **sizes, **fields})
    return replace(gradient, gradient=by_reference(gradient.reference))


def by_reference(reference: Callable[..., Any]) -> Gradient:
    """The gradient of an operator whose reference is differentiable, of all arguments."""

    def setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        del output
        ctx.save_for_backward(*(value for value in inputs if isinstance(value, Tensor)))
        ctx.others = tuple(None if isinstance(value, Tensor) else (value,) for value in inputs)

    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        tensors = iter(ctx.saved_tensors)
        inputs = [next(tensors) if other is None else other[0] for other in ctx.others]
        indices = [index for index, is_needed in enumerate(ctx.needs_input_grad) if is_needed]
        gradients = dict(zip(indices, pulled_back(reference, inputs, indices, grads), strict=True))
        return tuple(gradients.get(index) for index in range(len(inputs)))

    return Gradient(setup, backward)


def linear(forward: Callable[..., Any], gradients: Callable[..., Mapping[str, Any]]) -> Gradient:
    """The gradient of an operator that is linear in its tensors: `gradients(*grads, **options)` of
    its arguments by name, from the gradients of the results and the options of the call, each
    returned in the dtype of its argument."""
    names = tuple(inspect.signature(forward).parameters)

    def setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        arguments = dict(zip(names, inputs, strict=True))
        ctx.dtypes = {n: value.dtype for n, value in arguments.items() if isinstance(value, Tensor)}
        ctx.options = {n: value for n, value in arguments.items() if not isinstance(value, Tensor)}

    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        results = gradients(*grads, **ctx.options)
        return tuple(results[n].to(ctx.dtypes[n]) if n in results else None for n in names)

    return Gradient(setup, backward)


def by_operator(
    forward: Callable[..., Any], backward: str, *, grads: tuple[str, ...], saved: tuple[str, ...],
    of: tuple[str, ...], outputs: tuple[str, ...] = (), optional: tuple[str, ...] = (),
    shared: Mapping[str, str] | None = None, constants: tuple[str, ...] = (),
    **derived: Callable[..., Any],
) -> Gradient:  # fmt: skip
    """The gradient of `forward` that the operator `backward` computes.

    `backward` is called by name: with the gradients of the first results as its arguments `grads`,
    with `saved` as they were in the call of `forward`, where `outputs` name the results, and with
    options `derived(**arguments)` from the arguments of `forward`. What it returns are the
    gradients of the arguments `of`; an argument that was None has none. Those of `grads` in
    `optional` are None where a result is not used; then all results are in `saved`. `shared` names
    arguments whose gradient is that of another, `constants` those of `Gradient`.
    """
    names = tuple(inspect.signature(forward).parameters)

    def setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        results = output if isinstance(output, tuple) else (output,)
        ctx.set_materialize_grads(not optional)
        arguments = dict(zip(names, inputs, strict=True))
        values = {**arguments, **dict(zip(outputs, results, strict=False))}
        tensors = [name for name in saved if isinstance(values[name], Tensor)]
        ctx.save_for_backward(*(values[name] for name in tensors))
        ctx.tensors = tensors
        ctx.options = {name: values[name] for name in saved if name not in tensors}
        ctx.options |= {name: value(**arguments) for name, value in derived.items()}
        ctx.given = [name for name, value in zip(names, inputs, strict=True) if value is not None]

    def gradient(ctx: Any, *grad_outputs: Tensor | None) -> tuple[Any, ...]:
        tensors = dict(zip(ctx.tensors, ctx.saved_tensors, strict=True))
        of_results = dict(zip(grads, grad_outputs, strict=False))
        for name, output in zip(grads, outputs, strict=False):
            if of_results[name] is None and name not in optional:
                of_results[name] = torch.zeros_like(tensors[output])
        call = getattr(torch.ops.wavecast, backward)
        results = call(**of_results, **tensors, **ctx.options)
        results = results if isinstance(results, tuple) else (results,)
        gradients = dict(zip(of, results, strict=False))
        gradients |= {name: gradients[other] for name, other in (shared or {}).items()}
        return tuple(gradients.get(name) if name in ctx.given else None for name in names)

    return Gradient(setup, gradient, constants)


def pulled_back(
    function: Callable[..., Any], arguments: Sequence[Any], indices: Sequence[int],
    grads: Sequence[Tensor],
) -> tuple[Tensor, ...]:  # fmt: skip
    """The gradients of a function of plain PyTorch with respect to its arguments at `indices`,
    given the gradients of its results, `grads`. They can be differentiated again."""

    def call(*values: Tensor) -> Any:
        operands = list(arguments)
        for index, value in zip(indices, values, strict=True):
            operands[index] = value
        return function(*operands)

    with torch.enable_grad():
        pull: Any = torch.func.vjp(call, *(arguments[index] for index in indices))[1]
    return pull(tuple(grads) if len(grads) > 1 else grads[0])
