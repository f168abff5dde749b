"""Derivatives in plain PyTorch: those of an operator's reference.

Operators that compute gradients have their own this way, so that gradients can be differentiated
again. That is right to any order, but no kernel: it takes the memory that the reference takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from wavecast.kernels.operator import Gradient


def by_reference(reference: Callable[..., Any]) -> Gradient:
    """The gradient of an operator whose reference is differentiable, of all arguments."""

    def setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        del output
        ctx.save_for_backward(*(one for one in inputs if isinstance(one, Tensor)))
        ctx.others = tuple(None if isinstance(one, Tensor) else (one,) for one in inputs)

    def backward(ctx: Any, *slopes: Tensor) -> tuple[Any, ...]:
        tensors = iter(ctx.saved_tensors)
        inputs = [next(tensors) if one is None else one[0] for one in ctx.others]
        wanted = [place for place, needed in enumerate(ctx.needs_input_grad) if needed]
        found = dict(zip(wanted, pulled_back(reference, inputs, wanted, slopes), strict=True))
        return tuple(found.get(place) for place in range(len(inputs)))

    return Gradient(setup, backward)


def pulled_back(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    places: Sequence[int],
    slopes: Sequence[Tensor],
) -> tuple[Tensor, ...]:
    """The gradients of a function of plain PyTorch with respect to its arguments at `places`, where
    `slopes` are those of its results. They can be differentiated again."""

    def call(*values: Tensor) -> Any:
        given = list(arguments)
        for place, value in zip(places, values, strict=True):
            given[place] = value
        return function(*given)

    with torch.enable_grad():
        pull: Any = torch.func.vjp(call, *(arguments[place] for place in places))[1]
    return pull(tuple(slopes) if len(slopes) > 1 else slopes[0])


__all__ = ["by_reference", "pulled_back"]
