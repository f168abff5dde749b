"""Hugging Face models: attention (`huggingface_attention`) and experts go through registries of
implementations, to which the library's are added."""

from __future__ import annotations

import sys
from typing import Any, Final

import torch
from torch import Tensor, nn

from wavecast.frameworks.torch import huggingface_attention
from wavecast.frameworks.torch.huggingface_attention import NAME
from wavecast.frameworks.torch.replaced import Done, Left, Replaced
from wavecast.frameworks.torch.substitutes import Reason, autocast_operands
from wavecast.kernels.moe import activations

ACTIVATIONS: Final = {
    "SiLUActivation": "silu",
    "SiLU": "silu",
    "GELUActivation": "gelu",
    "PytorchGELUTanh": "gelu_tanh",
    "GELUTanh": "gelu_tanh",
}
"""Classes of activations, as transformers and PyTorch name them."""

_ALPHA: Final = ("alpha", "swiglu_alpha")
_LIMIT: Final = ("limit", "swiglu_limit")
"""Names of the numbers of a gate that clamps."""

_ROWS: Final = 64
_WIDE: Final = 50.0
"""Shape and spread of random values, many beyond the limits of gates, which are about ten."""


def replace(model: nn.Module, account: Replaced) -> None:
    """Set a model's attention and experts to the library's, where it is one of transformers'."""
    if "transformers" not in sys.modules or not hasattr(model, "config"):
        return
    huggingface_attention.replace(model, account)
    _experts(model, account)


def _experts(model: Any, account: Replaced) -> None:
    try:
        from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS
    except ImportError:  # older releases have loops in every model
        return
    modules = [
        (path, module)
        for path, module in model.named_modules()
        if hasattr(module, "gate_up_proj") and hasattr(module, "is_transposed")
    ]
    if not modules:
        return
    before = getattr(model.config, "_experts_implementation", None)
    reasons = {path: _no_experts(module) for path, module in modules}
    for path, reason in reasons.items():
        if reason:
            account.left.append(Left(path, "experts", reason))
    if any(reasons.values()):
        return
    ALL_EXPERTS_FUNCTIONS.register(NAME, experts)
    model.config._experts_implementation = NAME

    def back() -> None:
        model.config._experts_implementation = before

    account.undoing.append(back)
    for path, module in modules:
        account.done.append(Done(path, type(module).__name__, "moe_experts"))


def _no_experts(module: Any) -> Reason:
    if not module.has_gate:
        return "no gate"
    if getattr(module, "has_post_expert_norm", False) or module._is_expert_parallel:
        return "norms after experts, or experts on several devices"
    name = type(getattr(module, "act_fn", None)).__name__
    if not _is_clamped(module) and name not in ACTIVATIONS:
        return f"activation {name}"
    return None if _gate_is_the_operators(module) else "a gate that the operator does not have"


def _is_clamped(module: Any) -> bool:
    """Whether the gate of experts has the two numbers of `clamped_swiglu`."""
    return all(any(hasattr(module, name) for name in names) for names in (_ALPHA, _LIMIT))


def _activation(module: Any) -> tuple[str, float, float]:
    """(name, alpha, limit) of the operator for the gate of experts."""
    if not _is_clamped(module):
        return ACTIVATIONS[type(module.act_fn).__name__], 1.702, 7.0
    alpha, limit = (
        next(float(getattr(module, name)) for name in names if hasattr(module, name))
        for names in (_ALPHA, _LIMIT)
    )
    return "clamped_swiglu", alpha, limit


def _gate_is_the_operators(module: Any) -> bool:
    """Whether a class's own gate is that of the operator: what it does with random values, some of
    them beyond the limits of gates that clamp. Releases without such a method have only one."""
    gate = getattr(module, "_apply_gate", None)
    if gate is None:
        return True
    activation, alpha, limit = _activation(module)
    values = torch.randn(_ROWS, 8, generator=torch.Generator().manual_seed(0)) * _WIDE
    first, second = values.chunk(2, dim=-1)
    if not module.is_concatenated:
        first, second = values[..., ::2], values[..., 1::2]
    try:
        with torch.no_grad():
            computed = gate(values)
    except Exception:  # of any kind: the module is somebody else's
        return False
    expected = activations.reference(activation, first, second, alpha, limit)
    return computed.shape == expected.shape and torch.allclose(computed, expected, rtol=1e-3)


def experts(
    module: Any, hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor
) -> Tensor:
    """An experts function of transformers: [tokens, hidden], routing [tokens, k]. Transposed
    weights are put in order at every call."""
    w1, w2 = module.gate_up_proj, module.down_proj
    if module.is_transposed:
        w1, w2 = w1.transpose(1, 2), w2.transpose(1, 2)
    biases = (module.gate_up_proj_bias, module.down_proj_bias) if module.has_bias else (None, None)
    hidden, w1, w2, *biases = autocast_operands(hidden_states, w1, w2, *biases)
    activation, alpha, limit = _activation(module)
    output = torch.ops.wavecast.moe_experts(
        hidden,
        top_k_weights.float(),
        top_k_index.to(torch.int32),
        w1,
        w2,
        *biases,
        activation,
        alpha=alpha,
        limit=limit,
        interleaved=not module.is_concatenated,
    )
    return output.to(hidden_states.dtype)


__all__ = ["ACTIVATIONS", "experts", "replace"]
