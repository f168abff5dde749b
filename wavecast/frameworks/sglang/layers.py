"""Norms, gated activations and rotary embeddings, as forwards of SGLang's layers."""

# pyright: reportMissingImports=false
# SGLang is optional; a checker without it takes this package for it.

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
from sglang.srt.layers import activation, layernorm
from sglang.srt.layers.rotary_embedding import base, rope_variant, yarn
from torch import Tensor

from wavecast.frameworks.serving import apply_rotary
from wavecast.frameworks.sglang.served import serve

_norm: Final = serve("RMSNorm", "rms_norm")
_norm_residual: Final = serve("RMSNorm", "rms_norm_residual")
_gemma_norm: Final = serve("GemmaRMSNorm", "rms_norm")
_gemma_norm_residual: Final = serve("GemmaRMSNorm", "rms_norm_residual")
_silu_mul: Final = serve("SiluAndMul", "silu_mul")
_gelu_mul: Final = serve("GeluAndMul", "gelu_mul")
_rope: Final = serve("RotaryEmbedding", "rope")
_write: Final = serve("RotaryEmbedding", "kv_cache_write")
Normed = Tensor | tuple[Tensor, Tensor]


def rms_norm(
    self: Any,
    x: Tensor,
    residual: Tensor | None = None,
    post_residual_addition: Tensor | None = None,
    quant_linear: Any = None,
) -> Normed:
    """The norm of `x` [..., hidden], or of `x + residual` with that sum. Raises NotImplementedError
    for a variance of a part of the columns, residuals in float32, and values rounded before they
    are multiplied."""
    features = {
        "a variance of a part of the columns": self.variance_size_override is not None,
        "a residual in float32": self.fp32_residual,
        "another dtype than its input's": self.override_orig_dtype is not None,
        "values rounded before the weights": self.cast_x_before_out_mul,
    }
    for what, is_used in features.items():
        if is_used:
            raise NotImplementedError(f"RMSNorm with {what}")
    weight = self.weight.data if self.has_weight else None
    if residual is None:
        return _norm(x, weight, self.variance_epsilon)
    return _norm_residual(
        x, _add_optional(residual, post_residual_addition), weight, self.variance_epsilon
    )


def gemma_rms_norm(
    self: Any,
    x: Tensor,
    residual: Tensor | None = None,
    post_residual_addition: Tensor | None = None,
) -> Normed:
    """The norm whose weights are added to 1."""
    weight, eps = self.weight.data, self.variance_epsilon
    if residual is None:
        return _gemma_norm(x, weight, eps, 1.0)
    return _gemma_norm_residual(
        x, _add_optional(residual, post_residual_addition), weight, eps, 1.0
    )


def gemma3_rms_norm(self: Any, x: Tensor, residual: Tensor | None = None) -> Normed:
    """As `gemma_rms_norm`, of Gemma 3."""
    if residual is None:
        return _gemma_norm(x, self.weight.data, self.eps, 1.0)
    return _gemma_norm_residual(x, residual, self.weight.data, self.eps, 1.0)


def silu_and_mul(self: Any, x: Tensor) -> Tensor:
    """silu(gate) · up of `x` [..., 2 · columns]."""
    return _silu_mul(x)


def gelu_and_mul(self: Any, x: Tensor) -> Tensor:
    """gelu(gate) · up of `x` [..., 2 · columns]."""
    return _gelu_mul(x, approximate=self.approximate)


def rotary(
    self: Any,
    positions: Tensor,
    query: Tensor,
    key: Tensor,
    offsets: Tensor | None = None,
    fused_set_kv_buffer_arg: Any = None,
) -> tuple[Tensor, Tensor]:
    """Queries and keys [tokens, heads · head] or [tokens, heads, head], rotated by the tables of
    the layer, and written to the cache with their values where SGLang asks for both at once. Raises
    NotImplementedError for caches of sliding windows and of another layout."""
    where = positions if offsets is None else positions + offsets
    outputs = apply_rotary(_rope, self, self.cos_sin_cache.to(query.dtype), where, query, key)
    if fused_set_kv_buffer_arg is not None:
        rotated = outputs[1].reshape(where.numel(), -1, self.head_size)
        write_rotated(rotated, fused_set_kv_buffer_arg)
    return outputs[0], outputs[1]


def write_rotated(key: Tensor, argument: Any) -> None:
    """Write keys [tokens, heads, head] and the values of SGLang's argument to the slots it names:
    on ROCm a mapping with caches by pages, else an object with caches [slots, heads · head]."""
    if isinstance(argument, Mapping):
        if argument["swa_slot_mapping"] is not None or argument["key_cache"].dim() != 4:
            raise NotImplementedError("rotary embeddings that write a cache of another layout")
        caches, value = (argument["key_cache"], argument["value_cache"]), argument["v"]
        slots, scales = argument["slot_mapping"], (argument["k_scale"], argument["v_scale"])
    else:
        heads = key.shape[1]
        slots, scales, value = argument.cache_loc, (None, None), argument.value
        value = value.reshape(key.shape[0], heads, -1)
        caches = tuple(
            cache.view(cache.shape[0], 1, heads, -1)
            for cache in (argument.k_buffer, argument.v_buffer)
        )
    options = {}
    if caches[0].dtype.itemsize == 1:
        one = torch.ones((), device=key.device)
        names = ("k_scale", "v_scale")
        options = {n: one if s is None else s for n, s in zip(names, scales, strict=True)}
    _write(key, value, *caches, slots.to(torch.int64), **options)


def _add_optional(residual: Tensor, more: Tensor | None) -> Tensor:
    return residual if more is None else residual + more


ROPES: Final = (
    base.RotaryEmbedding,
    base.LinearScalingRotaryEmbedding,
    rope_variant.Llama3RotaryEmbedding,
    rope_variant.DynamicNTKScalingRotaryEmbedding,
    rope_variant.DynamicNTKAlphaRotaryEmbedding,
    rope_variant.DeepseekScalingRotaryEmbedding,
    yarn.YaRNScalingRotaryEmbedding,
)
"""Rotary embeddings that differ in their tables alone."""
FORWARDS: Final[dict[type[Any], Callable[..., Any]]] = {
    layernorm.RMSNorm: rms_norm,
    layernorm.GemmaRMSNorm: gemma_rms_norm,
    layernorm.Gemma3RMSNorm: gemma3_rms_norm,
    activation.SiluAndMul: silu_and_mul,
    activation.GeluAndMul: gelu_and_mul,
    **dict.fromkeys(ROPES, rotary),
}
"""By the exact class of SGLang's layer."""

__all__ = ["FORWARDS", "ROPES"]
