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

from wavecast.integrations.torch.replay import MISSED
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
    defaults = [one.default_value for one in overload._schema.arguments if not one.kwarg_only]

    def differentiable(keys: Any, *args: Any, **named: Any) -> Any:
        full = (*args, *defaults[len(args) :])  # the dispatcher leaves out what is a default
        differentiated = _is_differentiated(full)
        if not differentiated and _ends_at_device(keys):
            found = replayed(full, named)
            if found is not MISSED:
                return found
        call = _Dispatch(keys, named, torch.is_grad_enabled(), torch._C._is_fwd_grad_enabled())
        if not differentiated:
            return _below(overload, call, full)
        with enable_single_level_autograd_function():
            return function.apply(*full, call)

    return differentiable


def _is_differentiated(values: Sequence[Any]) -> bool:
    if torch.is_grad_enabled():
        for one in values:
            if isinstance(one, Tensor) and one.requires_grad:
                return True
    if forward_ad._current_level < 0:
        return False
    tensors = [one for one in values if isinstance(one, Tensor)]
    return any(forward_ad.unpack_dual(one).tangent is not None for one in tensors)


def _ends_at_device(keys: Any) -> bool:
    """Whether the next kernel after those of autograd is that of a CPU or a GPU."""
    bits = keys.raw_repr()
    found = _next_is_device.get(bits)
    if found is None:
        rest = keys & torch._C._after_autograd_keyset
        for name in ("ADInplaceOrView", "BackendSelect"):  # neither has a kernel of an operator
            rest = rest.remove(getattr(torch._C.DispatchKey, name))
        key = torch._C._dispatch_key_name(rest.highestPriorityTypeId())
        found = _next_is_device[bits] = key in ("CPU", "CUDA")
    return found


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
    labels = [one.name for one in overload._schema.arguments]

    def forward(ctx: Any, *values: Any) -> Any:
        *inputs, call = values
        found = _below(overload, call, inputs)
        if gradient is not None:
            named = {"keyword_only_inputs": call.named} if call.named else {}
            gradient.setup(ctx=ctx, inputs=tuple(inputs), output=found, **named)
        return found

    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        if gradient is None:
            raise NotImplementedError(f"{name} has no gradient")
        every = ctx.needs_input_grad
        ctx.needs_input_grad = every[:-1]
        try:
            found = gradient.backward(ctx, *grads)
        finally:
            ctx.needs_input_grad = every
        found = found if isinstance(found, tuple) else (found,)
        for label, needed, grad in zip(labels, every, found, strict=False):
            if needed and grad is None and label not in gradient.constants:
                raise NotImplementedError(f"{name} has no gradient with respect to {label}")
        return *found, None

    def jvp(ctx: Any, *tangents: Any) -> Any:
        raise NotImplementedError(
            f"{name} has no forward-mode derivative; reverse mode has (torch.func.vjp, jacrev)"
        )

    methods = {"forward": forward, "backward": backward, "jvp": jvp}
    kind = f"GeneratedBackwardFor_{name.replace('::', '_')}"
    return type(
        kind, (_SingleLevelFunction,), {key: staticmethod(one) for key, one in methods.items()}
    )


__all__ = ["kernel"]
