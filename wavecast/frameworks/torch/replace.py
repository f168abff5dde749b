"""Models whose modules run operators of the library: `replace(model)`.

A module keeps its class, parameters, hooks and place in the state dict; only its `forward` is
another one, which calls that of the class for inputs the operator does not take. Modules of other
people's classes (RMS norms, gated MLPs) are recognised by what they have, and taken only if a small
random input gives the same result before and after.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wavecast.errors import UsageError
from wavecast.frameworks.torch import huggingface, library, semi_structured
from wavecast.frameworks.torch.huggingface import ACTIVATIONS
from wavecast.frameworks.torch.replaced import Done, Left, Replaced, follow, note
from wavecast.frameworks.torch.substitutes import (
    RMS_NORM_EPS,
    SUBSTITUTES,
    Reason,
    floating,
    why_not,
)

_PROBE_ROWS: Final = 3
_PROBE_ERROR: Final = 0.05
"""Largest relative difference of a probe; bfloat16 rounds by 0.004."""


@dataclass(frozen=True, slots=True)
class Match:
    """A module of a class that a swap knows, with the reason against it if there is one."""

    why_not: Reason = None


@dataclass(frozen=True, slots=True)
class Swap:
    """How modules of one class are replaced. `match(module)` is None for another module;
    `why_not(module, input)` is the reason against a call. With `probe`, which makes an input,
    `replace` takes the first of the `forwards` that computes the same as the module. `prepare` is
    called for a module that is replaced, and gives attributes that its forward needs."""

    operator: str
    match: Callable[[nn.Module], Match | None]
    why_not: Callable[[Any, Tensor], Reason]
    forwards: tuple[Callable[..., Any], ...]
    probe: Callable[[nn.Module], Tensor] | None = None
    prepare: Callable[[Any], Mapping[str, Any]] = lambda _: {}


def replace(model: nn.Module, *, attention: bool = True) -> Replaced:
    """Have the modules of `model` run operators of the library, in place.

    Linear, RMSNorm, LayerNorm, Conv, gated MLPs, and of Hugging Face models the attention function
    and the experts. What was replaced, and what was left for which reason, is in the result, whose
    `undo()` takes everything back. Models look attention up at every call: it is `pending` in the
    result until a call is answered, or is not, as those with padding are not. Raises UsageError if
    it is not a module.
    """
    if not isinstance(model, nn.Module):
        raise UsageError(f"a {type(model).__name__} is not a torch.nn.Module")
    library.install()
    account = Replaced()
    follow(model, account)
    for path, module in model.named_modules():
        for swap in SWAPS:
            match = swap.match(module)
            if match is None:
                continue
            reason, forward = match.why_not, swap.forwards[0]
            if reason is None and "forward" in module.__dict__:
                reason = "its forward is not its class's"
            if reason is None and swap.probe is not None:
                reason, forward = _probe(module, swap)
            name = type(module).__name__
            if reason is not None:
                account.left.append(Left(path, name, reason))
            else:
                replacement = functools.partial(
                    _forward, module, swap.operator, swap.why_not, forward
                )
                for label, value in {**swap.prepare(module), "forward": replacement}.items():
                    module.__dict__[label] = value
                    account.undoing.append(functools.partial(module.__dict__.pop, label, None))
                account.done.append(Done(path, name, swap.operator))
            break
    if attention:
        huggingface.replace(model, account)
    account.left += _unknown(model, account)
    return account


def _unknown(model: nn.Module, account: Replaced) -> list[Left]:
    """Modules with direct parameters that are not in the account."""
    paths = {entry.where for entry in (*account.done, *account.pending, *account.left)}
    return [
        Left(path, type(module).__name__, "of no kind that has a replacement")
        for path, module in model.named_modules()
        if path not in paths and next(module.parameters(recurse=False), None) is not None
    ]


def _forward(
    module: nn.Module,
    operator: str,
    why_not: Callable[[Any, Tensor], Reason],
    forward: Callable[[Any, Tensor], Any],
    *args: Any,
    **kwargs: Any,
) -> Any:
    """The forward of a replaced module."""
    usual = len(args) == 1 and not kwargs and isinstance(args[0], Tensor)
    reason = why_not(module, args[0]) if usual else "arguments of another form"
    note(module, operator, reason)
    return type(module).forward(module, *args, **kwargs) if reason else forward(module, *args)


def _probe(module: nn.Module, swap: Swap) -> tuple[Reason, Callable[..., Any]]:
    """(the reason against a module, the forward that computes the same)."""
    assert swap.probe is not None
    first = swap.forwards[0]
    try:
        with torch.no_grad(), _odd_parameters(module):
            x = swap.probe(module)
            before = module(x)
            if not isinstance(before, Tensor):
                return "returns something else", first
            for forward in swap.forwards:
                after = forward(module, x)
                scale = _PROBE_ERROR * before.double().abs().mean()
                if before.shape == after.shape and bool(
                    (before.double() - after.double()).abs().mean() <= scale
                ):
                    return None, forward
    except Exception as error:  # of any kind: the module is somebody else's
        return f"does not run on a small input: {type(error).__name__}", first
    return "computes something else", first


@contextlib.contextmanager
def _odd_parameters(module: nn.Module) -> Iterator[None]:
    """Random values instead of a module's own: those of a new model are ones and zeros, which hide
    what is done with them."""
    originals = [(tensor, tensor.data) for tensor in module.parameters(recurse=False)]
    try:
        for parameter, values in originals:
            parameter.data = torch.randn_like(values)
        yield
    finally:
        for parameter, values in originals:
            parameter.data = values


def _linear(self: Any, input: Tensor) -> Tensor:
    return SUBSTITUTES[F.linear].call(input, self.weight, self.bias)


def _no_linear(self: Any, input: Tensor) -> Reason:
    return why_not(F.linear, (input, self.weight, self.bias), {})


def _compress(self: Any) -> Mapping[str, Any]:
    """What `_sparse_linear` needs: the compressed weight, and which weight it is of."""
    values, index = semi_structured.compressed(self.weight)
    return {"_sparse24": (self.weight, values, index)}


def _sparse_linear(self: Any, input: Tensor) -> Tensor:
    _, values, index = self._sparse24
    return semi_structured.product(input, values, index, self.bias)


def _no_sparse_linear(self: Any, input: Tensor) -> Reason:
    if self._sparse24[0] is not self.weight:
        return "its weight is another one now"
    return semi_structured.why_not_linear(input, self.weight, self.bias, in_graph=False)


def _sparse_weight(module: nn.Module) -> Match | None:
    is_sparse = semi_structured.is_semi_structured(getattr(module, "weight", None))
    return Match() if type(module) is nn.Linear and is_sparse else None


def _layer_norm(self: Any, input: Tensor) -> Tensor:
    return SUBSTITUTES[F.layer_norm].call(
        input, self.normalized_shape, self.weight, self.bias, self.eps
    )


def _no_layer_norm(self: Any, input: Tensor) -> Reason:
    return why_not(F.layer_norm, (input, self.normalized_shape, self.weight, self.bias), {})


def _layer_norm_of_channels(self: Any, input: Tensor) -> Tensor:
    """Normalise the channels of [batch, channels, height, width]."""
    return _layer_norm(self, input.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def _convolution(self: Any, input: Tensor) -> Tensor:
    return SUBSTITUTES[F.conv2d].call(input, *_conv_arguments(self))


def _no_convolution(self: Any, input: Tensor) -> Reason:
    return why_not(F.conv2d, (input, *_conv_arguments(self)), {})


def _conv_arguments(self: Any) -> tuple[Any, ...]:
    return self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups


def _rms_norm(self: Any, hidden_states: Tensor) -> Tensor:
    return torch.ops.wavecast.rms_norm(hidden_states, self.weight, _eps(self, hidden_states))


def _offset_rms_norm(self: Any, hidden_states: Tensor) -> Tensor:
    eps = _eps(self, hidden_states)
    return torch.ops.wavecast.rms_norm(hidden_states, self.weight, eps, 1.0)


def _no_rms_norm(self: Any, hidden_states: Tensor) -> Reason:
    return floating(hidden_states, self.weight)


def _eps(module: Any, x: Tensor) -> float:
    for name in ("variance_epsilon", "eps", "epsilon"):
        value = getattr(module, name, None)
        if isinstance(value, float):
            return value
    return RMS_NORM_EPS[x.dtype]


def _gated_mlp(self: Any, x: Tensor) -> Tensor:
    return self.down_proj(_product(self.act_fn, self.gate_proj(x), self.up_proj(x)))


def _fused_gated(self: Any, x: Tensor) -> Tensor:
    return self.down_proj(_product(_activation(self), self.gate_up_proj(x)))


def _product(activation: nn.Module, gate: Tensor, up: Tensor | None = None) -> Tensor:
    name = ACTIVATIONS[type(activation).__name__]
    if name == "silu":
        return torch.ops.wavecast.silu_mul(gate, up)
    return torch.ops.wavecast.gelu_mul(gate, up, "tanh" if name == "gelu_tanh" else "none")


def _activation(module: Any) -> Any:
    return getattr(module, "activation_fn", None) or getattr(module, "act_fn", None)


def _no_gated(self: Any, x: Tensor) -> Reason:
    del self
    return floating(x)


def _stored_transposed(self: Any, x: Tensor) -> Tensor:
    return SUBSTITUTES[F.linear].call(x, self.weight.t(), self.bias)


def _no_transposed(self: Any, x: Tensor) -> Reason:
    return why_not(F.linear, (x, self.weight, self.bias), {})


def _is(kind: type[nn.Module]) -> Callable[[nn.Module], Match | None]:
    def why(module: nn.Module) -> Match | None:
        if type(module) is kind:
            return Match()
        if isinstance(module, kind):
            return Match(f"a subclass of {kind.__name__}")
        return None

    return why


def _other_layer_norm(module: nn.Module) -> Match | None:
    return Match() if type(module) is nn.LayerNorm else None


def _extended_layer_norm(module: nn.Module) -> Match | None:
    if not isinstance(module, nn.LayerNorm):
        return None
    fits = isinstance(module.weight, Tensor) and module.weight.dim() == 1
    return Match(None if fits else "no vector of weights")


def _other_norm(module: nn.Module) -> Match | None:
    weight = getattr(module, "weight", None)
    if "RMSNorm" not in type(module).__name__:
        return None
    fits = isinstance(weight, Tensor) and weight.dim() == 1
    return Match(None if fits else "no vector of weights")


def _other_convolution(module: nn.Module) -> Match | None:
    if type(module) not in (nn.Conv1d, nn.Conv2d, nn.Conv3d):
        return None
    conv: Any = module
    if conv.padding_mode != "zeros" or isinstance(conv.padding, str):
        return Match(f"padding {conv.padding_mode} {conv.padding}")
    return Match()


def _other_gate(operator: str) -> Callable[[nn.Module], Match | None]:
    def why(module: nn.Module) -> Match | None:
        parts: Any = module
        names = ("gate_proj", "up_proj", "down_proj", "act_fn")
        if not all(hasattr(module, name) for name in names):
            return None
        return _by_activation(parts, operator) if isinstance(parts.gate_proj, nn.Module) else None

    return why


def _other_fused_gate(operator: str) -> Callable[[nn.Module], Match | None]:
    def why(module: nn.Module) -> Match | None:
        names = ("gate_up_proj", "down_proj")
        if not all(isinstance(getattr(module, name, None), nn.Linear) for name in names):
            return None
        return _by_activation(module, operator)

    return why


def _by_activation(module: nn.Module, operator: str) -> Match | None:
    """A match where the operator has the activation; with a reason where no operator has it."""
    name = type(_activation(module)).__name__
    if name not in ACTIVATIONS:
        return Match(f"activation {name}")
    return Match() if operator == f"{ACTIVATIONS[name].removesuffix('_tanh')}_mul" else None


def _other_stored_transposed(module: nn.Module) -> Match | None:
    """GPT-2's `Conv1D` is a linear layer whose weight is [in, out]."""
    if type(module).__name__ != "Conv1D":
        return None
    weight, bias = (getattr(module, name, None) for name in ("weight", "bias"))
    fits = isinstance(weight, Tensor) and weight.dim() == 2 and isinstance(bias, Tensor)
    return Match(None if fits else "no matrix of weights with a bias")


def _row(module: Any) -> Tensor:
    weight = module.weight
    return torch.randn(_PROBE_ROWS, weight.shape[0], dtype=weight.dtype, device=weight.device)


def _small_image(module: Any) -> Tensor:
    """With as many channels when they come second as when they come last."""
    weight = module.weight
    channels = weight.shape[0]
    return torch.randn(1, channels, 1, channels, dtype=weight.dtype, device=weight.device)


def _gate_row(module: Any) -> Tensor:
    weight = (getattr(module, "gate_proj", None) or module.gate_up_proj).weight
    return torch.randn(_PROBE_ROWS, weight.shape[1], dtype=weight.dtype, device=weight.device)


SWAPS: Final[Sequence[Swap]] = (
    Swap(
        "matmul_sparse24", _sparse_weight, _no_sparse_linear, (_sparse_linear,), prepare=_compress
    ),
    Swap("matmul", _is(nn.Linear), _no_linear, (_linear,)),
    Swap("layer_norm", _other_layer_norm, _no_layer_norm, (_layer_norm,)),
    Swap(
        "layer_norm",
        _extended_layer_norm,
        _no_layer_norm,
        (_layer_norm, _layer_norm_of_channels),
        _small_image,
    ),
    Swap("convolution", _other_convolution, _no_convolution, (_convolution,)),
    Swap("rms_norm", _other_norm, _no_rms_norm, (_rms_norm, _offset_rms_norm), _row),
    *(
        swap
        for operator in ("silu_mul", "gelu_mul")
        for swap in (
            Swap(operator, _other_gate(operator), _no_gated, (_gated_mlp,), _gate_row),
            Swap(operator, _other_fused_gate(operator), _no_gated, (_fused_gated,), _gate_row),
        )
    ),
    Swap("matmul", _other_stored_transposed, _no_transposed, (_stored_transposed,), _row),
)
"""In this order; the first that matches a module decides."""

__all__ = ["SWAPS", "Match", "Swap", "replace"]
