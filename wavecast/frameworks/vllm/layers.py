"""Norms, gated activations and rotary embeddings as vLLM's out-of-tree operators."""

# pyright: reportMissingImports=false, reportIncompatibleMethodOverride=false
# pyright: reportAttributeAccessIssue=false
# vLLM is optional; a checker without it takes this package for it.

from __future__ import annotations

from typing import Any, Final

from torch import Tensor
from vllm.model_executor.layers import activation, layernorm, rotary_embedding
from vllm.model_executor.layers.rotary_embedding.deepseek_scaling_rope import (
    DeepseekScalingRotaryEmbedding,
)
from vllm.model_executor.layers.rotary_embedding.linear_scaling_rope import (
    LinearScalingRotaryEmbedding,
)

from wavecast.frameworks import serving
from wavecast.frameworks.vllm.preferred import OnByDefault
from wavecast.frameworks.vllm.served import serve

_norm: Final = serve("RMSNorm", "rms_norm")
_norm_residual: Final = serve("RMSNorm", "rms_norm_residual")
_gemma_norm: Final = serve("GemmaRMSNorm", "rms_norm")
_gemma_norm_residual: Final = serve("GemmaRMSNorm", "rms_norm_residual")
_silu_mul: Final = serve("SiluAndMul", "silu_mul")
_gelu_mul: Final = serve("GeluAndMul", "gelu_mul")
_rope: Final = serve("RotaryEmbedding", "rope")


class WavecastRMSNorm(OnByDefault, layernorm.RMSNorm):
    """`wavecast.ops.rms_norm`, and `rms_norm_residual` where there is a residual."""

    def forward_oot(
        self, x: Tensor, residual: Tensor | None = None
    ) -> Tensor | tuple[Tensor, Tensor]:
        """The norm of `x` [..., hidden], or of `x + residual` with that sum. Layers whose variance
        is of a part of the columns are left to vLLM."""
        if self.variance_size_override is not None:
            return self.forward_native(x, residual)
        weight = self.weight.data if self.has_weight else None
        if residual is None:
            return _norm(x, weight, self.variance_epsilon)
        return _norm_residual(x, residual, weight, self.variance_epsilon)

    forward_hip = forward_cuda = forward_oot


class WavecastGemmaRMSNorm(OnByDefault, layernorm.GemmaRMSNorm):
    """The norm whose weights are added to 1."""

    def forward_oot(
        self, x: Tensor, residual: Tensor | None = None
    ) -> Tensor | tuple[Tensor, Tensor]:
        """As of `WavecastRMSNorm`."""
        weight, eps = self.weight.data, self.variance_epsilon
        if residual is None:
            return _gemma_norm(x, weight, eps, 1.0)
        return _gemma_norm_residual(x, residual, weight, eps, 1.0)

    forward_hip = forward_cuda = forward_oot


class WavecastSiluAndMul(OnByDefault, activation.SiluAndMul):
    """`wavecast.ops.silu_mul`."""

    def forward_oot(self, x: Tensor) -> Tensor:
        """silu(gate) · up of `x` [..., 2 · columns]."""
        return _silu_mul(x)

    forward_hip = forward_cuda = forward_oot


class WavecastGeluAndMul(OnByDefault, activation.GeluAndMul):
    """`wavecast.ops.gelu_mul`."""

    def forward_oot(self, x: Tensor) -> Tensor:
        """gelu(gate) · up of `x` [..., 2 · columns]."""
        return _gelu_mul(x, approximate=self.approximate)

    forward_hip = forward_cuda = forward_oot


def apply_rotary(
    layer: Any, positions: Tensor, query: Tensor, key: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Queries and keys [tokens, heads · head] or [tokens, heads, head], rotated by the tables
    of a layer of vLLM. Without keys the queries are rotated as both."""
    operands = (query,) if key is None else (query, key)
    outputs = serving.apply_rotary(
        _rope, layer, layer._match_cos_sin_cache_dtype(query), positions, *operands
    )
    return outputs[0], None if key is None else outputs[1]


def _with_rope(base: type[Any]) -> type[Any]:
    """A layer of vLLM that rotates by its tables of cosines and sines alone."""

    def forward_oot(
        self: Any, positions: Tensor, query: Tensor, key: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        return apply_rotary(self, positions, query, key)

    methods = {"forward_oot": forward_oot, "forward_hip": forward_oot, "forward_cuda": forward_oot}
    bases = (OnByDefault, base)
    return type(f"Wavecast{base.__name__}", bases, {"__module__": __name__, **methods})


ROPES: Final = tuple(
    _with_rope(base)
    for base in (
        rotary_embedding.RotaryEmbedding,
        rotary_embedding.Llama3RotaryEmbedding,
        rotary_embedding.DynamicNTKScalingRotaryEmbedding,
        rotary_embedding.NTKScalingRotaryEmbedding,
        rotary_embedding.YaRNScalingRotaryEmbedding,
        LinearScalingRotaryEmbedding,
        DeepseekScalingRotaryEmbedding,
    )
)
"""A layer for every one of vLLM that differs in its tables alone."""
LAYERS: Final = (
    WavecastRMSNorm,
    WavecastGemmaRMSNorm,
    WavecastSiluAndMul,
    WavecastGeluAndMul,
    *ROPES,
)

__all__ = ["LAYERS", "ROPES", "apply_rotary"]
