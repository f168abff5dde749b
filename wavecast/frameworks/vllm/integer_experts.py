"""Mixtures of experts with weights of int8 and of four bits, for vLLM's own formats."""

# pyright: reportMissingImports=false, reportIncompatibleMethodOverride=false
# vLLM is optional; a checker without it takes this package for it.

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

import torch
from torch import Tensor
from vllm.model_executor.layers.fused_moe.fused_moe_method_base import FusedMoEMethodBase
from vllm.model_executor.layers.fused_moe.routed_experts import RoutedExperts
from vllm.model_executor.layers.quantization.compressed_tensors.compressed_tensors import (
    CompressedTensorsConfig,
)
from vllm.model_executor.layers.quantization.compressed_tensors.compressed_tensors_moe.compressed_tensors_moe_w8a8_int8 import (  # noqa: E501
    CompressedTensorsW8A8Int8MoEMethod,
)
from vllm.model_executor.layers.quantization.compressed_tensors.compressed_tensors_moe.compressed_tensors_moe_wna16 import (  # noqa: E501
    CompressedTensorsWNA16MoEMethod,
)
from vllm.model_executor.layers.quantization.experts_int8 import ExpertsInt8Config
from vllm.model_executor.layers.quantization.online.int8 import Int8OnlineMoEMethod
from vllm.model_executor.layers.quantization.online.moe_base import OnlineMoEMethodBase
from vllm.model_executor.utils import replace_parameter

from wavecast.frameworks.serving import parameter
from wavecast.frameworks.vllm.experts import QuantisedExperts, biases, options
from wavecast.frameworks.vllm.served import serve

_int8: Final = serve("FusedMoE", "moe_experts_int8")
_int4: Final = serve("FusedMoE", "moe_experts_w4a16")
_GROUPS: Final = (32, 64, 128)
"""Inputs that share a scale in `moe_experts_w4a16`."""


class LibraryInt8(QuantisedExperts):
    """The products of experts by `wavecast.ops.moe_experts_int8`: a scale per row of weights,
    `scales` is the end of their names, and one per token of activations."""

    scales = "weight_scale"

    def multiplied(self, layer: Any, x: Tensor, weights: Tensor, indices: Tensor) -> Tensor:
        """What the chosen experts make of `x` [tokens, model]. Raises as `experts.options`."""
        w13, w2 = (getattr(layer, f"{name}_{self.scales}") for name in ("w13", "w2"))
        return _int8(
            x,
            weights,
            indices,
            layer.w13_weight,
            w13,
            layer.w2_weight,
            w2,
            *biases(layer),
            **options(layer),
        )


class WavecastInt8MoE(LibraryInt8, CompressedTensorsW8A8Int8MoEMethod):
    """Experts of checkpoints in int8."""

    def __init__(self, weights: Any, inputs: Any, moe: Any) -> None:
        FusedMoEMethodBase.__init__(self, moe)
        if weights.strategy != "channel" or not inputs.symmetric:
            raise NotImplementedError("experts of int8 without a scale per channel and token")
        self.weight_quant, self.input_quant, self.static_input_scales = weights, inputs, False

    def process_weights_after_loading(self, layer: Any) -> None:
        """Scales lose their dimension of 1."""
        self.decide_routing(layer)
        for name in ("w13_weight_scale", "w2_weight_scale"):
            replace_parameter(layer, name, parameter(getattr(layer, name).data.flatten(1)))


class WavecastOnlineInt8MoE(LibraryInt8, Int8OnlineMoEMethod):
    """Experts that vLLM rounds to int8 as they are loaded."""

    scales = "scale"

    def __init__(self, moe: Any) -> None:
        OnlineMoEMethodBase.__init__(self, moe)

    def _setup_kernel(self, layer: Any) -> None:
        self.decide_routing(layer)


class WavecastInt4MoE(QuantisedExperts, CompressedTensorsWNA16MoEMethod):
    """`wavecast.ops.moe_experts_w4a16`: a scale per group of inputs, with zero points or not."""

    def __init__(self, weights: Any, moe: Any) -> None:
        FusedMoEMethodBase.__init__(self, moe)
        if weights.num_bits != 4 or weights.group_size not in _GROUPS:
            raise NotImplementedError(
                f"experts of {weights.num_bits} bits in groups of {weights.group_size}"
            )
        self.weight_quant, self.symmetric = weights, weights.symmetric
        self.num_bits, self.packed_factor = 4, Fraction(8)
        self.strategy, self.group_size = weights.strategy, weights.group_size

    def process_weights_after_loading(self, layer: Any) -> None:
        """Codes of eight per int32 become two per byte, scales and zero points [experts, groups,
        outputs]."""
        self.decide_routing(layer)
        for name in ("w13", "w2"):
            codes = getattr(layer, f"{name}_weight_packed").data.contiguous().view(torch.uint8)
            scale = getattr(layer, f"{name}_weight_scale").data.transpose(1, 2).contiguous()
            replace_parameter(layer, f"{name}_weight_packed", parameter(codes))
            replace_parameter(layer, f"{name}_weight_scale", parameter(scale))
            if not self.symmetric:
                zero = f"{name}_weight_zero_point"
                replace_parameter(layer, zero, parameter(_unpack(getattr(layer, zero).data)))

    def multiplied(self, layer: Any, x: Tensor, weights: Tensor, indices: Tensor) -> Tensor:
        """What the chosen experts make of `x` [tokens, model]. Raises as `experts.options`."""
        return _int4(
            x,
            weights,
            indices,
            layer.w13_weight_packed,
            layer.w13_weight_scale,
            layer.w2_weight_packed,
            layer.w2_weight_scale,
            getattr(layer, "w13_weight_zero_point", None),
            getattr(layer, "w2_weight_zero_point", None),
            *biases(layer),
            group=self.group_size,
            **options(layer),
        )


class WavecastCompressedConfig(CompressedTensorsConfig):
    """Checkpoints of compressed-tensors whose experts the library multiplies."""

    def get_quant_method(self, layer: Any, prefix: str) -> Any:
        """vLLM's, but the library's for experts of int8 and of four bits. Raises
        NotImplementedError as these."""
        if isinstance(layer, RoutedExperts):
            self._add_fused_moe_to_target_scheme_map()
            names = (layer.ckpt_gate_proj_name, layer.ckpt_up_proj_name, layer.ckpt_down_proj_name)
            schemes = [self.get_scheme_dict(layer, f"{prefix}.0.{name}") for name in names]
            if schemes[0] and schemes[1:] == schemes[:1] * 2:
                scheme: dict[str, Any] = schemes[0]
                weights, inputs = scheme.get("weights"), scheme.get("input_activations")
                if weights is not None and weights.type == "int":
                    if self._is_wNa16_group_channel(weights, inputs):
                        return WavecastInt4MoE(weights, layer.moe_config)
                    if inputs is not None and self._is_dynamic_token_w8a8(weights, inputs):
                        return WavecastInt8MoE(weights, inputs, layer.moe_config)
        return super().get_quant_method(layer, prefix)


class WavecastExpertsInt8Config(ExpertsInt8Config):
    """Experts that are rounded to int8 as they are loaded."""

    def get_quant_method(self, layer: Any, prefix: str) -> Any:
        """vLLM's, but the library's for experts."""
        if isinstance(layer, RoutedExperts):
            return WavecastOnlineInt8MoE(layer.moe_config)
        return super().get_quant_method(layer, prefix)


def _unpack(codes: Tensor) -> Tensor:
    """Codes of four bits as uint8 [experts, groups, outputs], from int32 [experts, outputs / 8,
    groups] whose low bits have the first."""
    shifts = 4 * torch.arange(8, device=codes.device)[:, None]
    each = (codes[:, :, None] >> shifts) & 15
    return each.flatten(1, 2).transpose(1, 2).contiguous().to(torch.uint8)


CONFIGS: Final = {
    "compressed-tensors": WavecastCompressedConfig,
    "experts_int8": WavecastExpertsInt8Config,
}
"""By vLLM's name of a format."""

__all__ = [
    "CONFIGS",
    "LibraryInt8",
    "WavecastCompressedConfig",
    "WavecastExpertsInt8Config",
    "WavecastInt4MoE",
    "WavecastInt8MoE",
    "WavecastOnlineInt8MoE",
]
