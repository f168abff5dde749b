"""Mixtures of experts without quantisation: their router and their products."""

# pyright: reportMissingImports=false
# SGLang is optional; a checker without it takes this package for it.

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from sglang.srt.layers.moe.token_dispatcher import StandardCombineInput
from sglang.srt.layers.moe.topk import StandardTopKOutput, TopK
from sglang.srt.layers.quantization.unquant import UnquantizedFusedMoEMethod
from torch import Tensor

from wavecast.frameworks.sglang.served import serve

_route: Final = serve("TopK", "moe_route")
_experts: Final = serve("FusedMoE", "moe_experts")
_ACTIVATIONS: Final = ("silu", "gelu")


def route(
    self: Any, hidden_states: Tensor, router_logits: Tensor, **kwargs: Any
) -> StandardTopKOutput:
    """The experts of every token by `router_logits` [tokens, experts], as int32 indices
    [tokens, top_k] with weights. Raises NotImplementedError for what `moe_route` lacks: functions
    of the model, groups that are compared by their best expert, shared experts among the routed
    ones, experts placed on several GPUs."""
    config = self.topk_config
    grouped = config.use_grouped_topk and config.num_expert_group > 1
    features = {
        "a function of the model": config.custom_routing_function is not None,
        f"scores by {config.scoring_func}": config.scoring_func not in ("softmax", "sigmoid"),
        "groups compared by their best expert": grouped and config.correction_bias is None,
        "shared experts among the routed ones": config.num_shared_topk_slots > 0,
        **{f"the argument {name}": value is not None for name, value in kwargs.items()},
    }
    _raise("routing by", features)
    groups = {}
    if grouped:
        groups = {"groups": config.num_expert_group, "top_groups": config.topk_group}
    scale = config.routed_scaling_factor if config.apply_routed_scaling_factor_on_output else None
    weights, indices = _route(
        router_logits,
        config.top_k,
        config.scoring_func,
        config.renormalize,
        config.correction_bias,
        scale=1.0 if scale is None else float(scale),
        **groups,
    )
    return StandardTopKOutput(weights, indices.to(torch.int32), router_logits)


def options(config: Any) -> dict[str, Any]:
    """Arguments of the operators of experts, by SGLang's description of a layer's experts. Its
    `routed_scaling_factor` is left to the model, which applies it everywhere but on CUDA. Raises
    NotImplementedError for activations that they lack and for experts of several GPUs."""
    _raise(
        "experts with",
        {
            f"the activation {config.activation}": config.activation not in _ACTIVATIONS,
            "no gate": not config.is_gated,
            "weights that apply to their input": config.apply_router_weight_on_input,
            "results that are not added": config.no_combine,
            "a limit of the gate alone": config.swiglu_limit is not None,
            "several GPUs": config.num_experts != config.num_local_experts,
        },
    )
    if config.gemm1_alpha is None:
        return {"activation": config.activation}
    return {
        "activation": "clamped_swiglu",
        "alpha": config.gemm1_alpha,
        "limit": config.gemm1_clamp_limit,
        "interleaved": config.gate_up_interleaved,
    }


def multiply(self: Any, layer: Any, dispatch_output: Any) -> StandardCombineInput:
    """What the chosen experts make of the hidden states [tokens, model]. Raises as `options`."""
    x = dispatch_output.hidden_states
    settings = options(self.moe_runner_config)
    weights, indices, _ = dispatch_output.topk_output
    bias = (_half(getattr(layer, name, None), x) for name in ("w13_weight_bias", "w2_weight_bias"))
    tensors = (x, weights, indices.to(torch.int32), layer.w13_weight, layer.w2_weight, *bias)
    return StandardCombineInput(hidden_states=_experts(*tensors, **settings))


def _half(bias: Tensor | None, x: Tensor) -> Tensor | None:
    return None if bias is None else bias.to(x.dtype)


def _raise(what: str, features: dict[str, bool]) -> None:
    for name, is_used in features.items():
        if is_used:
            raise NotImplementedError(f"{what} {name}")


FORWARDS: Final[dict[type[Any], Callable[..., Any]]] = {
    TopK: route,
    UnquantizedFusedMoEMethod: multiply,
}
"""By the exact class of SGLang's layer or method."""

__all__ = ["FORWARDS", "options"]
