"""Linear layers with weights of fp8, int8 and four bits, for vLLM's own formats of checkpoints."""

# pyright: reportMissingImports=false, reportIncompatibleMethodOverride=false
# vLLM is optional; a checker without it takes this package for it.

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor
from vllm.model_executor.kernels.linear.mixed_precision.MPLinearKernel import MPLinearKernel
from vllm.model_executor.kernels.linear.scaled_mm.BlockScaledMMLinearKernel import (
    Fp8BlockScaledMMLinearKernel,
)
from vllm.model_executor.kernels.linear.scaled_mm.ScaledMMLinearKernel import (
    FP8ScaledMMLinearKernel,
    Int8ScaledMMLinearKernel,
)
from vllm.model_executor.layers.quantization.input_quant_fp8 import QuantFP8
from vllm.model_executor.layers.quantization.utils.w8a8_utils import convert_to_channelwise
from vllm.model_executor.parameter import permute_param_layout_
from vllm.model_executor.utils import replace_parameter
from vllm.platforms import current_platform
from vllm.scalar_type import scalar_types

from wavecast.frameworks.vllm.preferred import OnByDefault
from wavecast.frameworks.vllm.served import serve

_scaled: Final = serve("Linear", "scaled_matmul")
_block: Final = serve("Linear", "matmul_fp8_block")
_int4: Final = serve("Linear", "matmul_w4a16")
_int8_token: Final = serve("Linear", "quantise_int8_token")
_fp8_tensor: Final = serve("QuantFP8", "quantise_fp8_tensor")
_fp8_token: Final = serve("QuantFP8", "quantise_fp8_token")
_fp8_group: Final = serve("QuantFP8", "quantise_fp8_group")
_SUPPORTED: Final = (True, None)


class WavecastQuantFP8(OnByDefault, QuantFP8):
    """Activations in fp8: by a given scale, or by one per tensor, token or group of 128."""

    def forward_oot(
        self,
        x: Tensor,
        scale: Tensor | None = None,
        scale_ub: Tensor | None = None,
        use_triton: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """Codes and scales of `x` [tokens, columns]. Scales with an upper bound, of powers of two,
        or given by group are left to vLLM."""
        dtype = current_platform.fp8_dtype()
        by_group = scale is not None and not self.group_shape.is_per_tensor()
        if scale_ub is not None or by_group or (self.is_group_quant and self.use_ue8m0):
            return self.forward_native(x, scale, scale_ub, use_triton)
        if self.is_group_quant:
            return _fp8_group(x, dtype, self.group_size)
        if scale is None and self.use_per_token_if_dynamic:
            return _fp8_token(x, dtype)
        return _fp8_tensor(x, None if scale is None else scale.float(), dtype)

    forward_hip = forward_cuda = forward_oot


class WavecastFp8Linear(FP8ScaledMMLinearKernel):
    """`wavecast.ops.scaled_matmul`, scales per tensor, token or channel."""

    @classmethod
    def is_supported(cls, compute_capability: int | None = None) -> tuple[bool, str | None]:
        """The operator runs on every GPU."""
        return _SUPPORTED

    @classmethod
    def can_implement(cls, c: Any) -> tuple[bool, str | None]:
        """Scales belong to a tensor or to its rows."""
        shapes = (c.weight_quant_key.scale.group_shape, c.activation_quant_key.scale.group_shape)
        if all(
            shape.is_per_tensor() or shape.is_per_token() or shape.is_per_channel()
            for shape in shapes
        ):
            return _SUPPORTED
        return False, "scales by group"

    def apply_scaled_mm(
        self,
        *,
        A: Tensor,
        B: Tensor,
        out_dtype: torch.dtype,
        As: Tensor,
        Bs: Tensor,
        bias: Tensor | None,
        output_shape: list[int],
    ) -> Tensor:
        """`A` [tokens, inputs] times `B` [inputs, outputs], each times its scales."""
        output = _scaled(
            A, B, As.float().reshape(-1), Bs.float().reshape(-1), bias, out_dtype=out_dtype
        )
        return output.view(*output_shape)


class WavecastFp8BlockLinear(Fp8BlockScaledMMLinearKernel):
    """`wavecast.ops.matmul_fp8_block`, scales of squares of 128."""

    @classmethod
    def is_supported(cls, compute_capability: int | None = None) -> tuple[bool, str | None]:
        """The operator runs on every GPU."""
        return _SUPPORTED

    @classmethod
    def can_implement(cls, config: Any) -> tuple[bool, str | None]:
        """Blocks of 128 by 128, activations by groups of 128 found as they come."""
        if tuple(config.weight_quant_key.scale.group_shape) != (128, 128):
            return False, "blocks other than 128 by 128"
        return super().can_implement(config)

    def get_output_padding(self) -> int | None:
        """Rows of activations are not padded."""
        return None

    def apply_block_scaled_mm(self, A: Tensor, B: Tensor, As: Tensor, Bs: Tensor) -> Tensor:
        """`A` [tokens, inputs] times `B` [outputs, inputs] transposed."""
        return _block(A, B, As, Bs.float(), self.config.out_dtype)


class WavecastInt8Linear(Int8ScaledMMLinearKernel):
    """`wavecast.ops.scaled_matmul` of int8, activations with a scale per token."""

    @classmethod
    def is_supported(cls, compute_capability: int | None = None) -> tuple[bool, str | None]:
        """The operator runs on every GPU."""
        return _SUPPORTED

    @classmethod
    def can_implement(cls, c: Any) -> tuple[bool, str | None]:
        """Symmetric activations whose scales are found as they come."""
        if c.is_static_input_scheme or not c.input_symmetric:
            return False, "activations with a given scale or a zero point"
        return _SUPPORTED

    def process_weights_after_loading(self, layer: Any) -> None:
        """Scales per tensor of joined layers become scales per channel."""
        name = self.layer_param_names[1]
        scale = getattr(layer, name)
        if len(layer.logical_widths) > 1 and not self.config.is_channelwise:
            scale = convert_to_channelwise(scale, layer.logical_widths)
        flat = scale.data.float().reshape(-1)
        replace_parameter(layer, name, torch.nn.Parameter(flat, requires_grad=False))

    def apply_weights(self, layer: Any, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """`x` [..., inputs] times the layer's weight [outputs, inputs] transposed."""
        weight, scale = self._get_layer_params(layer)[:2]
        codes, scales = _int8_token(x)
        return _scaled(codes, weight.t(), scales, scale, bias, out_dtype=x.dtype)


class WavecastInt4Linear(MPLinearKernel):
    """`wavecast.ops.matmul_w4a16`: codes of four bits less 8."""

    @classmethod
    def get_min_capability(cls) -> int:
        """Any."""
        return 0

    @classmethod
    def can_implement(cls, c: Any) -> tuple[bool, str | None]:
        """Groups of 32, 64 or 128 inputs with a scale and no zero points."""
        if c.weight_type != scalar_types.uint4b8 or c.zero_points:
            return False, "codes other than of four bits less 8"
        if c.group_size not in (32, 64, 128) or c.partition_weight_shape[0] % c.group_size:
            return False, f"groups of {c.group_size} inputs"
        return _SUPPORTED

    def process_weights_after_loading(self, layer: Any) -> None:
        """Codes become [outputs, inputs / 2] of uint8, scales [inputs / group, outputs]."""

        def codes(weight: Any) -> Any:
            permute_param_layout_(weight, input_dim=1, output_dim=0, packed_dim=1)
            weight.data = weight.data.contiguous().view(torch.uint8)
            return weight

        def scales(scale: Any) -> Any:
            permute_param_layout_(scale, input_dim=0, output_dim=1)
            scale.data = scale.data.contiguous()
            return scale

        self._transform_param(layer, self.w_q_name, codes)
        self._transform_param(layer, self.w_s_name, scales)

    def apply_weights(self, layer: Any, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """`x` [..., inputs] times the layer's weight transposed."""
        weight, scale, _ = self._get_weight_params(layer)
        output = _int4(x, weight, scale, None, self.config.group_size)
        return output if bias is None else output + bias


LAYERS: Final = (WavecastQuantFP8,)
KERNELS: Final[dict[str, type[Any]]] = {
    "fp8": WavecastFp8Linear,
    "fp8_block": WavecastFp8BlockLinear,
    "int8": WavecastInt8Linear,
    "mp": WavecastInt4Linear,
}
"""By the names that vLLM's `register_linear_kernel` has for them."""

__all__ = [
    "KERNELS",
    "LAYERS",
    "WavecastFp8BlockLinear",
    "WavecastFp8Linear",
    "WavecastInt4Linear",
    "WavecastInt8Linear",
    "WavecastQuantFP8",
]
