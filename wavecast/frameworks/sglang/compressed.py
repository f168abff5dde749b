"""Linear layers and experts of int8 and of four bits, for SGLang's format "compressed-tensors"."""

# pyright: reportMissingImports=false, reportIncompatibleMethodOverride=false
# SGLang is optional; a checker without it takes this package for it.

from __future__ import annotations

from typing import Any, ClassVar, Final

import torch
from sglang.srt.layers.moe.token_dispatcher import StandardCombineInput
from sglang.srt.layers.quantization.compressed_tensors.compressed_tensors import (
    CompressedTensorsConfig,
)
from sglang.srt.layers.quantization.compressed_tensors.schemes import (
    CompressedTensorsW8A8Int8,
    CompressedTensorsWNA16,
    CompressedTensorsWNA16MoE,
    NPUCompressedTensorsW8A8Int8DynamicMoE,
)
from sglang.srt.layers.quantization.utils import convert_to_channelwise
from torch import Tensor

from wavecast.frameworks.serving import parameter
from wavecast.frameworks.sglang.environment import LOCAL, requested_gpu
from wavecast.frameworks.sglang.experts import options
from wavecast.frameworks.sglang.served import serve

_scaled: Final = serve("Linear", "scaled_matmul")
_by_token: Final = serve("Linear", "quantise_int8_token")
_int4: Final = serve("Linear", "matmul_w4a16")
_int8_experts: Final = serve("FusedMoE", "moe_experts_int8")
_int4_experts: Final = serve("FusedMoE", "moe_experts_w4a16")
_GROUPS: Final = (32, 64, 128)
"""Inputs that share a scale in `matmul_w4a16` and `moe_experts_w4a16`."""


class SglangInt8Linear(CompressedTensorsW8A8Int8):
    """`wavecast.ops.scaled_matmul` of int8, activations with a scale per token."""

    def __init__(self, scheme: CompressedTensorsW8A8Int8) -> None:
        if scheme.is_static_input_scheme or not scheme.input_symmetric:
            raise NotImplementedError("activations of int8 with a given scale or a zero point")
        super().__init__(scheme.strategy, scheme.is_static_input_scheme, scheme.input_symmetric)

    def process_weights_after_loading(self, layer: Any) -> None:
        """Scales per tensor of joined layers become scales per row."""
        scale = layer.weight_scale.data
        if self.strategy == "tensor":
            scale = convert_to_channelwise(scale, layer.logical_widths)
        layer.weight = parameter(layer.weight.data)
        layer.weight_scale = parameter(scale.float().flatten())

    def apply_weights(self, layer: Any, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """`x` [..., inputs] times the layer's weight [outputs, inputs] transposed."""
        rows = x.reshape(-1, x.shape[-1])
        codes, scale = _by_token(rows)
        scales = (scale.flatten(), layer.weight_scale)
        output = _scaled(codes, layer.weight.t(), *scales, bias, out_dtype=x.dtype)
        return output.view(*x.shape[:-1], -1)


class SglangInt4Linear(CompressedTensorsWNA16):
    """`wavecast.ops.matmul_w4a16`: codes of four bits less 8."""

    def __init__(self, scheme: CompressedTensorsWNA16) -> None:
        bits = 32 // scheme.pack_factor
        if bits != 4 or not scheme.symmetric or scheme.has_g_idx:
            raise NotImplementedError(f"weights of {bits} bits, zero points or reordered inputs")
        if scheme.group_size not in _GROUPS:
            raise NotImplementedError(f"four bits in groups of {scheme.group_size} inputs")
        super().__init__(scheme.strategy, bits, scheme.group_size, scheme.symmetric)

    def process_weights_after_loading(self, layer: Any) -> None:
        """Codes become [outputs, inputs / 2] of uint8, scales [inputs / group, outputs]."""
        layer.weight_packed = parameter(layer.weight_packed.data.contiguous().view(torch.uint8))
        layer.weight_scale = parameter(layer.weight_scale.data.t().contiguous())

    def apply_weights(self, layer: Any, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """`x` [..., inputs] times the layer's weight transposed."""
        output = _int4(x, layer.weight_packed, layer.weight_scale, None, self.group_size)
        return output if bias is None else output + bias


class SglangInt8MoE(NPUCompressedTensorsW8A8Int8DynamicMoE):
    """`wavecast.ops.moe_experts_int8`: a scale per row of weights and per token of activations."""

    load_up_proj_weight_first: ClassVar[bool] = False

    def __init__(self, weights: Any, inputs: Any) -> None:
        if weights.strategy != "channel" or not inputs.symmetric or not inputs.dynamic:
            raise NotImplementedError("experts of int8 without a scale per channel and token")
        self.weight_quant, self.input_quant, self.static_input_scales = weights, inputs, False

    def process_weights_after_loading(self, layer: Any) -> None:
        """Scales lose their dimension of 1."""
        for name in ("w13_weight_scale", "w2_weight_scale"):
            setattr(layer, name, parameter(getattr(layer, name).data.flatten(1)))

    def create_moe_runner(self, layer: Any, moe_runner_config: Any) -> None:
        """Keep the description of the experts; SGLang's runners are not used."""
        self.moe_runner_config, self.runner = moe_runner_config, None

    def apply_weights(self, layer: Any, dispatch_output: Any) -> StandardCombineInput:
        """What the chosen experts make of the hidden states [tokens, model]. Raises as
        `experts.options`."""
        weights, indices, _ = dispatch_output.topk_output
        output = _int8_experts(
            dispatch_output.hidden_states, weights, indices.to(torch.int32), layer.w13_weight,
            layer.w13_weight_scale, layer.w2_weight, layer.w2_weight_scale,
            **options(self.moe_runner_config),
        )  # fmt: skip
        return StandardCombineInput(hidden_states=output)


class SglangInt4MoE(CompressedTensorsWNA16MoE):
    """`wavecast.ops.moe_experts_w4a16`: codes less 8, with a scale per group of inputs."""

    load_up_proj_weight_first: ClassVar[bool] = False

    def __init__(self, config: Any, weights: Any) -> None:
        if weights.num_bits != 4 or weights.group_size not in _GROUPS or weights.actorder:
            raise NotImplementedError(
                f"experts of {weights.num_bits} bits in groups of {weights.group_size}"
            )
        if not weights.symmetric:
            raise NotImplementedError("experts with zero points, which SGLang does not load")
        super().__init__(config, weight_quant=weights)

    def process_weights_after_loading(self, layer: Any) -> None:
        """Codes of eight per int32 become two per byte, [experts, outputs, inputs / 2]."""
        for name in ("w13_weight_packed", "w2_weight_packed"):
            packed = getattr(layer, name).data.transpose(1, 2)
            setattr(layer, name, parameter(packed.contiguous().view(torch.uint8)))

    def create_moe_runner(self, layer: Any, moe_runner_config: Any) -> None:
        """Keep the description of the experts; SGLang's runners are not used."""
        self.moe_runner_config, self.runner = moe_runner_config, None

    def apply_weights(self, layer: Any, dispatch_output: Any) -> StandardCombineInput:
        """What the chosen experts make of the hidden states [tokens, model]. Raises as
        `experts.options`."""
        weights, indices, _ = dispatch_output.topk_output
        output = _int4_experts(
            dispatch_output.hidden_states, weights, indices.to(torch.int32),
            layer.w13_weight_packed, layer.w13_weight_scale, layer.w2_weight_packed,
            layer.w2_weight_scale, group=self.group_size, **options(self.moe_runner_config),
        )  # fmt: skip
        return StandardCombineInput(hidden_states=output)


# SGLang transposes what it loads for a class of this name
SglangInt4MoE.__name__ = CompressedTensorsWNA16MoE.__name__


class SglangCompressedConfig(CompressedTensorsConfig):
    """Checkpoints of compressed-tensors whose linear layers and experts the library multiplies."""

    def get_linear_scheme(self, layer: Any, layer_name: str | None = None) -> Any:
        """The library's scheme of a linear layer, None where it is not quantised. Raises
        NotImplementedError for formats without one."""
        scheme = super().get_linear_scheme(layer, layer_name)
        if isinstance(scheme, CompressedTensorsW8A8Int8):
            return SglangInt8Linear(scheme)
        if isinstance(scheme, CompressedTensorsWNA16):
            return SglangInt4Linear(scheme)
        return _left(scheme)

    def get_moe_scheme(self, layer: Any, layer_name: str | None = None) -> Any:
        """The library's scheme of experts, None where they are not quantised. Raises
        NotImplementedError for formats without one."""
        self._add_fused_moe_to_target_scheme_map()
        names = (f"{layer_name}.0.{one}_proj" for one in ("gate", "up", "down"))
        schemes: list[Any] = [self.get_scheme_dict(layer, name) for name in names]
        if schemes[0] is None or schemes[1:] != schemes[:1] * 2:
            return _left(super().get_moe_scheme(layer, layer_name))
        weights, inputs = schemes[0].get("weights"), schemes[0].get("input_activations")
        if self._is_wNa16_group_channel(weights, inputs):
            return SglangInt4MoE(self, weights)
        if inputs is not None and self._is_dynamic_token_w8a8(weights, inputs):
            return SglangInt8MoE(weights, inputs)
        return _left(super().get_moe_scheme(layer, layer_name))

    def _check_scheme_supported(self, min_capability: int, error: bool = True) -> bool:
        """The library's kernels run on every GPU; SGLang would ask CUDA what its kernels need."""
        return requested_gpu() != LOCAL or super()._check_scheme_supported(min_capability, error)


def _left(scheme: Any) -> Any:
    """A scheme of SGLang's, whose kernels run on the GPU that it finds. Raises NotImplementedError
    on an emulated one."""
    if scheme is not None and requested_gpu() != LOCAL:
        raise NotImplementedError(f"layers of {type(scheme).__name__}")
    return scheme


CONFIGS: Final = {"compressed-tensors": SglangCompressedConfig}
"""By SGLang's name of a format."""

__all__ = [
    "CONFIGS",
    "SglangCompressedConfig",
    "SglangInt4Linear",
    "SglangInt4MoE",
    "SglangInt8Linear",
    "SglangInt8MoE",
]
