"""Mixtures of experts with weights of fp8 and mxfp4, for vLLM's own formats of checkpoints."""

# pyright: reportMissingImports=false, reportIncompatibleMethodOverride=false
# vLLM is optional; a checker without it takes this package for it.

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor
from vllm.model_executor.layers.fused_moe.fused_moe_method_base import FusedMoEMethodBase
from vllm.model_executor.layers.fused_moe.routed_experts import RoutedExperts
from vllm.model_executor.layers.quantization.fp8 import Fp8Config, Fp8MoEMethod
from vllm.model_executor.layers.quantization.mxfp4 import Mxfp4Config, Mxfp4MoEMethod
from vllm.model_executor.layers.quantization.utils.quant_utils import is_layer_skipped
from vllm.model_executor.utils import replace_parameter

from wavecast.frameworks.serving import SQUARE, by_square, parameter
from wavecast.frameworks.vllm.experts import QuantisedExperts, options
from wavecast.frameworks.vllm.served import serve

_experts: Final = serve("FusedMoE", "moe_experts_fp8")
_widen: Final = serve("FusedMoE", "dequantise_mx")


class WavecastFp8MoE(QuantisedExperts, Fp8MoEMethod):
    """`wavecast.ops.moe_experts_fp8`: scales by square of 128 or by tensor."""

    def __init__(self, quant_config: Any, layer: Any) -> None:
        FusedMoEMethodBase.__init__(self, layer.moe_config)
        self.quant_config = quant_config
        self.weight_block_size = self.moe_block_shape = quant_config.weight_block_size
        self.block_quant = self.weight_block_size is not None
        if self.block_quant and tuple(self.weight_block_size) != (SQUARE, SQUARE):
            raise NotImplementedError(f"experts with scales by {self.weight_block_size}")
        if self.moe.has_bias:
            raise NotImplementedError("experts of fp8 with a bias")
        self.weight_scale_name = "weight_scale_inv" if self.block_quant else "weight_scale"
        self.weight_scale_refine = None

    def process_weights_after_loading(self, layer: Any) -> None:
        """Weights remain e4m3fn, which the operator converts where a GPU has another format. Scales
        by tensor become equal ones of squares; gate and up get the larger of theirs."""
        self.decide_routing(layer)
        for name, shards in (("w13", 2), ("w2", 1)):
            scale_name = f"{name}_{self.weight_scale_name}"
            weight, scale = getattr(layer, f"{name}_weight"), getattr(layer, scale_name)
            if not self.block_quant:
                weight, scale = by_square(weight.data, scale.data.view(-1, shards))
                replace_parameter(layer, f"{name}_weight", parameter(weight))
            replace_parameter(layer, scale_name, parameter(scale.float()))

    def multiplied(self, layer: Any, x: Tensor, weights: Tensor, indices: Tensor) -> Tensor:
        """What the chosen experts make of `x` [tokens, model], which is rounded to fp8
        with a scale per 128 columns. Raises NotImplementedError for gates and ups that alternate,
        and as `experts.options`."""
        settings = options(layer)
        if settings.pop("interleaved", False):
            raise NotImplementedError("experts of fp8 whose rows of gate and up alternate")
        scales = [getattr(layer, f"{name}_{self.weight_scale_name}") for name in ("w13", "w2")]
        return _experts(
            x,
            weights,
            indices,
            layer.w13_weight,
            scales[0],
            layer.w2_weight,
            scales[1],
            **settings,
        )


class WavecastMxfp4MoE(QuantisedExperts, Mxfp4MoEMethod):
    """`wavecast.ops.dequantise_mx` as weights are loaded (its reference where the GPU is emulated),
    then `moe_experts` in the model's dtype: weights take four times the memory of the
    checkpoint."""

    def __init__(self, moe: Any) -> None:
        FusedMoEMethodBase.__init__(self, moe)
        self.weight_dtype = "mxfp4"

    supports_eplb = skip_forward_padding = has_unpadded_output = False

    def maybe_roundup_sizes(
        self,
        hidden_size: int,
        intermediate_size_per_partition: int,
        act_dtype: torch.dtype,
        moe_parallel_config: Any,
    ) -> tuple[int, int]:
        """Sizes are not padded."""
        return hidden_size, intermediate_size_per_partition

    def process_weights_after_loading(self, layer: Any) -> None:
        """Weights become values of the model's dtype."""
        self.decide_routing(layer)
        dtype = self.moe.in_dtype
        for name in ("w13", "w2"):
            codes, scale = (
                getattr(layer, f"{name}_{suffix}") for suffix in ("weight", "weight_scale")
            )
            values = _widen(codes.data, scale.data, dtype)
            replace_parameter(layer, f"{name}_weight", parameter(values))


class WavecastFp8Config(Fp8Config):
    """Checkpoints of fp8 whose experts the library multiplies."""

    def get_quant_method(self, layer: Any, prefix: str) -> Any:
        """vLLM's, but the library's for experts. Raises NotImplementedError for experts with a bias
        and for scales by other blocks."""
        ignored = self.ignored_layers
        mapping, mode = self.packed_modules_mapping, self.ignored_layers_match_mode
        if not isinstance(layer, RoutedExperts) or is_layer_skipped(
            prefix=prefix, ignored_layers=ignored, fused_mapping=mapping, match_mode=mode
        ):
            return super().get_quant_method(layer, prefix)
        if self.store_dtype == "mxfp4":
            return WavecastMxfp4MoE(layer.moe_config)
        return WavecastFp8MoE(self, layer)


class WavecastMxfp4Config(Mxfp4Config):
    """Checkpoints of mxfp4 whose experts the library multiplies."""

    def _make_moe_method(self, moe: Any) -> Any:
        return WavecastMxfp4MoE(moe)


CONFIGS: Final = {"fp8": WavecastFp8Config, "mxfp4": WavecastMxfp4Config}
"""By vLLM's name of a format."""

__all__ = ["CONFIGS", "WavecastFp8Config", "WavecastFp8MoE", "WavecastMxfp4Config",
           "WavecastMxfp4MoE"]  # fmt: skip
