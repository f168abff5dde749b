"""The derivative of an operator as a kernel of PyTorch's dispatcher.

`torch.library.register_autograd` makes such a kernel too, but one that `torch.func` refuses, and
that gives the derivative zero in forward mode and for arguments its formula leaves out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad
from torch.autograd.function import _SingleLevelFunction

from wavecast.frameworks.torch.replay import MISSED
from wavecast.kernels.operator import Gradient

_next_is_device: Final[dict[int, bool]] = {}


@dataclass(frozen=True, slots=True)
class _Dispatch:
    """What a call brings along besides its positional arguments, and whether gradients are
    recorded there: `forward` of a function records none, but the levels below it may."""

    keys: Any
    named: dict[str, Any]
    recorded: bool
    recorded_forward: bool


def kernel(
    overload: Any, gradient: Gradient | None, replayed: Callable[..., Any]
) -> Callable[..., Any]:
    """What `torch.library.Library.impl` takes for the key `Autograd`, with the set of keys.
    `replayed(args, named)` is a result that needs no dispatch to a device's kernel, or `MISSED`.

    Like operators of PyTorch's own it does one level of differentiation and hands the rest on, so
    that `torch.func.grad` and its like, and gradients of gradients, come to it level by level.
    """
    function = _function(overload, gradient)
    defaults = [
        argument.default_value for argument in overload._schema.arguments if not argument.kwarg_only
    ]

    def differentiable(keys: Any, *args: Any, **kwargs: Any) -> Any:
        full = (*args, *defaults[len(args) :])  # the dispatcher leaves out what is a default
        differentiated = _is_differentiated(full)
        if not differentiated and _ends_at_device(keys):
            result = replayed(full, kwargs)
            if result is not MISSED:
                return result
        call = _Dispatch(keys, kwargs, torch.is_grad_enabled(), torch._C._is_fwd_grad_enabled())
        if not differentiated:
            return _below(overload, call, full)
        with enable_single_level_autograd_function():
            return function.apply(*full, call)

    return differentiable


def _is_differentiated(values: Sequence[Any]) -> bool:
    if torch.is_grad_enabled():
        for value in values:
            if isinstance(value, Tensor) and value.requires_grad:
                return True
    if forward_ad._current_level < 0:
        return False
    tensors = [tensor for tensor in values if isinstance(tensor, Tensor)]
    return any(forward_ad.unpack_dual(tensor).tangent is not None for tensor in tensors)


def _ends_at_device(keys: Any) -> bool:
    """Whether the next kernel after those of autograd is that of a CPU or a GPU."""
    bits = keys.raw_repr()
    is_device = _next_is_device.get(bits)
    if is_device is None:
        rest = keys & torch._C._after_autograd_keyset
        for name in ("ADInplaceOrView", "BackendSelect"):  # neither has a kernel of an operator
            rest = rest.remove(getattr(torch._C.DispatchKey, name))
        key = torch._C._dispatch_key_name(rest.highestPriorityTypeId())
        is_device = _next_is_device[bits] = key in ("CPU", "CUDA")
    return is_device


def _below(overload: Any, call: _Dispatch, values: Sequence[Any]) -> Any:
    with (
        torch.set_grad_enabled(call.recorded),
        forward_ad._set_fwd_grad_enabled(call.recorded_forward),
        torch._C._AutoDispatchBelowAutograd(),
    ):
        keys = call.keys & torch._C._after_autograd_keyset
        return overload.redispatch(keys, *values, **call.named)


def _function(overload: Any, gradient: Gradient | None) -> Any:
    """The `torch.autograd.Function` of one level."""
    name = f"{overload.namespace}::{overload._opname}"
    labels = [argument.name for argument in overload._schema.arguments]

    def forward(ctx: Any, *values: Any) -> Any:
        *inputs, call = values
        output = _below(overload, call, inputs)
        if gradient is not None:
            keywords = {"keyword_only_inputs": call.named} if call.named else {}
            gradient.setup(ctx=ctx, inputs=tuple(inputs), output=output, **keywords)
        return output

    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        if gradient is None:
            raise NotImplementedError(f"{name} has no gradient")
        every = ctx.needs_input_grad
        ctx.needs_input_grad = every[:-1]
        try:
            input_grads = gradient.backward(ctx, *grads)
        finally:
            ctx.needs_input_grad = every
        input_grads = input_grads if isinstance(input_grads, tuple) else (input_grads,)
        for label, needs_grad, grad in zip(labels, every, input_grads, strict=False):
            if needs_grad and grad is None and label not in gradient.constants:
                raise NotImplementedError(f"{name} has no gradient with respect to {label}")
        return *input_grads, None

    def jvp(ctx: Any, *tangents: Any) -> Any:
        raise NotImplementedError(
            f"{name} has no forward-mode derivative; reverse mode has (torch.func.vjp, jacrev)"
        )

    methods = {"forward": forward, "backward": backward, "jvp": jvp}
    kind = f"GeneratedBackwardFor_{name.replace('::', '_')}"
    return type(
        kind,
        (_SingleLevelFunction,),
        {key: staticmethod(method) for key, method in methods.items()},
    )


__all__ = ["kernel"]
