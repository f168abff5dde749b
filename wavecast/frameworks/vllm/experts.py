"""Mixtures of experts without quantisation: their router and their products."""

# pyright: reportMissingImports=false, reportIncompatibleMethodOverride=false
# vLLM is optional; a checker without it takes this package for it.

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor
from vllm.model_executor.layers.fused_moe.unquantized_fused_moe_method import (
    UnquantizedFusedMoEMethod,
)

from wavecast.frameworks.vllm.preferred import OnByDefault
from wavecast.frameworks.vllm.served import serve

_route: Final = serve("FusedMoE", "moe_route")
_experts: Final = serve("FusedMoE", "moe_experts")
_ACTIVATIONS: Final = {
    "silu": {"activation": "silu"},
    "gelu": {"activation": "gelu"},
    "gelu_tanh": {"activation": "gelu_tanh"},
    "swigluoai": {"activation": "clamped_swiglu", "interleaved": True},
    "swigluoai_uninterleave": {"activation": "clamped_swiglu"},
}
"""Arguments of the operator by vLLM's name of an activation."""
_LIMITS: Final = {"alpha": "swiglu_alpha", "limit": "swiglu_limit"}
"""Arguments of `clamped_swiglu`: the layer's attributes that have them, None for the default."""


def options(layer: Any) -> dict[str, Any]:
    """Arguments of the operator for a layer's activation. Raises NotImplementedError for an
    activation that the library lacks, and for experts of several GPUs."""
    name = getattr(layer.activation, "value", layer.activation)
    if name not in _ACTIVATIONS:
        raise NotImplementedError(f"experts with the activation {name}")
    if layer.expert_map is not None:
        raise NotImplementedError("experts of several GPUs")
    arguments: dict[str, Any] = dict(_ACTIVATIONS[name])
    if arguments["activation"] == "clamped_swiglu":
        limits = {to: getattr(layer, attribute) for to, attribute in _LIMITS.items()}
        arguments |= {to: value for to, value in limits.items() if value is not None}
    return arguments


class LibraryExperts:
    """A method of experts that chooses them by `wavecast.ops.moe_route`, where it can; `multiplied`
    of the method has their products."""

    _routed = False

    @property
    def is_monolithic(self) -> bool:
        """Whether the library chooses the experts, too. vLLM does where groups of experts are
        compared by their best expert (DeepSeek-V2), or by a function of the model."""
        return self._routed

    def decide_routing(self, layer: Any) -> None:
        """Find out whether the library can choose the experts of a layer."""
        grouped = layer.use_grouped_topk and layer.num_expert_group > 1
        self._routed = (
            layer.custom_routing_function is None
            and layer.scoring_func in ("softmax", "sigmoid")
            and not (grouped and layer.e_score_correction_bias is None)
        )

    def apply_monolithic(
        self: Any, layer: Any, x: Tensor, router_logits: Tensor, input_ids: Tensor | None = None
    ) -> Tensor:
        """Choose experts by `router_logits` [tokens, experts], and apply them to `x`."""
        groups = {}
        if layer.use_grouped_topk and layer.num_expert_group > 1:
            groups = {"groups": layer.num_expert_group, "top_groups": layer.topk_group}
        weights, indices = _route(
            router_logits,
            layer.top_k,
            layer.scoring_func,
            layer.renormalize,
            layer.e_score_correction_bias,
            scale=layer.routed_scaling_factor,
            **groups,
        )
        return self.apply(layer, x, weights, indices)

    def apply(
        self,
        layer: Any,
        x: Tensor,
        topk_weights: Tensor,
        topk_ids: Tensor,
        shared_experts: Any = None,
        shared_experts_input: Tensor | None = None,
    ) -> Tensor:
        """What the experts that were chosen make of `x` [tokens, model]. Weights that apply to the
        input (Llama 4) are multiplied with it first. Raises as `multiplied`, and
        NotImplementedError where several such weights apply to one input."""
        if layer.apply_router_weight_on_input:
            if topk_weights.shape[1] != 1:
                raise NotImplementedError("weights of several experts that apply to their input")
            x, topk_weights = x * topk_weights.to(x.dtype), torch.ones_like(topk_weights)
        return self.multiplied(layer, x, topk_weights, topk_ids.to(torch.int32))

    def multiplied(self, layer: Any, x: Tensor, weights: Tensor, indices: Tensor) -> Tensor:
        """What the `indices` experts, int32 [tokens, top_k], make of `x` [tokens, model], weighted
        by `weights`; here of 16-bit weights. Raises as `options`."""
        return _experts(
            x, weights, indices, layer.w13_weight, layer.w2_weight, *biases(layer), **options(layer)
        )


class QuantisedExperts(LibraryExperts):
    """Such a method for quantised weights."""

    def get_fused_moe_quant_config(self, layer: Any) -> None:
        """There is none: it describes the experts to kernels of vLLM."""


def biases(layer: Any) -> tuple[Tensor | None, Tensor | None]:
    """The biases of a layer's first and second products."""
    return getattr(layer, "w13_bias", None), getattr(layer, "w2_bias", None)


class WavecastFusedMoE(OnByDefault, LibraryExperts, UnquantizedFusedMoEMethod):
    """`wavecast.ops.moe_route` and `moe_experts`."""

    def process_weights_after_loading(self, layer: Any) -> None:
        """Weights remain as they are."""
        self.decide_routing(layer)


LAYERS: Final = (WavecastFusedMoE,)

__all__ = [
    "LAYERS",
    "LibraryExperts",
    "QuantisedExperts",
    "WavecastFusedMoE",
    "biases",
    "options",
]
