"""Linear layers and experts of fp8 checkpoints, for SGLang's format "fp8"."""

# pyright: reportMissingImports=false, reportIncompatibleMethodOverride=false
# SGLang is optional; a checker without it takes this package for it.

from __future__ import annotations

from typing import Any, Final

import torch
from sglang.srt.layers.linear import LinearBase
from sglang.srt.layers.moe.fused_moe_triton import FusedMoE
from sglang.srt.layers.moe.token_dispatcher import StandardCombineInput
from sglang.srt.layers.quantization.fp8 import Fp8Config, Fp8LinearMethod, Fp8MoEMethod
from sglang.srt.layers.quantization.fp8_utils import normalize_e4m3fn_to_e4m3fnuz
from sglang.srt.layers.quantization.utils import convert_to_channelwise, is_layer_skipped
from torch import Tensor

from wavecast import arch
from wavecast.frameworks.serving import SQUARE, by_square, parameter
from wavecast.frameworks.sglang.environment import requested_gpu
from wavecast.frameworks.sglang.experts import options
from wavecast.frameworks.sglang.served import serve

_scaled: Final = serve("Linear", "scaled_matmul")
_block: Final = serve("Linear", "matmul_fp8_block")
_by_tensor: Final = serve("Linear", "quantise_fp8_tensor")
_by_token: Final = serve("Linear", "quantise_fp8_token")
_by_group: Final = serve("Linear", "quantise_fp8_group")
_experts: Final = serve("FusedMoE", "moe_experts_fp8")
_MAXIMUM: Final = torch.finfo(torch.float8_e4m3fn).max


def _fp8() -> torch.dtype:
    """e4m3 as the matrix instructions of the emulated GPU take it."""
    fnuz = arch.load(requested_gpu()).capabilities.fp8_fnuz
    return torch.float8_e4m3fnuz if fnuz else torch.float8_e4m3fn


def _refuse(config: Any) -> None:
    """Raises NotImplementedError for scales by other blocks than of 128 by 128."""
    block = config.weight_block_size
    if config.use_mxfp8 or (block is not None and tuple(block) != (SQUARE, SQUARE)):
        raise NotImplementedError(f"fp8 weights with scales by {block}")


class SglangFp8Linear(Fp8LinearMethod):
    """`wavecast.ops.matmul_fp8_block` for scales of squares of 128, else `scaled_matmul`: weights
    with a scale per tensor, or per row where they are rounded as they are loaded."""

    def __init__(self, quant_config: Any) -> None:
        _refuse(quant_config)
        self.quant_config = quant_config
        self.weight_block_size = quant_config.weight_block_size
        self.block_quant, self.use_mxfp8 = self.weight_block_size is not None, False
        self.is_checkpoint_fp8_serialized = quant_config.is_checkpoint_fp8_serialized

    def process_weights_after_loading(self, layer: Any) -> None:
        """Weights become the GPU's fp8; scales per tensor of joined layers become ones per row.
        Raises ValueError for scales that SGLang's model has not read from the checkpoint."""
        weight = layer.weight.data
        if not self.is_checkpoint_fp8_serialized:
            most = weight.float().abs().amax(1, keepdim=True)
            scale = most.clamp(min=1e-12) / _MAXIMUM
            weight = (weight.float() / scale).to(torch.float8_e4m3fn)
        elif self.block_quant:
            scale = layer.weight_scale_inv.data
        else:
            scale = convert_to_channelwise(layer.weight_scale.data, layer.logical_widths)
        if not bool((scale > 0).all()):  # as SGLang initialises them
            raise ValueError("scales of fp8 weights that SGLang has not read from the checkpoint")
        input_scale = layer.input_scale
        if _fp8() == torch.float8_e4m3fnuz:
            weight, scale, input_scale = normalize_e4m3fn_to_e4m3fnuz(weight, scale, input_scale)
        name = "weight_scale_inv" if self.block_quant else "weight_scale"
        layer.weight = parameter(weight)
        setattr(layer, name, parameter(scale.float() if self.block_quant else scale.flatten()))
        layer.input_scale = None if input_scale is None else parameter(input_scale.data.max())

    def apply(self, layer: Any, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """`x` [..., inputs], rounded to fp8, times the layer's weight [outputs, inputs] transposed,
        plus `bias`. Raises NotImplementedError for activations that are quantised already."""
        if not isinstance(x, Tensor):
            raise NotImplementedError("activations that are quantised already")
        rows, dtype = x.reshape(-1, x.shape[-1]), layer.weight.dtype
        if self.block_quant:
            codes, scale = _by_group(rows, dtype, SQUARE)
            output = _block(codes, layer.weight, scale, layer.weight_scale_inv, x.dtype)
            output = output if bias is None else output + bias
        else:
            if layer.input_scale is None:
                codes, scale = _by_token(rows, dtype)
            else:
                codes, scale = _by_tensor(rows, layer.input_scale, dtype)
            weight = layer.weight.t()
            scales = (scale.reshape(-1), layer.weight_scale)
            output = _scaled(codes, weight, *scales, bias, out_dtype=x.dtype)
        return output.view(*x.shape[:-1], -1)


class SglangFp8MoE(Fp8MoEMethod):
    """`wavecast.ops.moe_experts_fp8`: scales by square of 128 or by tensor."""

    def __init__(self, quant_config: Any) -> None:
        _refuse(quant_config)
        if not quant_config.is_checkpoint_fp8_serialized or quant_config.is_fp4_experts:
            raise NotImplementedError("experts that are not of fp8 in the checkpoint")
        super().__init__(quant_config)

    def create_moe_runner(self, layer: Any, moe_runner_config: Any) -> None:
        """Keep the description of the experts; SGLang's runners are not used."""
        self.moe_runner_config, self.runner = moe_runner_config, None

    def process_weights_after_loading(self, layer: Any) -> None:
        """Weights remain e4m3fn, which the operator converts where a GPU has another format. Scales
        by tensor become equal ones of squares; gate and up get the larger of theirs."""
        for name, shards in (("w13", 2), ("w2", 1)):
            attribute = f"{name}_weight_scale_inv"
            if not self.block_quant:
                weight = getattr(layer, f"{name}_weight").data
                scale = getattr(layer, f"{name}_weight_scale").data.view(-1, shards)
                weight, scale = by_square(weight, scale)
                setattr(layer, f"{name}_weight", parameter(weight))
            else:
                scale = getattr(layer, attribute).data
            setattr(layer, attribute, parameter(scale.float()))

    def apply(self, layer: Any, dispatch_output: Any) -> StandardCombineInput:
        """What the chosen experts make of the hidden states [tokens, model], which are rounded to
        fp8 with a scale per 128 columns. Raises NotImplementedError as `experts.options`, and for
        biases and gates and ups that alternate."""
        settings = options(self.moe_runner_config)
        if (
            settings.pop("interleaved", False)
            or getattr(layer, "w13_weight_bias", None) is not None
        ):
            raise NotImplementedError("experts of fp8 with a bias or alternating rows")
        weights, indices, _ = dispatch_output.topk_output
        output = _experts(
            dispatch_output.hidden_states,
            weights,
            indices.to(torch.int32),
            layer.w13_weight,
            layer.w13_weight_scale_inv,
            layer.w2_weight,
            layer.w2_weight_scale_inv,
            **settings,
        )
        return StandardCombineInput(hidden_states=output)


class SglangFp8Config(Fp8Config):
    """Checkpoints of fp8 whose linear layers and experts the library multiplies, and models whose
    linear layers are rounded to fp8 as they are loaded."""

    def get_quant_method(self, layer: Any, prefix: str) -> Any:
        """The library's methods for layers that are quantised, SGLang's for others."""
        skipped = is_layer_skipped(
            prefix, self.ignored_layers, fused_mapping=self.packed_modules_mapping
        )
        if not skipped and isinstance(layer, LinearBase):
            return SglangFp8Linear(self)
        if not skipped and isinstance(layer, FusedMoE):
            return SglangFp8MoE(self)
        return super().get_quant_method(layer, prefix)


CONFIGS: Final = {"fp8": SglangFp8Config}
"""By SGLang's name of a format."""

__all__ = ["CONFIGS", "SglangFp8Config", "SglangFp8Linear", "SglangFp8MoE"]
