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


def operator(of: Operator, call: Callable[..., Any], **described: Any) -> Operator:
    """The operator `call` that computes the gradients of another. It is tested with the sizes of
    `of` and can be differentiated again (`by_reference`). `described` are fields of `Operator`."""
    what = "gradient" if get_type_hints(call)["return"] is Tensor else "gradients"
    sizes = {name: getattr(of, name) for name in ("cases", "thorough", "shapes")}
    found = Operator(call=call, **{"summary": f"{what} of {of.name}", **sizes, **described})
    return replace(found, gradient=by_reference(found.reference))


def by_reference(reference: Callable[..., Any]) -> Gradient:
    """The gradient of an operator whose reference is differentiable, of all arguments."""

    def setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        del output
        ctx.save_for_backward(*(one for one in inputs if isinstance(one, Tensor)))
        ctx.others = tuple(None if isinstance(one, Tensor) else (one,) for one in inputs)

    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        tensors = iter(ctx.saved_tensors)
        inputs = [next(tensors) if one is None else one[0] for one in ctx.others]
        wanted = [index for index, needed in enumerate(ctx.needs_input_grad) if needed]
        found = dict(zip(wanted, pulled_back(reference, inputs, wanted, grads), strict=True))
        return tuple(found.get(index) for index in range(len(inputs)))

    return Gradient(setup, backward)


def linear(forward: Callable[..., Any], gradients: Callable[..., Mapping[str, Any]]) -> Gradient:
    """The gradient of an operator that is linear in its tensors: `gradients(*grads, **options)` of
    its arguments by name, from the gradients of the results and the options of the call, each
    returned in the dtype of its argument."""
    names = tuple(inspect.signature(forward).parameters)

    def setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        given = dict(zip(names, inputs, strict=True))
        ctx.dtypes = {n: one.dtype for n, one in given.items() if isinstance(one, Tensor)}
        ctx.options = {n: one for n, one in given.items() if not isinstance(one, Tensor)}

    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        found = gradients(*grads, **ctx.options)
        return tuple(found[n].to(ctx.dtypes[n]) if n in found else None for n in names)

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
        known = {**arguments, **dict(zip(outputs, results, strict=False))}
        tensors = [name for name in saved if isinstance(known[name], Tensor)]
        ctx.save_for_backward(*(known[name] for name in tensors))
        ctx.tensors = tensors
        ctx.options = {name: known[name] for name in saved if name not in tensors}
        ctx.options |= {name: value(**arguments) for name, value in derived.items()}
        ctx.given = [name for name, value in zip(names, inputs, strict=True) if value is not None]

    def gradient(ctx: Any, *given: Tensor | None) -> tuple[Any, ...]:
        tensors = dict(zip(ctx.tensors, ctx.saved_tensors, strict=True))
        of_results = dict(zip(grads, given, strict=False))
        for name, output in zip(grads, outputs, strict=False):
            if of_results[name] is None and name not in optional:
                of_results[name] = torch.zeros_like(tensors[output])
        call = getattr(torch.ops.wavecast, backward)
        found = call(**of_results, **tensors, **ctx.options)
        found = found if isinstance(found, tuple) else (found,)
        gradients = dict(zip(of, found, strict=False))
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
        given = list(arguments)
        for index, value in zip(indices, values, strict=True):
            given[index] = value
        return function(*given)

    with torch.enable_grad():
        pull: Any = torch.func.vjp(call, *(arguments[index] for index in indices))[1]
    return pull(tuple(grads) if len(grads) > 1 else grads[0])
